// Every operator there is, internal ones included, with parameters at the ends of their types and with inputs that do
// not fit: the answer is an Error or a result, never a crash. Meant for the sanitizers too.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <new>
#include <random>

#include <gtest/gtest.h>

#include "symbind/core/error.h"
#include "symbind/exec/executor.h"
#include "symbind/exec/invoke.h"
#include "symbind/graph/builder.h"

namespace symbind {
namespace {

constexpr int64_t most_elements = 1 << 16;  // of an array that is computed
constexpr size_t most_inputs = 12;

// Words that some operator must be given.
const std::vector<std::string>& words() {
  static const std::vector<std::string> all{"relu", "constant", "nearest", "affine", "bilinear", "lstm", "cpu(0)"};
  return all;
}

std::vector<std::string> plain_texts(const ParamField& field) {
  if (field.name == "high") return {"2"};
  if (field.name == "stype") return {"default"};
  if (field.name == "begin") return {field.type == "tuple" ? "(0,)" : "0"};
  if (field.name == "end" || (field.name == "axis" && field.type == "tuple")) return {"(1,)"};
  if (field.type == "string") return words();
  if (field.type == "tuple") return {"(2, 2)", "(2, 2, 2, 2)", "(2,)"};
  if (field.type == "type") return {"float32"};
  return {"1", "2"};
}

// Texts at the ends of a field's type, which a mark for "not given" might have been.
std::vector<std::string> extreme_texts(const ParamField& field) {
  const std::string least = std::to_string(std::numeric_limits<int64_t>::min());
  const std::string most = std::to_string(std::numeric_limits<int64_t>::max());
  std::string huge = "(";
  for (int i = 0; i < 40; ++i) huge += "3, ";
  huge += ")";
  std::vector<std::string> texts{std::string(1, '\0'), "", "None", least, most, "nan", "inf", "-inf", "()", "0", "-1",
                                 "2147483648"};
  if (field.type.starts_with("tuple"))
    texts.insert(texts.end(), {"(" + least + ",)", "(" + most + ", " + most + ")", huge, "(nan,)", "(0, 0)", "(-1, -1)",
                               "(None, None)", "(" + least + ", " + most + ", 1, -1)"});
  if (field.type.starts_with("type")) texts.insert(texts.end(), {"-1", "99", "bool"});
  if (field.type.starts_with("boolean")) texts.emplace_back("True");
  return texts;
}

// Attributes with which the operator can be made, or none where the test knows of none.
std::optional<Attributes> plain_attributes(const OpDef& op) {
  Attributes attributes;
  for (const ParamField& field : op.fields) {
    if (!field.is_required) continue;
    for (const std::string& text : plain_texts(field)) {
      auto params = op.make_params();
      field.parse(params.get(), text);
      attributes[field.name] = text;
      if (field.broken_rule(params.get()).empty()) break;
    }
  }
  for (const auto& [weights, text] : {std::pair("lrs", "(0.5,)"),
                                      {"learning_rates", "(0.5,)"},
                                      {"wds", "(0.5,)"},
                                      {"etas", "(0.5,)"},
                                      {"step_count", "(1,)"}})
    for (const ParamField& field : op.fields)
      if (field.name == weights) attributes[weights] = text;
  for (const ParamField& field : op.fields)
    if (field.name == "alpha" && field.type == "tuple of floats") attributes["alpha"] = "(0.1, 0.2, 0.3)";
  for (const ParamField& field : op.fields)
    if (field.name == "range_max") attributes["range_max"] = "8";  // more than one class is drawn below it
  for (const auto& [name, text] : {std::pair("shape", "(2, 3)"), {"h_w", "(1, 1)"}})
    for (const ParamField& field : op.fields)
      if (field.name == name && field.type == "tuple") attributes.emplace(name, text);
  for (const auto& [name, text] : {std::pair("axis", "1"),
                                   {"axes", "(0,)"},
                                   {"value", "1"},
                                   {"shape", "(2, 3)"},
                                   {"target_shape", "(2, 2)"},
                                   {"kernel", "(2, 2)"},
                                   {"size", "(2, 3)"},
                                   {"sections", "1"}})
    for (const ParamField& field : op.fields) {
      if (field.name != name || attributes.count(name)) continue;
      try {
        op.parse_params(attributes, "");
      } catch (const Error&) {
        attributes[name] = text;
      }
    }
  try {
    op.parse_params(attributes, "");
    return attributes;
  } catch (const Error&) {
    return std::nullopt;
  }
}

class Sweep {
 public:
  explicit Sweep(const OpDef& op) : op_(op), random_(std::hash<std::string>{}(op.name)) {}

  // All kinds of inputs with these parameters, if they are accepted.
  void try_attributes(const Attributes& attributes, int tries) {
    std::shared_ptr<const void> params;
    try {
      params = op_.parse_params(attributes, "op");
      if (op_.get_count && static_cast<size_t>(op_.get_count(params.get())) > most_inputs) return;
      for (const ParamField& field : op_.fields)  // counts of outputs, of weights
        if (field.name.starts_with("num_") && field.print(params.get()).size() > 4) return;
      if (op_.all_inputs(params.get()).size() > most_inputs || op_.outputs(params.get()).size() > most_inputs) return;
    } catch (const Error&) {
      ++refused;
      return;
    }
    for (int i = 0; i < tries; ++i) try_inputs(params, i);
  }

  size_t refused = 0, failed = 0, ran = 0;

 private:
  int64_t pick(int64_t count) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(count)); }

  Shape random_shape() {
    Shape shape = Shape::scalar();
    for (int64_t rank = pick(6); rank > 0; --rank)
      shape.push_back(std::array<int64_t, 7>{0, 1, 2, 2, 3, 4, 6}[static_cast<size_t>(pick(7))]);
    return shape;
  }

  // Shapes of the inputs: made up, or some made up and the others as inference completes them, or those with one
  // changed.
  std::vector<Shape> random_shapes(const void* params, int kind) {
    const Names names = op_.all_inputs(params), output_names = op_.outputs(params);
    std::vector<Shape> shapes(names.size() + output_names.size());
    const Shape first = random_shape();
    for (size_t i = 0; i < names.size(); ++i) {
      if (kind % 4 == 0) shapes[i] = random_shape();
      if (kind % 4 == 1) shapes[i] = first;
    }
    if (kind % 4 >= 2 && !names.empty()) {
      // The input that the others follow from is not always the first.
      shapes[static_cast<size_t>(pick(static_cast<int64_t>(names.size())))] = first;
      for (int round = 0; round < 3; ++round) {
        Shapes inference("[op]", names, std::span(shapes).first(names.size()), output_names,
                         std::span(shapes).subspan(names.size()));
        op_.infer_shape(params, inference);
        // One after the other becomes known.
        for (size_t i = 0; i < names.size(); ++i) {
          if (shapes[i].known()) continue;
          if (!shapes[i].rank_known()) shapes[i] = pick(2) == 0 ? first : random_shape();
          for (int axis = 0; axis < shapes[i].rank(); ++axis)
            if (shapes[i][axis] == unknown_dim) shapes[i][axis] = 1 + pick(4);
          break;
        }
      }
      if (kind % 4 == 3) shapes[static_cast<size_t>(pick(static_cast<int64_t>(names.size())))] = random_shape();
    }
    shapes.resize(names.size());
    for (Shape& shape : shapes)
      if (!shape.known()) shape = first;
    return shapes;
  }

  // Whether inputs of these shapes give outputs that a test can compute.
  bool is_small(const void* params, std::vector<Shape> shapes) {
    const Names names = op_.all_inputs(params), output_names = op_.outputs(params);
    for (const Shape& shape : shapes)
      if (shape.size() > most_elements) return false;
    shapes.resize(names.size() + output_names.size());
    Shapes inference("[op]", names, std::span(shapes).first(names.size()), output_names,
                     std::span(shapes).subspan(names.size()));
    op_.infer_shape(params, inference);
    for (const Shape& shape : shapes)
      if (!shape.known() || shape.size() > most_elements) return false;
    return true;
  }

  // Types of the inputs: one for all, any for each, or as inference completes them from one.
  std::vector<DType> random_types(const void* params) {
    static const std::array<DType, 8> all{DType::float32, DType::float64, DType::float16, DType::bfloat16,
                                          DType::int32,   DType::uint8,   DType::int64,   DType::boolean};
    const Names names = op_.all_inputs(params), output_names = op_.outputs(params);
    std::vector<DType> types(names.size() + output_names.size(), DType::none);
    const int64_t kind = pick(3);
    const DType common = all[static_cast<size_t>(pick(8))];
    for (DType& type : types)
      if (kind < 2) type = kind == 0 ? common : all[static_cast<size_t>(pick(8))];
    if (kind == 2 && !names.empty()) {
      types[static_cast<size_t>(pick(static_cast<int64_t>(names.size())))] = all[static_cast<size_t>(pick(4))];
      Types inference("[op]", names, std::span(types).first(names.size()), output_names,
                      std::span(types).subspan(names.size()));
      op_.infer_type(params, inference);
    }
    types.resize(names.size());
    std::replace(types.begin(), types.end(), DType::none, DType::float32);
    return types;
  }

  NDArray random_values(const Shape& shape, DType dtype) {
    static const std::array<double, 9> values{0,
                                              1,
                                              2,
                                              -1,
                                              0.5,
                                              1e30,
                                              std::numeric_limits<double>::infinity(),
                                              -std::numeric_limits<double>::infinity(),
                                              std::numeric_limits<double>::quiet_NaN()};
    const int64_t kinds = pick(2) == 0 ? 3 : 9;
    std::vector<double> numbers(static_cast<size_t>(shape.size()));
    for (double& number : numbers) number = values[static_cast<size_t>(pick(kinds))];
    NDArray array(shape, cpu(), dtype);
    array.copy_from(numbers);
    return array;
  }

  void try_inputs(const std::shared_ptr<const void>& params, int kind) {
    try {
      const std::vector<Shape> shapes = random_shapes(params.get(), kind);
      if (!is_small(params.get(), shapes)) return;
      const std::vector<DType> types = random_types(params.get());
      std::vector<NDArray> inputs;
      for (size_t i = 0; i < shapes.size(); ++i) inputs.push_back(random_values(shapes[i], types[i]));
      invoke(op_, inputs, params.get());
      ++ran;
      bind_and_run(params, inputs);
    } catch (const Error&) {
      ++failed;
    } catch (const std::bad_alloc&) {
      ++failed;
    }
  }

  void bind_and_run(const std::shared_ptr<const void>& params, const std::vector<NDArray>& inputs) {
    std::vector<Symbol> variables;
    NamedArrays arrays, gradients;
    const size_t states = op_.aux(params.get()).size();
    std::map<std::string, NDArray> aux;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const std::string name = join("x", i);
      variables.push_back(Symbol::variable(name));
      if (i + states >= inputs.size()) {
        aux.emplace(name, inputs[i]);
        continue;
      }
      arrays.emplace(name, inputs[i]);
      gradients.emplace(name, NDArray(inputs[i].shape(), cpu(), inputs[i].dtype()));
    }
    const Symbol net = apply(op_, Inputs(variables), params, {}, "op");
    auto executor =
        bind(net, cpu(), arrays, {.args_grad = gradients, .aux_states = NamedArrays(aux.begin(), aux.end())});
    executor->forward(true);
    std::vector<NDArray> head;
    for (const NDArray& output : executor->outputs()) head.push_back(ones(output.shape(), cpu(), output.dtype()));
    executor->backward(head);
  }

  const OpDef& op_;
  std::mt19937_64 random_;
};

// Those with keywords beside their fields are made of other things: custom operators, and the networks of loops.
bool is_made_by_hand(const OpDef& op) {
  return !op.take_keyword && op.name != "_backward_Custom" && op.name != "_pointwise" && op.name != "_pointwise_cell";
}

TEST(OperatorSweep, ExtremeParametersAreErrorsOrRun) {
  size_t operators = 0, refused = 0, failed = 0, ran = 0;
  for (const OpDef* op : OpRegistry::get().all()) {
    if (!is_made_by_hand(*op)) continue;
    const auto plain = plain_attributes(*op);
    ASSERT_TRUE(plain.has_value()) << op->name << " needs attributes that this test does not know";
    ++operators;
    Sweep sweep(*op);
    for (const ParamField& field : op->fields)
      for (const std::string& text : extreme_texts(field)) {
        Attributes attributes = *plain;
        attributes[field.name] = text;
        sweep.try_attributes(attributes, 4);
      }
    refused += sweep.refused, failed += sweep.failed, ran += sweep.ran;
  }
  RecordProperty("operators", static_cast<int>(operators));
  EXPECT_GT(operators, 250u);
  EXPECT_GT(refused, 1000u);
  EXPECT_GT(failed, 1000u);
  EXPECT_GT(ran, 1000u);
}

TEST(OperatorSweep, MadeUpInputsAreErrorsOrRun) {
  std::vector<std::string> never;
  size_t operators = 0;
  for (const OpDef* op : OpRegistry::get().all()) {
    if (!is_made_by_hand(*op)) continue;
    ++operators;
    Sweep sweep(*op);
    sweep.try_attributes(plain_attributes(*op).value(), 120);
    if (sweep.ran == 0) never.push_back(op->name);
  }
  // The inputs are good enough to reach the kernels of nearly all.
  EXPECT_LT(never.size(), operators / 10) << comma_separated(never);
}

}  // namespace
}  // namespace symbind
