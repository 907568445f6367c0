#include "symbind/ops/softmax.h"

#include "symbind/graph/define.h"
#include "symbind/ops/floating.h"

namespace symbind {
namespace {

template <class P>
bool has_length(const P& p) {
  return p.use_length.value_or(false);
}

template <class P>
Op<P>& softmax_fields(Op<P>& op) {
  return op.param(&P::axis, "axis", "axis along which the results add up to 1; negative ones count from the end")
      .param(&P::temperature, "temperature",
             "divisor of data before exp: a larger one makes the distribution flatter; None: 1")
      .param(&P::dtype, "dtype", "element type of the result; None: that of data")
      .param(&P::use_length, "use_length",
             "take a second input, length: the number of valid elements along the axis for each row; the others give "
             "0. Its shape is that of data without the axis")
      .check([](P& p) { require(!p.temperature || *p.temperature != 0, "temperature must not be 0"); });
}

// The lengths have the shape of data without the axis.
template <class P>
void infer_length(const P& p, Shapes& s) {
  const auto data = s["data"];
  if (!data.rank_known()) return;
  const int along = data.get().axis(p.axis, s.where());
  if (!has_length(p)) return;
  Shape rows = Shape::scalar();
  for (int axis = 0; axis < data.rank(); ++axis)
    if (axis != along) rows.push_back(data[axis]);
  s["length"].meet(rows.rank() == 0 ? Shape{1} : rows);
}

template <FixedString name, FixedString grad_name>
void add_softmax(OpRegistry& registry, std::string doc, Builder<SoftmaxLike<grad_name>> grad) {
  using P = SoftmaxLike<name>;
  Op<P> op{std::string(name.view())};
  softmax_fields(op)
      .doc(std::move(doc))
      .precision(Precision::full)
      .inputs([](const P& p) {
        return has_length(p) ? Names{"data", "length"} : Names{"data"};
      })
      .infer_shape([](const P& p, Shapes& s) {
        s["data"].meet(s.output());
        infer_length(p, s);
      })
      .infer_type([](const P& p, Types& t) {
        auto data = t["data"];
        if (p.dtype)
          t.output().meet(*p.dtype);
        else
          data.meet(t.output().get()), t.output().meet(data.get());
        require_floating(t, "data", data);
        if (has_length(p) && t["length"].known())
          require(!is_floating(t["length"]), t.where(), " length must hold whole numbers, not ", t["length"].get());
      })
      .gradient([grad](const P& p, Grad& g) {
        std::vector<Symbol> inputs{g.out_grad(), g.output(), g.input("data")};
        if (has_length(p)) inputs.push_back(g.input("length"));
        g.set("data", grad(inputs, {p.axis, p.temperature, p.dtype, p.use_length}));
      });
  registry.add(op, typeid(P));

  using G = SoftmaxLike<grad_name>;
  Op<G> backward{std::string(grad_name.view())};
  softmax_fields(backward)
      .internal()
      .inputs([](const G& p) {
        return has_length(p) ? Names{"out_grad", "output", "data", "length"} : Names{"out_grad", "output", "data"};
      })
      .shape_only({"data"})
      .infer_shape([](const G& p, Shapes& s) {
        for (const char* input : {"out_grad", "output"}) s[input].meet(s["data"]);
        s.output().meet(s["data"]);
        infer_length(p, s);
      })
      .infer_type([](const G&, Types& t) {
        t["out_grad"].meet(t["output"]);
        t.output().meet(t["data"].get());
        for (const char* input : {"data", "output"}) require_floating(t, input, t[input]);
      });
  registry.add(backward, typeid(G));
}

OpDef define_softmax_activation(Op<SoftmaxActivation> op) {
  return op.doc("Softmax along the last axis, or with mode 'channel' along axis 1; the result has the shape of data.")
      .precision(Precision::full)
      .param(&SoftmaxActivation::mode, "mode", "axis of the softmax: 'instance': the last axis; 'channel': axis 1",
             one_of(softmax_mode::all))
      .infer_shape([](const SoftmaxActivation& p, Shapes& s) {
        s["data"].meet(s.output());
        const auto data = s["data"];
        if (data.rank_known())
          require(data.rank() >= 2, s.where(), " data needs a batch axis and another: data ", data.get());
        static_cast<void>(p);
      })
      .infer_type([](const SoftmaxActivation&, Types& t) { same_floating_type(t); })
      .gradient([](const SoftmaxActivation& p, Grad& g) {
        g.set("data",
              softmax_grad({g.out_grad(), g.output(), g.input("data")}, {.axis = p.mode == "channel" ? 1 : -1}));
      });
}

}  // namespace

void register_softmax(OpRegistry& registry) {
  add_softmax<"softmax">(
      registry,
      "Softmax along an axis: exp(x / temperature) / Σ exp(x / temperature). The result has the shape of data.",
      softmax_grad);
  add_softmax<"log_softmax">(registry,
                             "Logarithm of the softmax along an axis: x / temperature - log Σ exp(x / temperature). "
                             "The result has the shape of data.",
                             log_softmax_grad);
  add_softmax<"softmin">(
      registry,
      "Softmax of -x along an axis: exp(-x / temperature) / Σ exp(-x / temperature). The result has the shape of data.",
      softmin_grad);
  add(registry, "SoftmaxActivation", define_softmax_activation);
}

}  // namespace symbind
