#include "symbind/ops/reduce.h"

#include <algorithm>

#include "symbind/graph/define.h"

namespace symbind {

std::vector<bool> reduced_axes(const std::optional<Tuple>& axis, bool exclude, int rank, std::string_view who) {
  if (!axis || axis->empty()) return std::vector<bool>(static_cast<size_t>(rank), true);
  std::vector<bool> reduced(static_cast<size_t>(rank), exclude);
  const Shape any = Shape::of_rank(rank);
  for (int64_t given : *axis) {
    const auto index = static_cast<size_t>(any.axis(given, who));
    require(reduced[index] == exclude, who, " each axis may be named once: axis ", print(*axis));
    reduced[index] = !exclude;
  }
  return reduced;
}

namespace {

// There are no arrays without axes: a sum over everything has the shape (1,).
template <class P>
Shape reduced_shape(const P& p, const Shape& data, std::string_view who) {
  const auto reduced = reduced_axes(p.axis, p.exclude, data.rank(), who);
  Shape shape = Shape::scalar();
  for (int axis = 0; axis < data.rank(); ++axis) {
    if (!reduced[static_cast<size_t>(axis)])
      shape.push_back(data[axis]);
    else if (p.keepdims)
      shape.push_back(1);
  }
  return shape.rank() == 0 ? Shape{1} : shape;
}

template <class P, class Base>
void add_fields(Op<P>& op) {
  op.param(&Base::axis, "axis", "the axes to reduce, counted from either end; None or (): all")
      .param(&Base::keepdims, "keepdims", "leave the reduced axes in the result with extent 1")
      .param(&Base::exclude, "exclude", "reduce all axes but those named");
}

template <class P, class G>
OpDef reduction(Op<P> op, Builder<G> grad) {
  add_fields<P, P>(op);
  return op
      .infer_shape([](const P& p, Shapes& s) {
        const auto data = s["data"];
        if (data.rank_known()) s.output().meet(reduced_shape(p, data, s.where()));
      })
      .gradient([grad](const P& p, Grad& g) { g.set("data", grad(g.out_grad(), g.input("data"), {p})); });
}

template <class P, class Base>
OpDef reduction_grad(Op<P> op) {
  add_fields<P, Base>(op);
  return op.inputs({"out_grad", "data"}).shape_only({"data"}).infer_shape([](const P& p, Shapes& s) {
    const auto data = s["data"];
    s.output().meet(data);
    if (data.rank_known()) s["out_grad"].meet(reduced_shape(p, data, s.where()));
  });
}

}  // namespace

void register_reduce(OpRegistry& registry) {
  Op<Sum> sum_op("sum");
  sum_op.aliases({"sum_axis"}).doc("Sum over axes.");
  registry.add(reduction(sum_op, sum_grad), typeid(Sum));
  Op<Mean> mean_op("mean");
  mean_op.doc("Mean over axes.");
  registry.add(reduction(mean_op, mean_grad), typeid(Mean));
  registry.add(reduction_grad<SumGrad, Sum>(Op<SumGrad>("_backward_sum")), typeid(SumGrad));
  registry.add(reduction_grad<MeanGrad, Mean>(Op<MeanGrad>("_backward_mean")), typeid(MeanGrad));
}

}  // namespace symbind
