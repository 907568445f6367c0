#include "symbind/ops/custom.h"

#include <algorithm>

#include "symbind/core/named_factories.h"
#include "symbind/graph/define.h"

namespace symbind {

std::string_view name_of(OpReq req) {
  switch (req) {
    case OpReq::null:
      return "null";
    case OpReq::write:
      return "write";
    case OpReq::inplace:
      return "inplace";
    case OpReq::add:
      return "add";
  }
  return "";
}

// ---- Base classes for users -----------------------------------------------------------------------------------------

void CustomOp::backward(const std::vector<OpReq>&, const std::vector<NDArray>&, const std::vector<NDArray>&,
                        const std::vector<NDArray>&, const std::vector<NDArray>&, const std::vector<NDArray>&) {
  fail("[Custom] this operator has no backward()");
}

CustomShapes CustomOpProp::infer_shape(const std::vector<Shape>& in_shapes) const {
  const Shape first = in_shapes.empty() ? Shape() : in_shapes[0];
  return {std::vector(in_shapes.size(), first), std::vector(list_outputs().size(), first),
          std::vector(list_auxiliary_states().size(), first)};
}

CustomTypes CustomOpProp::infer_type(const std::vector<DType>& in_types) const {
  const DType first = in_types.empty() ? DType::float32 : in_types[0];
  CustomTypes types{in_types, std::vector(list_outputs().size(), first),
                    std::vector(list_auxiliary_states().size(), first)};
  std::replace(types.in.begin(), types.in.end(), DType::none, first);
  return types;
}

std::vector<int> CustomOpProp::declare_backward_dependency(const std::vector<int>& out_grad,
                                                           const std::vector<int>& in_data,
                                                           const std::vector<int>& out_data) const {
  std::vector<int> needed;
  if (need_top_grad_) needed = out_grad;
  needed.insert(needed.end(), in_data.begin(), in_data.end());
  needed.insert(needed.end(), out_data.begin(), out_data.end());
  return needed;
}

// ---- Registered names -----------------------------------------------------------------------------------------------

namespace {

NamedFactories<CustomOpFactory>& factories() {
  // Never destroyed: a factory may refer to objects that are destroyed before the process ends.
  static auto* all = new NamedFactories<CustomOpFactory>("custom operator");  // NOLINT
  return *all;
}

std::shared_ptr<const CustomOpSpec> make_spec(const std::string& op_type, const Attributes& arguments) {
  auto spec = std::make_shared<CustomOpSpec>();
  spec->prop = factories().find(op_type)(arguments);
  require(spec->prop != nullptr, "the factory of the custom operator '", op_type, "' returned null");
  spec->arguments = spec->prop->list_arguments();
  spec->outputs = spec->prop->list_outputs();
  spec->aux = spec->prop->list_auxiliary_states();
  require(!spec->outputs.empty(), "the custom operator '", op_type, "' has no outputs");
  return spec;
}

}  // namespace

void register_custom_op(const std::string& name, CustomOpFactory factory) {
  require(!name.empty() && factory, "a custom operator needs a name and a factory");
  factories().add(name, std::move(factory));
}

Names custom_op_names() { return factories().names(); }

// ---- Custom ---------------------------------------------------------------------------------------------------------

namespace {

// Before op_type is given there is nothing to list.
const CustomOpSpec& listed(const std::shared_ptr<const CustomOpSpec>& spec) {
  static const CustomOpSpec nothing{nullptr, {}, {"output"}, {}};
  return spec ? *spec : nothing;
}

bool is_known(const Shape& shape) { return shape.known(); }
bool is_known(DType dtype) { return dtype != DType::none; }

// Queries the prop and applies its result to all arrays; `infer` returns a CustomShapes or CustomTypes.
template <class Value, class Infer>
void infer_by_prop(const CustomOpSpec& spec, Inference<Value>& values, const char* function, Infer infer) {
  std::vector<Value> in;
  for (size_t i = 0; i < spec.arguments.size(); ++i) in.push_back(values.input(i).get());
  const auto known = [](const Value& value) { return is_known(value); };
  if (!in.empty() && !known(in[0]) && (in.size() == 1 || !std::all_of(in.begin() + 1, in.end(), known))) return;
  const auto inferred = infer(in);
  const auto check = [&](size_t given, const Names& names, const char* what) {
    require(given == names.size(), values.where(), " ", function, "() returned ", given, " ", what, "; there are ",
            names.size(), names.empty() ? "" : ": " + comma_separated(names));
  };
  check(inferred.in.size(), spec.arguments, "inputs");
  check(inferred.out.size(), spec.outputs, "outputs");
  check(inferred.aux.size(), spec.aux, "auxiliary states");
  for (size_t i = 0; i < inferred.in.size(); ++i) values.input(i).meet(inferred.in[i]);
  for (size_t i = 0; i < inferred.aux.size(); ++i) values.input(in.size() + i).meet(inferred.aux[i]);
  for (size_t i = 0; i < inferred.out.size(); ++i) values.output(i).meet(inferred.out[i]);
}

void custom_gradient(const Custom& p, Grad& g) {
  const CustomOpSpec& spec = *p.spec;
  const size_t in = spec.arguments.size(), out = spec.outputs.size();
  std::vector<int> out_grad, in_data, out_data;
  int number = 0;
  for (size_t i = 0; i < out; ++i) out_grad.push_back(number++);
  for (size_t i = 0; i < in; ++i) in_data.push_back(number++);
  for (size_t i = 0; i < out; ++i) out_data.push_back(number++);

  CustomGrad q{p.spec, g.output().entries()[0].node.get(), std::vector<bool>(static_cast<size_t>(number), false), {}};
  for (const int needed : spec.prop->declare_backward_dependency(out_grad, in_data, out_data)) {
    require(needed >= 0 && needed < number, "[Custom ", q.forward->name,
            "] declare_backward_dependency() returned index ", needed, ", which it was not given");
    q.reads[static_cast<size_t>(needed)] = true;
  }
  std::vector<Symbol> inputs;
  for (size_t i = 0; i < out; ++i)
    if (q.reads[i]) inputs.push_back(g.out_grad(i));
  for (size_t i = 0; i < in; ++i)
    if (q.reads[out + i]) inputs.push_back(g.input(i));
  for (size_t i = 0; i < out; ++i)
    if (q.reads[out + in + i]) inputs.push_back(g.output(i));
  for (size_t i = 0; i < g.inputs(); ++i) inputs.push_back(g.input(i));  // shapes, and then the states
  for (size_t i = 0; i < in; ++i) q.wants.push_back(g.wants(i));
  const Symbol grads = custom_grad(inputs, q);
  for (size_t i = 0; i < in; ++i)
    if (q.wants[i]) g.set(i, grads[i]);
}

OpDef define_custom(Op<Custom> op) {
  return op
      .doc(
          "An operator defined by the user and registered under op_type. All other keyword arguments are passed to its "
          "factory as text.")
      .precision(Precision::full)
      .own_gradient_terms()
      .param(&Custom::op_type, "op_type", "name under which the operator is registered")
      .keywords(&Custom::arguments)
      .keeps_state()
      .check([](Custom& p) { p.spec = make_spec(p.op_type, p.arguments); })
      .inputs([](const Custom& p) { return listed(p.spec).arguments; })
      .aux([](const Custom& p) { return listed(p.spec).aux; })
      .outputs([](const Custom& p) { return listed(p.spec).outputs; })
      .infer_shape([](const Custom& p, Shapes& s) {
        infer_by_prop(*p.spec, s, "infer_shape", [&](const auto& in) { return p.spec->prop->infer_shape(in); });
      })
      .infer_type([](const Custom& p, Types& t) {
        infer_by_prop(*p.spec, t, "infer_type", [&](const auto& in) { return p.spec->prop->infer_type(in); });
      })
      .gradient([](const Custom& p, Grad& g) { custom_gradient(p, g); });
}

Names read_names(const CustomGrad& p) {
  return Names(static_cast<size_t>(std::count(p.reads.begin(), p.reads.end(), true)), "read");
}

// Every gradient is like its input.
template <class Value>
void like_inputs(const CustomGrad& p, Inference<Value>& values) {
  const size_t first = read_names(p).size();
  for (size_t i = 0; i < values.outputs(); ++i) values.output(i).meet(values.input(first + i).get());
}

OpDef define_custom_grad(Op<CustomGrad> op) {
  return op.keeps_state()
      .inputs([](const CustomGrad& p) {
        Names names = read_names(p);
        names.insert(names.end(), listed(p.spec).arguments.size(), "like");
        return names;
      })
      .shape_only({"like"})
      .aux([](const CustomGrad& p) { return listed(p.spec).aux; })
      .outputs([](const CustomGrad& p) { return listed(p.spec).arguments; })
      .infer_shape([](const CustomGrad& p, Shapes& s) { like_inputs(p, s); })
      .infer_type([](const CustomGrad& p, Types& t) { like_inputs(p, t); });
}

}  // namespace

void register_custom(OpRegistry& registry) {
  add(registry, "Custom", define_custom);
  add_internal(registry, "_backward_Custom", define_custom_grad);
}

}  // namespace symbind
