#include "symbind/backend/cuda/conv_image.h"

#include "symbind/backend/cuda/conv_image.cuh"
#include "symbind/backend/cuda/conv_image_gradient.cuh"
#include "symbind/backend/cuda/conv_plane.h"
#include "symbind/backend/cuda/shared_memory.h"

namespace symbind::cuda_backend {
namespace {

constexpr int forms[] = {8, 4, 2, 1};  // rows of the output
constexpr int most_run_chunks = 5;

ImageGradientShape shape_of(const ConvolutionProblem& problem) {
  ImageGradientShape shape;
  shape.element_bytes = static_cast<int>(size_of(problem.dtype));
  copy_plane(problem.size, shape);
  return shape;
}

bool has_suitable_size(const ConvolutionSize& size, DType dtype) {
  const auto vector = static_cast<int64_t>(16 / size_of(dtype));
  constexpr int64_t most_extent = 1 << 14, most_filters = 1 << 16;
  if (!is_plane(size) || size.groups != 1 || size.channels > 4 || size.filters % vector != 0 ||
      size.filters > most_filters || size.batch * size.out_size() >= int64_t{1} << 31)
    return false;
  for (size_t axis = 1; axis < 3; ++axis)
    if (size.dilate[axis] != 1 || size.in[axis] > most_extent || size.out[axis] > most_extent ||
        size.kernel[axis] > 32 || size.stride[axis] > 32 || size.pad[axis] > most_extent)
      return false;
  return true;
}

template <class T>
using Convolve = void (*)(ImageShape, ImageCut, const T*, const T*, ImageEpilogue<T>, PairOf<float>*);

template <class T, int run_chunks = 1>
Convolve<T> kernel_for(const ImageShape& shape) {
  if constexpr (run_chunks < most_run_chunks)
    if (shape.run_chunks() != run_chunks) return kernel_for<T, run_chunks + 1>(shape);
  return shape.even() ? convolve_image<T, run_chunks, true> : convolve_image<T, run_chunks, false>;
}

template <class T>
class ForwardPlan final : public ConvolutionPlan {
 public:
  ForwardPlan(const CudaDevice& device, const ConvolutionProblem& problem, int form)
      : shape_(shape_of(problem)),
        cut_(cut_image(shape_, form, device.attribute(cudaDevAttrMultiProcessorCount))),
        epilogue_(problem.epilogue),
        kernel_(kernel_for<T>(shape_)) {
    allow_shared_memory(device, kernel_, cudaSharedmemCarveoutMaxShared);
  }

  void run(cudaStream_t stream, const ConvolutionArrays& arrays, void* workspace) override {
    auto* const partial = epilogue_.statistics ? static_cast<PairOf<float>*>(workspace) : nullptr;
    const ImageEpilogue<T> epilogue{static_cast<T*>(arrays.output),
                                    epilogue_.bias ? static_cast<const T*>(arrays.bias) : nullptr, epilogue_.relu};
    kernel_<<<static_cast<unsigned>(cut_.blocks()), image_threads, static_cast<size_t>(cut_.shared_bytes), stream>>>(
        shape_, cut_, static_cast<const T*>(arrays.data), static_cast<const T*>(arrays.weight), epilogue, partial);
    if (partial)
      queue_finish_sums(
          stream, partial, cut_.groups, shape_.filters,
          StoreSums<float>{static_cast<float*>(arrays.channel_sum), static_cast<float*>(arrays.channel_square_sum)});
  }
  size_t workspace_bytes() const override {
    if (!epilogue_.statistics) return 0;
    return static_cast<size_t>(cut_.groups) * static_cast<size_t>(shape_.filters) * sizeof(PairOf<float>);
  }
  bool applies_epilogue() const override { return epilogue_.any(); }

 private:
  const ImageShape shape_;
  const ImageCut cut_;
  const ConvolutionEpilogue epilogue_;
  const Convolve<T> kernel_;
};

template <class T>
class WeightGradientPlan final : public ConvolutionPlan {
 public:
  WeightGradientPlan(const CudaDevice& device, const ConvolutionProblem& problem, int form)
      : shape_(shape_of(problem)),
        cut_(cut_image_gradient(shape_, sizes, form, device.attribute(cudaDevAttrMultiProcessorCount))) {
    allow_shared_memory(device, kernel, cudaSharedmemCarveoutMaxShared);
  }

  void run(cudaStream_t stream, const ConvolutionArrays& arrays, void* workspace) override {
    auto* const partial = static_cast<float*>(workspace);
    kernel<<<static_cast<unsigned>(cut_.blocks()), static_cast<unsigned>(cut_.threads()),
             static_cast<size_t>(cut_.shared_bytes), stream>>>(shape_, cut_, static_cast<const T*>(arrays.data),
                                                               static_cast<const T*>(arrays.output), partial);
    const int results = shape_.filters * shape_.kernel[0] * shape_.run();
    add_gradient_parts<T><<<static_cast<unsigned>((results + 31) / 32), dim3(32, add_parts_lanes), 0, stream>>>(
        shape_, partial, cut_.groups, cut_.stored_filters(), cut_.stored_taps(sizes.chunks),
        static_cast<T*>(arrays.weight));
  }
  size_t workspace_bytes() const override {
    return static_cast<size_t>(cut_.groups) * static_cast<size_t>(cut_.stored_filters()) *
           static_cast<size_t>(cut_.stored_taps(sizes.chunks)) * sizeof(float);
  }
  bool applies_epilogue() const override { return false; }

 private:
  static constexpr ImageGradientForm sizes = image_gradient_form<T>;
  static constexpr auto kernel = sum_image_gradient<T, sizes.chunks, sizes.warps, sizes.blocks>;
  const ImageGradientShape shape_;
  const ImageGradientCut cut_;
};

template <class T>
std::unique_ptr<ConvolutionPlan> make_plan(const CudaDevice& device, const ConvolutionProblem& problem, int form) {
  if (problem.pass == ConvolutionPass::weight_grad)
    return std::make_unique<WeightGradientPlan<T>>(device, problem, form);
  return std::make_unique<ForwardPlan<T>>(device, problem, form);
}

ImageGradientForm gradient_form_of(DType dtype) {
  return dtype == DType::float32 ? image_gradient_form<float> : image_gradient_form<float16>;
}

// Bytes of shared memory of a block.
int shared_bytes(const CudaDevice& device, const ConvolutionProblem& problem, int form) {
  const ImageGradientShape shape = shape_of(problem);
  const int multiprocessors = device.attribute(cudaDevAttrMultiProcessorCount);
  if (problem.pass == ConvolutionPass::weight_grad)
    return cut_image_gradient(shape, gradient_form_of(problem.dtype), form, multiprocessors).shared_bytes;
  return cut_image(shape, form, multiprocessors).shared_bytes;
}

bool is_image_convolution(const ConvolutionProblem& problem) {
  const bool in_16_bits = problem.dtype == DType::float16 || problem.dtype == DType::bfloat16;
  const bool in_tf32 = problem.dtype == DType::float32 && !requires_exact_results(problem);
  if (!in_16_bits && !in_tf32) return false;
  if (!problem.channels_last || !has_suitable_size(problem.size, problem.dtype)) return false;
  const ImageGradientShape shape = shape_of(problem);
  const ConvolutionEpilogue& epilogue = problem.epilogue;
  switch (problem.pass) {
    case ConvolutionPass::forward:
      return shape.run_chunks() <= most_run_chunks && !epilogue.residual &&
             !(epilogue.statistics && (epilogue.bias || epilogue.relu));
    case ConvolutionPass::weight_grad: {
      const ImageGradientForm form = gradient_form_of(problem.dtype);
      return (in_tf32 || shape.stride[1] % 2 == 0) && shape.tap_chunks() <= form.chunks * form.warps && !epilogue.any();
    }
    default:
      return false;
  }
}

}  // namespace

std::vector<int> image_forms(const CudaDevice& device, const ConvolutionProblem& problem) {
  constexpr int first_capability = 8;  // with these types on tensor cores, and asynchronous copies
  if (!is_image_convolution(problem) || device.attribute(cudaDevAttrComputeCapabilityMajor) < first_capability)
    return {};
  const SharedMemory memory(device);
  std::vector<int> suitable;
  for (const int form : forms) {
    const int bytes = shared_bytes(device, problem, form);
    const bool fits = memory.blocks(bytes) >= image_blocks && form <= problem.size.out[1];
    if (bytes <= memory.of_block && (fits || form == 1)) suitable.push_back(form);
  }
  return suitable;
}

std::unique_ptr<ConvolutionPlan> make_image_plan(const CudaDevice& device, const ConvolutionProblem& problem,
                                                 int form) {
  switch (problem.dtype) {
    case DType::float16:
      return make_plan<float16>(device, problem, form);
    case DType::bfloat16:
      return make_plan<bfloat16>(device, problem, form);
    default:
      return make_plan<float>(device, problem, form);
  }
}

}  // namespace symbind::cuda_backend
