#include "symbind/backend/cuda/conv_space_to_depth.h"

#include "symbind/backend/cuda/conv_plane.h"
#include "symbind/backend/cuda/kernels.cuh"
#include "symbind/core/error.h"

namespace symbind::cuda_backend {
namespace {

constexpr int64_t few_channels = 4, most_cell_channels = 32;
constexpr unsigned row_block = 128;
constexpr int64_t most_rows_of_cells = 65535;        // of a grid
constexpr int64_t most_elements = int64_t{1} << 30;  // of an image and of a row, which are indexed by 32 bits

// The position in its cell and the channel of each channel of a cell; those that only fill a vector have no channel.
struct CellTable {
  struct Entry {
    int16_t row, column, channel;
  };
  Entry entry[most_cell_channels];
};

CellTable table_of(const CellShape& shape) {
  CellTable table{};
  const int64_t used = shape.stride[0] * shape.stride[1] * shape.channels;
  for (int64_t i = 0; i < shape.cell_channels; ++i) {
    const int64_t position = i / shape.channels;
    table.entry[i] = {static_cast<int16_t>(position / shape.stride[1]),
                      static_cast<int16_t>(position % shape.stride[1]),
                      static_cast<int16_t>(i < used ? i % shape.channels : -1)};
  }
  return table;
}

// A pack of channels of a cell per thread: threads of a block are in one row of cells.
template <class Bits>
__global__ void gather_data(const __grid_constant__ CellShape shape, const __grid_constant__ CellTable table,
                            const Bits* data, Bits* cells) {
  constexpr int width = widest<Bits>;
  const int packs_of_cell = static_cast<int>(shape.cell_channels) / width;
  const int packs_of_row = static_cast<int>(shape.cells[1]) * packs_of_cell;
  const int pack_of_row = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (pack_of_row >= packs_of_row) return;
  const int first_channel = pack_of_row % packs_of_cell * width;
  const int first_row =
      static_cast<int>(blockIdx.y) * static_cast<int>(shape.stride[0]) - static_cast<int>(shape.padding[0]);
  const int first_column =
      pack_of_row / packs_of_cell * static_cast<int>(shape.stride[1]) - static_cast<int>(shape.padding[1]);
  const int rows = static_cast<int>(shape.in[0]), columns = static_cast<int>(shape.in[1]);
  const int channels = static_cast<int>(shape.channels);
  for (int64_t image = blockIdx.z; image < shape.batch; image += gridDim.z) {
    const Bits* const of_image = data + image * rows * columns * channels;
    Pack<Bits, width> pack;
#pragma unroll
    for (int k = 0; k < width; ++k) {
      const CellTable::Entry at = table.entry[first_channel + k];
      const int row = first_row + at.row, column = first_column + at.column;
      const bool inside = at.channel >= 0 && row >= 0 && row < rows && column >= 0 && column < columns;
      pack.element[k] = inside ? of_image[(int64_t{row} * columns + column) * channels + at.channel] : Bits(0);
    }
    const int64_t row_of_cells = image * shape.cells[0] + blockIdx.y;
    reinterpret_cast<Pack<Bits, width>*>(cells)[row_of_cells * packs_of_row + pack_of_row] = pack;
  }
}

template <class Bits>
__global__ void gather_weight(const __grid_constant__ CellShape shape, const __grid_constant__ CellTable table,
                              const Bits* weight, Bits* cells) {
  for (int64_t i = first_element(); i < shape.weight_size(); i += element_step()) {
    const int64_t cell_channel = i % shape.cell_channels, tap = i / shape.cell_channels;
    const int64_t tap_column = tap % shape.taps[1], tap_row = tap / shape.taps[1] % shape.taps[0];
    const int64_t filter = tap / (shape.taps[0] * shape.taps[1]);
    const CellTable::Entry at = table.entry[cell_channel];
    const int64_t row = tap_row * shape.stride[0] + at.row - shape.lead[0];
    const int64_t column = tap_column * shape.stride[1] + at.column - shape.lead[1];
    const bool inside = at.channel >= 0 && row >= 0 && row < shape.kernel[0] && column >= 0 && column < shape.kernel[1];
    const int64_t index = ((filter * shape.kernel[0] + row) * shape.kernel[1] + column) * shape.channels + at.channel;
    cells[i] = inside ? weight[index] : Bits(0);
  }
}

// The reverse, for the gradient of the weight.
template <class Bits>
__global__ void scatter_weight(CellShape shape, const Bits* cells, Bits* weight) {
  const int64_t count = shape.filters * shape.kernel[0] * shape.kernel[1] * shape.channels;
  for (int64_t i = first_element(); i < count; i += element_step()) {
    const int64_t channel = i % shape.channels, tap = i / shape.channels;
    const int64_t column = tap % shape.kernel[1] + shape.lead[1];
    const int64_t row = tap / shape.kernel[1] % shape.kernel[0] + shape.lead[0];
    const int64_t filter = tap / (shape.kernel[0] * shape.kernel[1]);
    const int64_t position = row % shape.stride[0] * shape.stride[1] + column % shape.stride[1];
    const int64_t cell = (filter * shape.taps[0] + row / shape.stride[0]) * shape.taps[1] + column / shape.stride[1];
    weight[i] = cells[cell * shape.cell_channels + position * shape.channels + channel];
  }
}

template <class Work>
void visit_bits(DType dtype, Work work) {
  if (size_of(dtype) == 2)
    work(std::type_identity<uint16_t>{});
  else
    work(std::type_identity<uint32_t>{});
}

}  // namespace

std::vector<CellConvolution> CellConvolution::forms_of(const ConvolutionProblem& problem) {
  std::vector<CellConvolution> forms;
  const auto vector = static_cast<int64_t>(16 / size_of(problem.dtype));
  for (const int64_t multiple : {vector, 2 * vector}) {
    const auto form = of(problem, multiple);
    if (form && (forms.empty() || forms.back().shape_.cell_channels != form->shape_.cell_channels))
      forms.push_back(*form);
  }
  return forms;
}

std::optional<CellConvolution> CellConvolution::of(const ConvolutionProblem& problem, int64_t multiple) {
  const ConvolutionSize& size = problem.size;
  const bool fits = problem.pass != ConvolutionPass::data_grad && problem.channels_last && size.groups == 1 &&
                    size.channels <= few_channels && problem.dtype != DType::float64;
  if (!fits || !is_plane(size) || size.stride[1] * size.stride[2] == 1) return std::nullopt;
  CellShape shape{.channels = size.channels, .batch = size.batch, .filters = size.filters};
  shape.cell_channels = (size.channels * size.stride[1] * size.stride[2] + multiple - 1) / multiple * multiple;
  if (shape.cell_channels > most_cell_channels) return std::nullopt;
  ConvolutionSize over_cells = size;
  for (size_t axis = 0; axis < 2; ++axis) {
    const int64_t stride = size.stride[axis + 1], pad = size.pad[axis + 1], kernel = size.kernel[axis + 1];
    if (size.dilate[axis + 1] != 1 || kernel < stride) return std::nullopt;
    shape.in[axis] = size.in[axis + 1];
    shape.kernel[axis] = kernel;
    shape.stride[axis] = stride;
    shape.padding[axis] = (pad + stride - 1) / stride * stride;
    shape.lead[axis] = shape.padding[axis] - pad;
    shape.taps[axis] = (kernel + shape.lead[axis] + stride - 1) / stride;
    shape.cells[axis] = size.out[axis + 1] + shape.taps[axis] - 1;
    over_cells.in[axis + 1] = shape.cells[axis];
    over_cells.kernel[axis + 1] = shape.taps[axis];
    over_cells.stride[axis + 1] = 1;
    over_cells.pad[axis + 1] = 0;
  }
  if (shape.cells[0] > most_rows_of_cells || shape.cells[1] * shape.cell_channels > most_elements ||
      shape.in[0] * shape.in[1] * shape.channels > most_elements)
    return std::nullopt;
  over_cells.channels = shape.cell_channels;
  ConvolutionProblem rearranged = problem;
  rearranged.size = over_cells;
  return CellConvolution(rearranged, shape);
}

CellConvolution::CellConvolution(const ConvolutionProblem& problem, const CellShape& shape)
    : problem_(problem),
      shape_(shape),
      weight_at_(aligned(static_cast<size_t>(shape.data_size()) * size_of(problem.dtype))),
      bytes_(weight_at_ + aligned(static_cast<size_t>(shape.weight_size()) * size_of(problem.dtype))) {}

ConvolutionArrays CellConvolution::gather(cudaStream_t stream, const ConvolutionArrays& arrays, void* memory) const {
  ConvolutionArrays cells = arrays;
  cells.data = memory;
  cells.weight = static_cast<std::byte*>(memory) + weight_at_;
  const CellTable table = table_of(shape_);
  visit_bits(problem_.dtype, [&]<class Bits>(std::type_identity<Bits>) {
    const auto packs_of_row = shape_.cells[1] * (shape_.cell_channels / widest<Bits>);
    const dim3 grid(static_cast<unsigned>((packs_of_row + row_block - 1) / row_block),
                    static_cast<unsigned>(shape_.cells[0]),
                    static_cast<unsigned>(std::min<int64_t>(shape_.batch, 65535)));
    gather_data<<<grid, row_block, 0, stream>>>(shape_, table, static_cast<const Bits*>(arrays.data),
                                                static_cast<Bits*>(cells.data));
    if (problem_.pass == ConvolutionPass::forward)
      gather_weight<<<blocks_for(shape_.weight_size()), block_size, 0, stream>>>(
          shape_, table, static_cast<const Bits*>(arrays.weight), static_cast<Bits*>(cells.weight));
  });
  return cells;
}

void CellConvolution::scatter(cudaStream_t stream, const ConvolutionArrays& arrays, void* memory) const {
  if (problem_.pass != ConvolutionPass::weight_grad) return;
  visit_bits(problem_.dtype, [&]<class Bits>(std::type_identity<Bits>) {
    scatter_weight<<<blocks_for(shape_.weight_size()), block_size, 0, stream>>>(
        shape_, reinterpret_cast<const Bits*>(static_cast<std::byte*>(memory) + weight_at_),
        static_cast<Bits*>(arrays.weight));
  });
}

}  // namespace symbind::cuda_backend
