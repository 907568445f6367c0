#include "symbind/ops/sequence.h"

#include "symbind/graph/define.h"
#include "symbind/ops/floating.h"

namespace symbind {
namespace {

template <class P>
Names names_of(const P& p, Names names) {
  if (p.use_sequence_length) names.push_back("sequence_length");
  return names;
}

template <class P, class Base>
Op<P>& lengths_field(Op<P>& op, bool Base::*field) {
  return op.full_precision_inputs({"sequence_length"})
      .param(field, "use_sequence_length",
             "take a second input, sequence_length (batch): the number of valid steps of each sequence; False: "
             "all steps are valid");
}

// Lengths have their own type, which defaults to that of data, but half precision does not hold them.
void infer_types(Types& t, const char* data_name, bool has_lengths) {
  auto data = t[data_name];
  data.meet(t.output().get());
  t.output().meet(data.get());
  if (has_lengths) t["sequence_length"].default_to(at_least_float32(data));
}

// One length for each sequence of data.
template <class P>
void infer_lengths(const P& p, Shapes& s) {
  const auto data = s["data"];
  if (!data.rank_known()) return;
  require(data.rank() >= 2, s.where(), " data must have an axis of time and one of the batch: data ", data.get());
  if (p.use_sequence_length) s["sequence_length"].meet(Shape{data[p.axis == 0 ? 1 : 0]});
}

template <class P>
void infer_same_shape(const P& p, Shapes& s) {
  auto data = s["data"];
  data.meet(s.output().get());
  s.output().meet(data.get());
  infer_lengths(p, s);
}

// The operator on the gradient and on the lengths, where there are any.
template <class P>
Symbol again(const Builder<P>& build, Grad& g, const P& p) {
  return p.use_sequence_length ? build(g.out_grad(), g.input("sequence_length"), p) : build(g.out_grad(), p);
}

OpDef define(Op<SequenceMask> op) {
  return lengths_field(op, &SequenceMask::use_sequence_length)
      .doc(
          "Replaces the steps after the end of each sequence by value. data is (steps, batch, …), or (batch, steps, …) "
          "with axis 1; the output has its shape.")
      .param(&SequenceMask::value, "value", "value of the masked steps")
      .param(&SequenceMask::axis, "axis", "axis of the steps: 0 or 1; the other one is the batch", between(0, 1))
      .inputs([](const SequenceMask& p) { return names_of(p, {"data"}); })
      .infer_shape(infer_same_shape<SequenceMask>)
      .infer_type([](const SequenceMask& p, Types& t) { infer_types(t, "data", p.use_sequence_length); })
      .gradient([](const SequenceMask& p, Grad& g) {
        SequenceMask zeros = p;
        zeros.value = 0;
        g.set("data", again(sequence_mask, g, zeros));
      });
}

OpDef define(Op<SequenceReverse> op) {
  return lengths_field(op, &SequenceReverse::use_sequence_length)
      .doc(
          "Reverses the valid steps of each sequence; the steps after its end stay in place. data and the output are "
          "(steps, batch, …).")
      .param(&SequenceReverse::axis, "axis", "axis of the steps: only 0 is possible", between(0, 0))
      .inputs([](const SequenceReverse& p) { return names_of(p, {"data"}); })
      .infer_shape(infer_same_shape<SequenceReverse>)
      .infer_type([](const SequenceReverse& p, Types& t) { infer_types(t, "data", p.use_sequence_length); })
      .gradient([](const SequenceReverse& p, Grad& g) { g.set("data", again(sequence_reverse, g, p)); });
}

template <class P>
Op<P>& last_fields(Op<P>& op) {
  return lengths_field(op, &SequenceLast::use_sequence_length)
      .param(&SequenceLast::axis, "axis", "axis of the steps: 0 or 1; the other one is the batch", between(0, 1));
}

OpDef define(Op<SequenceLast> op) {
  return last_fields(op)
      .doc(
          "Selects the last valid step of each sequence. data is (steps, batch, …), or (batch, steps, …) with axis 1; "
          "the output is (batch, …).")
      .inputs([](const SequenceLast& p) { return names_of(p, {"data"}); })
      .infer_shape([](const SequenceLast& p, Shapes& s) {
        infer_lengths(p, s);
        const auto data = s["data"];
        if (!data.rank_known()) return;
        Shape shape{data[p.axis == 0 ? 1 : 0]};
        for (int i = 2; i < data.rank(); ++i) shape.push_back(data[i]);
        s.output().meet(shape);
      })
      .infer_type([](const SequenceLast& p, Types& t) { infer_types(t, "data", p.use_sequence_length); })
      .gradient([](const SequenceLast& p, Grad& g) {
        std::vector<Symbol> inputs{g.out_grad(), g.input("data")};
        if (p.use_sequence_length) inputs.push_back(g.input("sequence_length"));
        g.set("data", sequence_last_grad(Inputs(inputs), {p}));
      });
}

OpDef define(Op<SequenceLastGrad> op) {
  return last_fields(op)
      .inputs([](const SequenceLastGrad& p) {
        return names_of(p, {"out_grad", "data"});
      })
      .shape_only({"data"})
      .infer_shape([](const SequenceLastGrad&, Shapes& s) { s.output().meet(s["data"].get()); })
      .shapes_of<SequenceLast>()
      .infer_type([](const SequenceLastGrad& p, Types& t) { infer_types(t, "out_grad", p.use_sequence_length); });
}

}  // namespace

void register_sequence(OpRegistry& registry) {
  add<SequenceMask>(registry, "SequenceMask", define);
  add<SequenceLast>(registry, "SequenceLast", define);
  add_internal<SequenceLastGrad>(registry, "_backward_SequenceLast", define);
  add<SequenceReverse>(registry, "SequenceReverse", define);
}

}  // namespace symbind
