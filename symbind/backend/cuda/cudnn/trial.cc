#include "symbind/backend/cuda/cudnn/trial.h"

#include <algorithm>
#include <cmath>

#include "symbind/backend/cuda/check.h"
#include "symbind/backend/cuda/conv_check.h"
#include "symbind/backend/cuda/conv_direct.h"

namespace symbind::cuda_backend::cudnn {
namespace {

constexpr int timed_runs = 3;

}  // namespace

Trial::Trial(CudaDevice& device, const ConvolutionProblem& problem, size_t workspace_bytes)
    : problem_(problem), pool_(Pool::Kind::device, device.id()), bytes_(blocks), memory_(blocks) {
  const ConvolutionSize& size = problem.size;
  const size_t element = size_of(problem.dtype);
  bytes_[data] = static_cast<size_t>(size.data_size()) * element;
  bytes_[weight] = static_cast<size_t>(size.weight_size()) * element;
  bytes_[output] = static_cast<size_t>(size.output_size()) * element;
  bytes_[workspace] = workspace_bytes;
  bytes_[expected] = wants_exact_results(problem) ? bytes_[result()] : 0;
  bytes_[difference] = sizeof(CheckedDifference);
  check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "making a stream");
  check(cudaEventCreate(&begin_), "making an event");
  check(cudaEventCreate(&end_), "making an event");
  for (int i = 0; i < blocks; ++i) memory_[i] = pool_.allocate(std::max<size_t>(bytes_[i], 1));
  if (!has_memory()) {
    cudaGetLastError();
    return;
  }
  for (const Block block : {data, weight, output}) cudaMemsetAsync(memory_[block], 0, bytes_[block], stream_);
}

Trial::~Trial() {
  cudaStreamSynchronize(stream_);
  for (int i = 0; i < blocks; ++i)
    if (memory_[i]) pool_.release(memory_[i], std::max<size_t>(bytes_[i], 1));
  pool_.empty();
  cudaEventDestroy(begin_);
  cudaEventDestroy(end_);
  cudaStreamDestroy(stream_);
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

// ---- Time -----------------------------------------------------------------------------------------------------------

std::optional<float> Trial::time_once(const RunEngine& run) {
  cudaEventRecord(begin_, stream_);
  const bool queued = run(memory_[data], memory_[weight], memory_[output], memory_[workspace]);
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

void Trial::fill() {
  uint32_t seed = 1;
  for (const Block block : {data, weight, output})
    if (block != result()) queue_check_values(stream_, at(block), count(block), seed++);
}

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

bool Trial::is_exact(const RunEngine& run) {
  const Block made = result();
  if (!has_expected_) {
    fill();
    void* arrays[] = {memory_[data], memory_[weight], memory_[output]};
    arrays[made] = memory_[expected];
    queue_direct_convolution(stream_, problem_, problem_.channels_last, arrays[data], arrays[weight], arrays[output]);
    has_expected_ = true;
  }
  cudaMemsetAsync(memory_[made], 0, bytes_[made], stream_);
  if (!run(memory_[data], memory_[weight], memory_[output], memory_[workspace])) return false;
  auto* const found = static_cast<CheckedDifference*>(memory_[difference]);
  queue_difference(stream_, at(made), at(expected), count(made), found);
  CheckedDifference host{};
  if (cudaMemcpyAsync(&host, found, sizeof(host), cudaMemcpyDeviceToHost, stream_) != cudaSuccess ||
      cudaStreamSynchronize(stream_) != cudaSuccess)
    return false;
  return host.largest_difference <= tolerance() * host.largest_value;  // false for NaN
}

}  // namespace symbind::cuda_backend::cudnn
