#include "symbind/ops/activation.h"

#include "symbind/graph/define.h"
#include "symbind/ops/floating.h"

namespace symbind {
namespace {

template <class P>
Op<P>& with_fields(Op<P>& op) {
  return op.param(&Activation::act_type, "act_type",
                  "the function: 'relu': max(x, 0); 'sigmoid': 1 / (1 + exp(-x)); 'softrelu': log(1 + exp(x)); "
                  "'softsign': x / (1 + |x|); 'tanh'",
                  one_of(act_type::all));
}

// The derivative of all but softsign is a function of the output, so the input need not be stored.
OpDef define_activation(Op<Activation> op) {
  return with_fields(op)
      .doc("Applies an activation function to every element; the output has the shape of data.")
      .infer_type([](const Activation&, Types& t) { same_floating_type(t); })
      .elementwise()
      .full_precision_if("act_type", {"softrelu"})
      .gradient([](const Activation& p, Grad& g) {
        g.set("data", activation_grad(g.out_grad(), p.act_type == "softsign" ? g.input("data") : g.output(), {p}));
      });
}

OpDef define_activation_grad(Op<ActivationGrad> op) {
  return with_fields(op)
      .inputs([](const ActivationGrad& p) -> Names {
        return {"out_grad", p.act_type == "softsign" ? "data" : "output"};
      })
      .outputs({"data_grad"})
      .infer_type([](const ActivationGrad&, Types& t) { same_floating_type(t); })
      .elementwise();
}

}  // namespace

void register_activation(OpRegistry& registry) {
  add(registry, "Activation", define_activation);
  add_internal(registry, "_backward_Activation", define_activation_grad);
}

}  // namespace symbind
