#include "symbind/ops/concat.h"

#include "symbind/graph/define.h"
#include "symbind/ops/extents.h"

namespace symbind {
namespace {

// Infers the concatenated shape from the inputs and back: all agree except along the axis, where one unknown extent
// follows from the rest.
void infer_joined(Shapes& s, int64_t dim, size_t first, Inferred<Shape> whole) {
  int rank = whole.rank();
  for (size_t i = first; i < s.inputs() && rank < 0; ++i) rank = s.input(i).rank();
  if (rank < 0) return;
  const int along = Shape::of_rank(rank).axis(dim, s.where());
  Shape common = whole.rank_known() ? whole.get().with(along, unknown_dim) : Shape::of_rank(rank);
  for (size_t i = first; i < s.inputs(); ++i) {
    s.input(i).meet(common);
    common = s.input(i).get().with(along, unknown_dim);
  }
  int64_t sum = 0;
  int unknown = -1, unknowns = 0;
  for (size_t i = first; i < s.inputs(); ++i) {
    s.input(i).meet(common);
    const int64_t extent = s.input(i)[along];
    if (extent == unknown_dim)
      unknown = static_cast<int>(i), ++unknowns;
    else
      sum = extent_sum(sum, extent, s.where());
  }
  whole.meet(unknowns == 0 ? common.with(along, sum) : common);
  if (whole[along] == unknown_dim) return;
  require(sum <= whole[along], s.where(), " the parts have ", sum, " elements along axis ", along, ", the whole has ",
          whole[along]);
  if (unknowns == 1) s.input(static_cast<size_t>(unknown)).meet_dim(along, whole[along] - sum);
}

// The offsets, in elements, of arrays concatenated along an axis; empty unless each is one contiguous piece of the
// result, that is, all axes before it have extent 1.
std::vector<int64_t> neighbours_along(int64_t dim, const Shape& whole, std::span<const Shape> parts) {
  const int axis = whole.axis(dim, "neighbours along");
  std::vector<int64_t> begins;
  if (whole.size(0, axis) != 1) return begins;
  for (int64_t begin = 0; const Shape& part : parts) {
    begins.push_back(begin);
    begin += part.size();
  }
  return begins;
}

OpDef define(Op<Concat> op) {
  return op
      .doc(
          "Concatenates the inputs along an axis. The inputs agree in all other axes; the extents along this axis are "
          "added.")
      .precision(Precision::widest)
      .memory_bound()
      .aliases({"concat", "_rnn_param_concat"})
      .param(&Concat::num_args, "num_args", "number of input arrays; counted from the inputs when it is left out",
             at_least(1))
      .param(&Concat::dim, "dim", "axis to concatenate along; negative ones count from the end")
      .variadic(&Concat::num_args, "num_args")
      .inputs(&Concat::num_args, numbered("arg"))
      .infer_shape([](const Concat& p, Shapes& s) { infer_joined(s, p.dim, 0, s.output()); })
      .pieces_of_output(
          [](const Concat& p, auto inputs, auto outputs) { return neighbours_along(p.dim, outputs[0], inputs); })
      .gradient([](const Concat& p, Grad& g) {
        std::vector<Symbol> inputs{g.out_grad()};
        for (size_t i = 0; i < g.inputs(); ++i) inputs.push_back(g.input(i));
        const Symbol parts = concat_grad(inputs, {p});
        for (size_t i = 0; i < g.inputs(); ++i) g.set(i, parts[i]);
      });
}

OpDef define(Op<ConcatGrad> op) {
  return op
      .param(&Concat::num_args, "num_args", "number of equal parts; it divides the extent of the axis", at_least(1))
      .param(&Concat::dim, "dim", "axis that was concatenated along")
      .inputs([](const ConcatGrad& p) { return count_of(p.num_args) + 1; },
              [](const ConcatGrad&, size_t index) { return index == 0 ? "out_grad" : "like"; })
      .shape_only({"like"})
      .outputs(&Concat::num_args, numbered("grad"))
      .infer_shape([](const ConcatGrad& p, Shapes& s) {
        infer_joined(s, p.dim, 1, s.input(0));
        for (size_t i = 0; i < s.outputs(); ++i) s.output(i).meet(s.input(i + 1));
      })
      .pieces_of_input(
          [](const ConcatGrad& p, auto inputs, auto outputs) { return neighbours_along(p.dim, inputs[0], outputs); });
}

// ---- stack ----------------------------------------------------------------------------------------------------------

template <class P>
Op<P>& stack_fields(Op<P>& op) {
  return op.param(&Stack::axis, "axis", "index of the new axis in the result; negative ones count from the end")
      .param(&Stack::num_args, "num_args", "number of input arrays; counted from the inputs when it is left out",
             at_least(1));
}

// The shape of a part with one more axis.
Shape with_axis(const Shape& part, int64_t given, int64_t extent, const std::string& where) {
  require(part.rank() < Shape::max_rank, where, " the inputs have too many axes: ", part);
  const int axis = Shape::of_rank(part.rank() + 1).axis(given, where);
  Shape whole = part.slice(0, axis);
  whole.push_back(extent);
  for (int i = axis; i < part.rank(); ++i) whole.push_back(part[i]);
  return whole;
}
Shape without_axis(const Shape& whole, int axis) {
  Shape part = whole.slice(0, axis);
  for (int i = axis + 1; i < whole.rank(); ++i) part.push_back(whole[i]);
  return part;
}

OpDef define(Op<Stack> op) {
  return stack_fields(op)
      .doc("Stacks the inputs, all of one shape, along a new axis whose extent is the number of inputs.")
      .precision(Precision::widest)
      .memory_bound()
      .variadic(&Stack::num_args, "num_args")
      .inputs(&Stack::num_args, numbered("arg"))
      .infer_shape([](const Stack& p, Shapes& s) {
        Shape part;
        if (const Shape& whole = s.output(); whole.rank_known())
          part = without_axis(whole, whole.axis(p.axis, s.where()));
        for (int round = 0; round < 2; ++round)
          for (size_t i = 0; i < s.inputs(); ++i) {
            s.input(i).meet(part);
            part = s.input(i);
          }
        if (part.rank_known()) s.output().meet(with_axis(part, p.axis, p.num_args, s.where()));
      })
      .pieces_of_output(
          [](const Stack& p, auto inputs, auto outputs) { return neighbours_along(p.axis, outputs[0], inputs); })
      .gradient([](const Stack& p, Grad& g) {
        const Symbol parts = stack_grad(g.out_grad(), {p});
        for (size_t i = 0; i < g.inputs(); ++i) g.set(i, parts[i]);
      });
}

OpDef define(Op<StackGrad> op) {
  return stack_fields(op)
      .inputs({"out_grad"})
      .outputs(&Stack::num_args, numbered("grad"))
      .infer_shape([](const StackGrad& p, Shapes& s) {
        const Shape& whole = s.input(0);
        if (!whole.rank_known()) return;
        const int axis = whole.axis(p.axis, s.where());
        s.input(0).meet_dim(axis, p.num_args);
        const Shape part = without_axis(whole, axis);
        for (size_t i = 0; i < s.outputs(); ++i) s.output(i).meet(part);
      })
      .pieces_of_input(
          [](const StackGrad& p, auto inputs, auto outputs) { return neighbours_along(p.axis, inputs[0], outputs); });
}

// ---- SliceChannel ---------------------------------------------------------------------------------------------------

template <class P>
Op<P>& split_fields(Op<P>& op) {
  return op
      .param(&SliceChannel::num_outputs, "num_outputs", "number of equal parts; it divides the extent of the axis",
             at_least(1))
      .param(&SliceChannel::axis, "axis", "axis to slice; negative ones count from the end")
      .param(&SliceChannel::squeeze_axis, "squeeze_axis",
             "remove the axis from the outputs; its extent must be num_outputs");
}

std::string part_name(const SliceChannel& p, size_t index) {
  return p.num_outputs == 1 ? "output" : "output" + std::to_string(index);
}

// The shape of a part from that of the whole.
Shape part_of(const SliceChannel& p, const Shape& whole, const std::string& where) {
  const int axis = whole.axis(p.axis, where);
  const int64_t extent = whole[axis];
  if (extent == unknown_dim && !p.squeeze_axis) return whole;
  require(extent == unknown_dim || extent % p.num_outputs == 0, where, " num_outputs must divide the extent of axis ",
          axis, ": num_outputs ", p.num_outputs, ", data ", whole);
  if (!p.squeeze_axis) return whole.with(axis, extent / p.num_outputs);
  require(extent == unknown_dim || extent == p.num_outputs, where, " squeeze_axis needs parts of extent 1 along axis ",
          axis, ": num_outputs ", p.num_outputs, ", data ", whole);
  const Shape part = without_axis(whole, axis);
  return part.rank() == 0 ? Shape{1} : part;
}

OpDef define(Op<SliceChannel> op) {
  return split_fields(op)
      .doc("Splits an array along an axis into num_outputs equal parts, one output each.")
      .memory_bound()
      .aliases({"split"})
      .outputs(&SliceChannel::num_outputs, part_name)
      .infer_shape([](const SliceChannel& p, Shapes& s) {
        auto data = s["data"];
        if (!data.rank_known()) return;
        Shape part = part_of(p, data, s.where());
        for (int round = 0; round < 2; ++round)
          for (size_t i = 0; i < s.outputs(); ++i) {
            s.output(i).meet(part);
            part = s.output(i);
          }
        if (p.squeeze_axis) return;
        const int axis = data.get().axis(p.axis, s.where());
        data.meet(part.with(axis, part[axis] == unknown_dim ? unknown_dim : part[axis] * p.num_outputs));
      })
      .pieces_of_input(
          [](const SliceChannel& p, auto inputs, auto outputs) { return neighbours_along(p.axis, inputs[0], outputs); })
      .gradient([](const SliceChannel& p, Grad& g) {
        std::vector<Symbol> grads;
        for (int64_t i = 0; i < p.num_outputs; ++i) grads.push_back(g.out_grad(static_cast<size_t>(i)));
        grads.push_back(g.input("data"));
        g.set("data", slice_channel_grad(grads, {p}));
      });
}

OpDef define(Op<SliceChannelGrad> op) {
  return split_fields(op)
      .inputs([](const SliceChannelGrad& p) { return count_of(p.num_outputs) + 1; },
              [](const SliceChannelGrad& p, size_t index) {
                return index == count_of(p.num_outputs) ? "like" : "out_grad" + std::to_string(index);
              })
      .shape_only({"like"})
      .infer_shape([](const SliceChannelGrad& p, Shapes& s) {
        s.output().meet(s.input(static_cast<size_t>(p.num_outputs)).get());
      })
      .shapes_of<SliceChannel>()
      .pieces_of_output([](const SliceChannelGrad& p, auto inputs, auto outputs) {
        return neighbours_along(p.axis, outputs[0], inputs.first(static_cast<size_t>(p.num_outputs)));
      });
}

}  // namespace

void register_concat(OpRegistry& registry) {
  add<Concat>(registry, "Concat", define);
  add_internal<ConcatGrad>(registry, "_backward_Concat", define);
  add<Stack>(registry, "stack", define);
  add_internal<StackGrad>(registry, "_backward_stack", define);
  add<SliceChannel>(registry, "SliceChannel", define);
  add_internal<SliceChannelGrad>(registry, "_backward_SliceChannel", define);
}

}  // namespace symbind
