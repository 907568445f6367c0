#include "symbind/files/array_bytes.h"

#include <cstring>
#include <limits>
#include <string>
#include <vector>

namespace symbind {
namespace {

enum StorageKind : int32_t { dense = 0, row_sparse = 1, csr = 2 };

Shape read_dims(ByteReader& in, int64_t rank, uint64_t rank_offset, bool wide) {
  if (rank < 0 || rank > Shape::max_rank) in.fail_at(rank_offset, join("a rank of at most ", Shape::max_rank), rank);
  Shape shape = Shape::of_rank(static_cast<int>(rank));
  for (int axis = 0; axis < rank; ++axis) {
    const uint64_t offset = in.offset();
    shape[axis] = wide ? in.read<int64_t>("a dimension of an array") : in.read<uint32_t>("a dimension of an array");
    if (shape[axis] < 0) in.fail_at(offset, "a dimension of at least 0", shape[axis]);
  }
  return shape;
}

// A shape of unknown rank means an empty NDArray.
Shape read_shape(ByteReader& in, ArrayGeneration generation) {
  const uint64_t offset = in.offset();
  const auto rank = in.read<int32_t>("the rank of an array");
  if (rank == (generation == ArrayGeneration::v3 ? -1 : 0)) return Shape();
  return read_dims(in, rank, offset, true);
}

void skip_context(ByteReader& in) {
  (void)in.read<int32_t>("the device type of an array");
  (void)in.read<int32_t>("the device id of an array");
}

DType read_dtype(ByteReader& in) {
  const uint64_t offset = in.offset();
  const auto flag = in.read<int32_t>("the element type of an array");
  for (const DType dtype : {DType::float32, DType::float64, DType::float16, DType::uint8, DType::int32, DType::int8,
                            DType::int64, DType::boolean, DType::bfloat16})
    if (static_cast<int32_t>(dtype) == flag) return dtype;
  in.fail_at(offset, "an element type (0 to 7, or 12)", flag);
}

// Products of dimensions must not overflow, those of an array without elements included.
uint64_t bytes_of(const ByteReader& in, const Shape& shape, DType dtype, uint64_t shape_offset) {
  uint64_t count = 1;
  bool overflow = false, no_elements = false;
  for (const int64_t dim : shape) {
    if (dim == 0)
      no_elements = true;
    else
      overflow |= __builtin_mul_overflow(count, static_cast<uint64_t>(dim), &count);
  }
  overflow |= count > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) / size_of(dtype);
  if (overflow) in.fail_at(shape_offset, "dimensions whose product fits into 64 bits", shape);
  return no_elements ? 0 : count * size_of(dtype);
}

// The file must hold all elements before memory is allocated for them.
NDArray read_elements(ByteReader& in, const Shape& shape, DType dtype, uint64_t shape_offset) {
  const uint64_t bytes = bytes_of(in, shape, dtype, shape_offset);
  if (bytes > in.remaining())
    in.fail_at(in.offset(), join("the ", bytes, " bytes of an array ", shape, " of ", dtype), "only ", in.remaining(),
               " more");
  NDArray array(shape, cpu(), dtype);
  in.read(array.mutable_data(), array.bytes(), "the elements of an array");
  if (dtype == DType::boolean) {  // any byte but 0 means true, a C++ bool holds 0 or 1 only
    auto* values = static_cast<uint8_t*>(array.mutable_data());
    for (size_t i = 0; i < array.bytes(); ++i) values[i] = values[i] != 0;
  }
  return array;
}

NDArray read_plain(ByteReader& in, const Shape& shape, uint64_t shape_offset) {
  if (!shape.rank_known()) return NDArray();
  skip_context(in);
  const DType dtype = read_dtype(in);
  return read_elements(in, shape, dtype, shape_offset);
}

// ---- Sparse arrays

struct Index {
  DType dtype;
  Shape shape;
  uint64_t shape_offset = 0;
};

Index read_index_header(ByteReader& in, ArrayGeneration generation) {
  const uint64_t offset = in.offset();
  Index index;
  index.dtype = read_dtype(in);
  if (index.dtype != DType::int64 && index.dtype != DType::int32)
    in.fail_at(offset, "int32 or int64 as the type of an index of a sparse array", index.dtype);
  index.shape_offset = in.offset();
  index.shape = read_shape(in, generation);
  if (index.shape.rank() != 1) in.fail_at(index.shape_offset, "an index of one axis", index.shape);
  return index;
}

// Every value is in [0, limit].
std::vector<int64_t> read_index(ByteReader& in, const Index& index, int64_t limit) {
  const uint64_t offset = in.offset();
  auto values = read_elements(in, index.shape, index.dtype, index.shape_offset).to_vector<int64_t>();
  for (size_t i = 0; i < values.size(); ++i)
    if (values[i] < 0 || values[i] > limit)
      in.fail_at(offset + i * size_of(index.dtype),
                 join("a number from 0 to ", limit, " in the index of a sparse array"), values[i]);
  return values;
}

NDArray zeros_for(ByteReader& in, const Shape& shape, DType dtype, uint64_t shape_offset) {
  if (!in.may_unpack(bytes_of(in, shape, dtype, shape_offset)))
    in.fail_at(shape_offset, "a sparse array of a sane size when made dense", shape, " in a file this small");
  return zeros(shape, cpu(), dtype);
}

NDArray read_row_sparse(ByteReader& in, ArrayGeneration generation) {
  const uint64_t stored_offset = in.offset();
  const Shape stored = read_shape(in, generation);
  const uint64_t shape_offset = in.offset();
  const Shape shape = read_shape(in, generation);
  if (!shape.rank_known()) return NDArray();
  skip_context(in);
  const DType dtype = read_dtype(in);
  const Index rows = read_index_header(in, generation);
  const bool fits = shape.rank() >= 1 && stored.rank() == shape.rank() && stored[0] == rows.shape[0] &&
                    stored.slice(1, stored.rank()) == shape.slice(1, shape.rank());
  if (!fits)
    in.fail_at(stored_offset, join("the stored rows of a row_sparse array ", shape), stored, " with ", rows.shape,
               " row numbers");
  const NDArray values = read_elements(in, stored, dtype, stored_offset);
  const uint64_t rows_offset = in.offset();
  const std::vector<int64_t> numbers = read_index(in, rows, std::numeric_limits<int64_t>::max());
  NDArray array = zeros_for(in, shape, dtype, shape_offset);
  const size_t row_bytes = values.size() > 0 ? values.bytes() / numbers.size() : 0;
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] >= shape[0])
      in.fail_at(rows_offset + i * size_of(rows.dtype), join("a row number below ", shape[0]), numbers[i]);
    if (row_bytes > 0)
      std::memcpy(static_cast<std::byte*>(array.mutable_data()) + static_cast<size_t>(numbers[i]) * row_bytes,
                  static_cast<const std::byte*>(values.data()) + i * row_bytes, row_bytes);
  }
  return array;
}

NDArray read_csr(ByteReader& in, ArrayGeneration generation) {
  const uint64_t stored_offset = in.offset();
  const Shape stored = read_shape(in, generation);
  const uint64_t shape_offset = in.offset();
  const Shape shape = read_shape(in, generation);
  if (!shape.rank_known()) return NDArray();
  if (shape.rank() != 2) in.fail_at(shape_offset, "two axes in a csr array", shape);
  if (stored.rank() != 1) in.fail_at(stored_offset, "one axis in what a csr array stores", stored);
  skip_context(in);
  const DType dtype = read_dtype(in);
  const Index starts = read_index_header(in, generation), columns = read_index_header(in, generation);
  // An array that was never filled has no row starts at all.
  const bool empty = stored[0] == 0 && starts.shape[0] == 0;
  if (!empty && starts.shape[0] - 1 != shape[0])
    in.fail_at(starts.shape_offset, join("as many row starts as the array has rows, and one"), starts.shape, " for ",
               shape[0], " rows");
  if (columns.shape[0] != stored[0])
    in.fail_at(columns.shape_offset, join("a column number for each of ", stored[0], " values"), columns.shape);
  const NDArray values = read_elements(in, stored, dtype, stored_offset);
  const uint64_t starts_offset = in.offset();
  const std::vector<int64_t> start = read_index(in, starts, stored[0]);
  const uint64_t columns_offset = in.offset();
  const std::vector<int64_t> column = read_index(in, columns, std::numeric_limits<int64_t>::max());
  NDArray array = zeros_for(in, shape, dtype, shape_offset);
  const size_t size = size_of(dtype);
  auto* to = static_cast<std::byte*>(array.mutable_data());
  const auto* from = static_cast<const std::byte*>(values.data());
  if (!start.empty() && (start.front() != 0 || start.back() != stored[0]))
    in.fail_at(starts_offset, join("row starts from 0 to ", stored[0]), start.front(), " to ", start.back());
  for (size_t row = 0; row + 1 < start.size(); ++row) {
    if (start[row] > start[row + 1])
      in.fail_at(starts_offset + row * size_of(starts.dtype), "row starts that do not decrease", start[row], " before ",
                 start[row + 1]);
    for (auto i = static_cast<size_t>(start[row]); i < static_cast<size_t>(start[row + 1]); ++i) {
      if (column[i] >= shape[1])
        in.fail_at(columns_offset + i * size_of(columns.dtype), join("a column number below ", shape[1]), column[i]);
      std::memcpy(to + (row * static_cast<size_t>(shape[1]) + static_cast<size_t>(column[i])) * size, from + i * size,
                  size);
    }
  }
  return array;
}

}  // namespace

void write_array(const ByteSink& sink, const NDArray& array, ArrayGeneration generation) {
  const auto put = [&](auto value) { sink(&value, sizeof value); };
  put(static_cast<uint32_t>(generation));
  put(int32_t{dense});
  put(static_cast<int32_t>(array.rank()));
  for (const int64_t dim : array.shape()) put(dim);
  put(static_cast<int32_t>(array.context().type));
  put(static_cast<int32_t>(array.context().id));
  put(static_cast<int32_t>(array.dtype()));
  const NDArray host = array.context().is_gpu() ? array.as_in_context(cpu()) : array;
  host.wait_to_read();
  sink(host.data(), host.bytes());
}

NDArray read_array(ByteReader& in) {
  const uint64_t offset = in.offset();
  const auto number = in.read<uint32_t>("the generation of an array");
  const auto generation = static_cast<ArrayGeneration>(number);
  if (generation == ArrayGeneration::v1) {
    const uint64_t shape_offset = in.offset();
    return read_plain(in, read_shape(in, generation), shape_offset);
  }
  if (generation == ArrayGeneration::v2 || generation == ArrayGeneration::v3) {
    const uint64_t storage_offset = in.offset();
    const auto storage = in.read<int32_t>("the storage kind of an array");
    if (storage == row_sparse) return read_row_sparse(in, generation);
    if (storage == csr) return read_csr(in, generation);
    if (storage != dense) in.fail_at(storage_offset, "a storage kind (0 dense, 1 row_sparse, 2 csr)", storage);
    const uint64_t shape_offset = in.offset();
    return read_plain(in, read_shape(in, generation), shape_offset);
  }
  if (number > Shape::max_rank)
    in.fail_at(offset, join("the number that begins an array, or a rank of at most ", Shape::max_rank), number);
  return read_plain(in, number == 0 ? Shape() : read_dims(in, number, offset, false), offset);
}

}  // namespace symbind
