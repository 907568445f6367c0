// Deformable convolutions as products of matrices by cuBLASLt, one for each image and group of channels, over columns
// that a kernel gathers. The gradient of data gathers too: the pixels that the points read are sorted stably, so that
// each sum is computed by one thread in a fixed order.
#include "symbind/backend/deformable_conv.h"

#include "symbind/backend/cuda/kernels.cuh"
#include "symbind/backend/cuda/matmul.h"
#include "symbind/backend/cuda/radix_sort.h"
#include "symbind/backend/cuda/scratch_layout.h"
#include "symbind/backend/cuda/step.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {
namespace {

using deformable::Sample;
using deformable::Size;

constexpr int64_t most_readings = (int64_t{1} << 31) - 1;

std::string refuse(const NodeView& node, const Size& size) {
  for (const auto& tensors : {node.inputs, node.outputs})
    for (const Tensor& tensor : tensors) {
      if (tensor.layout != Layout::plain) return "needs plain layouts";
      if (tensor.shape.size() == 0) return "an array is empty";
    }
  if (size.images * size.points() * 4 > most_readings ||
      size.images * size.offset_groups * size.space() > most_readings)
    return "2^31 or more points";
  return "";
}

// ---- Columns --------------------------------------------------------------------------------------------------------

// One image. mask is null where there is none.
template <class T>
struct Image {
  using C = compute_type<T>;
  Size size;
  const T *data, *offset, *mask;

  __device__ Sample<C> sample(int64_t point) const {
    const T* const own = offset + size.offset_of(point);
    return {size, point, load(own[0]), load(own[size.positions()])};
  }
  __device__ C factor(int64_t point) const { return mask ? C(load(mask[point])) : C(1); }
};

// columns (channels · taps, positions): a thread reads a point for all channels of its group of offsets.
template <class T>
__global__ void gather_columns(Image<T> image, T* columns) {
  using C = compute_type<T>;
  const Size& size = image.size;
  const int64_t positions = size.positions(), taps = size.taps();
  for (int64_t point = first_element(); point < size.points(); point += element_step()) {
    const Sample<C> from = image.sample(point);
    const C factor = image.factor(point);
    const int64_t first = point / positions / taps * size.offset_channels(), inner = point % (taps * positions);
    bool has[4];
    int64_t pixel[4];
    C weight[4];
    for (int corner = 0; corner < 4; ++corner) {
      has[corner] = from.has(size, corner);
      pixel[corner] = from.pixel(size, corner);
      weight[corner] = from.weight(corner) * factor;
    }
    for (int64_t channel = first; channel < first + size.offset_channels(); ++channel) {
      const T* const plane = image.data + channel * size.space();
      C sum = 0;
      for (int corner = 0; corner < 4; ++corner)
        if (has[corner]) sum += weight[corner] * load(plane[pixel[corner]]);
      columns[channel * taps * positions + inner] = store<T>(sum);
    }
  }
}

template <class T>
__global__ void add_bias(T* out, const T* bias, int64_t count, int64_t filters, int64_t positions) {
  for (int64_t i = first_element(); i < count; i += element_step())
    out[i] = store<T>(load(out[i]) + load(bias[i / positions % filters]));
}

// ---- Gradients of data, offsets and mask ----------------------------------------------------------------------------

// For each of four readings of a point of all images: the pixel, counted over images and groups of offsets, and the
// weight. A pixel outside of the image has the number `outside`, which sorts last.
template <class T>
__global__ void write_readings(Image<T> first, uint32_t* pixels, uint32_t* order, compute_type<T>* weights,
                               uint32_t outside) {
  using C = compute_type<T>;
  const Size& size = first.size;
  for (int64_t i = first_element(); i < size.images * size.points(); i += element_step()) {
    const int64_t index = i / size.points(), point = i % size.points();
    Image<T> image = first;
    image.offset += index * 2 * size.points();
    if (image.mask) image.mask += index * size.points();
    const Sample<C> from = image.sample(point);
    const C factor = image.factor(point);
    const int64_t group = index * size.offset_groups + point / size.positions() / size.taps();
    for (int corner = 0; corner < 4; ++corner) {
      const bool has = from.has(size, corner);
      pixels[i * 4 + corner] = has ? static_cast<uint32_t>(group * size.space() + from.pixel(size, corner)) : outside;
      order[i * 4 + corner] = static_cast<uint32_t>(i * 4 + corner);
      weights[i * 4 + corner] = has ? from.weight(corner) * factor : C(0);
    }
  }
}

// begins[p]: the index of the first sorted reading of pixel p or a later one.
__global__ void find_begins(const uint32_t* sorted, int64_t count, uint32_t* begins, int64_t pixels) {
  for (int64_t pixel = first_element(); pixel <= pixels; pixel += element_step()) {
    int64_t low = 0, high = count;
    while (low < high) {
      const int64_t middle = (low + high) / 2;
      if (static_cast<int64_t>(sorted[middle]) < pixel)
        low = middle + 1;
      else
        high = middle;
    }
    begins[pixel] = static_cast<uint32_t>(low);
  }
}

// The gradient of one image's data from that of its columns.
template <class T>
__global__ void sum_readings(Size size, int64_t index, const uint32_t* begins, const uint32_t* order,
                             const compute_type<T>* weights, const T* columns_grad, T* data_grad) {
  using C = compute_type<T>;
  const int64_t per_channel = size.taps() * size.positions();
  for (int64_t i = first_element(); i < size.channels * size.space(); i += element_step()) {
    const int64_t channel = i / size.space();
    const int64_t pixel =
        (index * size.offset_groups + channel / size.offset_channels()) * size.space() + i % size.space();
    const T* const from = columns_grad + channel * per_channel;
    C sum = 0;
    for (uint32_t k = begins[pixel]; k < begins[pixel + 1]; ++k) {
      const uint32_t reading = order[k];
      sum += weights[reading] * load(from[reading / 4 % per_channel]);
    }
    data_grad[i] = store<T>(sum);
  }
}

// The gradients of one image's offsets and mask; null: not requested.
template <class T>
__global__ void offset_gradients(Image<T> image, const T* columns_grad, T* offset_grad, T* mask_grad) {
  using C = compute_type<T>;
  const Size& size = image.size;
  const int64_t positions = size.positions(), taps = size.taps();
  for (int64_t point = first_element(); point < size.points(); point += element_step()) {
    const Sample<C> from = image.sample(point);
    const int64_t first = point / positions / taps * size.offset_channels(), inner = point % (taps * positions);
    bool has[4];
    int64_t pixel[4];
    C sums[4] = {C(0), C(0), C(0), C(0)};
    for (int corner = 0; corner < 4; ++corner) {
      has[corner] = from.has(size, corner);
      pixel[corner] = from.pixel(size, corner);
    }
    for (int64_t channel = first; channel < first + size.offset_channels(); ++channel) {
      const C arrived = load(columns_grad[channel * taps * positions + inner]);
      const T* const plane = image.data + channel * size.space();
      for (int corner = 0; corner < 4; ++corner)
        if (has[corner]) sums[corner] += arrived * load(plane[pixel[corner]]);
    }
    C by_y = 0, by_x = 0, by_mask = 0;
    for (int corner = 0; corner < 4; ++corner) {
      by_y += from.slope_y(corner) * sums[corner];
      by_x += from.slope_x(corner) * sums[corner];
      by_mask += from.weight(corner) * sums[corner];
    }
    if (offset_grad) {
      offset_grad[size.offset_of(point)] = store<T>(by_y * image.factor(point));
      offset_grad[size.offset_of(point) + positions] = store<T>(by_x * image.factor(point));
    }
    if (mask_grad) mask_grad[point] = store<T>(by_mask);
  }
}

// ---- Gradients of weight and bias -----------------------------------------------------------------------------------

// sum (+)= part, and result = sum if result is not null.
template <class T>
__global__ void add_part(compute_type<T>* sum, const T* part, T* result, int64_t count, bool is_first) {
  for (int64_t i = first_element(); i < count; i += element_step()) {
    const compute_type<T> value = (is_first ? compute_type<T>(0) : sum[i]) + load(part[i]);
    sum[i] = value;
    if (result) result[i] = store<T>(value);
  }
}

// A block for each filter.
template <class T>
__global__ void sum_bias(const T* dy, T* bias_grad, int64_t images, int64_t filters, int64_t positions) {
  for (int64_t filter = blockIdx.x; filter < filters; filter += gridDim.x) {
    compute_type<T> sum = 0;
    for (int64_t i = threadIdx.x; i < images * positions; i += blockDim.x)
      sum += load(dy[(i / positions * filters + filter) * positions + i % positions]);
    sum = combine_block<Add>(sum);
    if (threadIdx.x == 0) bias_grad[filter] = store<T>(sum);
  }
}

// ---- Kernels --------------------------------------------------------------------------------------------------------

// Arrays of a node: the inputs from number `first` on are data, offset, the mask where there is one, and the weight.
template <class T>
struct Arrays {
  Image<T> first_image;
  const T* weight;

  Arrays(const Size& size, const Args& args, size_t first)
      : first_image{size, args.in<T>(first), args.in<T>(first + 1), size.modulated ? args.in<T>(first + 2) : nullptr},
        weight(args.in<T>(first + (size.modulated ? 3 : 2))) {}
  Image<T> image(int64_t index) const {
    const Size& size = first_image.size;
    Image<T> own = first_image;
    own.data += index * size.channels * size.space();
    own.offset += index * 2 * size.points();
    if (own.mask) own.mask += index * size.points();
    return own;
  }
};

// The parts of an image's arrays that belong to a group of channels.
struct Group {
  int64_t weight, columns, out;
  Group(const Size& size, int64_t image, int64_t group)
      : weight(group * size.group_filters() * size.group_rows()),
        columns(group * size.group_rows() * size.positions()),
        out((image * size.filters + group * size.group_filters()) * size.positions()) {}
};

std::shared_ptr<Matmul> product(const NodeView& node, const MatmulProblem& problem) {
  return std::make_shared<Matmul>(CudaDevice::of(node.context), problem, node.where());
}

int64_t column_elements(const Size& size) { return size.channels * size.taps() * size.positions(); }

template <class T>
std::unique_ptr<Kernel> build_forward(const NodeView& node, const Size& size, bool no_bias) {
  const auto matmul = product(
      node,
      {.rows = size.group_filters(), .inner = size.group_rows(), .columns = size.positions(), .dtype = dtype_of<T>()});
  ScratchLayout layout;
  const size_t columns_at = layout.add<T>(column_elements(size));
  const size_t work_at = layout.add_bytes(matmul->scratch_bytes());
  const auto run = [=](const Args& args) {
    const cudaStream_t stream = stream_of(args);
    const Arrays<T> arrays(size, args, 0);
    T* const columns = scratch_at<T>(args.scratch, columns_at);
    T* const out = args.out<T>();
    for (int64_t index = 0; index < size.images; ++index) {
      gather_columns<<<blocks_for(size.points()), block_size, 0, stream>>>(arrays.image(index), columns);
      for (int64_t i = 0; i < size.groups; ++i) {
        const Group group(size, index, i);
        matmul->run(stream, arrays.weight + group.weight, columns + group.columns, nullptr, out + group.out,
                    scratch_at<std::byte>(args.scratch, work_at));
      }
    }
    const int64_t count = size.images * size.filters * size.positions();
    if (!no_bias)
      add_bias<<<blocks_for(count), block_size, 0, stream>>>(out, args.in<T>(size.modulated ? 4 : 3), count,
                                                             size.filters, size.positions());
  };
  return make_step(node, run, {.scratch_bytes = layout.total()});
}

// The readings of all images in the order of their pixels.
template <class C>
struct SortedReadings {
  int64_t count, pixels;
  int bits = 1;  // of a pixel's number
  size_t pixels_at, order_at, sorted_pixels_at, sorted_order_at, weights_at, begins_at, work_at, work_bytes = 0;

  SortedReadings(const Size& size, ScratchLayout& layout)
      : count(size.images * size.points() * 4), pixels(size.images * size.offset_groups * size.space()) {
    while (int64_t{1} << bits <= pixels) ++bits;
    pixels_at = layout.add<uint32_t>(count);
    order_at = layout.add<uint32_t>(count);
    sorted_pixels_at = layout.add<uint32_t>(count);
    sorted_order_at = layout.add<uint32_t>(count);
    weights_at = layout.add<C>(count);
    begins_at = layout.add<uint32_t>(pixels + 1);
    work_bytes = radix_sort_bytes<uint32_t>(count, {0, bits});
    work_at = layout.add_bytes(work_bytes);
  }

  template <class T>
  void queue(cudaStream_t stream, void* scratch, const Image<T>& first) const {
    auto* const own_pixels = scratch_at<uint32_t>(scratch, pixels_at);
    auto* const own_order = scratch_at<uint32_t>(scratch, order_at);
    write_readings<<<blocks_for(count / 4), block_size, 0, stream>>>(
        first, own_pixels, own_order, scratch_at<C>(scratch, weights_at), static_cast<uint32_t>(pixels));
    auto* const sorted_pixels = scratch_at<uint32_t>(scratch, sorted_pixels_at);
    queue_radix_sort(stream, scratch_at<std::byte>(scratch, work_at), work_bytes, own_pixels, sorted_pixels, own_order,
                     scratch_at<uint32_t>(scratch, sorted_order_at), count, {0, bits});
    find_begins<<<blocks_for(pixels + 1), block_size, 0, stream>>>(sorted_pixels, count,
                                                                   scratch_at<uint32_t>(scratch, begins_at), pixels);
  }
};

template <class T>
std::unique_ptr<Kernel> build_grad_data(const NodeView& node, const Size& size) {
  using C = compute_type<T>;
  const auto matmul = product(node, {.rows = size.group_rows(),
                                     .inner = size.group_filters(),
                                     .columns = size.positions(),
                                     .transpose_a = true,
                                     .dtype = dtype_of<T>()});
  ScratchLayout layout;
  const size_t columns_at = layout.add<T>(column_elements(size));
  const size_t work_at = layout.add_bytes(matmul->scratch_bytes());
  const SortedReadings<C> readings(size, layout);
  const auto run = [=](const Args& args) {
    const cudaStream_t stream = stream_of(args);
    const Arrays<T> arrays(size, args, 1);
    T *const data_grad = args.out<T>(0), *const offset_grad = args.out<T>(1);
    T* const mask_grad = size.modulated ? args.out<T>(2) : nullptr;
    T* const columns = scratch_at<T>(args.scratch, columns_at);
    if (data_grad) readings.queue(stream, args.scratch, arrays.first_image);
    for (int64_t index = 0; index < size.images; ++index) {
      for (int64_t i = 0; i < size.groups; ++i) {
        const Group group(size, index, i);
        matmul->run(stream, arrays.weight + group.weight, args.in<T>(0) + group.out, nullptr, columns + group.columns,
                    scratch_at<std::byte>(args.scratch, work_at));
      }
      if (data_grad)
        sum_readings<<<blocks_for(size.channels * size.space()), block_size, 0, stream>>>(
            size, index, scratch_at<uint32_t>(args.scratch, readings.begins_at),
            scratch_at<uint32_t>(args.scratch, readings.sorted_order_at),
            scratch_at<C>(args.scratch, readings.weights_at), columns,
            data_grad + index * size.channels * size.space());
      if (offset_grad || mask_grad)
        offset_gradients<<<blocks_for(size.points()), block_size, 0, stream>>>(
            arrays.image(index), columns, offset_grad ? offset_grad + index * 2 * size.points() : nullptr,
            mask_grad ? mask_grad + index * size.points() : nullptr);
    }
  };
  return make_step(node, run, {.scratch_bytes = layout.total()});
}

template <class T>
std::unique_ptr<Kernel> build_grad_weight(const NodeView& node, const Size& size, bool no_bias) {
  using C = compute_type<T>;
  const auto matmul = product(node, {.rows = size.group_filters(),
                                     .inner = size.positions(),
                                     .columns = size.group_rows(),
                                     .transpose_b = true,
                                     .dtype = dtype_of<T>()});
  const int64_t weights = size.filters * size.group_rows();
  ScratchLayout layout;
  const size_t columns_at = layout.add<T>(column_elements(size));
  const size_t part_at = layout.add<T>(weights), sum_at = layout.add<C>(weights);
  const size_t work_at = layout.add_bytes(matmul->scratch_bytes());
  const auto run = [=](const Args& args) {
    const cudaStream_t stream = stream_of(args);
    const Arrays<T> arrays(size, args, 1);
    const T* const dy = args.in<T>(0);
    T* const columns = scratch_at<T>(args.scratch, columns_at);
    T* const part = scratch_at<T>(args.scratch, part_at);
    for (int64_t index = 0; index < size.images && args.outputs[0]; ++index) {
      gather_columns<<<blocks_for(size.points()), block_size, 0, stream>>>(arrays.image(index), columns);
      for (int64_t i = 0; i < size.groups; ++i) {
        const Group group(size, index, i);
        matmul->run(stream, dy + group.out, columns + group.columns, nullptr, part + group.weight,
                    scratch_at<std::byte>(args.scratch, work_at));
      }
      T* const result = index + 1 == size.images ? args.out<T>(0) : nullptr;
      add_part<<<blocks_for(weights), block_size, 0, stream>>>(scratch_at<C>(args.scratch, sum_at), part, result,
                                                               weights, index == 0);
    }
    if (!no_bias && args.outputs[1])
      sum_bias<<<blocks_for(size.filters, 1), block_size, 0, stream>>>(dy, args.out<T>(1), size.images, size.filters,
                                                                       size.positions());
  };
  return make_step(node, run, {.scratch_bytes = layout.total()});
}

// ---- All of them ----------------------------------------------------------------------------------------------------

// `data` and `output` say which arrays have the shapes of data and of the output; build(node, size, params, type).
template <class P, class Build>
void add(ImplementationTable& table, bool modulated, size_t data, bool output_is_first_input, Build build) {
  const auto size_of_node = [=](const NodeView& node) {
    return Size(node.as<P>(), modulated, node.inputs[data].shape,
                output_is_first_input ? node.inputs[0].shape : node.outputs[0].shape);
  };
  table.add<P>({.name = "cublaslt",
                .refuse = [=](const NodeView& node) { return refuse(node, size_of_node(node)); },
                .build =
                    [=](const NodeView& node) {
                      return visit_floating(node.outputs[0].dtype, [&]<class T>(std::type_identity<T> type) {
                        return build(node, size_of_node(node), node.as<P>().no_bias, type);
                      });
                    },
                .cache_when_invoked = true});
}

template <class Forward, class GradData, class GradWeight>
void add_all(ImplementationTable& table, bool modulated) {
  add<Forward>(table, modulated, 0, false,
               []<class T>(const NodeView& node, const Size& size, bool no_bias, std::type_identity<T>) {
                 return build_forward<T>(node, size, no_bias);
               });
  add<GradData>(table, modulated, 1, true,
                []<class T>(const NodeView& node, const Size& size, bool, std::type_identity<T>) {
                  return build_grad_data<T>(node, size);
                });
  add<GradWeight>(table, modulated, 1, true,
                  []<class T>(const NodeView& node, const Size& size, bool no_bias, std::type_identity<T>) {
                    return build_grad_weight<T>(node, size, no_bias);
                  });
}

}  // namespace

void add_deformable_conv(ImplementationTable& table) {
  add_all<DeformableConvolution, DeformableConvolutionGradData, DeformableConvolutionGradWeight>(table, false);
  add_all<ModulatedDeformableConvolution, ModulatedDeformableConvolutionGradData,
          ModulatedDeformableConvolutionGradWeight>(table, true);
}

}  // namespace symbind::cuda_backend
