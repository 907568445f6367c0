#include "symbind/ops/khatri_rao.h"

#include <algorithm>
#include <vector>

#include "symbind/backend/cpu/loops.h"
#include "symbind/backend/cpu/plain.h"
#include "symbind/backend/cpu/widened.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {
namespace {

// The rows of the matrices, and which row of each contributes to a row of the product.
struct Factors {
  std::vector<int64_t> rows;
  int64_t columns, all_rows;

  Factors(std::span<const Tensor> matrices, const Shape& product) : columns(product[1]), all_rows(product[0]) {
    for (const Tensor& matrix : matrices) rows.push_back(matrix.shape[0]);
  }
  // visit(matrix, its row), the last matrix first.
  template <class Visit>
  void for_each(int64_t row, const Visit& visit) const {
    for (size_t matrix = rows.size(); matrix-- > 0; row /= rows[matrix]) visit(matrix, row % rows[matrix]);
  }
};

std::unique_ptr<Kernel> build_forward(const NodeView& node) {
  const Factors factors(node.inputs, node.outputs[0].shape);
  return widened_kernel(node, [factors](auto type) {
    using C = typename decltype(type)::type;
    return [factors](const C* const* in, C* const* out) {
      const int64_t columns = factors.columns;
      parallel_for(factors.all_rows, element_grain / 4 / (columns + 1) + 1, [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          C* const own = out[0] + row * columns;
          std::fill(own, own + columns, C(1));
          factors.for_each(row, [&](size_t matrix, int64_t part) {
            for (int64_t k = 0; k < columns; ++k) own[k] *= in[matrix][part * columns + k];
          });
        }
      });
    };
  });
}

// A factor's gradient is the sum of dy times all the other factors, over the rows it contributes to. Each thread has
// its own columns, so threads never add to the same element.
std::unique_ptr<Kernel> build_backward(const NodeView& node) {
  const Factors factors(node.inputs.subspan(1), node.inputs[0].shape);
  return widened_kernel(node, [factors](auto type) {
    using C = typename decltype(type)::type;
    return [factors](const C* const* in, C* const* out) {
      const int64_t columns = factors.columns;
      const C *const dy = in[0], *const *const matrices = in + 1;
      parallel_for(columns, element_grain / 8 / (factors.all_rows + 1) + 1, [&](int64_t begin, int64_t end) {
        for (size_t own = 0; own < factors.rows.size(); ++own)
          for (int64_t row = 0; row < factors.rows[own]; ++row)
            std::fill(out[own] + row * columns + begin, out[own] + row * columns + end, C(0));
        for (int64_t row = 0; row < factors.all_rows; ++row)
          factors.for_each(row, [&](size_t own, int64_t own_row) {
            for (int64_t k = begin; k < end; ++k) {
              C product = dy[row * columns + k];
              factors.for_each(row, [&](size_t other, int64_t part) {
                if (other != own) product *= matrices[other][part * columns + k];
              });
              out[own][own_row * columns + k] += product;
            }
          });
      });
    };
  });
}

}  // namespace

void add_khatri_rao(ImplementationTable& table) {
  add_plain<KhatriRao>(table, build_forward);
  add_plain<KhatriRaoGrad>(table, build_backward);
}

}  // namespace symbind::cpu_backend
