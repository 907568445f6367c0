// One product of matrices without a primitive, for kernels of the CPU that are made of several.
#include "symbind/backend/cpu/product.h"

#include <dnnl.h>

#include "symbind/backend/onednn/program.h"
#include "symbind/core/parallel.h"

namespace symbind::cpu_backend {

bool library_product(int64_t rows, int64_t columns, int64_t inner, Matrix<const float> a, Matrix<const float> b,
                     Matrix<float> c, bool accumulate) {
  const ThreadScope scope({.threads = onednn::threads_for(rows * columns * inner, onednn::thread_products)});
  const auto order = [](const Matrix<const float>& matrix) { return matrix.transposed ? 'T' : 'N'; };
  return dnnl_sgemm(order(a), order(b), rows, columns, inner, 1.0f, a.data, a.step, b.data, b.step,
                    accumulate ? 1.0f : 0.0f, c.data, c.step) == dnnl_success;
}

}  // namespace symbind::cpu_backend
