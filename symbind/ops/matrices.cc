#include "symbind/ops/matrices.h"

#include "symbind/core/error.h"

namespace symbind {

void same_real_type(Types& types) {
  same_type(types);
  const DType dtype = types.output().get();
  require(dtype == DType::none || dtype == DType::float32 || dtype == DType::float64, types.where(),
          " matrices must be float32 or float64: ", dtype);
}

bool has_matrices(const Shapes& shapes, Inferred<Shape> array, std::string_view name) {
  if (!array.rank_known()) return false;
  require(array.rank() >= 2, shapes.where(), " ", name, " must have two axes or more, the last two of matrices: ", name,
          " ", array.get());
  return true;
}

bool has_square_matrices(const Shapes& shapes, Inferred<Shape> array, std::string_view name) {
  if (!has_matrices(shapes, array, name)) return false;
  const int rank = array.rank();
  array.meet_dim(rank - 1, array[rank - 2]);
  array.meet_dim(rank - 2, array[rank - 1]);
  return true;
}

Shape one_per_matrix(const Shape& matrices) {
  const Shape batch = matrices.slice(0, matrices.rank() - 2);
  return batch.rank() == 0 ? Shape{1} : batch;
}

}  // namespace symbind
