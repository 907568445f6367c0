// Random arrays from the same counters as on a CPU. The cursor is in device memory, so a captured plan draws new
// numbers at each launch.
#include "symbind/ops/random.h"

#include "symbind/backend/cuda/device.h"
#include "symbind/backend/cuda/kernels.cuh"
#include "symbind/backend/cuda/random.h"
#include "symbind/backend/cuda/step.h"
#include "symbind/backend/sampling.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {
namespace {

__global__ void write_cursor(RandomCursor* cursor, RandomCursor value) { *cursor = value; }

struct UniformNumbers {
  template <class C>
  __device__ static C draw(const PhiloxBlock& block, int index, C low, C high) {
    return low + sampling::uniform<C>(block, index) * (high - low);
  }
};
struct NormalNumbers {
  template <class C>
  __device__ static C draw(const PhiloxBlock& block, int index, C mean, C deviation) {
    return mean + sampling::normal<C>(block, index) * deviation;
  }
};

// Each thread draws whole blocks.
template <class Numbers, class T>
__global__ void draw_numbers(T* out, int64_t count, const RandomCursor* cursor, uint64_t slot, compute_type<T> first,
                             compute_type<T> second) {
  using C = compute_type<T>;
  constexpr int per_block = sizeof(C) == 8 ? 2 : 4;
  static_assert(per_block == sampling::per_block<C>);
  const uint64_t key = cursor->key, draw = cursor->draw + slot;
  for (int64_t at = first_element(); at * per_block < count; at += element_step()) {
    const PhiloxBlock block = philox(key, draw, static_cast<uint64_t>(at));
    for (int index = 0; index < per_block && at * per_block + index < count; ++index)
      out[at * per_block + index] = store<T>(Numbers::template draw<C>(block, index, first, second));
  }
}

std::string refuse(const NodeView& node) { return is_floating(node.outputs[0].dtype) ? "" : "wants floating numbers"; }

template <class Numbers>
std::unique_ptr<Kernel> build(const NodeView& node, double first, double second) {
  const auto slot = static_cast<uint64_t>(std::max(node.random_slot, 0));
  const int64_t count = node.outputs[0].shape.size();
  return visit_floating(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    using C = compute_type<T>;
    return make_step(node, [=](const Args& args) {
      if (count == 0) return;
      const int64_t threads = (count + sampling::per_block<C> - 1) / sampling::per_block<C>;
      draw_numbers<Numbers><<<blocks_for(threads), block_size, 0, stream_of(args)>>>(
          args.out<T>(), count, args.random, slot, static_cast<C>(first), static_cast<C>(second));
    });
  });
}

}  // namespace

void queue_cursor(cudaStream_t stream, RandomCursor* cursor, RandomCursor value) {
  write_cursor<<<1, 1, 0, stream>>>(cursor, value);
}

void add_random(ImplementationTable& table) {
  table.add<RandomUniform>({"cuda", refuse, [](const NodeView& node) {
                              const auto& p = node.as<RandomUniform>();
                              return build<UniformNumbers>(node, p.low, p.high);
                            }});
  table.add<RandomNormal>({"cuda", refuse, [](const NodeView& node) {
                             const auto& p = node.as<RandomNormal>();
                             return build<NormalNumbers>(node, p.loc, p.scale);
                           }});
}

}  // namespace symbind::cuda_backend
