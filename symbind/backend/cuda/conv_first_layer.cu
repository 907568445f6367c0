// The gradient is a matrix product: for each filter (rows) and each tap, an element of the kernel in one channel
// (columns), the sum over all positions of the output. A block sums over some rows of the output. For each it stores
// the gradients of the row, and the rows of the image under it, in shared memory; the columns of the product are then
// shifted views of the image. The sums of all blocks are added in a fixed order.
//
// Products are in TF32, sums in float32. The gradient of the bias is the sum of the gradients as they are read.
#include "symbind/backend/cuda/conv_first_layer.h"

#include <algorithm>

#include "symbind/backend/cuda/conv_image.h"
#include "symbind/backend/cuda/conv_plane.h"
#include "symbind/backend/cuda/device.h"
#include "symbind/backend/cuda/kernels.cuh"
#include "symbind/backend/cuda/shared_memory.h"
#include "symbind/backend/cuda/step.h"
#include "symbind/backend/cuda/tensor_core.cuh"
#include "symbind/core/error.h"
#include "symbind/ops/conv.h"

namespace symbind::cuda_backend {
namespace {

constexpr int tile = 64;            // filters of a block
constexpr int row_step = tile + 8;  // of the gradients in shared memory: fragments are read without bank conflicts
constexpr int warps_by_filters = 2, warps_by_taps = 4, warps = warps_by_filters * warps_by_taps;
// A thread always reads the gradients of the same filters: `width` of them, of pack threadIdx.x % packs.
constexpr int width = 4, packs = tile / width, threads_of_pack = warps * 32 / packs;
static_assert(warps * 32 % packs == 0);
constexpr int positions_at_once = 8;  // of the output: the depth of a tensor core's product
constexpr int blocks_of_rows = 264;   // independent of the device, as the order of the sums is
constexpr int most_taps = 160;
constexpr size_t most_shared_bytes = 100 << 10;  // of a block: two fit a multiprocessor of compute capability 9.0

struct Extents {
  int batch, channels, filters;
  int in[2], out[2], kernel[2], stride[2], pad[2];

  explicit Extents(const ConvolutionSize& size) { copy_plane(size, *this); }
  constexpr int taps() const { return kernel[0] * kernel[1] * channels; }
  constexpr int filter_tiles() const { return (filters + tile - 1) / tile; }
  // Of a row of the output, filled up to whole products, and of the image under it.
  constexpr int positions() const { return (out[1] + positions_at_once - 1) / positions_at_once * positions_at_once; }
  constexpr int columns() const { return (positions() - 1) * stride[1] + kernel[1]; }
  constexpr size_t shared_bytes() const {
    const size_t rows =
        static_cast<size_t>(positions()) * row_step + static_cast<size_t>(kernel[0]) * columns() * channels;
    return std::max<size_t>(rows, threads_of_pack * tile) * sizeof(float);  // or the sums of the bias
  }
};

// Calls read(i) and then write(i, value) for all i below count, distributed over the threads of the block. A thread
// reads several elements before it writes the first: their latencies overlap.
template <int at_once, class Read, class Write>
__device__ void copy_elements(int count, Read read, Write write) {
  const int step = static_cast<int>(blockDim.x);
  for (int first = static_cast<int>(threadIdx.x); first < count; first += at_once * step) {
    decltype(read(0)) values[at_once];
#pragma unroll
    for (int k = 0; k < at_once; ++k)
      if (first + k * step < count) values[k] = read(first + k * step);
#pragma unroll
    for (int k = 0; k < at_once; ++k)
      if (first + k * step < count) write(first + k * step, values[k]);
  }
}

// The gradients of one row of the output, (positions, filters of the tile); zeros fill both up. `bias` adds up those
// that this thread reads.
__device__ void load_gradients(const Extents& e, const float* row, bool aligned, int first_filter, float* gradients,
                               float (&bias)[width]) {
  const auto read = [&](int i) {
    const int position = i / packs, filter = first_filter + i % packs * width;
    Pack<float, width> pack;
    const float* const from = row + int64_t{position} * e.filters + filter;
    const bool inside = position < e.out[1] && filter < e.filters;
    if (inside && aligned)
      pack = *reinterpret_cast<const Pack<float, width>*>(from);
    else
      for (int k = 0; k < width; ++k) pack.element[k] = inside ? from[k] : 0.0f;
    return pack;
  };
  const auto write = [&](int i, const Pack<float, width>& pack) {
    float values[width];
#pragma unroll
    for (int k = 0; k < width; ++k) {
      values[k] = tensor_core::nearest_tf32(pack.element[k]);
      bias[k] += pack.element[k];
    }
    *reinterpret_cast<float4*>(gradients + i / packs * row_step + i % packs * width) =
        make_float4(values[0], values[1], values[2], values[3]);
  };
  copy_elements<4>(e.positions() * packs, read, write);
}

// The rows of the image that the kernel covers for one row of the output, with zeros around them.
__device__ void load_image(const Extents& e, const float* image, int first_row, float* rows) {
  const int of_row = e.columns() * e.channels, before = e.pad[1] * e.channels, count = e.in[1] * e.channels;
  const auto read = [&](int i) {
    const int row = first_row + i / of_row, at = i % of_row - before;
    const bool inside = row >= 0 && row < e.in[0] && at >= 0 && at < count;
    return inside ? image[int64_t{row} * count + at] : 0.0f;
  };
  copy_elements<8>(e.kernel[0] * of_row, read, [&](int i, float value) { rows[i] = tensor_core::nearest_tf32(value); });
}

// The sums of a block: (filter of the tile, tap), then those of the bias.
constexpr int block_sums(int stored_taps) { return tile * stored_taps + tile; }

// tap_tiles: groups of eight taps of a warp. `partial`: the sums of (tile of filters, block).
template <int tap_tiles>
__global__ void __launch_bounds__(warps * 32, 2)
    sum_rows(const __grid_constant__ Extents e, const float* data, const float* dy, bool aligned, float* partial) {
  extern __shared__ float shared[];
  float* const gradients = shared;
  float* const rows = shared + e.positions() * row_step;
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int group = lane / 4, member = lane % 4;
  const int warp_filter = warp % warps_by_filters * (tile / warps_by_filters);
  const int warp_tap = warp / warps_by_filters * (tap_tiles * 8);
  const int position_step = e.stride[1] * e.channels;

  // Where the taps of this thread's columns begin in the rows of the image; taps that fill a group up read the first.
  int tap_at[tap_tiles];
#pragma unroll
  for (int n = 0; n < tap_tiles; ++n) {
    const int tap = warp_tap + n * 8 + group, of_kernel_row = e.kernel[1] * e.channels;
    tap_at[n] = tap < e.taps() ? tap / of_kernel_row * e.columns() * e.channels + tap % of_kernel_row : 0;
  }

  float sums[2][tap_tiles][4] = {}, bias[width] = {};
  const int all_rows = e.batch * e.out[0];
  for (int r = static_cast<int>(blockIdx.x); r < all_rows; r += blocks_of_rows) {
    const int image = r / e.out[0], row = r % e.out[0];
    __syncthreads();
    load_gradients(e, dy + int64_t{r} * e.out[1] * e.filters, aligned, static_cast<int>(blockIdx.y) * tile, gradients,
                   bias);
    load_image(e, data + int64_t{image} * e.in[0] * e.in[1] * e.channels, row * e.stride[0] - e.pad[0], rows);
    __syncthreads();
    for (int p = 0; p < e.positions(); p += positions_at_once) {
      uint32_t a[2][4];
#pragma unroll
      for (int m = 0; m < 2; ++m) {
        const float* const from = gradients + (p + member) * row_step + warp_filter + m * 16 + group;
        a[m][0] = __float_as_uint(from[0]);
        a[m][1] = __float_as_uint(from[8]);
        a[m][2] = __float_as_uint(from[4 * row_step]);
        a[m][3] = __float_as_uint(from[4 * row_step + 8]);
      }
#pragma unroll
      for (int n = 0; n < tap_tiles; ++n) {
        const float* const from = rows + tap_at[n] + (p + member) * position_step;
        const uint32_t b[2] = {__float_as_uint(from[0]), __float_as_uint(from[4 * position_step])};
#pragma unroll
        for (int m = 0; m < 2; ++m) tensor_core::add_product<float, false>(sums[m][n], a[m], b);
      }
    }
  }

  constexpr int stored_taps = warps_by_taps * tap_tiles * 8;
  float* const own = partial + (int64_t{blockIdx.y} * blocks_of_rows + blockIdx.x) * block_sums(stored_taps);
#pragma unroll
  for (int m = 0; m < 2; ++m)
#pragma unroll
    for (int n = 0; n < tap_tiles; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int filter = warp_filter + m * 16 + group + i / 2 * 8, tap = warp_tap + n * 8 + member * 2 + i % 2;
        own[filter * stored_taps + tap] = sums[m][n][i];
      }

  // (threads of a pack, filters): the gradients in shared memory are no longer needed.
  __syncthreads();
  const int thread = static_cast<int>(threadIdx.x);
#pragma unroll
  for (int k = 0; k < width; ++k) gradients[thread / packs * tile + thread % packs * width + k] = bias[k];
  __syncthreads();
  if (thread >= tile) return;
  float sum = 0;
  for (int row = 0; row < threads_of_pack; ++row) sum += gradients[row * tile + thread];
  own[tile * stored_taps + thread] = sum;
}

// Adds up the blocks: 32 neighbouring elements of the weight and then of the bias by 32 × add_lanes threads, each of
// which adds some of the blocks. The weight is (filters, channels, kernel) or, if `last`, (filters, kernel, channels).
// Results that are null are not written.
constexpr int add_lanes = 8;
__global__ void add_blocks(const __grid_constant__ Extents e, const float* partial, int stored_taps, bool last,
                           float* weight, float* bias) {
  __shared__ double shared[add_lanes][32];
  const int weights = e.filters * e.taps(), i = static_cast<int>(blockIdx.x * 32 + threadIdx.x);
  const bool of_bias = i >= weights;
  const int filter = of_bias ? i - weights : i / e.taps(), tap = of_bias ? 0 : i % e.taps();
  double sum = 0;
  if (filter < e.filters) {
    const int64_t step = block_sums(stored_taps);
    const float* const from = partial + int64_t{filter / tile} * blocks_of_rows * step +
                              (of_bias ? tile * stored_taps + filter % tile : filter % tile * stored_taps + tap);
#pragma unroll 8
    for (int block = static_cast<int>(threadIdx.y); block < blocks_of_rows; block += add_lanes)
      sum += from[block * step];
  }
  shared[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || filter >= e.filters) return;
  for (int lane = 1; lane < add_lanes; ++lane) sum += shared[lane][threadIdx.x];
  if (of_bias) {
    if (bias) bias[filter] = static_cast<float>(sum);
  } else if (weight) {
    const int channel = tap % e.channels, in_kernel = tap / e.channels;
    weight[last ? i : (filter * e.channels + channel) * (e.kernel[0] * e.kernel[1]) + in_kernel] =
        static_cast<float>(sum);
  }
}

// Calls launch with the number of groups of eight taps of a warp.
template <class Launch>
void visit_tap_tiles(int taps, Launch launch) {
  constexpr int of_group = warps_by_taps * 8;
  if (taps <= 2 * of_group) return launch(std::integral_constant<int, 2>{});
  if (taps <= 3 * of_group) return launch(std::integral_constant<int, 3>{});
  return launch(std::integral_constant<int, 5>{});
}

constexpr const char* name = "first_layer";

// By the next implementation: for arrays that have not got the preferred layout, as those of single operators.
std::unique_ptr<Kernel> build_otherwise(const NodeView& node) {
  for (const Implementation& other : Target::get(node.context).implementations(node.op))
    if (other.name != name && (!other.refuse || other.refuse(node).empty())) return other.build(node);
  fail(node.where(), " cannot run on ", node.context);
}

// With one channel, or one position, both layouts are the same bytes.
bool is_channels_last(const ConvolutionGradWeight& p, const Tensor& tensor) {
  return symbind::is_channels_last(p.layout) || tensor.layout == Layout::channels_last || tensor.shape[1] == 1 ||
         tensor.shape.size(2, tensor.shape.rank()) == 1;
}

std::unique_ptr<Kernel> build(const NodeView& node) {
  const auto& p = node.as<ConvolutionGradWeight>();
  if (!is_channels_last(p, node.inputs[0]) || !is_channels_last(p, node.inputs[1])) return build_otherwise(node);
  const Extents e(size_of(p, node.inputs[1].shape, node.inputs[0].shape));
  const bool last = symbind::is_channels_last(p.layout);
  std::unique_ptr<Kernel> kernel;
  visit_tap_tiles(e.taps(), [&]<int tap_tiles>(std::integral_constant<int, tap_tiles>) {
    constexpr int stored_taps = warps_by_taps * tap_tiles * 8;
    const size_t partial_bytes =
        static_cast<size_t>(e.filter_tiles()) * blocks_of_rows * block_sums(stored_taps) * sizeof(float);
    allow_shared_memory(CudaDevice::of(node.context), sum_rows<tap_tiles>);
    kernel =
        make_step(node,
                  [e, last, has_bias = !p.no_bias](const Args& args) {
                    float* const weight = args.out<float>();
                    float* const bias = has_bias ? args.out<float>(1) : nullptr;
                    if (!weight && !bias) return;
                    const dim3 grid(blocks_of_rows, static_cast<unsigned>(e.filter_tiles()));
                    auto* const partial = static_cast<float*>(args.scratch);
                    const float *const dy = args.in<float>(0), *const data = args.in<float>(1);
                    sum_rows<tap_tiles><<<grid, warps * 32, e.shared_bytes(), stream_of(args)>>>(
                        e, data, dy, aligned_for_packs(dy), partial);
                    const int results = e.filters * (e.taps() + 1);
                    add_blocks<<<static_cast<unsigned>((results + 31) / 32), dim3(32, add_lanes), 0, stream_of(args)>>>(
                        e, partial, stored_taps, last, weight, bias);
                  },
                  {.scratch_bytes = partial_bytes});
  });
  return kernel;
}

std::string refuse(const NodeView& node) {
  const auto& p = node.as<ConvolutionGradWeight>();
  const DType dtype = node.outputs[0].dtype;
  if (dtype != DType::float32) return "in 16 bits there are faster kernels (conv_image.h)";
  if (!tf32_wanted()) return "products in TF32";
  for (const Tensor& tensor : node.inputs) {
    if (tensor.dtype != dtype) return "arrays of different types";
    if (tensor.shape.size() == 0) return "an empty array";
  }
  if (block_of(node.inputs[0].layout) > 1 || block_of(node.inputs[1].layout) > 1) return "a blocked layout";
  const ConvolutionSize size = size_of(p, node.inputs[1].shape, node.inputs[0].shape);
  if (size.channels > 4 || size.groups > 1) return "more channels than an image has";
  if (size.in[0] > 1 || size.out[0] > 1 || size.kernel[0] > 1 || size.pad[0] > 0) return "three spatial axes";
  if (size.dilate[1] > 1 || size.dilate[2] > 1) return "a dilated kernel";
  if (size.filters % 4 != 0) return "filters that do not fill vectors";
  if (size.channels * size.kernel_size() > most_taps) return "a large kernel";
  for (const int64_t count : {size.data_size(), size.output_size()})
    if (count >= int64_t{1} << 40) return "too many elements";
  if (size.batch * size.out[1] >= int64_t{1} << 31 || size.in[2] >= 1 << 16) return "too many rows";
  if (size.filters >= 1 << 20) return "too many filters";
  const ConvolutionProblem problem{
      .pass = ConvolutionPass::weight_grad, .size = size, .channels_last = true, .dtype = dtype};
  if (!image_forms(CudaDevice::of(node.context), problem).empty()) return "there is a faster kernel (conv_image.h)";
  const auto of_block = static_cast<size_t>(SharedMemory(CudaDevice::of(node.context)).of_block);
  const bool fits = Extents(size).shared_bytes() <= std::min(most_shared_bytes, of_block);
  return fits ? "" : "rows that do not fit shared memory";
}

std::optional<PreferredLayouts> preferred_layouts(const NodeView& node) {
  if (symbind::is_channels_last(node.as<ConvolutionGradWeight>().layout)) return std::nullopt;
  const auto preferred_layout = [](const Tensor& tensor) {
    return tensor.shape[1] == 1 ? Layout::plain : Layout::channels_last;
  };
  PreferredLayouts preferred{std::vector(node.inputs.size(), Layout::plain),
                             std::vector(node.outputs.size(), Layout::plain)};
  preferred.inputs[0] = preferred_layout(node.inputs[0]);
  preferred.inputs[1] = preferred_layout(node.inputs[1]);
  return preferred;
}

}  // namespace

void add_first_layer_gradient(ImplementationTable& table) {
  table.add<ConvolutionGradWeight>({name, refuse, build, preferred_layouts, true, Tier::specialised});
}

}  // namespace symbind::cuda_backend
