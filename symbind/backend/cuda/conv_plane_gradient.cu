#include "symbind/backend/cuda/conv_plane_gradient.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "symbind/backend/cuda/conv_plane.h"
#include "symbind/backend/cuda/conv_plane_gradient.cuh"
#include "symbind/backend/cuda/shared_memory.h"
#include "symbind/backend/cuda/tensor_map.h"

namespace symbind::cuda_backend {
namespace {

// Measured on an H200, in microseconds. Only their ratios matter.
constexpr double step_time = 0.35, piece_time = 0.3, block_time = 6;
constexpr double time_per_stored_byte = 0.6e-6;  // to write and read a group's sums

double estimated_time(const PlaneGradientShape& shape, const PlaneGradientCut& cut, int multiprocessors) {
  const auto rounds = [](int all, int at_once) { return static_cast<double>((all + at_once - 1) / at_once); };
  const double block = block_time + rounds(cut.pieces, cut.groups) * (piece_time + cut.steps * step_time);
  const double stored_bytes = cut.groups * static_cast<double>(shape.weight_size()) * sizeof(float);
  return rounds(cut.blocks(), multiprocessors) * block + stored_bytes * time_per_stored_byte;
}

// The cut that needs the least time of those with at most `most_bytes` of shared memory; none: a single row is larger.
std::optional<PlaneGradientCut> cut_plane_gradient(const PlaneGradientShape& shape, int most_bytes,
                                                   int multiprocessors) {
  constexpr int most_rounds = 4, most_column_tiles = 16;
  std::optional<PlaneGradientCut> best;
  double least = std::numeric_limits<double>::infinity();
  // False: it is too large, and so are those with more rows or images.
  const auto consider = [&](int images, int rows, int columns) {
    PlaneGradientCut cut;
    cut.images = images;
    cut.rows = rows;
    cut.columns = columns;
    complete_cut(shape, cut);
    if (cut.shared_bytes > most_bytes || std::max({cut.images, cut.window_rows, cut.window_columns}) > most_box_extent)
      return false;
    // There may be more blocks than run concurrently, where that divides the work more evenly.
    const int most_groups = std::clamp(most_rounds * multiprocessors / cut.tiles(), 1, cut.pieces);
    for (cut.groups = 1; cut.groups <= most_groups; ++cut.groups)
      if (const double time = estimated_time(shape, cut, multiprocessors); time < least) {
        least = time;
        best = cut;
      }
    return true;
  };
  for (int column_tiles = 1; column_tiles <= most_column_tiles && !best; ++column_tiles) {
    const int columns = (shape.out[1] + column_tiles - 1) / column_tiles;
    int rows = 1;
    while (rows <= shape.out[0] && consider(1, rows, columns)) ++rows;
    if (column_tiles > 1 || rows <= shape.out[0]) continue;
    for (int images = 2; images <= shape.batch && consider(images, shape.out[0], columns);) ++images;
  }
  return best;
}

PlaneGradientShape shape_of(const ConvolutionProblem& problem) {
  PlaneGradientShape shape;
  copy_plane(problem.size, shape);
  return shape;
}

std::optional<PlaneGradientCut> cut_of(const CudaDevice& device, const ConvolutionProblem& problem) {
  return cut_plane_gradient(shape_of(problem), SharedMemory(device).of_block,
                            device.attribute(cudaDevAttrMultiProcessorCount));
}

bool has_suitable_size(const ConvolutionSize& size) {
  constexpr int64_t fewest_channels = 32;  // fewer leave most of a tile empty
  constexpr int64_t most_channels = 1 << 14, most_extent = 1 << 14;
  const auto suits = [](int64_t channels) {
    return channels >= fewest_channels && channels <= most_channels && channels % vector_floats == 0;
  };
  if (!is_plane(size) || size.groups != 1 || !suits(size.channels) || !suits(size.filters) || size.batch < 1 ||
      size.batch * size.out_size() >= int64_t{1} << 31)
    return false;
  for (size_t axis = 1; axis < 3; ++axis)
    if (size.kernel[axis] != plane_kernel || size.dilate[axis] != 1 || size.stride[axis] > 2 || size.out[axis] < 1 ||
        size.in[axis] > most_extent || size.out[axis] > most_extent || size.pad[axis] > most_extent)
      return false;
  return true;
}

class PlaneGradientPlan final : public ConvolutionPlan {
 public:
  PlaneGradientPlan(const CudaDevice& device, const ConvolutionProblem& problem)
      : shape_(shape_of(problem)), cut_(cut_of(device, problem).value()) {
    allow_shared_memory(device, sum_plane_gradient, cudaSharedmemCarveoutMaxShared);
  }

  void run(cudaStream_t stream, const ConvolutionArrays& arrays, void* workspace) override {
    auto* const weight = static_cast<float*>(arrays.weight);
    auto* const partial = cut_.groups > 1 ? static_cast<float*>(workspace) : weight;
    sum_plane_gradient<<<static_cast<unsigned>(cut_.blocks()), plane_threads, static_cast<size_t>(cut_.shared_bytes),
                         stream>>>(
        shape_, cut_,
        map_of(arrays.data, shape_.channels, shape_.in, slab_channels, cut_.window_rows, cut_.window_columns,
               Swizzle::none),
        map_of(arrays.output, shape_.filters, shape_.out, half_filters, cut_.rows, cut_.columns, Swizzle::bytes_128),
        partial);
    if (cut_.groups == 1) return;
    const int64_t vectors = shape_.weight_size() / vector_floats;
    const dim3 block(32, static_cast<unsigned>(std::min(cut_.groups, add_groups_lanes)));
    launch_after_ours(add_plane_groups, static_cast<unsigned>((vectors + 31) / 32), block, stream, partial, cut_.groups,
                      vectors, weight);
  }
  size_t workspace_bytes() const override {
    if (cut_.groups == 1) return 0;
    return static_cast<size_t>(cut_.groups) * static_cast<size_t>(shape_.weight_size()) * sizeof(float);
  }
  bool applies_epilogue() const override { return false; }

 private:
  CUtensorMap map_of(const void* array, int channels, const int (&extents)[2], int box_channels, int box_rows,
                     int box_columns, Swizzle swizzle) const {
    const auto extent = [](int of) { return static_cast<uint64_t>(of); };
    const auto side = [](int of) { return static_cast<uint32_t>(of); };
    return tensor_map(array, {extent(channels), extent(extents[1]), extent(extents[0]), extent(shape_.batch)},
                      {side(box_channels), side(box_columns), side(box_rows), side(cut_.images)}, swizzle);
  }

  const PlaneGradientShape shape_;
  const PlaneGradientCut cut_;
};

}  // namespace

std::vector<int> plane_gradient_forms(const CudaDevice& device, const ConvolutionProblem& problem) {
  if (problem.pass != ConvolutionPass::weight_grad || problem.dtype != DType::float32 ||
      requires_exact_results(problem) || !problem.channels_last || problem.epilogue.any() ||
      !has_suitable_size(problem.size) || device.attribute(cudaDevAttrComputeCapabilityMajor) < 9)
    return {};
  const CurrentDevice current(device.id());
  if (!is_built_for_9_0(sum_plane_gradient) || !has_tensor_maps() || !cut_of(device, problem)) return {};
  return {0};
}

std::unique_ptr<ConvolutionPlan> make_plane_gradient_plan(const CudaDevice& device, const ConvolutionProblem& problem,
                                                          int /*form*/) {
  return std::make_unique<PlaneGradientPlan>(device, problem);
}

}  // namespace symbind::cuda_backend
