// The last index of each slot is found first, as a maximum of integers, which does not depend on the order of threads;
// then every element is copied from its source.
#include "symbind/backend/scatter.h"

#include "symbind/backend/cuda/faults.cuh"
#include "symbind/backend/cuda/kernels.cuh"
#include "symbind/backend/cuda/step.h"
#include "symbind/backend/units.h"
#include "symbind/ops/scatter.h"

namespace symbind::cuda_backend {
namespace {

template <class N>
struct IndexValue {
  const N* numbers;
  __device__ int64_t operator()(int64_t k) const { return index_of(load(numbers[k])); }
};

template <class N>
__global__ void note_last(Replacing size, const N* indices, long long* last, FaultNotes faults) {
  const auto refuse = [&](int axis, int64_t index) {
    note_fault(faults, FaultKind::index, axis, index, 0, size.extents[axis] - 1);
  };
  for (int64_t i = first_element(); i < size.count; i += element_step()) {
    const int64_t slot = size.slot(i, IndexValue<N>{indices}, refuse);
    if (slot >= 0) atomicMax(last + slot, static_cast<long long>(i));
  }
}

template <class Unit>
__global__ void replace(Replacing size, const long long* last, const Unit* old, const Unit* fresh, Unit* out) {
  const int64_t elements = size.slots * size.inner;
  for (int64_t i = first_element(); i < elements; i += element_step()) {
    const int64_t from = last[i / size.inner];
    out[i] = from < 0 ? old[i] : fresh[from * size.inner + i % size.inner];
  }
}

template <class Unit>
__global__ void old_grad(Replacing size, const long long* last, const Unit* dy, Unit* out) {
  const int64_t elements = size.slots * size.inner;
  for (int64_t i = first_element(); i < elements; i += element_step())
    out[i] = last[i / size.inner] < 0 ? dy[i] : Unit{};
}

template <class Unit, class N>
__global__ void new_grad(Replacing size, const long long* last, const N* indices, const Unit* dy, Unit* out) {
  const int64_t elements = size.count * size.inner;
  for (int64_t i = first_element(); i < elements; i += element_step()) {
    const int64_t number = i / size.inner, slot = size.slot(number, IndexValue<N>{indices}, [](int, int64_t) {});
    out[i] = slot >= 0 && last[slot] == number ? dy[slot * size.inner + i % size.inner] : Unit{};
  }
}

// The scratch memory then holds the last index of each slot, -1 where there is none.
void queue_last(const Replacing& size, DType of_index, const void* indices, const FaultNotes& faults,
                const Args& args) {
  auto* const last = static_cast<long long*>(args.scratch);
  if (size.slots > 0) cudaMemsetAsync(last, 0xff, static_cast<size_t>(size.slots) * sizeof(long long), stream_of(args));
  if (size.slots == 0 || size.count == 0) return;
  visit_dtype(of_index, [&]<class N>(std::type_identity<N>) {
    note_last<<<blocks_for(size.count), block_size, 0, stream_of(args)>>>(size, static_cast<const N*>(indices), last,
                                                                          faults);
  });
}

KernelTraits traits_of(const Replacing& size) {
  return {.scratch_bytes = static_cast<size_t>(size.slots) * sizeof(long long)};
}

std::unique_ptr<Kernel> build_replace(const NodeView& node, size_t indices, size_t fresh, bool nd) {
  const Replacing size(node.inputs[0].shape, node.inputs[indices].shape, nd);
  return make_step(
      node,
      [size, indices, fresh, of_index = node.inputs[indices].dtype, faults = fault_notes(node),
       element = size_of(node.outputs[0].dtype)](const Args& args) {
        if (size.slots * size.inner == 0) return;
        queue_last(size, of_index, args.inputs[indices], faults, args);
        visit_unit(element, [&]<class Unit>(Unit) {
          replace<<<blocks_for(size.slots * size.inner), block_size, 0, stream_of(args)>>>(
              size, static_cast<const long long*>(args.scratch), args.in<Unit>(0), args.in<Unit>(fresh),
              args.out<Unit>());
        });
      },
      traits_of(size));
}

void queue_grads(const Replacing& size, DType of_index, size_t element, const Args& args) {
  const auto* const last = static_cast<const long long*>(args.scratch);
  visit_unit(element, [&]<class Unit>(Unit) {
    if (args.outputs[0] && size.slots * size.inner > 0)
      old_grad<<<blocks_for(size.slots * size.inner), block_size, 0, stream_of(args)>>>(size, last, args.in<Unit>(0),
                                                                                        args.out<Unit>(0));
    if (!args.outputs[1] || size.count * size.inner == 0) return;
    visit_dtype(of_index, [&]<class N>(std::type_identity<N>) {
      new_grad<<<blocks_for(size.count * size.inner), block_size, 0, stream_of(args)>>>(
          size, last, args.in<N>(1), args.in<Unit>(0), args.out<Unit>(1));
    });
  });
}

std::unique_ptr<Kernel> build_grad(const NodeView& node) {
  const Replacing size(node.inputs[0].shape, node.inputs[1].shape, node.as<ReplaceGrad>().nd);
  return make_step(
      node,
      [size, of_index = node.inputs[1].dtype, faults = fault_notes(node),
       element = size_of(node.outputs[0].dtype)](const Args& args) {
        queue_last(size, of_index, args.inputs[1], faults, args);
        queue_grads(size, of_index, element, args);
      },
      traits_of(size));
}

std::string refuse(const NodeView& node) {
  for (const auto& input : node.inputs)
    if (input.layout != Layout::plain) return "needs plain layouts";
  return "";
}

}  // namespace

void add_scatter(ImplementationTable& table) {
  table.add<IndexCopy>({"cuda", refuse, [](const NodeView& node) { return build_replace(node, 1, 2, false); }});
  table.add<ScatterSetNd>({"cuda", refuse, [](const NodeView& node) { return build_replace(node, 2, 1, true); }});
  table.add<ReplaceGrad>({"cuda", refuse, build_grad});
}

}  // namespace symbind::cuda_backend
