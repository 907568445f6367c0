// A thread per element: of the product, or of a factor's gradient, which is a sum over the rows that the factor's row
// contributes to.
#include "symbind/ops/khatri_rao.h"

#include "symbind/backend/cuda/any_array.cuh"
#include "symbind/backend/cuda/refuse.h"
#include "symbind/backend/cuda/step.h"
#include "symbind/backend/cuda/wide_array.cuh"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {
namespace {

// The matrices, and which row of each contributes to a row of the product.
struct Factors {
  static constexpr int most = 32;
  int count = 0;
  int64_t columns, all_rows;
  int64_t rows[most] = {};
  const void* data[most] = {};
  DType dtype;

  Factors(std::span<const Tensor> matrices, const Shape& product)
      : columns(product[1]), all_rows(product[0]), dtype(matrices[0].dtype) {
    for (const Tensor& matrix : matrices) rows[count++] = matrix.shape[0];
  }
  Factors at(const Args& args, size_t first_input) const {
    Factors factors = *this;
    for (int matrix = 0; matrix < count; ++matrix) factors.data[matrix] = args.inputs[first_input + matrix];
    return factors;
  }

  // `start` times the elements of all matrices but `left_out` in a row and column of the product.
  template <class C>
  __device__ C product(C start, int64_t row, int64_t column, int left_out) const {
    for (int matrix = count - 1; matrix >= 0; --matrix) {
      const Divided at = divided(row, rows[matrix]);
      if (matrix != left_out) start *= WideArray<C>(data[matrix], dtype)[at.rest * columns + column];
      row = at.quotient;
    }
    return start;
  }
};

template <class C>
__global__ void multiply(Factors factors, WideArray<C> out) {
  for (int64_t i = first_element(); i < factors.all_rows * factors.columns; i += element_step()) {
    const Divided at = divided(i, factors.columns);
    out.set(i, factors.product(C(1), at.quotient, at.rest, -1));
  }
}

// `inner`: the number of consecutive rows of the product with the same row of the factor.
template <class C>
__global__ void sum_gradient(Factors factors, WideArray<C> dy, WideArray<C> out, int own, int64_t inner) {
  const int64_t rows = factors.rows[own], outer = factors.all_rows / (rows * inner);
  for (int64_t i = first_element(); i < rows * factors.columns; i += element_step()) {
    const Divided at = divided(i, factors.columns);
    C sum = 0;
    for (int64_t before = 0; before < outer; ++before)
      for (int64_t after = 0; after < inner; ++after) {
        const int64_t row = (before * rows + at.quotient) * inner + after;
        sum += factors.product(dy[row * factors.columns + at.rest], row, at.rest, own);
      }
    out.set(i, sum);
  }
}

std::unique_ptr<Kernel> build_forward(const NodeView& node) {
  return visit_computed(node.outputs[0].dtype, [&]<class C>(std::type_identity<C>) {
    return make_step(node, [factors = Factors(node.inputs, node.outputs[0].shape)](const Args& args) {
      if (const int64_t count = factors.all_rows * factors.columns; count > 0)
        multiply<<<blocks_for(count), block_size, 0, stream_of(args)>>>(factors.at(args, 0),
                                                                        WideArray<C>(args.outputs[0], factors.dtype));
    });
  });
}

std::unique_ptr<Kernel> build_backward(const NodeView& node) {
  return visit_computed(node.outputs[0].dtype, [&]<class C>(std::type_identity<C>) {
    return make_step(node, [given = Factors(node.inputs.subspan(1), node.inputs[0].shape)](const Args& args) {
      const Factors factors = given.at(args, 1);
      const WideArray<C> dy(args.inputs[0], factors.dtype);
      int64_t inner = 1;
      for (int own = factors.count - 1; own >= 0; inner *= factors.rows[own], --own) {
        const int64_t count = factors.rows[own] * factors.columns;
        if (count == 0 || !args.outputs[own]) continue;
        const WideArray<C> out(args.outputs[own], factors.dtype);
        if (factors.all_rows == 0)  // another factor has no rows
          cudaMemsetAsync(out.data, 0, static_cast<size_t>(count) * size_of(factors.dtype), stream_of(args));
        else
          sum_gradient<<<blocks_for(count), block_size, 0, stream_of(args)>>>(factors, dy, out, own, inner);
      }
    });
  });
}

std::string refuse(const NodeView& node) {
  if (node.inputs.size() > static_cast<size_t>(Factors::most)) return "too many matrices";
  return refuse_mixed_floating(node);
}

}  // namespace

void add_khatri_rao(ImplementationTable& table) {
  table.add<KhatriRao>({"cuda", refuse, build_forward});
  table.add<KhatriRaoGrad>({"cuda", refuse, build_backward});
}

}  // namespace symbind::cuda_backend
