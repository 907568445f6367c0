// The targets of Mask R-CNN's masks: a thread per cell of a region, which writes the cell for every class.
#include "symbind/backend/mask_target.h"

#include "symbind/backend/cuda/kernels.cuh"
#include "symbind/backend/cuda/step.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {
namespace {

using namespace mask_target_rule;

std::string refuse(const NodeView& node) {
  for (const Tensor& tensor : node.inputs)
    if (tensor.layout != Layout::plain) return "needs plain layouts";
  return "";
}

// `targets` and `weights` are null where they are not needed.
template <class T>
__global__ void find_targets(MaskSize size, const T* rois, const T* masks, const T* matches, const T* classes,
                             T* targets, T* weights) {
  using C = compute_type<T>;
  const int64_t cells = size.cells();
  for (int64_t i = first_element(); i < size.images * size.regions * cells; i += element_step()) {
    const int64_t index = i / cells, cell = i % cells, first = index * size.classes * cells + cell;
    if (targets) {
      const T* const corners = rois + index * 4;
      const MaskRegion<C> region(size, C(load(matches[index])), [corners](int k) -> C { return load(corners[k]); });
      C mean = 0;
      if (region.mask >= 0) {
        const T* const plane = masks + (index / size.regions * size.masks + region.mask) * size.space();
        mean = region.mean(size, cell, [plane](int64_t k) -> C { return load(plane[k]); });
      }
      for (int64_t k = 0; k < size.classes; ++k) targets[first + k * cells] = store<T>(mean);
    }
    if (weights) {
      const C own = load(classes[index]);
      for (int64_t k = 0; k < size.classes; ++k)
        weights[first + k * cells] = store<T>(own == static_cast<C>(k) ? C(1) : C(0));
    }
  }
}

std::unique_ptr<Kernel> build(const NodeView& node) {
  const MaskSize size(node.as<MaskTarget>(), node.inputs[1].shape);
  const int64_t count = size.images * size.regions * size.cells();
  return visit_floating(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    return make_step(node, [size, count](const Args& args) {
      if (count == 0) return;
      find_targets<<<blocks_for(count), block_size, 0, stream_of(args)>>>(
          size, args.in<T>(0), args.in<T>(1), args.in<T>(2), args.in<T>(3), args.out<T>(0), args.out<T>(1));
    });
  });
}

}  // namespace

void add_mask_target(ImplementationTable& table) { table.add<MaskTarget>({"cuda", refuse, build}); }

}  // namespace symbind::cuda_backend
