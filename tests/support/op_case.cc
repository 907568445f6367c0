#include "tests/support/op_case.h"

#include <algorithm>
#include <optional>

#include "symbind/core/random.h"
#include "symbind/exec/executor.h"
#include "symbind/exec/invoke.h"
#include "symbind/ops/amp.h"
#include "symbind/passes/infer.h"
#include "symbind/passes/target.h"
#include "symbind/train/mixed_precision.h"

#include "tests/support/arrays.h"
#include "tests/support/device_case.h"
#include "tests/support/gradient_check.h"
#include "tests/support/graphs.h"
#include "tests/support/lapack.h"

namespace symbind::testing {

std::ostream& operator<<(std::ostream& out, const OpCase& op_case) {
  out << op_case.op << " " << op_case.name;
  for (const auto& [key, value] : op_case.attributes) out << " " << key << "=" << value;
  return out << " on " << op_case.context;
}

std::vector<OpCase> devices_of(const std::vector<OpCase>& cases) {
  std::vector<OpCase> all;
  for (const Context context : all_devices()) {
    for (OpCase each : cases) {
      each.context = context;
      all.push_back(std::move(each));
    }
  }
  return all;
}

std::string op_case_name(const ::testing::TestParamInfo<OpCase>& info) {
  std::string name = info.param.name + (info.param.context.is_gpu() ? "_on_gpu" : "_on_cpu");
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return name;
}

Symbol symbol_of(const OpCase& op_case) {
  const OpDef& op = OpRegistry::get().find(op_case.op);
  Inputs named(std::vector<Symbol>{});
  std::vector<Symbol> in_order;
  for (const OpInput& input : op_case.inputs) {
    in_order.push_back(Symbol::variable(input.name));
    named.add(input.name, in_order.back());
  }
  return apply(op_case.op, op.count_field.empty() ? named : Inputs(in_order), op_case.attributes, "op");
}

std::vector<NDArray> inputs_of(const OpCase& op_case, DType dtype, const std::vector<Shape>& shapes) {
  std::vector<NDArray> arrays;
  for (size_t i = 0; i < op_case.inputs.size(); ++i) {
    const OpInput& input = op_case.inputs[i];
    arrays.push_back(random_array(shapes.empty() ? input.shape : shapes[i], 11 + i, input.low, input.high,
                                  input.dtype == DType::none ? dtype : input.dtype, op_case.context));
  }
  return arrays;
}

namespace {

struct Answer {
  std::vector<NDArray> outputs;
  NamedArrays gradients, aux;
};

NamedArrays out_of(const OpCase& op_case, const std::vector<NDArray>& arrays, bool aux) {
  NamedArrays named;
  for (size_t i = 0; i < arrays.size(); ++i)
    if (op_case.inputs[i].aux == aux) named[op_case.inputs[i].name] = arrays[i].copy();
  return named;
}

bool has_gradient(const OpCase& op_case, const OpInput& input, DType dtype) {
  return op_case.differentiable && input.gradient && !input.aux && is_floating(dtype);
}

// Forward of `symbol`, and backward with fixed out_grads; gradients start at `start`.
Answer run(const OpCase& op_case, const Symbol& symbol, const std::vector<NDArray>& arrays,
           const std::string& request = "write", double start = 0, const CompileOptions& options = {}) {
  NamedArrays grads;
  std::map<std::string, std::string> requests;
  for (size_t i = 0; i < arrays.size(); ++i) {
    if (!has_gradient(op_case, op_case.inputs[i], arrays[i].dtype())) continue;
    grads[op_case.inputs[i].name] = full(arrays[i].shape(), start, op_case.context, arrays[i].dtype());
    requests[op_case.inputs[i].name] = request;
  }
  auto executor =
      bind(symbol, op_case.context, out_of(op_case, arrays, false),
           {.args_grad = grads, .grad_req = requests, .aux_states = out_of(op_case, arrays, true), .options = options});
  symbind::seed(5);
  Answer result;
  for (const NDArray& output : executor->forward(op_case.is_train)) result.outputs.push_back(output.copy());
  if (!grads.empty()) {
    std::vector<NDArray> out_grads;
    for (size_t i = 0; i < result.outputs.size(); ++i)
      out_grads.push_back(
          random_array(result.outputs[i].shape(), 31 + i, -1, 1, result.outputs[i].dtype(), op_case.context));
    executor->backward(op_case.loss ? Arrays() : Arrays(out_grads), op_case.is_train);
    result.gradients = grads;
  }
  result.aux = executor->aux_dict();
  return result;
}

Answer run(const OpCase& op_case, const std::vector<NDArray>& arrays, const std::string& request = "write",
           double start = 0, const CompileOptions& options = {}) {
  return run(op_case, symbol_of(op_case), arrays, request, start, options);
}

std::vector<std::vector<Shape>> shapes_of(const OpCase& op_case) {
  std::vector<std::vector<Shape>> all{{}};
  all.insert(all.end(), op_case.more_shapes.begin(), op_case.more_shapes.end());
  return all;
}

Tolerance times(Tolerance tolerance, double factor) {
  return {tolerance.relative * factor, tolerance.absolute * factor, tolerance.of_largest * factor};
}

void expect_same(const Answer& actual, const Answer& expected, Tolerance tolerance) {
  ASSERT_EQ(actual.outputs.size(), expected.outputs.size());
  for (size_t i = 0; i < expected.outputs.size(); ++i)
    EXPECT_TRUE(all_close(actual.outputs[i], expected.outputs[i], tolerance)) << "output " << i;
  for (const auto& [name, gradient] : expected.gradients)
    EXPECT_TRUE(all_close(actual.gradients.at(name), gradient, tolerance)) << "gradient of " << name;
  for (const auto& [name, state] : expected.aux)
    EXPECT_TRUE(all_close(actual.aux.at(name), state, tolerance)) << "state " << name;
}

// The operator and its gradients on a GPU; none if the operator has no such type.
std::optional<Graph> graph_on_gpu(const OpCase& op_case, DType dtype, const std::vector<Shape>& shapes) {
  Graph graph = Graph::from(symbol_of(op_case));
  NamedShapes named_shapes;
  NamedTypes named_types;
  for (size_t i = 0; i < op_case.inputs.size(); ++i) {
    const OpInput& input = op_case.inputs[i];
    named_shapes[input.name] = shapes.empty() ? input.shape : shapes[i];
    named_types[input.name] = input.dtype == DType::none ? dtype : input.dtype;
  }
  const auto has_gradient = [&](const std::string& name) {
    return std::any_of(op_case.inputs.begin(), op_case.inputs.end(), [&](const OpInput& input) {
      return input.name == name && input.gradient && !input.aux && op_case.differentiable;
    });
  };
  try {
    set_shapes(graph, named_shapes);
    set_types(graph, named_types);
    infer(graph);
    std::vector<GradientRequest> requests;
    for (const GraphNode& node : graph.nodes)
      if (node.is_variable() && has_gradient(node.source->name)) requests.push_back({node.id});
    if (!requests.empty()) {
      add_gradient(graph, requests);
      infer(graph);
    }
  } catch (const Error&) {
    return std::nullopt;
  }
  graph.is_train = op_case.is_train;
  assign_contexts(graph, gpu(0), {});
  return graph;
}

// Empty if a kernel of the GPU accepts the node, or if the machine has no GPU and the kernel must query one.
std::string refused_by_gpu(Graph& graph, GraphNode& node) {
  const std::string error = error_of([&] { select(graph, node); });
  if (!error.empty()) return num_gpus() == 0 ? "" : error;
  return node.implementation->name == "host" ? "no kernel of the GPU accepts it" : "";
}

// The CPU may have no kernel either: inference accepts more types for some operators.
bool builds_on_cpu(Graph graph, NodeId id) {
  graph.node(id).context = cpu();
  try {
    select(graph, graph.node(id));
    build_kernels(graph, index_of(id), index_of(id) + 1);
  } catch (const Error&) {
    return false;
  }
  return true;
}

}  // namespace

void OpCaseTest::SetUp() {
  if (lacks_lapack(GetParam().op, GetParam().context)) GTEST_SKIP() << without_lapack;
}

TEST_P(OpCaseTest, MatchesItsReferenceInEveryType) {
  const OpCase& op_case = GetParam();
  if (!op_case.reference) GTEST_SKIP() << "no reference";
  for (const auto& shapes : shapes_of(op_case)) {
    for (const DType dtype : op_case.dtypes) {
      SCOPED_TRACE(join(dtype, " ", comma_separated(shapes)));
      const auto arrays = inputs_of(op_case, dtype, shapes);
      std::vector<Values> values;
      for (const NDArray& each : arrays) values.push_back({each.shape(), each.to_vector<double>()});
      const auto expected = op_case.reference(values);
      const auto actual = run(op_case, arrays).outputs;
      ASSERT_EQ(actual.size(), expected.size());
      for (size_t i = 0; i < expected.size(); ++i) {
        EXPECT_EQ(actual[i].shape(), expected[i].shape);
        EXPECT_TRUE(all_close(actual[i].to_vector<double>(), expected[i].data,
                              times(tolerance_of(actual[i].dtype()), op_case.slack), expected[i].shape))
            << "output " << i;
      }
    }
  }
}

TEST_P(OpCaseTest, HasTheGradientOfFiniteDifferences) {
  const OpCase& op_case = GetParam();
  if (!op_case.differentiable) GTEST_SKIP() << "not differentiable";
  const bool has_double = std::count(op_case.dtypes.begin(), op_case.dtypes.end(), DType::float64) > 0;
  for (const auto& shapes : shapes_of(op_case)) {
    SCOPED_TRACE(comma_separated(shapes));
    const auto arrays = inputs_of(op_case, has_double ? DType::float64 : DType::float32, shapes);
    GradientCheckOptions options{
        .aux = out_of(op_case, arrays, true), .is_train = op_case.is_train, .context = op_case.context};
    for (const OpInput& input : op_case.inputs)
      if (!input.gradient && !input.aux) options.skip.push_back(input.name);
    if (op_case.loss) options.loss = [&](const std::vector<NDArray>& outputs) { return op_case.loss(outputs, arrays); };
    EXPECT_TRUE(check_gradient(symbol_of(op_case), out_of(op_case, arrays, false), options));
  }
}

TEST_P(OpCaseTest, AddsToAGradientWhereAsked) {
  const OpCase& op_case = GetParam();
  if (!op_case.differentiable) GTEST_SKIP() << "not differentiable";
  const auto arrays = inputs_of(op_case, op_case.dtypes.front());
  const Answer written = run(op_case, arrays), added = run(op_case, arrays, "add", 3);
  for (const auto& [name, gradient] : written.gradients) {
    auto expected = gradient.to_vector<double>();
    for (double& value : expected) value += 3;
    EXPECT_TRUE(all_close(added.gradients.at(name).to_vector<double>(), expected, tolerance_of(gradient.dtype()),
                          gradient.shape()))
        << "gradient of " << name;
  }
}

TEST_P(OpCaseTest, GivesTheFloat32ResultInSmallerTypes) {
  const OpCase& op_case = GetParam();
  for (const auto& shapes : shapes_of(op_case)) {
    for (const DType dtype : op_case.dtypes) {
      if (dtype == DType::float32 || !is_floating(dtype)) continue;
      SCOPED_TRACE(join(dtype, " ", comma_separated(shapes)));
      const auto small = inputs_of(op_case, dtype, shapes);
      std::vector<NDArray> plain;
      for (const NDArray& each : small) plain.push_back(each.dtype() == dtype ? each.astype(DType::float32) : each);
      const Answer expected = run(op_case, plain), actual = run(op_case, small);
      Tolerance tolerance = times(tolerance_of(dtype), op_case.slack);
      if (dtype == DType::float64) tolerance = times(tolerance_of(DType::float32), op_case.slack);
      for (size_t i = 0; i < expected.outputs.size(); ++i)
        EXPECT_TRUE(all_close(actual.outputs[i].to_vector<double>(), expected.outputs[i].to_vector<double>(), tolerance,
                              expected.outputs[i].shape()))
            << "output " << i;
      for (const auto& [name, gradient] : expected.gradients)
        EXPECT_TRUE(all_close(actual.gradients.at(name).to_vector<double>(), gradient.to_vector<double>(), tolerance,
                              gradient.shape()))
            << "gradient of " << name;
    }
  }
}

TEST_P(OpCaseTest, IsTheSameWithoutSharedMemoryFusionAndLayouts) {
  const OpCase& op_case = GetParam();
  const auto arrays = inputs_of(op_case, op_case.dtypes.front());
  const Answer usual = run(op_case, arrays);
  const CompileOptions nothing{.share_memory = false, .fuse = false, .layout = false, .capture = false};
  const Answer plain = run(op_case, arrays, "write", 0, nothing);
  expect_same(plain, usual, times(tolerance_of(op_case.dtypes.front()), op_case.slack));
}

TEST_P(OpCaseTest, NeedsNoStepOnTheHostInAnyTypeOfTheCpu) {
  const OpCase& op_case = GetParam();
  if (!built_with_cuda()) GTEST_SKIP() << "built without CUDA";  // a GPU is not needed
  if (op_case.context.is_gpu()) GTEST_SKIP() << "the same for every context";
  for (const auto& shapes : shapes_of(op_case)) {
    for (const DType dtype : all_types) {
      std::optional<Graph> graph = graph_on_gpu(op_case, dtype, shapes);
      if (!graph) continue;
      for (GraphNode& node : graph->nodes) {
        if (node.is_variable() || node.op().name.ends_with("Custom")) continue;
        const std::string reason = refused_by_gpu(*graph, node);
        if (!reason.empty() && builds_on_cpu(*graph, node.id))
          ADD_FAILURE() << node.op().name << " in " << dtype << " " << comma_separated(shapes) << ": " << reason;
      }
    }
  }
}

// One input of the operator is the 16-bit result of another operator, the others are variables of float32.
Symbol with_input_in_16_bits(const OpCase& op_case, const std::string& input) {
  const Symbol low = amp_cast(Symbol::variable(input), {.dtype = DType::float16});
  return mixed_precision(symbol_of(op_case)({{input, low}}), DType::float16);
}

TEST_P(OpCaseTest, LeavesOtherInputsInFloat32BesideOneOf16Bits) {
  const OpCase& op_case = GetParam();
  if (!(op_case.context == cpu(0))) GTEST_SKIP() << "the same for every context";
  NamedTypes given;
  for (const OpInput& input : op_case.inputs)
    if (input.dtype != DType::none) given[input.name] = input.dtype;
  for (const OpInput& low : op_case.inputs) {
    if (low.aux || low.dtype != DType::none) continue;
    const Symbol net = with_input_in_16_bits(op_case, low.name);
    const std::vector<DType> types = infer_type(net, given).args;
    for (size_t i = 0; const std::string& name : net.list_arguments())
      EXPECT_NE(types[i++], DType::float16) << name << " beside " << low.name;
  }
}

TEST_P(OpCaseTest, GivesTheFloat32ResultInMixedPrecision) {
  const OpCase& op_case = GetParam();
  if (std::ranges::count(op_case.dtypes, DType::float32) == 0) GTEST_SKIP() << "not in float32";
  std::vector<NDArray> arrays;  // their values are exact in 16 bits
  for (const NDArray& each : inputs_of(op_case, DType::float16))
    arrays.push_back(each.dtype() == DType::float16 ? each.astype(DType::float32) : each);
  const Answer expected = run(op_case, arrays);
  for (const OpInput& input : op_case.inputs) {
    if (input.aux || input.dtype != DType::none) continue;
    SCOPED_TRACE(input.name + " has 16 bits");
    Answer actual = run(op_case, with_input_in_16_bits(op_case, input.name), arrays);
    ASSERT_EQ(actual.outputs.size(), expected.outputs.size());
    for (size_t i = 0; i < expected.outputs.size(); ++i)
      actual.outputs[i] = actual.outputs[i].astype(expected.outputs[i].dtype());
    expect_same(actual, expected, times(tolerance_of(DType::float16), op_case.slack));
  }
}

TEST_P(OpCaseTest, WritesOntoItsFirstInput) {
  const OpCase& op_case = GetParam();
  if (!op_case.in_place) GTEST_SKIP() << "not in place";
  for (const auto& shapes : shapes_of(op_case)) {
    SCOPED_TRACE(comma_separated(shapes));
    const auto arrays = inputs_of(op_case, op_case.dtypes.front(), shapes);
    const NDArray expected = invoke(op_case.op, arrays, op_case.attributes, {.is_train = op_case.is_train}).front();
    const auto given = inputs_of(op_case, op_case.dtypes.front(), shapes);
    invoke(op_case.op, given, op_case.attributes, {.out = {given.front()}, .is_train = op_case.is_train});
    EXPECT_TRUE(same_bits(given.front(), expected));
  }
}

}  // namespace symbind::testing
