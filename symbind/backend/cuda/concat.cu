// Arrays concatenated along an axis, and split: a thread finds the part that its bytes of a row belong to.
#include "symbind/backend/concat.h"

#include "symbind/backend/cuda/device.h"
#include "symbind/backend/cuda/kernels.cuh"
#include "symbind/backend/cuda/step.h"
#include "symbind/backend/cuda/units.cuh"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {
namespace {

// Neighbouring parts of each row, as many as fit in the arguments of one launch. All sizes are in units.
struct Parts {
  static constexpr int most = 32;
  int count = 0;
  uint32_t row = 0;    // of the whole array
  uint32_t first = 0;  // of these parts within a row
  uint32_t begin[most + 1] = {};
  void* address[most] = {};

  __device__ uint32_t width() const { return begin[count]; }
  __device__ int part_at(uint32_t offset) const {
    int low = 0, high = count;
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      if (begin[middle] <= offset)
        low = middle;
      else
        high = middle;
    }
    return low;
  }
};

template <class Unit, bool joins>
__global__ void move_parts(Unit* whole, Parts parts, uint32_t count) {
  for (int64_t i = first_element(); i < count; i += element_step()) {
    const uint32_t row = static_cast<uint32_t>(i) / parts.width(), offset = static_cast<uint32_t>(i) % parts.width();
    const int part = parts.part_at(offset);
    const uint32_t begin = parts.begin[part], width = parts.begin[part + 1] - begin;
    auto* const own = static_cast<Unit*>(parts.address[part]);
    if (own == nullptr) continue;  // a part that is not requested
    Unit& in_part = own[row * width + (offset - begin)];
    Unit& in_whole = whole[row * parts.row + parts.first + offset];
    if constexpr (joins)
      in_whole = in_part;
    else
      in_part = in_whole;
  }
}

template <class Unit, bool joins>
void queue_parts(cudaStream_t stream, const Joints& joints, void* whole, std::span<void* const> addresses) {
  constexpr int64_t unit = sizeof(Unit);
  Parts parts;
  parts.row = static_cast<uint32_t>(joints.row_bytes / unit);
  for (size_t i = 0; i < addresses.size(); ++i) {
    parts.address[parts.count] = addresses[i];
    parts.begin[parts.count + 1] = parts.begin[parts.count] + static_cast<uint32_t>(joints.bytes[i] / unit);
    ++parts.count;
    if (parts.count < Parts::most && i + 1 < addresses.size()) continue;
    const int64_t count = joints.rows * parts.begin[parts.count];
    if (count > 0)
      move_parts<Unit, joins><<<blocks_for(count), block_size, 0, stream>>>(static_cast<Unit*>(whole), parts,
                                                                            static_cast<uint32_t>(count));
    parts.first += parts.begin[parts.count];
    parts.count = 0;
  }
}

// In the largest unit that all parts and addresses are whole multiples of; an element is one.
template <bool joins>
void queue(cudaStream_t stream, const Joints& joints, void* whole, std::span<void* const> addresses) {
  uint64_t all = reinterpret_cast<uintptr_t>(whole);
  for (const int64_t bytes : joints.bytes) all |= static_cast<uint64_t>(bytes);
  for (const void* address : addresses) all |= reinterpret_cast<uintptr_t>(address);
  visit_wide_unit(unit_dividing(all),
                  [&]<class Unit>(Unit) { queue_parts<Unit, joins>(stream, joints, whole, addresses); });
}

std::unique_ptr<Kernel> build_join(const NodeView& node, const JointArrays& arrays) {
  return make_step(node, [joints = arrays.joints()](const Args& args) {
    std::vector<void*> parts;
    for (size_t i = 0; i < joints.bytes.size(); ++i) parts.push_back(const_cast<void*>(args.inputs[i]));
    queue<true>(stream_of(args), joints, args.outputs[0], parts);
  });
}

std::unique_ptr<Kernel> build_split(const NodeView& node, const JointArrays& arrays) {
  return make_step(node, [joints = arrays.joints()](const Args& args) {
    const std::span<void* const> parts(args.outputs, joints.bytes.size());
    queue<false>(stream_of(args), joints, const_cast<void*>(args.inputs[0]), parts);
  });
}

std::string refuse_large(const JointArrays& arrays) {
  return arrays.whole.shape.size() >= int64_t{1} << 31 ? "2^31 elements or more" : "";
}

template <class Build, class Asked>
void add(ImplementationTable& table, const JoiningOperator& each, Build build, Asked asked) {
  const auto arrays = each.arrays;
  Implementation made{"cuda", [=](const NodeView& node) { return refuse_large(arrays(node)); },
                      [=](const NodeView& node) { return build(node, arrays(node)); }};
  if (each.any_layout)
    made.preferred_layouts = [=](const NodeView& node) {
      return prefer_along_channels(node, arrays(node), asked(node));
    };
  table.add(*each.op, std::move(made));
}

}  // namespace

void add_concat(ImplementationTable& table) {
  for (const auto& each : joining_operators())
    add(table, each, build_join, [](const NodeView& node) { return node.inputs; });
  for (const auto& each : splitting_operators())
    add(table, each, build_split, [](const NodeView& node) { return node.inputs.first(1); });
}

}  // namespace symbind::cuda_backend
