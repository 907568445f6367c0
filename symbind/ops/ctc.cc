#include "symbind/ops/ctc.h"

#include "symbind/graph/define.h"
#include "symbind/ops/broadcast.h"
#include "symbind/ops/floating.h"
#include "symbind/ops/reshape.h"
#include "symbind/ops/softmax.h"

namespace symbind {
namespace {

Names inputs_of(const CTCLoss& p) {
  Names names{"data", "label"};
  if (p.use_data_lengths) names.push_back("data_lengths");
  if (p.use_label_lengths) names.push_back("label_lengths");
  return names;
}

void infer_shapes(const CTCLoss&, Shapes& s) {
  auto data = s["data"], label = s["label"];
  data.meet(s.output(1));
  data.meet(Shape::of_rank(3));
  label.meet(Shape::of_rank(2));
  // The batch size of any array applies to all.
  for (int64_t batch : {data[1], label[0], s.output(0).rank_known() ? s.output(0)[0] : unknown_dim}) {
    data.meet_dim(1, batch);
    label.meet_dim(0, batch);
    s.output(0).meet({batch});
    for (size_t lengths = 2; lengths < s.inputs(); ++lengths) s.input(lengths).meet(Shape{batch});
  }
  require(data[2] != 0, s.where(), " data needs a class for the blank: data ", data.get(),
          " is (steps, batch, classes)");
  s.output(1).meet(data.get());
}

OpDef define(Op<CTCLoss> op) {
  return op.aliases({"ctc_loss", "_contrib_CTCLoss", "_contrib_ctc_loss"})
      .doc(
          "Connectionist temporal classification: the negative logarithm of the probability of each sequence of "
          "labels, summed over all its alignments with the steps. data is (steps, batch, classes), scores before the "
          "softmax; label is (batch, longest), padded at the end; the output is (batch). A sequence that has no "
          "alignment, having fewer steps than labels and blanks between equal ones, has loss and gradient 0.")
      .precision(Precision::full)
      .param(&CTCLoss::use_data_lengths, "use_data_lengths",
             "take an input data_lengths (batch): the number of valid steps of each sequence; False: all steps are "
             "valid")
      .param(&CTCLoss::use_label_lengths, "use_label_lengths",
             "take an input label_lengths (batch): the number of labels of each sequence; False: labels end at their "
             "first padding value")
      .param(
          &CTCLoss::blank_label, "blank_label",
          "'first': class 0 is the blank, labels are 1 to classes - 1 and padding is 0; 'last': class classes - 1 is "
          "the blank, labels are 0 to classes - 2 and padding is -1",
          one_of({"first", "last"}))
      .inputs(inputs_of)
      .outputs({"output0", "output1"})  // the second is the gradient of the losses with respect to data
      .visible_outputs([](const CTCLoss&) { return 1; })
      .infer_shape(infer_shapes)
      .infer_type([](const CTCLoss&, Types& t) {
        auto data = t["data"];
        data.meet(t.output(0));
        data.meet(t.output(1));
        if (!data.known()) return;
        require_floating(t, "data", data);
        t.output(0).meet(data);
        t.output(1).meet(data);
        // Half precision does not represent every class index.
        const DType whole = data == DType::float64 ? DType::float64 : DType::float32;
        for (size_t i = 1; i < t.inputs(); ++i)
          if (!t.input(i).known()) t.input(i).meet(whole);
      })
      .gradient([](const CTCLoss&, Grad& g) {
        if (g.wants("data")) g.set("data", broadcast_mul(g.output(1), reshape(g.out_grad(), {.shape = {1, -1, 1}})));
      });
}

// The gradient of the sum of the losses, whatever gradient arrives. CTCLoss computes it as its second output.
Symbol gradient_of_losses(const WarpCTC& p, const Symbol& data, const Symbol& label) {
  const Symbol steps = reshape(data, {.shape = {-4, p.input_length, -1, 0}});
  const Symbol losses = ctc_loss(steps, reshape(label, {.shape = {-1, p.label_length}}));
  return reshape_like(Symbol({{losses.entries()[0].node, 1}}), data);
}

constexpr double most_steps = 2147483647;  // so that no product of extents overflows

OpDef define(Op<WarpCTC> op) {
  return op
      .doc(
          "A loss head: the softmax of data (input_length · batch, classes), in which the first steps of all sequences "
          "come first. Backward computes the gradient of CTCLoss for label (batch · label_length), whose sequences end "
          "at their first 0, the blank. New networks use CTCLoss.")
      .precision(Precision::full)
      .param(&WarpCTC::label_length, "label_length", "number of labels of the longest sequence", between(1, most_steps))
      .param(&WarpCTC::input_length, "input_length", "number of steps", between(1, most_steps))
      .inputs({"data", "label"})
      .shape_only({"label"})
      .infer_shape([](const WarpCTC& p, Shapes& s) {
        auto data = s["data"];
        data.meet(s.output());
        data.meet(Shape::of_rank(2));
        s.output().meet(data);
        if (data[0] == unknown_dim) return;
        require(data[0] % p.input_length == 0, s.where(),
                " data must have a row for each step of each sequence: ", "input_length ", p.input_length.get(),
                ", data ", data.get());
        s["label"].meet({data[0] / p.input_length * p.label_length});
      })
      .infer_type([](const WarpCTC&, Types& t) {
        auto data = t["data"];
        data.meet(t.output());
        t.output().meet(data);
        if (!data.known()) return;
        require_floating(t, "data", data);
        t["label"].default_to(at_least_float32(data));
      })
      .gradient([](const WarpCTC& p, Grad& g) {
        if (g.wants("data")) g.set("data", gradient_of_losses(p, g.input("data"), g.input("label")));
      });
}

}  // namespace

Symbol network_of(const WarpCTC&, const ComposedInputs& in) { return softmax(in[0]); }

void register_ctc(OpRegistry& registry) {
  add<CTCLoss>(registry, "CTCLoss", define);
  add<WarpCTC>(registry, "WarpCTC", define);
}

}  // namespace symbind
