#include "symbind/ops/moments.h"

#include "symbind/graph/define.h"
#include "symbind/ops/elementwise.h"
#include "symbind/ops/floating.h"
#include "symbind/ops/reduce.h"
#include "symbind/ops/scalar.h"

namespace symbind {
namespace {

OpDef define(Op<Moments> op) {
  return op
      .doc(
          "Mean and variance over the given axes: two outputs of one shape. The variance divides by the number of "
          "elements.")
      .precision(Precision::full)
      .param(&Moments::axes, "axes", "axis or axes to reduce, at least one; negative ones count from the end")
      .param(&Moments::keepdims, "keepdims", "keep the reduced axes in the results, with extent 1")
      .check([](Moments& p) { require(p.axes && !p.axes->empty(), "axes must name an axis"); })
      .outputs({"output0", "output1"})
      .infer_shape([](const Moments& p, Shapes& s) {
        const Shape& data = s["data"];
        if (!data.rank_known()) return;
        const auto reduced = reduced_axes(p.axes, false, data, s.where());
        Shape shape = Shape::scalar();
        for (int axis = 0; axis < data.rank(); ++axis) {
          const bool stays = !reduced[static_cast<size_t>(axis)];
          if (stays || p.keepdims) shape.push_back(stays ? data[axis] : 1);
        }
        if (shape.rank() == 0) shape.push_back(1);
        s.output(0).meet(shape);
        s.output(1).meet(shape);
      })
      .infer_type([](const Moments&, Types& t) { same_floating_type(t); })
      // Of the mean: dy / n; of the variance: dy · 2 · (x - mean) / n.
      .gradient([](const Moments& p, Grad& g) {
        const Symbol x = g.input("data");
        const MeanGrad over{{.axis = p.axes, .keepdims = p.keepdims}};
        std::vector<Symbol> parts;
        if (g.has_out_grad(0)) parts.push_back(mean_grad(g.out_grad(0), x, over));
        if (g.has_out_grad(1)) {
          const SumGrad spread{{.axis = p.axes, .keepdims = p.keepdims}};
          const Symbol away = elemwise_sub(x, sum_grad(g.output(0), x, spread));
          parts.push_back(elemwise_mul(mean_grad(g.out_grad(1), x, over), mul_scalar(away, {.scalar = 2})));
        }
        if (!parts.empty()) g.set("data", parts.size() == 2 ? elemwise_add(parts[0], parts[1]) : parts[0]);
      });
}

}  // namespace

void register_moments(OpRegistry& registry) { add<Moments>(registry, "moments", define); }

}  // namespace symbind
