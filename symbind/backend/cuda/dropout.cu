// Dropout: the mask and the result in one pass, from the same random numbers as on a CPU.
#include "symbind/ops/dropout.h"

#include "symbind/backend/cuda/any_array.cuh"
#include "symbind/backend/cuda/device.h"
#include "symbind/backend/cuda/kernels.cuh"
#include "symbind/backend/cuda/step.h"
#include "symbind/core/random.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {
namespace {

std::string refuse(const NodeView& node) {
  if (!is_floating(node.outputs[0].dtype)) return "wants floating numbers";
  return node.inputs[0].layout == Layout::plain ? "" : "needs plain arrays";
}

// Each thread draws a block of four numbers.
template <class T>
__global__ void drop(const T* x, T* y, T* mask, int64_t count, const RandomCursor* cursor, uint64_t slot, float keep,
                     compute_type<T> scale) {
  const uint64_t key = cursor->key, draw = cursor->draw + slot;
  const T kept = store<T>(scale), dropped = store<T>(compute_type<T>(0));
  for (int64_t block = first_element(); block * 4 < count; block += element_step()) {
    const PhiloxBlock random = philox(key, draw, static_cast<uint64_t>(block));
    for (int word = 0; word < 4 && block * 4 + word < count; ++word) {
      const int64_t i = block * 4 + word;
      const T factor = unit_float(random.words[word]) < keep ? kept : dropped;
      mask[i] = factor;
      y[i] = store<T>(load(x[i]) * load(factor));
    }
  }
}

// ---- A mask that is shared along axes -------------------------------------------------------------------------------

template <class T>
__global__ void draw_mask(T* mask, int64_t count, const RandomCursor* cursor, uint64_t slot, float keep,
                          compute_type<T> scale) {
  const uint64_t key = cursor->key, draw = cursor->draw + slot;
  const T kept = store<T>(scale), dropped = store<T>(compute_type<T>(0));
  for (int64_t block = first_element(); block * 4 < count; block += element_step()) {
    const PhiloxBlock random = philox(key, draw, static_cast<uint64_t>(block));
    for (int word = 0; word < 4 && block * 4 + word < count; ++word)
      mask[block * 4 + word] = unit_float(random.words[word]) < keep ? kept : dropped;
  }
}

// For each axis of the data, the step in the mask: zero where the mask has extent 1.
struct MaskIndex {
  int rank = 0;
  int64_t extent[Shape::max_rank] = {}, step[Shape::max_rank] = {};

  MaskIndex(const Shape& data, const Shape& mask) : rank(data.rank()) {
    const auto strides = mask.strides();
    for (int axis = 0; axis < rank; ++axis) {
      extent[axis] = data[axis];
      step[axis] = mask[axis] == 1 ? 0 : strides[static_cast<size_t>(axis)];
    }
  }
  __device__ int64_t of(int64_t i) const {
    int64_t index = 0;
    for (int axis = rank - 1; axis >= 0; --axis) {
      const Divided at = divided(i, extent[axis]);
      index += at.rest * step[axis];
      i = at.quotient;
    }
    return index;
  }
};

template <class T>
__global__ void apply_mask(const T* x, const T* mask, T* y, int64_t count, MaskIndex index) {
  for (int64_t i = first_element(); i < count; i += element_step())
    y[i] = store<T>(load(x[i]) * load(mask[index.of(i)]));
}

std::unique_ptr<Kernel> build_shared(const NodeView& node, uint64_t slot, float keep, double scale) {
  const Shape &data = node.outputs[0].shape, &mask_shape = node.outputs[1].shape;
  return visit_floating(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    return make_step(
        node,
        [=, index = MaskIndex(data, mask_shape), count = data.size(), masks = mask_shape.size()](const Args& args) {
          if (count == 0) return;
          draw_mask<<<blocks_for((masks + 3) / 4), block_size, 0, stream_of(args)>>>(
              args.out<T>(1), masks, args.random, slot, keep, static_cast<compute_type<T>>(scale));
          apply_mask<<<blocks_for(count), block_size, 0, stream_of(args)>>>(args.in<T>(0), args.out<T>(1),
                                                                            args.out<T>(0), count, index);
        },
        {.in_place = {{0, 0}}});
  });
}

// ---- All of them ----------------------------------------------------------------------------------------------------

std::unique_ptr<Kernel> build(const NodeView& node) {
  const auto& p = node.as<Dropout>();
  const DType dtype = node.outputs[0].dtype;
  const int64_t count = node.outputs[0].shape.size();
  const KernelTraits traits{.in_place = {{0, 0}}};
  if (!drops(p, node.is_train))
    return make_step(
        node,
        [dtype, count, masks = node.outputs[1].shape.size(), bytes = node.outputs[0].bytes()](const Args& args) {
          if (count == 0) return;
          if (args.inputs[0] != args.outputs[0])
            cudaMemcpyAsync(args.outputs[0], args.inputs[0], bytes, cudaMemcpyDeviceToDevice, stream_of(args));
          if (args.outputs[1]) queue_fill(stream_of(args), args.outputs[1], dtype, masks, 1);
        },
        traits);
  const auto keep = static_cast<float>(1 - p.p);
  const double scale = 1 / (1 - p.p);
  const auto slot = static_cast<uint64_t>(std::max(node.random_slot, 0));
  if (node.outputs[0].shape != node.outputs[1].shape) return build_shared(node, slot, keep, scale);
  return visit_floating(dtype, [&]<class T>(std::type_identity<T>) {
    return make_step(
        node,
        [=](const Args& args) {
          if (count == 0) return;
          drop<<<blocks_for((count + 3) / 4), block_size, 0, stream_of(args)>>>(
              args.in<T>(0), args.out<T>(0), args.out<T>(1), count, args.random, slot, keep,
              static_cast<compute_type<T>>(scale));
        },
        traits);
  });
}

}  // namespace

void add_dropout(ImplementationTable& table) { table.add<Dropout>({"cuda", refuse, build}); }

}  // namespace symbind::cuda_backend
