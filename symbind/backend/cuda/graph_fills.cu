#include "symbind/backend/cuda/graph_fills.h"

#include <vector>

#include "symbind/backend/cuda/kernels.cuh"

namespace symbind::cuda_backend {
namespace {

// Larger ones are not worth replacing.
constexpr size_t most_bytes = size_t{16} << 20;

// Four bytes at a time where the address allows it.
__global__ void fill_bytes(unsigned char* to, int64_t count, uint32_t word) {
  const bool words = reinterpret_cast<uintptr_t>(to) % sizeof(uint32_t) == 0;
  const int64_t whole = words ? count / 4 : 0;
  for (int64_t i = first_element(); i < whole; i += element_step()) reinterpret_cast<uint32_t*>(to)[i] = word;
  for (int64_t i = whole * 4 + first_element(); i < count; i += element_step())
    to[i] = static_cast<unsigned char>(word >> (i % 4 * 8));
}

// The value repeated to four bytes.
uint32_t word_of(const cudaMemsetParams& fill) {
  if (fill.elementSize == 1) return (fill.value & 0xffu) * 0x01010101u;
  if (fill.elementSize == 2) return (fill.value & 0xffffu) * 0x00010001u;
  return fill.value;
}

// Nodes before or after another one; none where CUDA does not list them.
template <class Query>
std::vector<cudaGraphNode_t> neighbours(cudaGraphNode_t node, Query query) {
  size_t count = 0;
  const auto ask = [&](cudaGraphNode_t* nodes) {
#if CUDART_VERSION >= 13000
    return query(node, nodes, nullptr, &count);
#else
    return query(node, nodes, &count);
#endif
  };
  if (ask(nullptr) != cudaSuccess || count == 0) return {};
  std::vector<cudaGraphNode_t> nodes(count);
  if (ask(nodes.data()) != cudaSuccess) return {};
  return nodes;
}

cudaError_t add_dependency(cudaGraph_t graph, cudaGraphNode_t from, cudaGraphNode_t to) {
#if CUDART_VERSION >= 13000
  return cudaGraphAddDependencies(graph, &from, &to, nullptr, 1);
#else
  return cudaGraphAddDependencies(graph, &from, &to, 1);
#endif
}

bool replace(cudaGraph_t graph, cudaGraphNode_t node, const cudaMemsetParams& fill) {
  auto* to = static_cast<unsigned char*>(fill.dst);
  auto count = static_cast<int64_t>(fill.width * fill.elementSize);
  uint32_t word = word_of(fill);
  void* arguments[] = {&to, &count, &word};
  cudaKernelNodeParams kernel{};
  kernel.func = reinterpret_cast<void*>(fill_bytes);
  kernel.gridDim = dim3(blocks_for(count / 4));
  kernel.blockDim = dim3(block_size);
  kernel.kernelParams = arguments;
  const std::vector<cudaGraphNode_t> before = neighbours(node, cudaGraphNodeGetDependencies);
  const std::vector<cudaGraphNode_t> after = neighbours(node, cudaGraphNodeGetDependentNodes);
  cudaGraphNode_t added = nullptr;
  if (cudaGraphAddKernelNode(&added, graph, before.data(), before.size(), &kernel) != cudaSuccess) return false;
  for (const cudaGraphNode_t next : after)
    if (add_dependency(graph, added, next) != cudaSuccess) return false;
  return cudaGraphDestroyNode(node) == cudaSuccess;
}

}  // namespace

bool fill_by_kernels(cudaGraph_t graph) {
  size_t count = 0;
  if (cudaGraphGetNodes(graph, nullptr, &count) != cudaSuccess) return false;
  std::vector<cudaGraphNode_t> nodes(count);
  if (cudaGraphGetNodes(graph, nodes.data(), &count) != cudaSuccess) return false;
  for (const cudaGraphNode_t node : nodes) {
    cudaGraphNodeType type{};
    cudaMemsetParams fill{};
    if (cudaGraphNodeGetType(node, &type) != cudaSuccess) return false;
    if (type != cudaGraphNodeTypeMemset || cudaGraphMemsetNodeGetParams(node, &fill) != cudaSuccess) continue;
    if (fill.height == 1 && fill.width * fill.elementSize <= most_bytes && !replace(graph, node, fill)) return false;
  }
  return true;
}

}  // namespace symbind::cuda_backend
