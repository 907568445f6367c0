#include "symbind/backend/cuda/conv_check.h"

#include "symbind/backend/cuda/kernels.cuh"
#include "symbind/core/random.h"

namespace symbind::cuda_backend {
namespace {

template <class T>
__global__ void fill_values(T* array, int64_t count, uint32_t seed) {
  for (int64_t i = first_element(); i < count; i += element_step()) {
    const PhiloxBlock random = philox(seed, 0, static_cast<uint64_t>(i));
    array[i] = store<T>(2 * unit_float(random.words[0]) - 1);
  }
}

// One block: results are compared once for each engine that is tried.
__global__ void find_difference(const float* result, const float* expected, int64_t count,
                                CheckedDifference* difference) {
  float largest_difference = 0, largest_value = 0;
  for (int64_t i = threadIdx.x; i < count; i += blockDim.x) {
    largest_difference = Largest<float>::combine(fabsf(result[i] - expected[i]), largest_difference);
    largest_value = Largest<float>::combine(fabsf(expected[i]), largest_value);
  }
  largest_difference = combine_block<Largest>(largest_difference);
  largest_value = combine_block<Largest>(largest_value);
  if (threadIdx.x == 0) *difference = {largest_difference, largest_value};
}

}  // namespace

void queue_trial_values(cudaStream_t stream, DType dtype, void* array, int64_t count, uint32_t seed) {
  visit_floating(dtype, [&]<class T>(std::type_identity<T>) {
    fill_values<<<blocks_for(count), block_size, 0, stream>>>(static_cast<T*>(array), count, seed);
  });
}

void queue_difference(cudaStream_t stream, const float* result, const float* expected, int64_t count,
                      CheckedDifference* difference) {
  find_difference<<<1, 1024, 0, stream>>>(result, expected, count, difference);
}

}  // namespace symbind::cuda_backend
