#include "symbind/ops/indices.h"

#include "symbind/backend/cuda/any_array.cuh"
#include "symbind/backend/cuda/generate.cuh"
#include "symbind/backend/cuda/refuse.h"
#include "symbind/backend/cuda/step.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {
namespace {

// A few numbers that are known when a kernel is built.
struct Numbers {
  int rank = 0;
  int64_t number[Shape::max_rank] = {};

  template <class Range>
  explicit Numbers(const Range& numbers) {
    for (const int64_t each : numbers) number[rank++] = each;
  }
  __device__ int64_t operator()(int64_t i) const { return number[i]; }
};

std::unique_ptr<Kernel> build_numbers(const NodeView& node, const Numbers& numbers) {
  return make_step(node, [numbers](const Args& args) {
    queue_generate(stream_of(args), args.out<int64_t>(), numbers.rank, numbers);
  });
}

// Indices out of range are computed like any other; results beyond 64 bits wrap.
template <class T>
struct Raveled {
  AnyArray data;
  Numbers extents;
  int64_t count;
  __device__ T operator()(int64_t i) const {
    uint64_t index = 0;
    for (int axis = 0; axis < extents.rank; ++axis)
      index = index * static_cast<uint64_t>(extents.number[axis]) + static_cast<uint64_t>(data.whole(axis * count + i));
    return convert_element<T>(static_cast<int64_t>(index));
  }
};

template <class T>
struct Unraveled {
  AnyArray data;
  Numbers extents;
  int64_t count;
  __device__ T operator()(int64_t i) const {
    const Divided at = divided(i, count);
    int64_t index = data.whole(at.rest);
    for (int axis = extents.rank - 1; axis > at.quotient; --axis) index /= extents.number[axis];
    if (at.quotient > 0) index %= extents.number[at.quotient];
    return convert_element<T>(index);
  }
};

template <template <class> class Element>
std::unique_ptr<Kernel> build_index(const NodeView& node, const Tuple& shape) {
  const Tensor& out = node.outputs[0];
  const int64_t count = std::is_same_v<Element<float>, Raveled<float>> ? out.shape[0] : out.shape[1];
  return visit_dtype(out.dtype, [&]<class T>(std::type_identity<T>) {
    return make_step(node, [extents = Numbers(shape), count, elements = out.shape.size(),
                            of_index = node.inputs[0].dtype](const Args& args) {
      queue_generate(stream_of(args), args.out<T>(), elements, Element<T>{{args.inputs[0], of_index}, extents, count});
    });
  });
}

std::string refuse_index(const NodeView& node, const Tuple& shape) {
  return shape.size() > Shape::max_rank ? "too many axes" : refuse_layouts(node);
}

template <class P, template <class> class Element>
void add(ImplementationTable& table) {
  table.add<P>({"cuda", [](const NodeView& node) { return refuse_index(node, node.as<P>().shape.get()); },
                [](const NodeView& node) { return build_index<Element>(node, node.as<P>().shape.get()); }});
}

// The data is read for its shape alone.
std::string accept(const NodeView&) { return ""; }

}  // namespace

void add_indices(ImplementationTable& table) {
  table.add<ShapeArray>(
      {"cuda", accept, [](const NodeView& node) { return build_numbers(node, Numbers(node.inputs[0].shape)); }});
  table.add<SizeArray>({"cuda", accept, [](const NodeView& node) {
                          return build_numbers(node, Numbers(Shape{node.inputs[0].shape.size()}));
                        }});
  add<RavelMultiIndex, Raveled>(table);
  add<UnravelIndex, Unraveled>(table);
}

}  // namespace symbind::cuda_backend
