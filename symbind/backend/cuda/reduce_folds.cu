// Extrema, products, norms and the indices of extrema over axes.
#include "symbind/backend/cuda/reduce_folds.h"

#include "symbind/backend/cuda/any_type.cuh"
#include "symbind/backend/cuda/device.h"
#include "symbind/backend/cuda/folds.cuh"
#include "symbind/backend/cuda/step.h"
#include "symbind/backend/folds.h"
#include "symbind/backend/wide.h"
#include "symbind/ops/reduce.h"

namespace symbind::cuda_backend {
namespace {

// One of two folds, selected at run time: one kernel for both.
template <class T, class First, class Second>
struct EitherFold {
  using Part = typename First::Part;
  static_assert(std::is_same_v<Part, typename Second::Part>);
  using C = functions::Wide<T>;
  bool first;

  __device__ Part start() const { return first ? First::start() : Second::start(); }
  __device__ Part take(Part part, C value, int64_t) const {
    return first ? First::take(part, value) : Second::take(part, value);
  }
  __device__ Part join(Part a, Part b) const { return first ? First::join(a, b) : Second::join(a, b); }
  __device__ void finish(Part part, T* out, int64_t i) const {
    out[i] = convert_element<T>(first ? First::finish(part) : Second::finish(part));
  }
};
template <class T>
using Extreme = EitherFold<T, folds::Largest<functions::Wide<T>>, folds::Smallest<functions::Wide<T>>>;
template <class T>
using AnyProduct = EitherFold<T, folds::Product<functions::Wide<T>, false>, folds::Product<functions::Wide<T>, true>>;

// The result may be of another type than the data.
template <class T>
struct AnyNorm {
  using C = functions::Wide<T>;
  using First = folds::NormOf<C, 1>;
  using Second = folds::NormOf<C, 2>;
  using Part = double;
  bool first;
  DType to;

  __device__ Part start() const { return 0; }
  __device__ Part take(Part part, C value, int64_t) const {
    return first ? First::take(part, value) : Second::take(part, value);
  }
  __device__ Part join(Part a, Part b) const { return a + b; }
  __device__ void finish(Part part, unsigned char* out, int64_t i) const {
    AnyOutput{out, to}.set(i, first ? First::finish(part) : Second::finish(part));
  }
};

// The best element so far and its index; none before the first.
template <class C>
struct IndexedValue {
  int64_t index;
  C value;
};
template <class T>
struct ArgExtreme {
  using C = functions::Wide<T>;
  using Part = IndexedValue<C>;
  bool largest;

  __device__ Part start() const { return {-1, C(0)}; }
  // Elements are taken in the order of their indices: the first of equal ones wins.
  __device__ Part take(const Part& part, C value, int64_t index) const {
    return part.index < 0 || folds::beats(value, part.value, largest) ? Part{index, value} : part;
  }
  __device__ Part join(const Part& a, const Part& b) const {
    if (a.index < 0 || b.index < 0) return a.index < 0 ? b : a;
    const bool a_first = a.index < b.index;
    const Part &before = a_first ? a : b, &after = a_first ? b : a;
    return folds::beats(after.value, before.value, largest) ? after : before;
  }
  __device__ void finish(const Part& part, T* out, int64_t i) const {
    out[i] = convert_element<T>(part.index < 0 ? int64_t{0} : part.index);
  }
};

template <class Fold, class T, class Out>
std::unique_ptr<Kernel> build(const NodeView& node, const FoldPlan& plan, const Fold& fold) {
  return make_step(node,
                   [plan, fold](const Args& args) {
                     queue_fold(stream_of(args), plan, args.in<T>(0), args.out<Out>(), args.scratch, fold);
                   },
                   {.scratch_bytes = plan.scratch_bytes<typename Fold::Part>()});
}

template <template <class> class Fold, FixedString name>
void add_fold(ImplementationTable& table, bool first) {
  table.add<Reduce<name>>({"cuda", refuse_reduction, [first](const NodeView& node) {
                             const auto& p = node.as<Reduce<name>>();
                             const Shape& shape = node.inputs[0].shape;
                             const FoldPlan plan(shape, reduced_axes(p.axis, p.exclude, shape, node.where()));
                             return visit_dtype(node.inputs[0].dtype, [&]<class T>(std::type_identity<T>) {
                               return build<Fold<T>, T, T>(node, plan, Fold<T>{first});
                             });
                           }});
}

std::unique_ptr<Kernel> build_norm(const NodeView& node) {
  const auto& p = node.as<Norm>();
  const Shape& shape = node.inputs[0].shape;
  const FoldPlan plan(shape, reduced_axes(p.axis, false, shape, node.where()));
  return visit_dtype(node.inputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    return build<AnyNorm<T>, T, unsigned char>(node, plan, AnyNorm<T>{p.ord == 1, node.outputs[0].dtype});
  });
}

std::unique_ptr<Kernel> build_arg_reduce(const NodeView& node, const AxisView& axis, bool largest) {
  return visit_dtype(node.inputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    return build<ArgExtreme<T>, T, T>(node, FoldPlan(axis), ArgExtreme<T>{largest});
  });
}

template <FixedString name>
void add_arg_reduce(ImplementationTable& table, bool largest) {
  table.add<ArgReduce<name>>({"cuda", refuse_reduction, [largest](const NodeView& node) {
                                const auto& p = node.as<ArgReduce<name>>();
                                const Shape& shape = node.inputs[0].shape;
                                const AxisView axis = p.axis ? view_along(shape, shape.axis(*p.axis, node.where()))
                                                             : AxisView{1, shape.size(), 1};
                                return build_arg_reduce(node, axis, largest);
                              }});
}

}  // namespace

void add_reduce_folds(ImplementationTable& table) {
  add_fold<Extreme, "max">(table, true);
  add_fold<Extreme, "min">(table, false);
  add_fold<AnyProduct, "prod">(table, true);
  add_fold<AnyProduct, "nanprod">(table, false);
  table.add<Norm>({"cuda", refuse_reduction, build_norm});
  add_arg_reduce<"argmax">(table, true);
  add_arg_reduce<"argmin">(table, false);
  table.add<ArgmaxChannel>({"cuda", refuse_reduction, [](const NodeView& node) {
                              return build_arg_reduce(node, view_along(node.inputs[0].shape, 1), true);
                            }});
}

}  // namespace symbind::cuda_backend
