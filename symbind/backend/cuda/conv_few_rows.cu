#include "symbind/backend/cuda/conv_few_rows.h"

#include "symbind/backend/cuda/capture.h"
#include "symbind/backend/cuda/conv_few_rows.cuh"
#include "symbind/backend/cuda/conv_plane.h"

namespace symbind::cuda_backend {
namespace {

FewRowsForm form_of(int number) { return {number / 10, number % 10}; }
int number_of(const FewRowsForm& form) { return form.columns * 10 + form.cluster; }

FewRowsShape shape_of(const ConvolutionSize& size) {
  FewRowsShape shape;
  copy_plane(size, shape);
  return shape;
}

bool has_suitable_size(const ConvolutionSize& size) {
  constexpr int64_t most_extent = 1 << 14, most_channels = 1 << 16, most_rows = 1 << 16;
  constexpr int write_width = 4;
  if (!is_plane(size) || size.groups != 1 || size.channels % few_rows_slice != 0 || size.filters % write_width != 0 ||
      size.channels > most_channels || size.filters > most_channels || size.batch > most_rows ||
      size.batch * size.out_size() > most_rows || size.channels * size.kernel_size() > int64_t{1} << 24)
    return false;
  for (size_t axis = 1; axis < 3; ++axis)
    for (const auto* extents : {&size.in, &size.out, &size.kernel, &size.stride, &size.pad, &size.dilate})
      if ((*extents)[axis] > most_extent) return false;
  return true;
}

template <class T, class Tile>
class FewRowsPlan final : public ConvolutionPlan {
 public:
  FewRowsPlan(const CudaDevice& device, const ConvolutionProblem& problem, int cluster)
      : shape_(shape_of(problem.size)),
        cut_(cut_few_rows<Tile>(shape_, cluster, device.attribute(cudaDevAttrMultiProcessorCount),
                                SharedMemory(device))),
        epilogue_(problem.epilogue) {
    allow_shared_memory(device, convolve_few_rows<T, Tile>, cudaSharedmemCarveoutMaxShared);
  }

  void run(cudaStream_t stream, const ConvolutionArrays& arrays, void* /*workspace*/) override {
    const FewRowsArrays<T> typed{static_cast<const T*>(arrays.data),
                                 static_cast<const T*>(arrays.weight),
                                 static_cast<T*>(arrays.output),
                                 epilogue_.residual ? static_cast<const T*>(arrays.residual) : nullptr,
                                 epilogue_.bias ? static_cast<const T*>(arrays.bias) : nullptr,
                                 epilogue_.relu};
    const bool overlaps = arrays.weight_is_settled && comes_after_one_kernel(stream);
    launch_clusters(convolve_few_rows<T, Tile>,
                    {cut_.grid(), cut_.cluster, Tile::threads, static_cast<size_t>(cut_.shared_bytes), overlaps},
                    stream, shape_, cut_, typed, overlaps);
  }
  size_t workspace_bytes() const override { return 0; }
  bool applies_epilogue() const override { return epilogue_.any(); }

 private:
  const FewRowsShape shape_;
  const FewRowsCut cut_;
  const ConvolutionEpilogue epilogue_;
};

template <class T>
std::unique_ptr<ConvolutionPlan> make_plan(const CudaDevice& device, const ConvolutionProblem& problem,
                                           const FewRowsForm& form) {
  if (form.columns == 64) return std::make_unique<FewRowsPlan<T, FewRowsTile<64>>>(device, problem, form.cluster);
  return std::make_unique<FewRowsPlan<T, FewRowsTile<32>>>(device, problem, form.cluster);
}

}  // namespace

std::vector<int> few_rows_forms(const CudaDevice& device, const ConvolutionProblem& problem) {
  constexpr int first_capability = 9;  // with clusters
  const bool has_type = problem.dtype == DType::float16 || problem.dtype == DType::bfloat16;
  if (problem.pass != ConvolutionPass::forward || problem.epilogue.statistics || !has_type || !problem.channels_last ||
      !has_suitable_size(problem.size) || device.attribute(cudaDevAttrComputeCapabilityMajor) < first_capability)
    return {};
  const CurrentDevice current(device.id());
  if (!is_built_for_9_0(convolve_few_rows<float16, FewRowsTile<64>>)) return {};
  std::vector<int> numbers;
  for (const FewRowsForm& form :
       few_rows_forms_for(shape_of(problem.size), device.attribute(cudaDevAttrMultiProcessorCount)))
    numbers.push_back(number_of(form));
  return numbers;
}

std::unique_ptr<ConvolutionPlan> make_few_rows_plan(const CudaDevice& device, const ConvolutionProblem& problem,
                                                    int form) {
  return problem.dtype == DType::float16 ? make_plan<float16>(device, problem, form_of(form))
                                         : make_plan<bfloat16>(device, problem, form_of(form));
}

}  // namespace symbind::cuda_backend
