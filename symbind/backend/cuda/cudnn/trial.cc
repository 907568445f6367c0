#include "symbind/backend/cuda/cudnn/trial.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "symbind/backend/cuda/check.h"
#include "symbind/backend/cuda/conv_check.h"
#include "symbind/backend/cuda/conv_direct.h"
#include "symbind/backend/cuda/conv_finish.h"
#include "symbind/backend/cuda/conv_sums.h"
#include "symbind/backend/relu_signs.h"
#include "symbind/ops/relu_signs.h"

namespace symbind::cuda_backend::cudnn {
namespace {

constexpr int timed_runs = 5;

// Overwriting twice its size empties the cache, and takes longer than queueing a few kernels: the time between the
// events is the device's alone.
size_t bytes_to_empty_cache(const CudaDevice& device) {
  return 2 * static_cast<size_t>(std::max(device.attribute(cudaDevAttrL2CacheSize), 0));
}

}  // namespace

Trial::Trial(CudaDevice& device, const ConvolutionProblem& problem, size_t workspace_bytes)
    : problem_(problem),
      pool_(Pool::Kind::device, device.id()),
      bytes_(blocks, 0),
      memory_(blocks),
      cache_bytes_(problem.tune ? bytes_to_empty_cache(device) : 0) {
  const ConvolutionSize& size = problem.size;
  const size_t element = size_of(problem.dtype);
  bytes_[data] = static_cast<size_t>(size.data_size()) * element;
  bytes_[weight] = static_cast<size_t>(size.weight_size()) * element;
  bytes_[output] = static_cast<size_t>(size.output_size()) * element;
  if (problem.epilogue.residual) bytes_[residual] = bytes_[output];
  if (problem.epilogue.bias) bytes_[bias] = static_cast<size_t>(size.filters) * element;
  if (problem.epilogue.statistics) bytes_[sum] = bytes_[square_sum] = static_cast<size_t>(size.filters) * sizeof(float);
  if (problem.epilogue.relu_gradient) {
    bytes_[more_grad] = bytes_[norm_data] = bytes_[data];
    bytes_[activation] = problem.epilogue.signs ? bytes_[data] / element / signs_per_byte : bytes_[data];
    bytes_[sum] = bytes_[square_sum] = bytes_[mean] = static_cast<size_t>(size.channels) * sizeof(float);
  }
  bytes_[workspace] = workspace_bytes;
  if (requires_exact_results(problem)) bytes_[expected] = bytes_[result()];
  bytes_[difference] = sizeof(CheckedDifference);
  check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "making a stream");
  check(cudaEventCreate(&begin_), "making an event");
  check(cudaEventCreate(&end_), "making an event");
  allocate();
  if (has_memory()) fill();
}

Trial::~Trial() {
  cudaStreamSynchronize(stream_);
  for (int i = 0; i < blocks; ++i)
    if (memory_[i]) pool_.release(memory_[i], std::max<size_t>(bytes_[i], 1));
  if (cache_) pool_.release(cache_, cache_bytes_);
  pool_.empty();
  cudaEventDestroy(begin_);
  cudaEventDestroy(end_);
  cudaStreamDestroy(stream_);
}

void Trial::allocate() {
  for (int i = 0; i < blocks; ++i) memory_[i] = pool_.allocate(std::max<size_t>(bytes_[i], 1));
  if (has_memory() && cache_bytes_ > 0) cache_ = pool_.allocate(cache_bytes_);
  cudaGetLastError();  // clears the error of an allocation that failed
}

bool Trial::has_memory() const { return std::find(memory_.begin(), memory_.end(), nullptr) == memory_.end(); }

Trial::Block Trial::result() const {
  switch (problem_.pass) {
    case ConvolutionPass::data_grad:
      return data;
    case ConvolutionPass::weight_grad:
      return weight;
    default:
      return output;
  }
}

// No engine writes to the arrays it reads: they are filled once.
void Trial::fill() {
  uint32_t seed = 1;
  for (const Block block : {data, weight, output, residual, bias, more_grad, activation, norm_data})
    if (block != result() && bytes_[block] > 0 && !(block == activation && problem_.epilogue.signs))
      queue_trial_values(stream_, problem_.dtype, at(block), count(block), seed++);
  if (problem_.epilogue.signs) {
    constexpr int every_other = sign_above_zero | sign_above_zero << 2 * bits_per_sign;
    cudaMemsetAsync(at(activation), every_other, bytes_[activation], stream_);
  }
  if (bytes_[mean] > 0)
    queue_trial_values(stream_, DType::float32, at(mean), static_cast<int64_t>(bytes_[mean] / sizeof(float)), seed);
}

// ---- Time -----------------------------------------------------------------------------------------------------------

std::optional<float> Trial::time_once(const RunEngine& run) {
  if (cache_) cudaMemsetAsync(cache_, 0, cache_bytes_, stream_);
  cudaEventRecord(begin_, stream_);
  const bool queued = run(arrays(), at(workspace));
  cudaEventRecord(end_, stream_);
  if (cudaStreamSynchronize(stream_) != cudaSuccess || !queued) return std::nullopt;
  float milliseconds = 0;
  if (cudaEventElapsedTime(&milliseconds, begin_, end_) != cudaSuccess) return std::nullopt;
  return milliseconds;
}

std::optional<float> Trial::time(const RunEngine& run) {
  if (!time_once(run)) return std::nullopt;  // the first run sets the engine up
  std::optional<float> least;
  for (int i = 0; i < timed_runs; ++i) {
    const std::optional<float> now = time_once(run);
    if (now && (!least || *now < *least)) least = now;
  }
  return least;
}

// ---- Exactness ------------------------------------------------------------------------------------------------------

// Relative to the largest value. The error of a float32 sum of n random terms grows with the root of n; that of TF32
// products does not; for short sums it is far larger.
float Trial::tolerance() const {
  const ConvolutionSize& size = problem_.size;
  int64_t terms = size.kernel_size();
  switch (problem_.pass) {
    case ConvolutionPass::forward:
      terms *= size.group_channels();
      break;
    case ConvolutionPass::data_grad:
      terms *= size.group_filters();
      break;
    case ConvolutionPass::weight_grad:
      terms = size.batch * size.out_size();
      break;
  }
  return 1e-5f + 1e-7f * std::sqrt(static_cast<float>(terms));
}

void Trial::compute_expected() {
  void* exact[] = {at(data), at(weight), at(output)};
  exact[result()] = at(expected);
  queue_direct_convolution(stream_, problem_, problem_.channels_last, exact[data], exact[weight], exact[output]);
  if (problem_.epilogue.any())
    queue_finish(stream_, problem_, problem_.epilogue.relu ? "relu" : "", at(expected), at(residual), at(bias));
  has_expected_ = true;
}

bool Trial::keeps_nan(const RunEngine& run) {
  cudaMemsetAsync(at(data), 0xff, bytes_[data], stream_);  // a NaN in every floating type
  const bool queued = run(arrays(), at(workspace));
  fill();
  uint32_t last = 0;  // of the result, in the upper bytes of a float32
  const size_t element = size_of(problem_.dtype);
  const auto* const end = static_cast<const std::byte*>(at(output)) + bytes_[output];
  cudaMemcpyAsync(reinterpret_cast<std::byte*>(&last) + sizeof(last) - element, end - element, element,
                  cudaMemcpyDeviceToHost, stream_);
  if (cudaStreamSynchronize(stream_) != cudaSuccess || !queued) return false;
  if (problem_.dtype == DType::float16) return (last >> 16 & 0x7c00) == 0x7c00 && (last >> 16 & 0x3ff) != 0;
  return std::isnan(std::bit_cast<float>(last));
}

std::optional<std::vector<float>> Trial::copy_to_host(Block block) {
  std::vector<float> values(bytes_[block] / sizeof(float));
  if (cudaMemcpyAsync(values.data(), at(block), bytes_[block], cudaMemcpyDeviceToHost, stream_) != cudaSuccess ||
      cudaStreamSynchronize(stream_) != cudaSuccess)
    return std::nullopt;
  return values;
}

// If an element is summed before it is rounded, it is off by at most 2^-11 of itself, in bfloat16 2^-8; a margin is
// twice that.
bool Trial::has_right_statistics(const RunEngine& run) {
  for (const Block block : {sum, square_sum}) cudaMemsetAsync(at(block), 0xff, bytes_[block], stream_);  // NaN
  if (!run(arrays(), at(workspace))) return false;
  const auto sums = copy_to_host(sum), squares = copy_to_host(square_sum);
  queue_output_sums(stream_, problem_, at(output), at(sum), at(square_sum), at(workspace));
  const auto expected_sums = copy_to_host(sum), expected_squares = copy_to_host(square_sum);
  if (!sums || !squares || !expected_sums || !expected_squares) return false;
  const auto elements = static_cast<double>(problem_.size.batch * problem_.size.out_size());
  const double most = problem_.dtype == DType::bfloat16 ? 0x1p-7 : 0x1p-10;
  for (size_t c = 0; c < sums->size(); ++c) {
    const double total = (*expected_squares)[c], magnitude = std::sqrt(elements * total);
    const double off = std::abs((*sums)[c] - static_cast<double>((*expected_sums)[c]));
    const double square_off = std::abs((*squares)[c] - total);
    if (!(off <= most * magnitude && square_off <= 2 * most * total)) return false;  // also for NaN
  }
  return true;
}

bool Trial::is_exact(const RunEngine& run) {
  if (!has_expected_) compute_expected();
  const Block made = result();
  cudaMemsetAsync(at(made), 0, bytes_[made], stream_);
  if (!run(arrays(), at(workspace))) return false;
  auto* const found = static_cast<CheckedDifference*>(at(difference));
  queue_difference(stream_, static_cast<const float*>(at(made)), static_cast<const float*>(at(expected)), count(made),
                   found);
  CheckedDifference host{};
  if (cudaMemcpyAsync(&host, found, sizeof(host), cudaMemcpyDeviceToHost, stream_) != cudaSuccess ||
      cudaStreamSynchronize(stream_) != cudaSuccess)
    return false;
  return host.largest_difference <= tolerance() * host.largest_value;  // false for NaN
}

}  // namespace symbind::cuda_backend::cudnn
