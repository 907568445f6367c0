// A function object that device code calls with the index of every element.
#pragma once

#include "symbind/backend/cuda/kernels.cuh"

namespace symbind::cuda_backend {

template <class Body>
__global__ void each_element(int64_t count, Body body) {
  for (int64_t i = first_element(); i < count; i += element_step()) body(i);
}

template <class Body>
void queue_each_element(cudaStream_t stream, int64_t count, const Body& body) {
  if (count > 0) each_element<<<blocks_for(count), block_size, 0, stream>>>(count, body);
}

}  // namespace symbind::cuda_backend
