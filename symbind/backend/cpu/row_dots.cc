#include "symbind/backend/cpu/row_dots.h"

#include <algorithm>

#include "symbind/backend/cpu/activation.h"
#include "symbind/backend/cpu/convert_array.h"
#include "symbind/backend/cpu/dot_kernels.h"
#include "symbind/backend/cpu/loops.h"

namespace symbind::cpu_backend {
namespace {

constexpr int64_t vectors_together = 4;

// Vectors of 16 for processors without row kernels, as the compiler splits them.
struct AnyProcessor {
  static constexpr int64_t width = 16, registers = 4;
  using Float [[gnu::vector_size(64)]] = float;
  using Mask [[gnu::vector_size(64)]] = int32_t;

  static Float same(float value) { return Float{} + value; }
  static Float load(const float* from) {
    Float vector;
    __builtin_memcpy(&vector, from, sizeof(vector));
    return vector;
  }
  static Float first(int64_t count, const Float& value, const Float& otherwise) {
    Mask mask;
    for (int64_t lane = 0; lane < width; ++lane) mask[lane] = lane < count ? -1 : 0;
    return mask ? value : otherwise;
  }
  // In the order of the other instruction sets.
  static float sum(const Float& value) {
    float four[4];
    for (int i = 0; i < 4; ++i) four[i] = (value[i] + value[i + 8]) + (value[i + 4] + value[i + 12]);
    return (four[0] + four[2]) + (four[1] + four[3]);
  }
};

template <class T>
DotKernels<T> kernels() {
  if (const RowKernels<T>* const of_processor = row_kernels<T>()) return of_processor->dot;
  if constexpr (std::is_same_v<T, float>) return vectors::dot_kernels_of<AnyProcessor, float>();
  return {};
}

// Where the float32 forms of a half-precision kernel's arrays begin in scratch.
struct Widened {
  int64_t vectors, bias, results, elements;
  explicit Widened(const RowDots& size)
      : vectors(0),
        bias(padded(size.vectors * size.inner)),
        results(bias + padded(size.rows)),
        elements(results + padded(size.vectors * size.rows)) {}

 private:
  static int64_t padded(int64_t count) { return (count + 15) / 16 * 16; }
};

template <class T>
std::unique_ptr<Kernel> build_for_half(const RowDots& size, const RowDotsInputs& at, const std::string& act_type) {
  const Widened in_scratch(size);
  return make_kernel(
      [=](const Args& args) {
        auto* const scratch = static_cast<float*>(args.scratch);
        const auto widen_input = [&](size_t input, int64_t to, int64_t count) {
          convert_array(scratch + to, DType::float32, args.inputs[input], dtype_of<T>(), count);
          return scratch + to;
        };
        const float* const x = widen_input(at.vectors, in_scratch.vectors, size.vectors * size.inner);
        const float* const bias = at.bias ? widen_input(*at.bias, in_scratch.bias, size.rows) : nullptr;
        float* const y = scratch + in_scratch.results;
        row_dots(size, x, args.in<T>(at.matrix), bias, y);
        apply_activation(act_type, y, size.vectors * size.rows);
        convert_array(args.outputs[0], dtype_of<T>(), y, DType::float32, size.vectors * size.rows);
      },
      {.scratch_bytes = static_cast<size_t>(in_scratch.elements) * sizeof(float)});
}

}  // namespace

bool suits_row_dots(int64_t few, int64_t inner, DType dtype) {
  if (few < 1 || inner < 16 || (dtype != DType::float32 && !has_row_kernels(dtype))) return false;
  if (few <= vectors_together) return true;
  // Libraries convert bfloat16 on the fly, and without AVX-512 there are registers for only one row of the matrix at a
  // time. For short sums, adding the lanes takes longer than the products.
  const bool is_fast =
      dtype == DType::float16 || (dtype == DType::float32 && instruction_set() == InstructionSet::avx512);
  return is_fast && few <= 2 * vectors_together && inner >= 128;
}

template <class T>
void row_dots(const RowDots& size, const float* vectors, const T* matrix, const float* bias, float* y) {
  constexpr int64_t products_worth_a_thread = 1 << 18, cached_bytes = 1 << 15;
  const int64_t grain = std::max<int64_t>(1, products_worth_a_thread / (size.vectors * size.inner + 1));
  // Later vectors find the rows in the cache.
  const int64_t few_rows = cached_bytes / (size.inner * static_cast<int64_t>(sizeof(T))) / 4 * 4 + 4;
  const int64_t block = size.vectors > vectors_together ? few_rows : size.rows;
  parallel_for(size.rows, grain, [&, dots = kernels<T>().dots](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; row += block)
      for (int64_t v = 0; v < size.vectors; v += vectors_together) {
        RowDots some = size;
        some.vectors = std::min(vectors_together, size.vectors - v);
        dots(some, row, std::min(end, row + block), vectors + v * size.inner, matrix, bias, y + v * size.vector_step);
      }
  });
}
template void row_dots(const RowDots&, const float*, const float*, const float*, float*);
template void row_dots(const RowDots&, const float*, const float16*, const float*, float*);
template void row_dots(const RowDots&, const float*, const bfloat16*, const float*, float*);

std::unique_ptr<Kernel> build_row_dots(const RowDots& size, const RowDotsInputs& at, DType dtype,
                                       const std::string& act_type) {
  if (dtype == DType::float16) return build_for_half<float16>(size, at, act_type);
  if (dtype == DType::bfloat16) return build_for_half<bfloat16>(size, at, act_type);
  return make_kernel([=](const Args& args) {
    row_dots(size, args.in<float>(at.vectors), args.in<float>(at.matrix), at.bias ? args.in<float>(*at.bias) : nullptr,
             args.out<float>());
    apply_activation(act_type, args.out<float>(), size.vectors * size.rows);
  });
}

}  // namespace symbind::cpu_backend
