// Functions of two arrays brought to one shape, and one array spread over the axes it lacks. Axes are merged first, so
// that most need one division per element.
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

template <class T, class Function>
__global__ void broadcast_two(const T* a, const T* b, T* out, uint32_t count, SmallAxes axes, Function function) {
  for (int64_t i = first_element(); i < count; i += element_step()) {
    uint32_t at_a, at_b;
    axes.offsets(static_cast<uint32_t>(i), at_a, at_b);
    out[i] = store<T>(function(load(a[at_a]), load(b[at_b])));
  }
}

template <class T>
__global__ void spread(const T* a, T* out, uint32_t count, SmallAxes axes, compute_type<T> divisor) {
  for (int64_t i = first_element(); i < count; i += element_step()) {
    uint32_t at_a, at_b;
    axes.offsets(static_cast<uint32_t>(i), at_a, at_b);
    const compute_type<T> value = load(a[at_a]);
    out[i] = store<T>(divisor == compute_type<T>(1) ? value : value / divisor);
  }
}

std::string refuse_large(const NodeView& node) {
  if (node.outputs[0].shape.size() >= int64_t{1} << 31) return "2^31 elements or more";
  for (const auto& tensor : node.inputs)
    if (tensor.layout != Layout::plain) return "wants plain arrays";
  return "";
}

template <class Function>
std::string refuse_broadcast(functions::Holds<Function> function, const NodeView& node) {
  const std::string reason = refuse_large(node);
  return reason.empty() ? refuse_elementwise(function, node) : reason;
}

template <class Function>
std::unique_ptr<Kernel> build_broadcast(functions::Holds<Function>, const NodeView& node) {
  const Shape &out = node.outputs[0].shape, &a = node.inputs[0].shape, &b = node.inputs[1].shape;
  return visit_number(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) -> std::unique_ptr<Kernel> {
    const BroadcastAxes axes(out, a, b);
    if (axes.plain()) return build_map<2, T>(node, Function{});
    KernelTraits traits;
    if (a == out) traits.in_place.push_back({0, 0});
    if (b == out) traits.in_place.push_back({1, 0});
    return make_step(
        node,
        [small = SmallAxes(axes), count = out.size()](const Args& args) {
          if (count == 0) return;
          broadcast_two<<<blocks_for(count), block_size, 0, stream_of(args)>>>(
              args.in<T>(0), args.in<T>(1), args.out<T>(), static_cast<uint32_t>(count), small, Function{});
        },
        traits);
  });
}

std::string refuse_spread(const NodeView& node) {
  if (node.inputs[0].dtype != node.outputs[0].dtype) return "the result has another type";
  if (!has_number_kernels(node.outputs[0].dtype)) return "no kernel for this type";
  return refuse_large(node);
}

// `from` is the input's shape with an axis of extent 1 for each one summed away.
std::unique_ptr<Kernel> build_spread(const NodeView& node, const Shape& from, int64_t divisor) {
  const Shape& out = node.outputs[0].shape;
  const BroadcastAxes axes(out, from, from);
  return visit_number(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    return make_step(node, [small = SmallAxes(axes), count = out.size(), divisor](const Args& args) {
      if (count == 0) return;
      spread<<<blocks_for(count), block_size, 0, stream_of(args)>>>(
          args.in<T>(0), args.out<T>(), static_cast<uint32_t>(count), small, static_cast<compute_type<T>>(divisor));
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

}  // namespace

void add_broadcast(ImplementationTable& table) {
  functions::for_each(functions::BroadcastTable{}, [&]<class Entry>(Entry entry) {
    table.add(OpRegistry::get().find(Entry::name.view()),
              {"cuda", [entry](const NodeView& node) { return refuse_broadcast(entry, node); },
               [entry](const NodeView& node) { return build_broadcast(entry, node); }});
  });
  table.add<SpreadLike>(
      {"cuda", refuse_spread, [](const NodeView& node) { return build_spread(node, node.inputs[0].shape, 1); }});
  table.add<SumGrad>(
      {"cuda", refuse_spread, [](const NodeView& node) { return build_sum_grad<SumGrad>(node, false); }});
  table.add<MeanGrad>(
      {"cuda", refuse_spread, [](const NodeView& node) { return build_sum_grad<MeanGrad>(node, true); }});
}

}  // namespace symbind::cuda_backend
