// Slices taken by numbers, and added where they were taken. For the gradient the numbers are sorted, in a way that
// keeps equal ones in order: each sum is then one thread's, over its terms in the order of the numbers, as on a CPU.
#include "symbind/ops/gather.h"

#include <cub/device/device_radix_sort.cuh>

#include "symbind/backend/cuda/device.h"
#include "symbind/backend/cuda/kernels.cuh"
#include "symbind/backend/cuda/step.h"
#include "symbind/backend/units.h"
#include "symbind/core/axis_view.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {
namespace {

// An array around the axis that slices are taken along, by `count` numbers.
struct Around : AxisView {
  int64_t count;
  bool wraps;  // or clips

  Around(const Shape& shape, int axis, const Tensor& numbers, bool wraps_)
      : AxisView(view_along(shape, axis)), count(numbers.shape.size()), wraps(wraps_) {}

  __device__ int64_t place(int64_t number) const {
    if (wraps) return (number % length + length) % length;
    return number < 0 ? 0 : number < length ? number : length - 1;
  }
};

// Fractions are cut off and what is beyond int64 becomes the nearer end of it, by the rules of the CPU.
template <class N>
__device__ int64_t number_of(const N& value) {
  return index_of(load(value));
}

template <class Unit, class N>
__global__ void take_slices(const Unit* from, const N* numbers, Unit* out, Around around) {
  const int64_t elements = around.outer * around.count * around.inner;
  for (int64_t i = first_element(); i < elements; i += element_step()) {
    const int64_t column = i % around.inner, slice = i / around.inner;
    const int64_t outer = slice / around.count, place = around.place(number_of(numbers[slice % around.count]));
    out[i] = from[(outer * around.length + place) * around.inner + column];
  }
}

std::unique_ptr<Kernel> build_take(const NodeView& node, size_t from, size_t numbers, const Around& around) {
  return make_step(node, [around, from, numbers, element = size_of(node.outputs[0].dtype),
                          of_number = node.inputs[numbers].dtype](const Args& args) {
    const int64_t elements = around.outer * around.count * around.inner;
    if (elements == 0) return;
    visit_dtype(of_number, [&]<class N>(std::type_identity<N>) {
      visit_unit(element, [&]<class Unit>(Unit) {
        take_slices<<<blocks_for(elements), block_size, 0, stream_of(args)>>>(args.in<Unit>(from), args.in<N>(numbers),
                                                                              args.out<Unit>(), around);
      });
    });
  });
}

// ---- The gradient ---------------------------------------------------------------------------------------------------

template <class N>
__global__ void read_places(const N* numbers, uint32_t* places, uint32_t* order, Around around) {
  for (int64_t i = first_element(); i < around.count; i += element_step()) {
    places[i] = static_cast<uint32_t>(around.place(number_of(numbers[i])));
    order[i] = static_cast<uint32_t>(i);
  }
}

// A block looks at a number; if it is the first of its kind, its threads sum the slices of all of them.
template <class T>
__global__ void add_slices(const T* dy, const uint32_t* places, const uint32_t* order, T* out, Around around) {
  for (int64_t first = blockIdx.x; first < around.count; first += gridDim.x) {
    const uint32_t place = places[first];
    if (first > 0 && places[first - 1] == place) continue;
    for (int64_t column = threadIdx.x; column < around.outer * around.inner; column += blockDim.x) {
      const int64_t outer = column / around.inner, inner = column % around.inner;
      compute_type<T> sum = 0;
      for (int64_t i = first; i < around.count && places[i] == place; ++i)
        sum += load(dy[(outer * around.count + order[i]) * around.inner + inner]);
      out[(outer * around.length + place) * around.inner + inner] = store<T>(sum);
    }
  }
}

// What the sort works in, one after the other.
struct SortMemory {
  size_t of_numbers, of_sort = 0;  // bytes of one array of numbers, and of what the sort itself needs
  int bits = 1;                    // of a place

  explicit SortMemory(const Around& around)
      : of_numbers((static_cast<size_t>(around.count) * sizeof(uint32_t) + 255) / 256 * 256) {
    while (int64_t{1} << bits < around.length) ++bits;
    uint32_t* const none = nullptr;
    cub::DeviceRadixSort::SortPairs(nullptr, of_sort, none, none, none, none, static_cast<int>(around.count), 0, bits);
  }
  size_t bytes() const { return 4 * of_numbers + of_sort; }
  uint32_t* numbers(void* scratch, size_t which) const {
    return reinterpret_cast<uint32_t*>(static_cast<std::byte*>(scratch) + which * of_numbers);
  }
};

std::unique_ptr<Kernel> build_take_gradient(const NodeView& node) {
  const auto& p = node.as<TakeGrad>();
  const Shape& shape = node.outputs[0].shape;
  const Around around(shape, shape.axis(p.axis, node.where()), node.inputs[1], p.mode == "wrap");
  const CurrentDevice current(CudaDevice::of(node.context).id());
  const SortMemory memory(around);
  return visit_floating(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    return make_step(
        node,
        [around, memory, bytes = node.outputs[0].bytes(), of_number = node.inputs[1].dtype](const Args& args) {
          const cudaStream_t stream = stream_of(args);
          if (bytes > 0) cudaMemsetAsync(args.outputs[0], 0, bytes, stream);
          if (around.count == 0 || bytes == 0) return;
          uint32_t* const numbers[] = {memory.numbers(args.scratch, 0), memory.numbers(args.scratch, 1),
                                       memory.numbers(args.scratch, 2), memory.numbers(args.scratch, 3)};
          visit_dtype(of_number, [&]<class N>(std::type_identity<N>) {
            read_places<<<blocks_for(around.count), block_size, 0, stream>>>(args.in<N>(1), numbers[0], numbers[1],
                                                                             around);
          });
          size_t of_sort = memory.of_sort;
          cub::DeviceRadixSort::SortPairs(memory.numbers(args.scratch, 4), of_sort, numbers[0], numbers[2], numbers[1],
                                          numbers[3], static_cast<int>(around.count), 0, memory.bits, stream);
          add_slices<<<blocks_for(around.count, 1), block_size, 0, stream>>>(args.in<T>(0), numbers[2], numbers[3],
                                                                             args.out<T>(), around);
        },
        {.scratch_bytes = memory.bytes()});
  });
}

// ---- All of them ----------------------------------------------------------------------------------------------------

std::string refuse(const NodeView& node, const std::string& mode, const Around& around) {
  if (mode == "raise") return "numbers outside are found on the host";
  if (around.length == 0 || around.length >= int64_t{1} << 31 || around.count >= int64_t{1} << 31)
    return "an axis without elements, or with 2^31 and more";
  for (const Tensor& tensor : node.inputs)
    if (tensor.layout != Layout::plain) return "wants plain arrays";
  return "";
}

Around around_of(const NodeView& node, const Take& p, const Shape& whole) {
  return {whole, whole.axis(p.axis, node.where()), node.inputs[1], p.mode == "wrap"};
}

// Embedding reads (numbers, weight).
Around around_of_embedding(const NodeView& node) { return {node.inputs[1].shape, 0, node.inputs[0], false}; }

}  // namespace

void add_gather(ImplementationTable& table) {
  table.add<Take>({"cuda",
                   [](const NodeView& node) {
                     const auto& p = node.as<Take>();
                     return refuse(node, p.mode, around_of(node, p, node.inputs[0].shape));
                   },
                   [](const NodeView& node) {
                     return build_take(node, 0, 1, around_of(node, node.as<Take>(), node.inputs[0].shape));
                   }});
  table.add<Embedding>({"cuda",
                        [](const NodeView& node) {
                          if (node.inputs[1].dtype != node.outputs[0].dtype)
                            return std::string("the result has another type");
                          return refuse(node, "clip", around_of_embedding(node));
                        },
                        [](const NodeView& node) { return build_take(node, 1, 0, around_of_embedding(node)); }});
  table.add<TakeGrad>({"cuda",
                       [](const NodeView& node) {
                         const auto& p = node.as<TakeGrad>();
                         if (!is_floating(node.outputs[0].dtype)) return std::string("wants floating numbers");
                         if (node.inputs[0].dtype != node.outputs[0].dtype)
                           return std::string("arrays of different types");
                         return refuse(node, p.mode, around_of(node, p, node.outputs[0].shape));
                       },
                       build_take_gradient});
}

}  // namespace symbind::cuda_backend
