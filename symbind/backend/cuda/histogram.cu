// Elements are counted with integers, whose sums do not depend on the order: in shared memory first if the bins fit
// there.
#include "symbind/backend/histogram.h"

#include "symbind/backend/cuda/kernels.cuh"
#include "symbind/backend/cuda/step.h"
#include "symbind/backend/visit_types.h"
#include "symbind/ops/histogram.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {
namespace {

constexpr int64_t most_shared_bins = 8192;

template <class T>
struct EdgeOf {
  const T* edges;
  __device__ compute_type<T> operator()(int64_t i) const { return load(edges[i]); }
};

template <class T>
__global__ void write_edges(double low, double high, int64_t bins, T* edges) {
  for (int64_t i = first_element(); i <= bins; i += element_step())
    edges[i] = convert_element<T>(bin_edge(low, high, bins, i));
}

template <class T>
__global__ void count_shared(const T* data, int64_t elements, const T* edges, int64_t bins,
                             unsigned long long* counts) {
  extern __shared__ unsigned own[];
  for (int64_t bin = threadIdx.x; bin < bins; bin += blockDim.x) own[bin] = 0;
  __syncthreads();
  for (int64_t i = first_element(); i < elements; i += element_step()) {
    const int64_t bin = bin_of(static_cast<compute_type<T>>(load(data[i])), bins, EdgeOf<T>{edges});
    if (bin >= 0) atomicAdd(own + bin, 1u);
  }
  __syncthreads();
  for (int64_t bin = threadIdx.x; bin < bins; bin += blockDim.x)
    if (own[bin] > 0) atomicAdd(counts + bin, static_cast<unsigned long long>(own[bin]));
}

template <class T>
__global__ void count(const T* data, int64_t elements, const T* edges, int64_t bins, unsigned long long* counts) {
  for (int64_t i = first_element(); i < elements; i += element_step()) {
    const int64_t bin = bin_of(static_cast<compute_type<T>>(load(data[i])), bins, EdgeOf<T>{edges});
    if (bin >= 0) atomicAdd(counts + bin, 1ull);
  }
}

template <class T>
void queue_counts(const T* data, int64_t elements, const T* edges, int64_t bins, void* out, cudaStream_t stream) {
  auto* const counts = static_cast<unsigned long long*>(out);
  cudaMemsetAsync(counts, 0, static_cast<size_t>(bins) * sizeof(*counts), stream);
  if (elements == 0) return;
  if (bins <= most_shared_bins)
    count_shared<<<blocks_for(elements, 8 * block_size), block_size, static_cast<size_t>(bins) * sizeof(unsigned),
                   stream>>>(data, elements, edges, bins, counts);
  else
    count<<<blocks_for(elements), block_size, 0, stream>>>(data, elements, edges, bins, counts);
}

template <class T>
std::unique_ptr<Kernel> build_for(const NodeView& node) {
  const auto& p = node.as<Histogram>();
  const int64_t elements = node.inputs[0].shape.size(), bins = node.outputs[0].shape[0];
  const bool equal = !p.range.empty();
  const double low = equal ? p.range[0] : 0, high = equal ? p.range[1] : 0;
  const size_t bytes = static_cast<size_t>(bins + 1) * sizeof(T);
  return make_step(node,
                   [=](const Args& args) {
                     const cudaStream_t stream = stream_of(args);
                     const T* edges = equal ? nullptr : args.in<T>(1);
                     if (equal) {  // in scratch if nothing reads them
                       T* const own = args.outputs[1] ? args.out<T>(1) : static_cast<T*>(args.scratch);
                       write_edges<<<blocks_for(bins + 1), block_size, 0, stream>>>(low, high, bins, own);
                       edges = own;
                     } else if (args.outputs[1]) {
                       cudaMemcpyAsync(args.outputs[1], edges, bytes, cudaMemcpyDeviceToDevice, stream);
                     }
                     if (args.outputs[0]) queue_counts(args.in<T>(0), elements, edges, bins, args.outputs[0], stream);
                   },
                   {.scratch_bytes = bytes});
}

std::unique_ptr<Kernel> build(const NodeView& node) {
  return visit_types<float, double, float16, bfloat16, uint8_t, int8_t, int32_t, int64_t>(
      node.inputs[0].dtype, [&]<class T>(std::type_identity<T>) { return build_for<T>(node); });
}

std::string refuse(const NodeView& node) {
  for (const auto& input : node.inputs)
    if (input.layout != Layout::plain) return "needs plain layouts";
  return "";
}

}  // namespace

void add_histogram(ImplementationTable& table) { table.add<Histogram>({"cuda", refuse, build}); }

}  // namespace symbind::cuda_backend
