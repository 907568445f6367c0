// Fills of memory in captured graphs.
#pragma once

#include <cuda_runtime_api.h>

namespace symbind::cuda_backend {

// Replaces the nodes of a graph that set memory to a value by kernels: in a graph, the kernel after such a node starts
// some three microseconds later than after another kernel, and libraries clear the counters of many products.
// False: the graph cannot be launched any more.
bool fill_by_kernels(cudaGraph_t graph);

}  // namespace symbind::cuda_backend
