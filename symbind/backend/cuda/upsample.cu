// Nearest neighbours: an element of the result copies one of an input, and a gradient sums the block of its copies.
// Interpolation is a deconvolution.
#include "symbind/ops/upsample.h"

#include "symbind/backend/cuda/kernels.cuh"
#include "symbind/backend/cuda/refuse.h"
#include "symbind/backend/cuda/step.h"
#include "symbind/backend/deconv.h"
#include "symbind/backend/divisor.h"
#include "symbind/backend/functions.h"
#include "symbind/backend/wide.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {
namespace {

// One input and the position of its planes in the result.
struct Source {
  int64_t planes;                       // of the input
  Divisor channels, columns, high;      // high × wide: the block that shows an element
  Divisor wide, width;                  // width: of the result
  Divisor plane_size, large_size;       // elements of a plane of the input and of the result
  int64_t first_channel, all_channels;  // of the result

  Source(const Shape& input, const Shape& result, int64_t channel)
      : planes(input[0] * input[1]),
        channels(input[1]),
        columns(input[3]),
        high(input[2] > 0 ? result[2] / input[2] : 1),
        wide(input[3] > 0 ? result[3] / input[3] : 1),
        width(result[3]),
        plane_size(input[2] * input[3]),
        large_size(result[2] * result[3]),
        first_channel(channel),
        all_channels(result[1]) {}

  int64_t count() const { return planes * plane_size; }
  int64_t large_count() const { return planes * large_size; }
  // The first element of a plane's image in the result.
  __device__ int64_t start(int64_t plane) const {
    const Divided at = channels.divide(plane);
    return (at.quotient * all_channels + first_channel + at.rest) * large_size;
  }
};

std::vector<Source> sources(const UpSampling& p, std::span<const Tensor> inputs, const Shape& result) {
  std::vector<Source> all;
  int64_t channel = 0;
  for (const Tensor& input : inputs) {
    all.emplace_back(input.shape, result, channel);
    if (p.multi_input_mode == "concat") channel += input.shape[1];
  }
  return all;
}

// `width` neighbours along a row of the result for each thread; rows consist of whole packs.
template <int width, class T>
__global__ void enlarge(const T* x, T* y, Source source, int64_t count, bool adds) {
  using C = functions::Wide<T>;
  for (int64_t i = first_element() * width; i < count; i += element_step() * width) {
    const Divided plane = source.large_size.divide(i), at = source.width.divide(plane.rest);
    const T* const row =
        x + plane.quotient * source.plane_size + source.high.divide(at.quotient).quotient * source.columns;
    auto& to = *reinterpret_cast<Pack<T, width>*>(y + source.start(plane.quotient) + plane.rest);
    Divided column = source.wide.divide(at.rest);
    Pack<T, width> result;
    if (adds) result = to;
#pragma unroll
    for (int k = 0; k < width; ++k) {
      const C value = static_cast<C>(load(row[column.quotient]));
      result.element[k] =
          convert_element<T>(adds ? functions::add(static_cast<C>(load(result.element[k])), value) : value);
      if (++column.rest == source.wide) column = {column.quotient + 1, 0};
    }
    to = result;
  }
}

// `width` neighbours along a row of an input for each thread; rows of both arrays consist of whole packs. A block is
// `wide` elements wide; 0: any number of them, which are read one by one.
template <int width, int wide, class T>
__global__ void sum_blocks(const T* dy, T* dx, Source source, int64_t count) {
  using C = functions::Wide<T>;
  const int64_t row_length = source.width, high = source.high, any_wide = source.wide;
  for (int64_t i = first_element() * width; i < count; i += element_step() * width) {
    const Divided plane = source.plane_size.divide(i), at = source.columns.divide(plane.rest);
    const T* row = dy + source.start(plane.quotient) + at.quotient * high * row_length + at.rest * any_wide;
    C sum[width] = {};
    for (int64_t n = 0; n < high; ++n, row += row_length) {
      if constexpr (wide > 0) {
        Pack<T, width> read[wide];
#pragma unroll
        for (int k = 0; k < wide; ++k) read[k] = reinterpret_cast<const Pack<T, width>*>(row)[k];
#pragma unroll
        for (int k = 0; k < width * wide; ++k)
          sum[k / wide] = functions::add(sum[k / wide], static_cast<C>(load(read[k / width].element[k % width])));
      } else {
#pragma unroll
        for (int k = 0; k < width; ++k)
          for (int64_t column = 0; column < any_wide; ++column)
            sum[k] = functions::add(sum[k], static_cast<C>(load(row[k * any_wide + column])));
      }
    }
    Pack<T, width> result;
#pragma unroll
    for (int k = 0; k < width; ++k) result.element[k] = convert_element<T>(sum[k]);
    *reinterpret_cast<Pack<T, width>*>(dx + i) = result;
  }
}

// At most four: a thread holds a sum for each.
template <class T>
inline constexpr int pack_width = widest<T> < 4 ? widest<T> : 4;

template <class T>
bool fits_packs(const void* address) {
  return reinterpret_cast<uintptr_t>(address) % sizeof(Pack<T, pack_width<T>>) == 0;
}

template <class T>
void queue_enlarge(cudaStream_t stream, const T* x, T* y, const Source& source, bool adds) {
  constexpr int width = pack_width<T>;
  const int64_t count = source.large_count();
  if (count == 0) return;
  if (source.width % width == 0 && fits_packs<T>(y))
    enlarge<width><<<blocks_for(count / width), block_size, 0, stream>>>(x, y, source, count, adds);
  else
    enlarge<1><<<blocks_for(count), block_size, 0, stream>>>(x, y, source, count, adds);
}

template <class T>
void queue_sum_blocks(cudaStream_t stream, const T* dy, T* dx, const Source& source) {
  constexpr int width = pack_width<T>;
  const int64_t count = source.count();
  if (count == 0) return;
  // Rows of the result are multiples of those of the input.
  if (source.columns % width != 0 || !fits_packs<T>(dx) || !fits_packs<T>(dy))
    sum_blocks<1, 0><<<blocks_for(count), block_size, 0, stream>>>(dy, dx, source, count);
  else if (source.wide == 2)
    sum_blocks<width, 2><<<blocks_for(count / width), block_size, 0, stream>>>(dy, dx, source, count);
  else
    sum_blocks<width, 0><<<blocks_for(count / width), block_size, 0, stream>>>(dy, dx, source, count);
}

std::unique_ptr<Kernel> build_bilinear(const NodeView& node) {
  if (node.outputs[0].shape.size() == 0) return make_step(node, [](const Args&) {});
  const Deconvolution made = bilinear_deconvolution(node.as<UpSampling>());
  const auto params = op_of<Deconvolution>().checked_params(&made, node.name);
  const NodeView view{op_of<Deconvolution>(), params.get(),  node.name, node.inputs,
                      node.outputs,           node.is_train, -1,        node.context};
  return build_deconvolution(view, nullptr);
}

std::unique_ptr<Kernel> build_forward(const NodeView& node) {
  const auto& p = node.as<UpSampling>();
  if (p.sample_type == "bilinear") return build_bilinear(node);
  return visit_dtype(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    return make_step(node, [all = sources(p, node.inputs, node.outputs[0].shape),
                            sums = p.multi_input_mode == "sum"](const Args& args) {
      for (size_t k = 0; k < all.size(); ++k)
        queue_enlarge(stream_of(args), args.in<T>(k), args.out<T>(), all[k], sums && k > 0);
    });
  });
}

std::unique_ptr<Kernel> build_backward(const NodeView& node) {
  return visit_dtype(node.inputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    return make_step(node,
                     [all = sources(node.as<UpSamplingGrad>(), node.outputs, node.inputs[0].shape)](const Args& args) {
                       for (size_t k = 0; k < all.size(); ++k)
                         if (args.outputs[k]) queue_sum_blocks(stream_of(args), args.in<T>(0), args.out<T>(k), all[k]);
                     });
  });
}

}  // namespace

void add_upsample(ImplementationTable& table) {
  table.add<UpSampling>({"cuda", refuse_layouts, build_forward, {}, true});
  table.add<UpSamplingGrad>({"cuda", refuse_layouts, build_backward});
}

}  // namespace symbind::cuda_backend
