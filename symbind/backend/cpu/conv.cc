// Convolution as products of matrices. With K = channels of a group × kernel size, a chunk of output positions P is
// unfolded into a K × P matrix of the input elements each position reads; then output = weight · unfolded, and the
// gradients are its two transposed products. Unfolded chunks are small enough to stay in the cache.
//
// With channels after the spatial axes only the strides differ, and K runs over (kernel, channel) as the weight does.
#include "symbind/ops/conv.h"

#include <algorithm>
#include <vector>

#include "symbind/backend/cpu/conv_depthwise.h"
#include "symbind/backend/cpu/conv_gemm.h"
#include "symbind/backend/cpu/gemm.h"
#include "symbind/backend/cpu/loops.h"
#include "symbind/backend/cpu/plain.h"
#include "symbind/backend/cpu/winograd.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {
namespace {

constexpr int64_t chunk_elements = 1 << 19;

// Rows of output positions (along the last spatial axis) that are unfolded at a time.
int64_t rows_per_chunk(const ConvolutionSize& size) {
  const int64_t row = size.group_channels() * size.kernel_size() * std::max<int64_t>(size.out[2], 1);
  return std::clamp<int64_t>(chunk_elements / std::max<int64_t>(row, 1), 1,
                             std::max<int64_t>(size.out[0] * size.out[1], 1));
}
int64_t unfolded_elements(const ConvolutionSize& size) {
  return size.group_channels() * size.kernel_size() * rows_per_chunk(size) * size.out[2];
}

// Row k of the unfolded matrix: the channel it reads and the offset into the window.
struct Tap {
  int64_t channel;
  std::array<int64_t, 3> offset;
};
Tap tap_at(const ConvolutionSize& size, int64_t k) {
  const int64_t window = size.kernel_size();
  const int64_t channel = size.channels_last ? k % size.group_channels() : k / window;
  int64_t rest = size.channels_last ? k / size.group_channels() : k % window;
  Tap tap{channel, {}};
  for (size_t axis = 3; axis-- > 0; rest /= size.kernel[axis])
    tap.offset[axis] = rest % size.kernel[axis] * size.dilate[axis] - size.pad[axis];
  return tap;
}

// Calls visit(first position in the chunk, index of the element it reads, count, index step) for each run of output
// positions of the rows [begin, end) whose element is inside the input. Indices are those of one group's channels.
template <class Visit>
void each_run(const ConvolutionSize& size, const Tap& tap, int64_t begin, int64_t end, Visit visit) {
  const int64_t step = size.channels_last ? size.channels : 1;
  const int64_t start = size.channels_last ? tap.channel : tap.channel * size.in_size();
  const int64_t stride = size.stride[2], shift = tap.offset[2];
  // shift + stride · w is in [0, in) for w in [first, last).
  const int64_t first = shift < 0 ? (-shift + stride - 1) / stride : 0;
  const int64_t last = shift >= size.in[2] ? 0 : std::min(size.out[2], (size.in[2] - 1 - shift) / stride + 1);
  if (first >= last) return;
  for (int64_t row = begin; row < end; ++row) {
    const int64_t d = row / size.out[1] * size.stride[0] + tap.offset[0];
    const int64_t h = row % size.out[1] * size.stride[1] + tap.offset[1];
    if (d < 0 || d >= size.in[0] || h < 0 || h >= size.in[1]) continue;
    const int64_t element = (d * size.in[1] + h) * size.in[2] + shift + stride * first;
    visit((row - begin) * size.out[2] + first, start + element * step, last - first, stride * step);
  }
}

// `x` is one image from the group's first channel on.
template <class T>
void unfold(const ConvolutionSize& size, const T* x, int64_t begin, int64_t end, T* unfolded) {
  const int64_t positions = (end - begin) * size.out[2];
  parallel_for(size.group_channels() * size.kernel_size(), element_grain / (positions + 1) + 1,
               [&](int64_t first, int64_t last) {
                 for (int64_t k = first; k < last; ++k) {
                   T* row = unfolded + k * positions;
                   std::fill_n(row, positions, T(0.0f));
                   each_run(size, tap_at(size, k), begin, end,
                            [&](int64_t at, int64_t from, int64_t count, int64_t step) {
                              if (step == 1)
                                std::copy_n(x + from, count, row + at);
                              else
                                for (int64_t i = 0; i < count; ++i) row[at + i] = x[from + i * step];
                            });
                 }
               });
}

// Adds every element of an unfolded matrix to the input element it was read from. The work is divided by channel.
template <class C>
void fold(const ConvolutionSize& size, const C* unfolded, int64_t begin, int64_t end, C* x) {
  const int64_t positions = (end - begin) * size.out[2], window = size.kernel_size();
  parallel_for(size.group_channels(), element_grain / (positions * window + 1) + 1, [&](int64_t first, int64_t last) {
    for (int64_t channel = first; channel < last; ++channel)
      for (int64_t tap = 0; tap < window; ++tap) {
        const int64_t k = size.channels_last ? tap * size.group_channels() + channel : channel * window + tap;
        const C* row = unfolded + k * positions;
        each_run(size, tap_at(size, k), begin, end, [&](int64_t at, int64_t to, int64_t count, int64_t step) {
          for (int64_t i = 0; i < count; ++i) x[to + i * step] += row[at + i];
        });
      }
  });
}

// The offsets of the group's part of one image in the input and in the output.
int64_t input_start(const ConvolutionSize& size, int64_t image, int64_t group) {
  const int64_t channel = group * size.group_channels();
  return image * size.channels * size.in_size() + (size.channels_last ? channel : channel * size.in_size());
}
int64_t output_start(const ConvolutionSize& size, int64_t image, int64_t group, int64_t position) {
  const int64_t filter = group * size.group_filters();
  return image * size.filters * size.out_size() +
         (size.channels_last ? position * size.filters + filter : filter * size.out_size() + position);
}
// The outputs of a group as a matrix filters × positions.
template <class T>
Matrix<T> output_matrix(const ConvolutionSize& size, T* y) {
  return {y, size.channels_last ? size.filters : size.out_size(), size.channels_last};
}

// Calls visit(image, group, first row, last row) for every chunk.
template <class Visit>
void each_chunk(const ConvolutionSize& size, Visit visit) {
  const int64_t rows = size.out[0] * size.out[1], step = rows_per_chunk(size);
  for (int64_t image = 0; image < size.batch; ++image)
    for (int64_t group = 0; group < size.groups; ++group)
      for (int64_t row = 0; row < rows; row += step) visit(image, group, row, std::min(rows, row + step));
}

template <class T>
void add_bias(const ConvolutionSize& size, const T* bias, T* y) {
  using C = compute_type<T>;
  const int64_t inner = size.channels_last ? 1 : size.out_size();
  const int64_t outer = size.channels_last ? size.batch * size.out_size() : size.batch;
  for_elements(
      outer * size.filters,
      [=](int64_t begin, int64_t end) {
        for (int64_t line = begin; line < end; ++line) {
          const C shift = static_cast<C>(bias[line % size.filters]);
          for (int64_t i = line * inner; i < (line + 1) * inner; ++i)
            y[i] = static_cast<T>(static_cast<C>(y[i]) + shift);
        }
      },
      element_grain / (inner + 1) + 1);
}

template <class T>
std::unique_ptr<Kernel> build_forward(const NodeView& node) {
  const auto& params = node.as<Convolution>();
  const ConvolutionSize size = size_of(params, node.inputs[0].shape, node.outputs[0].shape);
  const int64_t inner = size.group_channels() * size.kernel_size();
  return make_kernel(
      [=, bias = !params.no_bias](const Args& args) {
        T *y = args.out<T>(), *unfolded = static_cast<T*>(args.scratch);
        each_chunk(size, [&](int64_t image, int64_t group, int64_t begin, int64_t end) {
          const int64_t positions = (end - begin) * size.out[2], filters = size.group_filters();
          unfold(size, args.in<T>(0) + input_start(size, image, group), begin, end, unfolded);
          const Matrix<const T> weight{args.in<T>(1) + group * filters * inner, inner, size.channels_last};
          const Matrix<const T> seen{unfolded, positions, size.channels_last};
          Matrix<T> to = output_matrix(size, y + output_start(size, image, group, begin * size.out[2]));
          to.transposed = false;
          if (size.channels_last)
            gemm<T, T>(positions, filters, inner, seen, weight, to);
          else
            gemm<T, T>(filters, positions, inner, weight, seen, to);
        });
        if (bias) add_bias(size, args.in<T>(2), y);
      },
      {.scratch_bytes = static_cast<size_t>(unfolded_elements(size)) * sizeof(T)});
}

// dx: weightᵀ · dy unfolded, then folded back. Half precision is summed in float, one image at a time.
template <class T>
std::unique_ptr<Kernel> build_grad_data(const NodeView& node) {
  using C = compute_type<T>;
  const ConvolutionSize size = size_of(node.as<ConvolutionGradData>(), node.outputs[0].shape, node.inputs[0].shape);
  const int64_t inner = size.group_channels() * size.kernel_size(), filters = size.group_filters();
  const int64_t image_elements = size.channels * size.in_size();
  constexpr bool rounds = !std::is_same_v<T, C>;
  return make_kernel(
      [=](const Args& args) {
        C* unfolded = static_cast<C*>(args.scratch);
        C* sums = unfolded + unfolded_elements(size);  // of one image, if the type of dx is not precise enough
        T* dx = args.out<T>();
        const int64_t rows = size.out[0] * size.out[1], step = rows_per_chunk(size);
        for (int64_t image = 0; image < size.batch; ++image) {
          C* target = sums;
          if constexpr (!rounds) target = dx + image * image_elements;
          std::fill_n(target, image_elements, C(0));
          for (int64_t group = 0; group < size.groups; ++group)
            for (int64_t begin = 0; begin < rows; begin += step) {
              const int64_t end = std::min(rows, begin + step), positions = (end - begin) * size.out[2];
              const T* dy = args.in<T>(0) + output_start(size, image, group, begin * size.out[2]);
              gemm<T, C>(inner, positions, filters, {args.in<T>(1) + group * filters * inner, inner, true},
                         output_matrix(size, dy), {unfolded, positions});
              fold(size, unfolded, begin, end, target + input_start(size, 0, group));
            }
          if constexpr (rounds)
            for (int64_t i = 0; i < image_elements; ++i) dx[image * image_elements + i] = static_cast<T>(sums[i]);
        }
      },
      {.scratch_bytes = static_cast<size_t>(unfolded_elements(size) + (rounds ? image_elements : 0)) * sizeof(C)});
}

template <class T>
void sum_bias(const ConvolutionSize& size, const T* dy, T* result) {
  const int64_t step = size.channels_last ? size.filters : 1;
  parallel_for(size.filters, element_grain / (size.batch * size.out_size() + 1) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t filter = begin; filter < end; ++filter) {
      double sum = 0;
      for (int64_t image = 0; image < size.batch; ++image) {
        const T* plane =
            dy + image * size.filters * size.out_size() + filter * (size.channels_last ? 1 : size.out_size());
        for (int64_t i = 0; i < size.out_size(); ++i) sum += static_cast<double>(plane[i * step]);
      }
      result[filter] = static_cast<T>(static_cast<compute_type<T>>(sum));
    }
  });
}

// dweight: dy · unfoldedᵀ, summed over images. Half precision is summed in float.
template <class T>
std::unique_ptr<Kernel> build_grad_weight(const NodeView& node) {
  using C = compute_type<T>;
  const auto& params = node.as<ConvolutionGradWeight>();
  const ConvolutionSize size = size_of(params, node.inputs[1].shape, node.inputs[0].shape);
  const int64_t inner = size.group_channels() * size.kernel_size(), filters = size.group_filters();
  const int64_t weights = size.filters * inner;
  constexpr bool rounds = !std::is_same_v<T, C>;
  const size_t unfolded_bytes = (static_cast<size_t>(unfolded_elements(size)) * sizeof(T) + 63) / 64 * 64;
  return make_kernel(
      [=, bias = !params.no_bias](const Args& args) {
        T* unfolded = static_cast<T*>(args.scratch);
        C* sums;
        if constexpr (rounds)
          sums = reinterpret_cast<C*>(static_cast<std::byte*>(args.scratch) + unfolded_bytes);
        else
          sums = args.out<T>();
        std::fill_n(sums, weights, C(0));
        each_chunk(size, [&](int64_t image, int64_t group, int64_t begin, int64_t end) {
          const int64_t positions = (end - begin) * size.out[2];
          unfold(size, args.in<T>(1) + input_start(size, image, group), begin, end, unfolded);
          const T* dy = args.in<T>(0) + output_start(size, image, group, begin * size.out[2]);
          gemm<T, C>(filters, inner, positions, output_matrix(size, dy), {unfolded, positions, true},
                     {sums + group * filters * inner, inner}, true);
        });
        if constexpr (rounds)
          for (int64_t i = 0; i < weights; ++i) args.out<T>()[i] = static_cast<T>(sums[i]);
        if (bias) sum_bias(size, args.in<T>(0), args.out<T>(1));
      },
      {.scratch_bytes = unfolded_bytes + (rounds ? static_cast<size_t>(weights) * sizeof(C) : 0)});
}

}  // namespace

void add_conv(ImplementationTable& table) {
  add_winograd(table);
  add_conv_depthwise(table);
  add_conv_gemm(table);
  add_plain<Convolution>(table, [](const NodeView& node) {
    return visit_floating(node.outputs[0].dtype,
                          [&](auto type) { return build_forward<typename decltype(type)::type>(node); });
  });
  add_plain<ConvolutionGradData>(table, [](const NodeView& node) {
    return visit_floating(node.outputs[0].dtype,
                          [&](auto type) { return build_grad_data<typename decltype(type)::type>(node); });
  });
  add_plain<ConvolutionGradWeight>(table, [](const NodeView& node) {
    return visit_floating(node.outputs[0].dtype,
                          [&](auto type) { return build_grad_weight<typename decltype(type)::type>(node); });
  });
}

}  // namespace symbind::cpu_backend
