#include "symbind/ops/loss.h"

#include "symbind/core/axis_view.h"
#include "symbind/graph/define.h"
#include "symbind/ops/floating.h"

namespace symbind {
namespace {

// ---- SoftmaxOutput --------------------------------------------------------------------------------------------------

template <class P>
Op<P>& softmax_fields(Op<P>& op) {
  return op.param(&SoftmaxOutput::grad_scale, "grad_scale", "factor of the gradient")
      .param(&SoftmaxOutput::ignore_label, "ignore_label",
             "label that is ignored when use_ignore is set: the gradient at such positions is 0")
      .param(&SoftmaxOutput::multi_output, "multi_output",
             "classes are along axis 1 of data (n, classes, …), and label (n, …) has one label per position")
      .param(&SoftmaxOutput::use_ignore, "use_ignore", "ignore positions whose label is ignore_label")
      .param(&SoftmaxOutput::preserve_shape, "preserve_shape",
             "apply the softmax along the last axis of data instead of flattening all axes but the first")
      .param(&SoftmaxOutput::normalization, "normalization",
             "divisor of the gradient: 'null': the number of positions per sample, which is 1 without multi_output; "
             "'batch': that number times the batch size; 'valid': the number of labels that are not ignore_label",
             one_of(normalization::all))
      .param(&SoftmaxOutput::out_grad, "out_grad",
             "multiply the gradient by the gradient of the output; False: the output is the head of the network and "
             "its gradient is not read")
      .param(&SoftmaxOutput::smooth_alpha, "smooth_alpha",
             "label smoothing: the fraction of the target that is spread evenly over the other classes", between(0, 1));
}

// The shapes a label may have besides the data's own, which makes it a distribution; the first is the one inferred.
std::vector<Shape> label_shapes(const SoftmaxOutput& p, const Shape& data) {
  if (!p.multi_output) return {data.slice(0, data.rank() - 1)};
  const Shape positions = data.slice(2, data.rank());
  Shape each{data[0]}, kept{data[0], 1};
  for (int64_t dim : positions) {
    each.push_back(dim);
    kept.push_back(dim);
  }
  return {{data[0], positions.known() ? positions.size() : unknown_dim}, each, kept};
}

void infer_softmax(const SoftmaxOutput& p, Shapes& s) {
  auto data = s["data"], label = s["label"];
  data.meet(s.output());
  if (!data.rank_known()) return;
  require(data.rank() >= 2, s.where(), " data needs a batch axis and classes: data ", data.get());
  const auto fits = label_shapes(p, data);
  if (!label.known()) {
    if (!label.rank_known() || label.rank() == fits[0].rank()) label.meet(fits[0]);
    return;
  }
  for (Shape shape : fits)
    if (unify(shape, label)) return;
  if (Shape shape = data; unify(shape, label)) return;
  fail(s.where(), " label must be ", comma_separated(fits), " or, as a distribution, ", data.get(), ": label ",
       label.get());
}

// The forward pass is the softmax alone; label is read by the gradient.
OpDef define_softmax_output(Op<SoftmaxOutput> op) {
  return softmax_fields(op)
      .aliases({"Softmax"})
      .doc(
          "Softmax output with cross-entropy loss: forward returns softmax(data); backward gives data the gradient of "
          "the cross entropy, softmax(data) - one_hot(label). data is (n, classes), label (n) holds class indices.")
      .precision(Precision::full)
      .inputs({"data", "label"})
      .shape_only({"label"})
      .infer_shape([](const SoftmaxOutput& p, Shapes& s) { infer_softmax(p, s); })
      .infer_type([](const SoftmaxOutput&, Types& t) { same_floating_type(t); })
      .gradient([](const SoftmaxOutput& p, Grad& g) {
        if (p.out_grad)
          g.set("data", softmax_output_grad(g.out_grad(), g.output(), g.input("label"), {p}));
        else
          g.set("data", softmax_output_grad(g.output(), g.input("label"), {p}));
      });
}

OpDef define_softmax_output_grad(Op<SoftmaxOutputGrad> op) {
  return softmax_fields(op)
      .inputs([](const SoftmaxOutputGrad& p) {
        return p.out_grad ? Names{"out_grad", "output", "label"} : Names{"output", "label"};
      })
      .outputs({"data_grad"})
      .infer_shape([](const SoftmaxOutputGrad&, Shapes& s) { s.output().meet(s["output"]); })
      .shapes_of<SoftmaxOutput>()
      .types_of<SoftmaxOutput>();
}

// ---- Regression -----------------------------------------------------------------------------------------------------

void infer_regression(Shapes& s) {
  auto data = s["data"], label = s["label"];
  data.meet(s.output());
  if (!data.known()) return;
  // A column of predictions is compared with a plain list of labels.
  const Shape natural = data.rank() == 2 && data[1] == 1 ? Shape{data[0]} : data.get();
  if (!label.known()) {
    if (!label.rank_known() || label.rank() == natural.rank())
      label.meet(natural);
    else
      label.meet(data.get());
    return;
  }
  require(label.rank() >= 1 && data.rank() >= 1 && label[0] == data[0] && label.get().size() == data.get().size(),
          s.where(), " label must have the batch size and the number of elements of data: label ", label.get(),
          ", data ", data.get());
}

// The logistic loss has the gradient of the linear one, applied to its own output.
template <class P, class G>
Op<P> regression(std::string name, std::string doc, Builder<G> grad) {
  Op<P> op(std::move(name));
  op.doc(std::move(doc))
      .precision(Precision::full)
      .param(&P::grad_scale, "grad_scale", "factor of the gradient")
      .inputs({"data", "label"})
      .shape_only({"label"})
      .infer_shape([](const P&, Shapes& s) { infer_regression(s); })
      .infer_type([](const P&, Types& t) { same_floating_type(t); })
      .gradient([grad](const P& p, Grad& g) {
        G params;
        params.grad_scale = p.grad_scale;
        g.set("data", grad(g.output(), g.input("label"), params));
      });
  return op;
}

template <class G, class P>
OpDef define_regression_grad(Op<G> op) {
  return op.param(&G::grad_scale, "grad_scale", "factor of the gradient")
      .inputs({"output", "label"})
      .outputs({"data_grad"})
      .infer_shape([](const G&, Shapes& s) { s.output().meet(s["output"]); })
      .template shapes_of<P>()
      .template types_of<P>();
}

void register_regression(OpRegistry& registry) {
  registry.add(regression<LinearRegressionOutput>(
                   "LinearRegressionOutput",
                   "Linear regression output: forward returns data; backward gives data the gradient of the squared "
                   "loss, (data - label) · grad_scale / outputs per sample. label has the size of data.",
                   linear_regression_output_grad)
                   .view(),
               typeid(LinearRegressionOutput));
  registry.add(
      regression<LogisticRegressionOutput>(
          "LogisticRegressionOutput",
          "Logistic regression output: forward returns 1 / (1 + exp(-data)); backward gives data the gradient of the "
          "cross entropy, (output - label) · grad_scale / outputs per sample. label has the size of data.",
          linear_regression_output_grad),
      typeid(LogisticRegressionOutput));
  registry.add(regression<MAERegressionOutput>(
                   "MAERegressionOutput",
                   "Regression output with absolute loss: forward returns data; backward gives data the gradient "
                   "sign(data - label) · grad_scale / outputs per sample. label has the size of data.",
                   mae_regression_output_grad)
                   .view(),
               typeid(MAERegressionOutput));
  add_internal<LinearRegressionOutputGrad>(registry, "_backward_LinearRegressionOutput",
                                           define_regression_grad<LinearRegressionOutputGrad, LinearRegressionOutput>);
  add_internal<MAERegressionOutputGrad>(registry, "_backward_MAERegressionOutput",
                                        define_regression_grad<MAERegressionOutputGrad, MAERegressionOutput>);
}

// ---- SVMOutput and softmax_cross_entropy ----------------------------------------------------------------------------

template <class P>
Op<P>& svm_fields(Op<P>& op) {
  return op.param(&SVMOutput::margin, "margin", "margin of the hinge loss")
      .param(&SVMOutput::regularization_coefficient, "regularization_coefficient", "factor of the gradient")
      .param(&SVMOutput::use_linear, "use_linear", "use the linear hinge loss; False: its square");
}

OpDef define_svm_output(Op<SVMOutput> op) {
  return svm_fields(op)
      .doc(
          "Support vector machine output: forward returns the scores in data; backward gives data the gradient of one "
          "hinge loss per class, with target 1 for the class in label and -1 for the others. data is (n, classes), "
          "label (n).")
      .precision(Precision::full)
      .inputs({"data", "label"})
      .shape_only({"label"})
      .view()
      .infer_shape([](const SVMOutput&, Shapes& s) {
        auto data = s["data"];
        data.meet(s.output());
        if (!data.rank_known()) return;
        require(data.rank() >= 2, s.where(), " data needs a batch axis and classes: data ", data.get());
        s["label"].meet(data.get().slice(0, data.rank() - 1));
      })
      .infer_type([](const SVMOutput&, Types& t) { same_floating_type(t); })
      .gradient([](const SVMOutput& p, Grad& g) { g.set("data", svm_output_grad(g.output(), g.input("label"), {p})); });
}

OpDef define_svm_output_grad(Op<SVMOutputGrad> op) {
  return svm_fields(op)
      .inputs({"output", "label"})
      .outputs({"data_grad"})
      .infer_shape([](const SVMOutputGrad&, Shapes& s) { s.output().meet(s["output"]); })
      .shapes_of<SVMOutput>()
      .types_of<SVMOutput>();
}

OpDef define_softmax_cross_entropy(Op<SoftmaxCrossEntropy> op) {
  return op
      .doc(
          "Cross entropy of softmax(data) and class indices, summed over rows: Σ -log(softmax(data)[label]). data is "
          "(n, classes), label (n), the result (1).")
      .precision(Precision::full)
      .inputs({"data", "label"})
      .infer_shape([](const SoftmaxCrossEntropy&, Shapes& s) {
        auto data = s["data"], label = s["label"];
        data.meet(Shape::of_rank(2));
        label.meet({data[0]});
        data.meet_dim(0, label[0]);
        s.output().meet({1});
      })
      .infer_type([](const SoftmaxCrossEntropy&, Types& t) { same_floating_type(t); })
      .gradient([](const SoftmaxCrossEntropy&, Grad& g) {
        g.set("data", softmax_cross_entropy_grad(g.out_grad(), g.input("data"), g.input("label")));
      });
}

OpDef define_softmax_cross_entropy_grad(Op<SoftmaxCrossEntropyGrad> op) {
  return op.inputs({"out_grad", "data", "label"})
      .outputs({"data_grad"})
      .infer_shape([](const SoftmaxCrossEntropyGrad&, Shapes& s) { s.output().meet(s["data"]); })
      .shapes_of<SoftmaxCrossEntropy>()
      .types_of<SoftmaxCrossEntropy>();
}

// ---- MakeLoss -------------------------------------------------------------------------------------------------------

template <class P>
Op<P>& make_loss_fields(Op<P>& op) {
  return op.param(&MakeLoss::grad_scale, "grad_scale", "gradient of every element of data")
      .param(&MakeLoss::valid_thresh, "valid_thresh",
             "with normalization 'valid': elements greater than this are counted")
      .param(&MakeLoss::normalization, "normalization",
             "divisor of the gradient: 'null': 1; 'batch': the batch size; 'valid': the number of elements greater "
             "than valid_thresh",
             one_of(normalization::all));
}

OpDef define_make_loss(Op<MakeLoss> op) {
  return make_loss_fields(op)
      .doc(
          "Makes data a loss: forward returns data; in backward the gradient of every element is grad_scale, whatever "
          "gradient arrives.")
      .precision(Precision::full)
      .view()
      .infer_type([](const MakeLoss&, Types& t) { same_floating_type(t); })
      .gradient([](const MakeLoss& p, Grad& g) { g.set("data", make_loss_grad(g.input("data"), {p})); });
}

OpDef define_make_loss_grad(Op<MakeLossGrad> op) {
  return make_loss_fields(op)
      .inputs([](const MakeLossGrad& p) { return p.normalization == "valid" ? Names{"data"} : Names{"like"}; })
      .shape_only({"like"})
      .outputs({"data_grad"});
}

}  // namespace

AxisView size_of(const SoftmaxOutput& params, const Shape& data) {
  if (params.multi_output) return {data[0], data[1], data.size(2, data.rank())};
  const int split = params.preserve_shape ? data.rank() - 1 : 1;
  return {data.size(0, split), data.size(split, data.rank()), 1};
}

void register_loss(OpRegistry& registry) {
  add(registry, "SoftmaxOutput", define_softmax_output);
  add_internal(registry, "_backward_SoftmaxOutput", define_softmax_output_grad);
  register_regression(registry);
  add(registry, "SVMOutput", define_svm_output);
  add_internal(registry, "_backward_SVMOutput", define_svm_output_grad);
  add(registry, "softmax_cross_entropy", define_softmax_cross_entropy);
  add_internal(registry, "_backward_softmax_cross_entropy", define_softmax_cross_entropy_grad);
  add(registry, "MakeLoss", define_make_loss);
  add_internal(registry, "_backward_MakeLoss", define_make_loss_grad);
}

}  // namespace symbind
