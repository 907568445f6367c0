// Mean and variance over axes, in one pass over the data.
#include "symbind/ops/moments.h"

#include "symbind/backend/cuda/device.h"
#include "symbind/backend/cuda/folds.cuh"
#include "symbind/backend/cuda/step.h"
#include "symbind/ops/reduce.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {
namespace {

// Σ(x - pivot) and Σ(x - pivot)² of some elements. The pivot is the first of them, or their mean: close enough to the
// mean to avoid cancellation in the variance.
struct MomentsPart {
  double count, pivot, sum, squares;
};

template <class T>
struct MomentsFold {
  using Part = MomentsPart;
  T* variances;

  __device__ Part start() const { return {0, 0, 0, 0}; }
  __device__ Part take(const Part& part, compute_type<T> value, int64_t) const {
    const double pivot = part.count == 0 ? static_cast<double>(value) : part.pivot;
    const double away = static_cast<double>(value) - pivot;
    return {part.count + 1, pivot, part.sum + away, part.squares + away * away};
  }
  // Moves both to the common mean.
  __device__ Part join(const Part& a, const Part& b) const {
    if (a.count == 0 || b.count == 0) return a.count == 0 ? b : a;
    const double count = a.count + b.count, distance = mean(b) - mean(a);
    return {count, mean(a) + distance * (b.count / count), 0,
            around_mean(a) + around_mean(b) + distance * distance * (a.count * (b.count / count))};
  }
  __device__ void finish(const Part& part, T* means, int64_t i) const {
    if (means) means[i] = convert_element<T>(mean(part));
    if (variances) variances[i] = convert_element<T>(around_mean(part) / part.count);
  }

 private:
  __device__ static double mean(const Part& part) { return part.pivot + part.sum / part.count; }
  __device__ static double around_mean(const Part& part) {
    const double squares = part.squares - part.sum * (part.sum / part.count);
    return squares < 0 ? 0 : squares;  // negative only by rounding; NaN is preserved
  }
};

std::string refuse(const NodeView& node) {
  if (node.inputs[0].dtype != node.outputs[0].dtype) return "the result has another type";
  return node.inputs[0].layout == Layout::plain ? "" : "wants plain arrays";
}

std::unique_ptr<Kernel> build(const NodeView& node) {
  const Shape& shape = node.inputs[0].shape;
  const FoldPlan plan(shape, reduced_axes(node.as<Moments>().axes, false, shape, node.where()));
  return visit_floating(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    return make_step(node,
                     [plan](const Args& args) {
                       queue_fold(stream_of(args), plan, args.in<T>(0), args.out<T>(), args.scratch,
                                  MomentsFold<T>{args.out<T>(1)});
                     },
                     {.scratch_bytes = plan.scratch_bytes<MomentsPart>()});
  });
}

}  // namespace

void add_moments(ImplementationTable& table) { table.add<Moments>({"cuda", refuse, build}); }

}  // namespace symbind::cuda_backend
