#include "symbind/ops/elementwise.h"

#include "symbind/graph/define.h"

namespace symbind {
namespace {

template <FixedString name>
Op<Unary<name>> unary_op(std::string doc) {
  Op<Unary<name>> op{std::string(name.view())};
  op.doc(std::move(doc));
  return op;
}

template <class P>
void add(OpRegistry& registry, const Op<P>& op) {
  registry.add(op, typeid(P));
}

template <FixedString name, class Gradient>
void add_unary(OpRegistry& registry, std::string doc, Gradient gradient, Precision precision = Precision::as_given) {
  auto op = unary_op<name>(std::move(doc));
  op.elementwise().precision(precision).gradient([gradient](const auto&, Grad& g) { g.set("data", gradient(g)); });
  add(registry, op);
}

// Identities.
void add_views(OpRegistry& registry) {
  add(registry, unary_op<"_copy">("The identity: the output is the input.")
                    .aliases({"identity", "_copyto"})
                    .view()
                    .gradient([](const auto&, Grad& g) { g.set("data", g.out_grad()); }));
  add(registry,
      unary_op<"BlockGrad">(
          "The identity in forward; in backward the gradient of the input is 0, which stops the flow of gradients.")
          .aliases({"stop_gradient"})
          .view());
  add(registry, unary_op<"make_loss">("Marks the input as a loss: the identity in forward; in backward the gradient is "
                                      "1 for every element, whatever gradient arrives.")
                    .outputs({"loss"})
                    .view()
                    .precision(Precision::full)
                    .gradient([](const auto&, Grad& g) { g.set("data", ones_like(g.input("data"))); }));
}

void add_fills(OpRegistry& registry) {
  add(registry, unary_op<"zeros_like">("An array of zeros with the shape and type of the input.").shape_only({"data"}));
  add(registry, unary_op<"ones_like">("An array of ones with the shape and type of the input.").shape_only({"data"}));
}

void add_functions(OpRegistry& registry) {
  add_unary<"negative">(registry, "-x for each element.", [](Grad& g) { return negative(g.out_grad()); });
  add_unary<"relu">(registry, "Rectified linear unit: max(x, 0) for each element.",
                    [](Grad& g) { return relu_grad(g.out_grad(), g.output()); });
  add_unary<"sigmoid">(registry, "Logistic function: 1 / (1 + exp(-x)) for each element.",
                       [](Grad& g) { return sigmoid_grad(g.out_grad(), g.output()); });
  add_unary<"tanh">(registry, "Hyperbolic tangent of each element.",
                    [](Grad& g) { return tanh_grad(g.out_grad(), g.output()); });
  add_unary<"exp">(
      registry, "exp(x) for each element.", [](Grad& g) { return elemwise_mul(g.out_grad(), g.output()); },
      Precision::full);
  add_unary<"log">(
      registry, "Natural logarithm of each element.", [](Grad& g) { return log_grad(g.out_grad(), g.input("data")); },
      Precision::full);
  add_unary<"square">(
      registry, "x² for each element.", [](Grad& g) { return square_grad(g.out_grad(), g.input("data")); },
      Precision::full);
  add_unary<"sqrt">(registry, "Square root of each element.",
                    [](Grad& g) { return sqrt_grad(g.out_grad(), g.output()); });
}

template <FixedString name>
Op<Binary<name>> binary_op(std::string doc, Names aliases) {
  Op<Binary<name>> op{std::string(name.view())};
  op.doc(doc + " Both inputs have one shape.")
      .aliases(std::move(aliases))
      .inputs({"lhs", "rhs"})
      .elementwise()
      .precision(Precision::widest);
  return op;
}

template <FixedString name, class Gradient>
void add_binary(OpRegistry& registry, std::string doc, Names aliases, Gradient gradient,
                Precision precision = Precision::widest) {
  auto op = binary_op<name>(std::move(doc), std::move(aliases));
  op.precision(precision).gradient([gradient](const auto&, Grad& g) { gradient(g); });
  add(registry, op);
}

template <FixedString name>
void add_comparison(OpRegistry& registry, std::string doc, Names aliases) {
  add(registry, binary_op<name>(std::move(doc), std::move(aliases)));
}

void add_binaries(OpRegistry& registry) {
  add_binary<"elemwise_add">(registry, "lhs + rhs, element by element.", {"_Plus", "_plus", "_add", "_grad_add"},
                             [](Grad& g) {
                               g.set("lhs", g.out_grad());
                               g.set("rhs", g.out_grad());
                             });
  add_binary<"elemwise_sub">(registry, "lhs - rhs, element by element.", {"_Minus", "_minus", "_sub"}, [](Grad& g) {
    g.set("lhs", g.out_grad());
    if (g.wants("rhs")) g.set("rhs", negative(g.out_grad()));
  });
  add_binary<"elemwise_mul">(registry, "lhs · rhs, element by element.", {"_Mul", "_mul"}, [](Grad& g) {
    if (g.wants("lhs")) g.set("lhs", elemwise_mul(g.out_grad(), g.input("rhs")));
    if (g.wants("rhs")) g.set("rhs", elemwise_mul(g.out_grad(), g.input("lhs")));
  });
  add_binary<"elemwise_div">(registry, "lhs / rhs, element by element.", {"_Div", "_div", "_scatter_elemwise_div"},
                             [](Grad& g) {
                               if (g.wants("lhs")) g.set("lhs", div_lhs_grad(g.out_grad(), g.input("rhs")));
                               if (g.wants("rhs"))
                                 g.set("rhs", div_rhs_grad(g.out_grad(), g.input("lhs"), g.input("rhs")));
                             });
  add_binary<"_power">(
      registry, "lhs raised to the power rhs, element by element.", {"_Power"},
      [](Grad& g) {
        if (g.wants("lhs")) g.set("lhs", power_lhs_grad(g.out_grad(), g.input("lhs"), g.input("rhs")));
        if (g.wants("rhs")) g.set("rhs", power_rhs_grad(g.out_grad(), g.input("lhs"), g.input("rhs")));
      },
      Precision::full);
  add_comparison<"_equal">(registry, "1 where lhs = rhs, else 0, element by element.", {"_Equal"});
  add_comparison<"_not_equal">(registry, "1 where lhs ≠ rhs, else 0, element by element.", {"_Not_Equal"});
  add_comparison<"_greater">(registry, "1 where lhs > rhs, else 0, element by element.", {"_Greater"});
  add_comparison<"_greater_equal">(registry, "1 where lhs ≥ rhs, else 0, element by element.", {"_Greater_Equal"});
  add_comparison<"_lesser">(registry, "1 where lhs < rhs, else 0, element by element.", {"_Lesser"});
  add_comparison<"_lesser_equal">(registry, "1 where lhs ≤ rhs, else 0, element by element.", {"_Lesser_Equal"});
}

OpDef define_add_n(Op<AddN> op) {
  return op.doc("The sum of all inputs, element by element; all inputs and the output have one shape.")
      .aliases({"ElementWiseSum"})
      .precision(Precision::widest)
      .param(&AddN::num_args, "num_args", "number of input arrays; counted from the inputs when it is left out",
             at_least(1))
      .variadic(&AddN::num_args, "num_args")
      .inputs(&AddN::num_args, numbered("arg"))
      .gradient([](const AddN&, Grad& g) {
        for (size_t i = 0; i < g.inputs(); ++i) g.set(i, g.out_grad());
      });
}

// A function with a gradient of (out_grad, lhs, rhs) for each operand.
template <FixedString name, class Lhs, class Rhs>
void add_choice(OpRegistry& registry, std::string doc, Names aliases, Lhs lhs, Rhs rhs,
                Precision precision = Precision::widest) {
  add_binary<name>(
      registry, std::move(doc), std::move(aliases),
      [lhs, rhs](Grad& g) {
        if (g.wants("lhs")) g.set("lhs", lhs(g.out_grad(), g.input("lhs"), g.input("rhs")));
        if (g.wants("rhs")) g.set("rhs", rhs(g.out_grad(), g.input("lhs"), g.input("rhs")));
      },
      precision);
}

void add_choices(OpRegistry& registry) {
  add_choice<"_maximum">(registry, "max(lhs, rhs), element by element.", {"_Maximum"}, maximum_lhs_grad,
                         maximum_rhs_grad);
  add_choice<"_minimum">(registry, "min(lhs, rhs), element by element.", {"_Minimum"}, minimum_lhs_grad,
                         minimum_rhs_grad);
  add_choice<"_hypot">(registry, "√(lhs² + rhs²), element by element.", {"_Hypot"}, hypot_lhs_grad, hypot_rhs_grad,
                       Precision::full);
  add_choice<"_mod">(registry,
                     "Remainder of lhs / rhs with the sign of rhs, element by element: lhs - rhs · floor(lhs / rhs); 0 "
                     "where rhs is 0.",
                     {"_Mod"}, mod_lhs_grad, mod_rhs_grad);
  add_comparison<"_logical_and">(registry, "Logical and: 1 where both inputs are nonzero, else 0.", {"_Logical_And"});
  add_comparison<"_logical_or">(registry, "Logical or: 1 where at least one input is nonzero, else 0.",
                                {"_Logical_Or"});
  add_comparison<"_logical_xor">(registry, "Logical exclusive or: 1 where exactly one input is nonzero, else 0.",
                                 {"_Logical_Xor"});
}

template <FixedString name>
void add_unary_grad(OpRegistry& registry, const char* read) {
  Op<UnaryGrad<name>> op{std::string(name.view())};
  op.internal().inputs({"out_grad", read}).elementwise();
  add(registry, op);
}
template <FixedString name>
void add_binary_grad(OpRegistry& registry) {
  Op<BinaryGrad<name>> op{std::string(name.view())};
  op.internal().inputs({"out_grad", "lhs", "rhs"}).elementwise();
  add(registry, op);
}

void add_gradients(OpRegistry& registry) {
  add_unary_grad<"_backward_relu">(registry, "output");
  add_unary_grad<"_backward_sigmoid">(registry, "output");
  add_unary_grad<"_backward_tanh">(registry, "output");
  add_unary_grad<"_backward_sqrt">(registry, "output");
  add_unary_grad<"_backward_log">(registry, "data");
  add_unary_grad<"_backward_square">(registry, "data");
  add_unary_grad<"_backward_div_lhs">(registry, "rhs");
  add_binary_grad<"_backward_div_rhs">(registry);
  add_binary_grad<"_backward_power_lhs">(registry);
  add_binary_grad<"_backward_power_rhs">(registry);
  add_binary_grad<"_backward_maximum_lhs">(registry);
  add_binary_grad<"_backward_maximum_rhs">(registry);
  add_binary_grad<"_backward_minimum_lhs">(registry);
  add_binary_grad<"_backward_minimum_rhs">(registry);
  add_binary_grad<"_backward_hypot_lhs">(registry);
  add_binary_grad<"_backward_hypot_rhs">(registry);
  add_binary_grad<"_backward_mod_lhs">(registry);
  add_binary_grad<"_backward_mod_rhs">(registry);
}

}  // namespace

void register_elementwise(OpRegistry& registry) {
  add_views(registry);
  add_fills(registry);
  add_functions(registry);
  add_binaries(registry);
  add_choices(registry);
  symbind::add(registry, "add_n", define_add_n);
  add_gradients(registry);
}

}  // namespace symbind
