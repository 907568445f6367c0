#include "symbind/ops/reduce.h"

#include <algorithm>

#include "symbind/graph/define.h"
#include "symbind/ops/cast.h"
#include "symbind/ops/elementwise.h"
#include "symbind/ops/gather.h"
#include "symbind/ops/math.h"

namespace symbind {

std::vector<bool> reduced_axes(const std::optional<Tuple>& axis, bool exclude, const Shape& data,
                               std::string_view who) {
  const auto rank = static_cast<size_t>(data.rank());
  if (!axis || axis->empty()) return std::vector<bool>(rank, true);
  std::vector<bool> reduced(rank, exclude);
  for (int64_t given : *axis) {
    const auto index = static_cast<size_t>(data.axis(given, who));
    require(reduced[index] == exclude, who, " each axis may be named once: axis ", print(*axis));
    reduced[index] = !exclude;
  }
  return reduced;
}

namespace {

// There are no arrays without axes: a sum over everything has the shape (1,).
template <class P>
Shape reduced_shape(const P& p, const Shape& data, std::string_view who) {
  const auto reduced = reduced_axes(p.axis, p.exclude, data, who);
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
  op.param(&Base::axis, "axis", "axis or axes to reduce; negative ones count from the end; None or (): all axes")
      .param(&Base::keepdims, "keepdims", "keep the reduced axes in the result, with extent 1")
      .param(&Base::exclude, "exclude", "reduce all axes except those in axis");
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
  return op.inputs({"out_grad", "data"})
      .shape_only({"data"})
      .infer_shape([](const P& p, Shapes& s) {
        const auto data = s["data"];
        s.output().meet(data);
        if (data.rank_known()) s["out_grad"].meet(reduced_shape(p, data, s.where()));
      })
      .infer_type([](const P&, Types& t) {
        t["out_grad"].meet(t.output().get());
        t.output().meet(t["out_grad"].get());
      });
}

// ---- Extrema and products -------------------------------------------------------------------------------------------

// An array in the shape of the result, broadcast over the reduced axes.
template <class P>
Symbol spread(const P& p, Grad& g, const Symbol& result) {
  SumGrad params;
  params.axis = p.axis;
  params.keepdims = p.keepdims;
  if constexpr (requires { p.exclude; }) params.exclude = p.exclude;
  return sum_grad(result, g.input("data"), params);
}

template <FixedString name, class Gradient>
void add_reduction(OpRegistry& registry, std::string doc, Names aliases, Gradient gradient,
                   Precision precision = Precision::full) {
  using P = Reduce<name>;
  Op<P> op{std::string(name.view())};
  add_fields<P, P>(op);
  op.doc(std::move(doc))
      .aliases(std::move(aliases))
      .precision(precision)
      .infer_shape([](const P& p, Shapes& s) {
        const auto data = s["data"];
        if (data.rank_known()) s.output().meet(reduced_shape(p, data, s.where()));
      })
      .gradient([gradient](const P& p, Grad& g) { g.set("data", gradient(p, g)); });
  registry.add(op, typeid(P));
}

// 1 where data is not NaN, 0 where it is.
Symbol is_number(Grad& g) { return elemwise_equal(g.input("data"), g.input("data")); }

void add_reductions(OpRegistry& registry) {
  // Every element equal to the extremum gets the whole gradient.
  const auto of_extreme = [](const auto& p, Grad& g) {
    return elemwise_mul(spread(p, g, g.out_grad()), elemwise_equal(g.input("data"), spread(p, g, g.output())));
  };
  const auto of_product = [](const auto& p, Grad& g) {
    return elemwise_div(spread(p, g, elemwise_mul(g.out_grad(), g.output())), g.input("data"));
  };
  add_reduction<"max">(registry, "Maximum over the given axes.", {"max_axis"}, of_extreme, Precision::as_given);
  add_reduction<"min">(registry, "Minimum over the given axes.", {"min_axis"}, of_extreme, Precision::as_given);
  add_reduction<"prod">(registry, "Product over the given axes.", {}, of_product);
  add_reduction<"nansum">(registry, "Sum over the given axes, with NaN treated as 0.", {}, [](const auto& p, Grad& g) {
    return elemwise_mul(spread(p, g, g.out_grad()), is_number(g));
  });
  add_reduction<"nanprod">(registry, "Product over the given axes, with NaN treated as 1.", {},
                           [of_product](const auto& p, Grad& g) {
                             const Symbol gradient = of_product(p, g);
                             return where(is_number(g), gradient, zeros_like(gradient));
                           });
}

OpDef define_norm(Op<Norm> op) {
  return op.doc("Norm over the given axes: Σ|x| with ord 1, √Σx² with ord 2.")
      .precision(Precision::full)
      .param(&Norm::ord, "ord", "order of the norm: 1 (sum of absolute values) or 2 (Euclidean)", between(1, 2))
      .param(&Norm::axis, "axis", "axis or axes to reduce; negative ones count from the end; None or (): all axes")
      .param(&Norm::out_dtype, "out_dtype", "element type of the result; None: that of data")
      .param(&Norm::keepdims, "keepdims", "keep the reduced axes in the result, with extent 1")
      .infer_shape([](const Norm& p, Shapes& s) {
        const auto data = s["data"];
        const Sum over{p.axis, p.keepdims, false};
        if (data.rank_known()) s.output().meet(reduced_shape(over, data, s.where()));
      })
      .infer_type([](const Norm& p, Types& t) {
        if (p.out_dtype)
          t.output().meet(*p.out_dtype);
        else
          same_type(t);
      })
      .gradient([](const Norm& p, Grad& g) {
        const Symbol x = g.input("data");
        const Symbol dy = cast_like(spread(p, g, g.out_grad()), x);
        g.set("data", p.ord == 1 ? elemwise_mul(dy, sign(x))
                                 : elemwise_mul(dy, elemwise_div(x, cast_like(spread(p, g, g.output()), x))));
      });
}

// ---- Indices of extremes --------------------------------------------------------------------------------------------

template <FixedString name>
void add_arg_reduce(OpRegistry& registry, std::string doc) {
  using P = ArgReduce<name>;
  Op<P> op{std::string(name.view())};
  op.doc(std::move(doc))
      .precision(Precision::full)  // indices from 2,048 on are not exact in 16 bits
      .param(&P::axis, "axis", "axis to search along; negative ones count from the end; None: the flattened array")
      .param(&P::keepdims, "keepdims", "keep the axis in the result, with extent 1")
      .infer_shape([](const P& p, Shapes& s) {
        const auto data = s["data"];
        if (!data.rank_known()) return;
        const Sum over{p.axis ? std::optional<Tuple>(Tuple{*p.axis}) : std::nullopt, p.keepdims, false};
        s.output().meet(reduced_shape(over, data, s.where()));
      });
  registry.add(op, typeid(P));
}

OpDef define_argmax_channel(Op<ArgmaxChannel> op) {
  return op.doc("Index of the maximum along axis 1, in the type of data; the result has the other axes of data.")
      .precision(Precision::full)
      .infer_shape([](const ArgmaxChannel&, Shapes& s) {
        const auto data = s["data"];
        if (!data.rank_known()) return;
        require(data.rank() >= 2, s.where(), " data needs an axis 1: data ", data.get());
        s.output().meet(reduced_shape(Sum{Tuple{1}}, data, s.where()));
      });
}

}  // namespace

void register_reduce(OpRegistry& registry) {
  Op<Sum> sum_op("sum");
  sum_op.aliases({"sum_axis"}).doc("Sum over the given axes.").precision(Precision::full);
  registry.add(reduction(sum_op, sum_grad), typeid(Sum));
  Op<Mean> mean_op("mean");
  mean_op.doc("Arithmetic mean over the given axes.").precision(Precision::full);
  registry.add(reduction(mean_op, mean_grad), typeid(Mean));
  add_reductions(registry);
  add(registry, "norm", define_norm);
  add_arg_reduce<"argmax">(
      registry, "Index of the maximum along an axis, in the type of data; of equal elements the first counts.");
  add_arg_reduce<"argmin">(
      registry, "Index of the minimum along an axis, in the type of data; of equal elements the first counts.");
  add(registry, "argmax_channel", define_argmax_channel);
  add_internal(registry, "_backward_sum", reduction_grad<SumGrad, Sum>);
  add_internal(registry, "_backward_mean", reduction_grad<MeanGrad, Mean>);
}

}  // namespace symbind
