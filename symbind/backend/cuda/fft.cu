// Fourier transforms by cuFFT, of complex numbers in scratch memory: arrays may be views at addresses that are not
// aligned to a complex number.
#include "symbind/ops/fft.h"

#include "symbind/backend/cuda/cufft_library.h"
#include "symbind/backend/cuda/device.h"
#include "symbind/backend/cuda/kernels.cuh"
#include "symbind/backend/cuda/step.h"
#include "symbind/backend/visit_types.h"
#include "symbind/core/error.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {
namespace {

void check_fft(cufftResult status, std::string_view where, std::string_view doing) {
  require(status == CUFFT_SUCCESS, where, " ", doing, ": cuFFT reports the status ", static_cast<int>(status));
}

// Half precision is transformed in float.
template <class T, class C>
__global__ void to_complex(const T* x, C* numbers, int64_t count) {
  for (int64_t i = first_element(); i < count; i += element_step()) {
    numbers[2 * i] = load(x[i]);
    numbers[2 * i + 1] = C(0);
  }
}
template <class T, class C>
__global__ void take_real_parts(const C* numbers, T* y, int64_t count) {
  for (int64_t i = first_element(); i < count; i += element_step()) y[i] = store<T>(numbers[2 * i]);
}
template <class From, class To>
__global__ void convert_numbers(const From* from, To* to, int64_t count) {
  for (int64_t i = first_element(); i < count; i += element_step()) to[i] = convert_element<To>(from[i]);
}

// Transforms `rows` rows of complex numbers of type T. Used while the device's queue is locked.
template <class T>
class Transform {
 public:
  Transform(CudaDevice& device, int64_t rows, int64_t length, std::string where) : where_(std::move(where)) {
    const Queueing queueing(device);
    check_fft(cufftCreate(&plan_), where_, "planning a Fourier transform");
    made_ = true;
    check_fft(cufftSetAutoAllocation(plan_, 0), where_, "planning a Fourier transform");
    long long extent = length;
    check_fft(cufftMakePlanMany64(plan_, 1, &extent, nullptr, 1, length, nullptr, 1, length,
                                  sizeof(T) == sizeof(float) ? CUFFT_C2C : CUFFT_Z2Z, rows, &work_bytes_),
              where_, "planning a Fourier transform");
    numbers_bytes_ = (static_cast<size_t>(2 * rows * length) * sizeof(T) + 255) / 256 * 256;
  }
  ~Transform() {
    if (made_) cufftDestroy(plan_);
  }
  Transform(const Transform&) = delete;
  Transform& operator=(const Transform&) = delete;

  size_t scratch_bytes() const { return numbers_bytes_ + work_bytes_; }
  T* numbers(const Args& args) const { return static_cast<T*>(args.scratch); }

  // In place, of numbers(args).
  void run(const Args& args, int direction) const {
    check_fft(cufftSetStream(plan_, stream_of(args)), where_, "choosing a stream");
    check_fft(cufftSetWorkArea(plan_, static_cast<std::byte*>(args.scratch) + numbers_bytes_), where_,
              "setting the workspace");
    if constexpr (sizeof(T) == sizeof(float)) {
      auto* const all = reinterpret_cast<cufftComplex*>(numbers(args));
      check_fft(cufftExecC2C(plan_, all, all, direction), where_, "transforming");
    } else {
      auto* const all = reinterpret_cast<cufftDoubleComplex*>(numbers(args));
      check_fft(cufftExecZ2Z(plan_, all, all, direction), where_, "transforming");
    }
  }

 private:
  std::string where_;
  cufftHandle plan_{};
  bool made_ = false;
  size_t numbers_bytes_ = 0, work_bytes_ = 0;
};

std::string refuse(const NodeView& node) {
  if (node.inputs[0].layout != Layout::plain) return "needs plain layouts";
  if (node.inputs[0].shape.size() == 0) return "empty arrays";
  return cufft.problem();
}

// `real` is the shape of the array of real numbers.
template <class T>
std::shared_ptr<Transform<T>> transform_of(const NodeView& node, const Shape& real) {
  return std::make_shared<Transform<T>>(CudaDevice::of(node.context), real.size(0, real.rank() - 1),
                                        real[real.rank() - 1], node.where());
}

std::unique_ptr<Kernel> build_forward(const NodeView& node) {
  const Shape& real = node.inputs[0].shape;
  return visit_floating(node.inputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    using C = compute_type<T>;
    const auto transform = transform_of<C>(node, real);
    return make_step(node,
                     [transform, count = real.size()](const Args& args) {
                       const cudaStream_t stream = stream_of(args);
                       C* const numbers = transform->numbers(args);
                       to_complex<<<blocks_for(count), block_size, 0, stream>>>(args.in<T>(0), numbers, count);
                       transform->run(args, CUFFT_FORWARD);
                       convert_numbers<C, T>
                           <<<blocks_for(2 * count), block_size, 0, stream>>>(numbers, args.out<T>(), 2 * count);
                     },
                     {.scratch_bytes = transform->scratch_bytes()});
  });
}

std::unique_ptr<Kernel> build_inverse(const NodeView& node) {
  const Shape& real = node.outputs[0].shape;
  return visit_floating(node.inputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    using C = compute_type<T>;
    const auto transform = transform_of<C>(node, real);
    return make_step(
        node,
        [transform, count = real.size()](const Args& args) {
          const cudaStream_t stream = stream_of(args);
          C* const numbers = transform->numbers(args);
          convert_numbers<T, C><<<blocks_for(2 * count), block_size, 0, stream>>>(args.in<T>(0), numbers, 2 * count);
          transform->run(args, CUFFT_INVERSE);
          take_real_parts<T, C><<<blocks_for(count), block_size, 0, stream>>>(numbers, args.out<T>(), count);
        },
        {.scratch_bytes = transform->scratch_bytes()});
  });
}

}  // namespace

void add_fft(ImplementationTable& table) {
  table.add<ContribFFT>(
      {.name = "cufft", .refuse = refuse, .build = build_forward, .cache_when_invoked = true, .tier = Tier::library});
  table.add<ContribIFFT>(
      {.name = "cufft", .refuse = refuse, .build = build_inverse, .cache_when_invoked = true, .tier = Tier::library});
}

}  // namespace symbind::cuda_backend
