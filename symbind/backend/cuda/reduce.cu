// Sums and means over axes.
#include "symbind/ops/reduce.h"

#include "symbind/backend/cuda/copy.h"
#include "symbind/backend/cuda/device.h"
#include "symbind/backend/cuda/folds.cuh"
#include "symbind/backend/cuda/reduce_folds.h"
#include "symbind/backend/cuda/step.h"
#include "symbind/backend/folds.h"
#include "symbind/ops/broadcast.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {
namespace {

// Integers are summed in 64 bits and wrap when stored, before they are divided.
template <class T>
struct SumOf {
  using Part = std::conditional_t<std::is_integral_v<T>, int64_t, compute_type<T>>;
  int64_t divisor;

  __device__ Part start() const { return Part(0); }
  __device__ Part take(Part part, compute_type<T> value, int64_t) const { return join(part, static_cast<Part>(value)); }
  __device__ Part join(Part a, Part b) const { return functions::add(a, b); }
  __device__ void finish(Part part, T* out, int64_t i) const {
    if constexpr (std::is_same_v<T, bool>)
      out[i] = part != 0;
    else if constexpr (std::is_integral_v<T>)
      out[i] = static_cast<T>(divisor == 0 ? 0 : static_cast<int64_t>(static_cast<T>(part)) / divisor);
    else
      out[i] = store<T>(divisor == 1 ? part : part / static_cast<Part>(divisor));
  }
};

template <class T>
struct SumOfNumbers {
  using C = compute_type<T>;
  using Fold = folds::SumOfNumbers<C>;
  using Part = typename Fold::Part;

  __device__ Part start() const { return Fold::start(); }
  __device__ Part take(Part part, C value, int64_t) const { return Fold::take(part, value); }
  __device__ Part join(Part a, Part b) const { return Fold::join(a, b); }
  __device__ void finish(Part part, T* out, int64_t i) const { out[i] = convert_element<T>(Fold::finish(part)); }
};

template <class T, class Fold>
std::unique_ptr<Kernel> build(const NodeView& node, const FoldPlan& plan, const Fold& fold) {
  return make_step(node,
                   [plan, fold](const Args& args) {
                     queue_fold(stream_of(args), plan, args.in<T>(0), args.out<T>(), args.scratch, fold);
                   },
                   {.scratch_bytes = plan.scratch_bytes<typename Fold::Part>()});
}

std::unique_ptr<Kernel> build_sum(const NodeView& node, const std::vector<bool>& summed, bool mean) {
  const Shape& shape = node.inputs[0].shape;
  int64_t terms = 1;
  for (int axis = 0; axis < shape.rank(); ++axis)
    if (summed[static_cast<size_t>(axis)]) terms *= shape[axis];
  if (terms == 1) return build_copy(node);
  const FoldPlan plan(shape, summed);
  return visit_dtype(node.outputs[0].dtype,
                     [&]<class T>(std::type_identity<T>) { return build<T>(node, plan, SumOf<T>{mean ? terms : 1}); });
}

// Integers have no NaN.
std::unique_ptr<Kernel> build_sum_of_numbers(const NodeView& node) {
  const auto& p = node.as<Reduce<"nansum">>();
  const auto summed = reduced_axes(p.axis, p.exclude, node.inputs[0].shape, node.where());
  if (!is_floating(node.inputs[0].dtype)) return build_sum(node, summed, false);
  const FoldPlan plan(node.inputs[0].shape, summed);
  return visit_floating(node.inputs[0].dtype,
                        [&]<class T>(std::type_identity<T>) { return build<T>(node, plan, SumOfNumbers<T>{}); });
}

template <class P>
void add_sum(ImplementationTable& table, bool mean) {
  table.add<P>({"cuda", refuse_reduction, [mean](const NodeView& node) {
                  const auto& p = node.as<P>();
                  return build_sum(node, reduced_axes(p.axis, p.exclude, node.inputs[0].shape, node.where()), mean);
                }});
}

}  // namespace

std::string refuse_reduction(const NodeView& node) {
  return node.inputs[0].layout == Layout::plain ? "" : "wants plain arrays";
}

void add_reduce(ImplementationTable& table) {
  add_sum<Sum>(table, false);
  add_sum<Mean>(table, true);
  table.add<SumToLike>({"cuda", refuse_reduction, [](const NodeView& node) {
                          const Shape &data = node.inputs[0].shape, &like = node.outputs[0].shape;
                          return build_sum(node, broadcast_axes(data, like), false);
                        }});
  table.add<Reduce<"nansum">>({"cuda", refuse_reduction, build_sum_of_numbers});
  add_reduce_folds(table);
}

}  // namespace symbind::cuda_backend
