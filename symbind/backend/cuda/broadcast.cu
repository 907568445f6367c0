// Functions of two arrays broadcast to one shape, and broadcasting of one array. Axes are merged first, so that most
// need one division per element, or per pack of neighbours.
#include "symbind/ops/broadcast.h"

#include "symbind/backend/cuda/axes.h"
#include "symbind/backend/cuda/device.h"
#include "symbind/backend/cuda/elementwise.cuh"
#include "symbind/ops/reduce.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {
namespace {

// Indices of 32 bits: their division is several times faster.
struct SmallAxes {
  int rank;
  uint32_t extent[Shape::max_rank], stride_a[Shape::max_rank], stride_b[Shape::max_rank];

  explicit SmallAxes(const BroadcastAxes& axes) : rank(axes.rank) {
    for (int axis = 0; axis < rank; ++axis) {
      extent[axis] = static_cast<uint32_t>(axes.extent[axis]);
      stride_a[axis] = static_cast<uint32_t>(axes.stride_a[axis]);
      stride_b[axis] = static_cast<uint32_t>(axes.stride_b[axis]);
    }
  }
  __device__ void offsets(uint32_t index, uint32_t& a, uint32_t& b) const {
    a = b = 0;
    for (int axis = rank - 1; axis > 0; --axis) {
      const uint32_t rest = index / extent[axis], at = index - rest * extent[axis];
      a += at * stride_a[axis];
      b += at * stride_b[axis];
      index = rest;
    }
    a += index * stride_a[0];
    b += index * stride_b[0];
  }
};

// Does an array advance along the last axis, or repeat an element? One that advances is read by packs.
template <int width, class T>
__device__ Pack<T, width> read_along(const T* from, bool advances) {
  if (width == 1 || advances) return *reinterpret_cast<const Pack<T, width>*>(from);
  Pack<T, width> pack;
#pragma unroll
  for (int k = 0; k < width; ++k) pack.element[k] = *from;
  return pack;
}

// `width` neighbours along the last axis, which it divides, for each thread. An input may be the output.
template <int width, class T, class Function>
__global__ void broadcast_two(const T* a, const T* b, T* out, uint32_t count, SmallAxes axes, Function function) {
  using C = functions::Wide<T>;
  const bool a_advances = axes.stride_a[axes.rank - 1] != 0, b_advances = axes.stride_b[axes.rank - 1] != 0;
  for (int64_t i = first_element() * width; i < count; i += element_step() * width) {
    uint32_t at_a, at_b;
    axes.offsets(static_cast<uint32_t>(i), at_a, at_b);
    const auto of_a = read_along<width>(a + at_a, a_advances), of_b = read_along<width>(b + at_b, b_advances);
    Pack<T, width> result;
#pragma unroll
    for (int k = 0; k < width; ++k)
      result.element[k] =
          convert_element<T>(function(static_cast<C>(load(of_a.element[k])), static_cast<C>(load(of_b.element[k]))));
    *reinterpret_cast<Pack<T, width>*>(out + i) = result;
  }
}

template <int width, class T>
__global__ void spread(const T* a, T* out, uint32_t count, SmallAxes axes, functions::Wide<T> divisor) {
  using C = functions::Wide<T>;
  const bool advances = axes.stride_a[axes.rank - 1] != 0;
  for (int64_t i = first_element() * width; i < count; i += element_step() * width) {
    uint32_t at_a, at_b;
    axes.offsets(static_cast<uint32_t>(i), at_a, at_b);
    Pack<T, width> pack = read_along<width>(a + at_a, advances);
    if (divisor != C(1)) {
#pragma unroll
      for (int k = 0; k < width; ++k)
        pack.element[k] = convert_element<T>(functions::divide(static_cast<C>(load(pack.element[k])), divisor));
    }
    *reinterpret_cast<Pack<T, width>*>(out + i) = pack;
  }
}

template <class T>
inline constexpr bool is_floating_element = !std::is_integral_v<T>;

// Are arrays read and written by packs? The last axis must consist of whole packs, which then start at multiples of
// their size.
template <class T>
bool by_packs(const BroadcastAxes& axes) {
  return is_floating_element<T> && axes.extent[axes.rank - 1] % widest<T> == 0;
}

std::string refuse_large(const NodeView& node) {
  if (node.outputs[0].shape.size() >= int64_t{1} << 31) return "2^31 elements or more";
  for (const auto& tensor : node.inputs)
    if (tensor.layout != Layout::plain) return "wants plain arrays";
  return "";
}

std::string refuse_broadcast(const NodeView& node) {
  const DType dtype = node.outputs[0].dtype;
  for (const auto& tensor : node.inputs)
    if (tensor.dtype != dtype) return "arrays of different types";
  return refuse_large(node);
}

template <class Function>
std::unique_ptr<Kernel> build_broadcast(functions::Holds<Function>, const NodeView& node) {
  const Shape &out = node.outputs[0].shape, &a = node.inputs[0].shape, &b = node.inputs[1].shape;
  KernelTraits traits;
  if (a == out) traits.in_place.push_back({0, 0});
  if (b == out) traits.in_place.push_back({1, 0});
  return visit_dtype(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) -> std::unique_ptr<Kernel> {
    const BroadcastAxes axes(out, a, b);
    return make_step(
        node,
        [small = SmallAxes(axes), packs = by_packs<T>(axes), count = out.size()](const Args& args) {
          if (count == 0) return;
          const T *from_a = args.in<T>(0), *from_b = args.in<T>(1);
          T* const to = args.out<T>();
          if constexpr (is_floating_element<T>)
            if (packs && aligned_for_packs(from_a) && aligned_for_packs(from_b) && aligned_for_packs(to)) {
              broadcast_two<widest<T>><<<blocks_for(count / widest<T>), block_size, 0, stream_of(args)>>>(
                  from_a, from_b, to, static_cast<uint32_t>(count), small, Function{});
              return;
            }
          broadcast_two<1><<<blocks_for(count), block_size, 0, stream_of(args)>>>(
              from_a, from_b, to, static_cast<uint32_t>(count), small, Function{});
        },
        traits);
  });
}

std::string refuse_spread(const NodeView& node) {
  if (node.inputs[0].dtype != node.outputs[0].dtype) return "the result has another type";
  return refuse_large(node);
}

// `from` is the input's shape with extent 1 for each reduced axis.
std::unique_ptr<Kernel> build_spread(const NodeView& node, const Shape& from, int64_t divisor) {
  const Shape& out = node.outputs[0].shape;
  const BroadcastAxes axes(out, from, from);
  return visit_dtype(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    return make_step(node, [small = SmallAxes(axes), packs = by_packs<T>(axes), count = out.size(),
                            by = static_cast<functions::Wide<T>>(divisor)](const Args& args) {
      if (count == 0) return;
      const T* const source = args.in<T>(0);
      T* const to = args.out<T>();
      if constexpr (is_floating_element<T>)
        if (packs && aligned_for_packs(source) && aligned_for_packs(to)) {
          spread<widest<T>><<<blocks_for(count / widest<T>), block_size, 0, stream_of(args)>>>(
              source, to, static_cast<uint32_t>(count), small, by);
          return;
        }
      spread<1>
          <<<blocks_for(count), block_size, 0, stream_of(args)>>>(source, to, static_cast<uint32_t>(count), small, by);
    });
  });
}

template <class P>
std::unique_ptr<Kernel> build_sum_grad(const NodeView& node, bool mean) {
  const auto& params = node.as<P>();
  Shape from = node.outputs[0].shape;
  const auto summed = reduced_axes(params.axis, params.exclude, from, node.where());
  int64_t terms = 1;
  for (int axis = 0; axis < from.rank(); ++axis) {
    if (!summed[static_cast<size_t>(axis)]) continue;
    terms *= from[axis];
    from[axis] = 1;
  }
  return build_spread(node, from, mean ? terms : 1);
}

template <class Entries>
void add_functions(ImplementationTable& table, Entries entries) {
  functions::for_each(entries, [&]<class Entry>(Entry entry) {
    table.add(OpRegistry::get().find(Entry::name.view()),
              {"cuda", refuse_broadcast, [entry](const NodeView& node) { return build_broadcast(entry, node); }});
  });
}

}  // namespace

void add_broadcast(ImplementationTable& table) {
  add_functions(table, functions::BroadcastTable{});
  add_functions(table, functions::ChoiceBroadcastTable{});
  table.add<SpreadLike>(
      {"cuda", refuse_spread, [](const NodeView& node) { return build_spread(node, node.inputs[0].shape, 1); }});
  table.add<SumGrad>(
      {"cuda", refuse_spread, [](const NodeView& node) { return build_sum_grad<SumGrad>(node, false); }});
  table.add<MeanGrad>(
      {"cuda", refuse_spread, [](const NodeView& node) { return build_sum_grad<MeanGrad>(node, true); }});
}

}  // namespace symbind::cuda_backend
