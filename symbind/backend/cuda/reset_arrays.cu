// Sets many arrays to 0 in one launch: a row of blocks for each.
#include "symbind/ops/reset_arrays.h"

#include <vector>

#include "symbind/backend/cuda/kernels.cuh"
#include "symbind/backend/cuda/step.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {
namespace {

constexpr int arrays_per_launch = 128;

struct Bytes {
  unsigned char* data;
  int64_t count;
};
struct BytesOfArrays {
  Bytes array[arrays_per_launch];
};

// 16 bytes at a time where the address allows, the rest byte by byte.
__global__ void set_to_zero(const __grid_constant__ BytesOfArrays arrays) {
  const Bytes& own = arrays.array[blockIdx.y];
  const int64_t packs = reinterpret_cast<uintptr_t>(own.data) % 16 == 0 ? own.count / 16 : 0;
  for (int64_t i = first_element(); i < packs; i += element_step())
    reinterpret_cast<uint4*>(own.data)[i] = make_uint4(0, 0, 0, 0);
  for (int64_t i = packs * 16 + first_element(); i < own.count; i += element_step()) own.data[i] = 0;
}

std::unique_ptr<Kernel> build(const NodeView& node) {
  std::vector<int64_t> bytes;
  for (const Tensor& input : node.inputs) bytes.push_back(static_cast<int64_t>(input.bytes()));
  return make_step(node, [bytes](const Args& args) {
    for (size_t first = 0; first < bytes.size(); first += arrays_per_launch) {
      const size_t now = std::min<size_t>(arrays_per_launch, bytes.size() - first);
      BytesOfArrays arrays{};
      int64_t longest = 0;
      for (size_t i = 0; i < now; ++i) {
        arrays.array[i] = {args.state<unsigned char>(first + i), bytes[first + i]};
        longest = std::max(longest, bytes[first + i]);
      }
      if (longest == 0) continue;
      const dim3 grid(std::min(blocks_for(longest, block_size * 16), 64u), static_cast<unsigned>(now));
      set_to_zero<<<grid, block_size, 0, stream_of(args)>>>(arrays);
    }
  });
}

std::string refuse(const NodeView& /*node*/) { return ""; }

}  // namespace

void add_reset_arrays(ImplementationTable& table) { table.add<ResetArrays>({"cuda", refuse, build}); }

}  // namespace symbind::cuda_backend
