#include "tests/fuzz/random_call.h"

#include <algorithm>
#include <limits>
#include <string_view>

#include "symbind/core/error.h"
#include "symbind/graph/builder.h"
#include "symbind/passes/infer.h"

namespace symbind::fuzz {
namespace {

class Dice {
 public:
  explicit Dice(uint64_t number) : engine(number * 0x9E3779B97F4A7C15u + 1) {}

  bool chance(double probability) { return std::uniform_real_distribution<>(0, 1)(engine) < probability; }
  int64_t between(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(engine); }
  template <class T>
  const T& any_of(const std::vector<T>& choices) {
    return choices[static_cast<size_t>(between(0, static_cast<int64_t>(choices.size()) - 1))];
  }

  std::mt19937_64 engine;
};

// ---- Parameters -----------------------------------------------------------------------------------------------------

std::string random_int(Dice& dice) {
  if (dice.chance(0.85)) return std::to_string(dice.chance(0.7) ? dice.between(0, 4) : dice.between(-4, 12));
  static const std::vector<std::string> odd{"-9223372036854775808",
                                            "9223372036854775807",
                                            "-9223372036854775807",
                                            "2147483647",
                                            "-2147483648",
                                            "4294967296",
                                            "10000000000",
                                            "65536",
                                            "1000",
                                            "-1000",
                                            "1e3",
                                            "None",
                                            "",
                                            "x"};
  return dice.any_of(odd);
}

std::string random_float(Dice& dice) {
  if (dice.chance(0.8)) return std::to_string(static_cast<double>(dice.between(-8, 16)) / 8);
  static const std::vector<std::string> odd{"nan",  "inf",  "-inf",   "1e300", "-1e300", "1e-320", "0",
                                            "-0.0", "1e39", "3.4e38", "None",  "",       "x"};
  return dice.any_of(odd);
}

std::string random_tuple(Dice& dice) {
  static const std::vector<int64_t> lengths{0, 1, 1, 2, 2, 2, 3, 3, 4, 5, 9};
  std::string text;
  const int64_t count = dice.any_of(lengths);
  const bool alike = dice.chance(0.6);
  const std::string first = dice.chance(0.7) ? std::to_string(dice.between(1, 3)) : random_int(dice);
  for (int64_t i = 0; i < count; ++i)
    text += (i > 0 ? ", " : "") + (alike              ? first
                                   : dice.chance(0.8) ? std::to_string(dice.between(0, 3))
                                                      : random_int(dice));
  return "(" + text + (count == 1 ? ",)" : ")");
}

// The words a text may be, out of the rule that something else breaks.
std::vector<std::string> words_of(const OpDef& op, const ParamField& field) {
  const auto params = op.make_params();
  try {
    field.parse(params.get(), "no such word");
  } catch (const Error&) {
    return {};
  }
  const std::string rule = field.broken_rule(params.get());
  const std::string_view before = "must be one of ";
  std::vector<std::string> words;
  if (!rule.starts_with(before)) return words;
  for (size_t begin = before.size(); begin < rule.size();) {
    const size_t end = std::min(rule.find(", ", begin), rule.size());
    words.push_back(rule.substr(begin, end - begin));
    begin = end + 2;
  }
  return words;
}

std::string random_text(Dice& dice, const OpDef& op, const ParamField& field) {
  const std::vector<std::string> words = words_of(op, field);
  if (!words.empty() && dice.chance(0.9)) return dice.any_of(words);
  static const std::vector<std::string> odd{"",       std::string(1, '\0'), "None", "x", "float32",
                                            "(1, 2)", std::string(300, 'a')};
  return dice.any_of(odd);
}

std::string random_type(Dice& dice) {
  static const std::vector<std::string> names{"float32", "float64", "float16", "bfloat16", "uint8", "int32",
                                              "int8",    "int64",   "bool",    "none",     "-1",    "99"};
  return dice.any_of(names);
}

std::string random_value(Dice& dice, const OpDef& op, const ParamField& field) {
  const std::string_view type = field.type;
  if (type.ends_with("or None") && dice.chance(0.3)) return "None";
  if (type.starts_with("boolean")) return dice.chance(0.95) ? (dice.chance(0.5) ? "True" : "False") : random_int(dice);
  if (type.starts_with("int")) return random_int(dice);
  if (type.starts_with("float")) return random_float(dice);
  if (type.starts_with("tuple")) return random_tuple(dice);
  if (type.starts_with("type")) return random_type(dice);
  return random_text(dice, op, field);
}

Attributes random_attributes(Dice& dice, const OpDef& op) {
  Attributes attributes;
  const double eagerness = dice.chance(0.3) ? 0.9 : 0.25;
  for (const ParamField& field : op.fields)
    if (field.name != op.count_field ? field.is_required ? dice.chance(0.98) : dice.chance(eagerness)
                                     : dice.chance(0.1))
      attributes[field.name] = random_value(dice, op, field);
  return attributes;
}

// ---- Shapes and types -----------------------------------------------------------------------------------------------

Shape random_shape(Dice& dice) {
  static const std::vector<int64_t> ranks{0, 1, 1, 2, 2, 2, 3, 3, 4, 4, 4, 5, 6, 8};
  Shape shape = Shape::of_rank(0);
  const int64_t rank = dice.any_of(ranks);
  for (int64_t i = 0; i < rank; ++i)
    shape.push_back(dice.chance(0.03)   ? 0
                    : dice.chance(0.05) ? dice.between(15, 40)
                                        : dice.between(1, rank > 5 ? 2 : 6));
  return shape;
}

Shape near(Dice& dice, const Shape& shape) {
  Shape other = shape;
  if (shape.rank() > 0 && dice.chance(0.8))
    other[static_cast<int>(dice.between(0, shape.rank() - 1))] = dice.between(0, 4);
  else if (shape.rank() < Shape::max_rank && dice.chance(0.5))
    other.push_back(dice.between(1, 3));
  else if (shape.rank() > 0)
    other = shape.slice(0, shape.rank() - 1);
  return other;
}

// The shapes of the inputs, inferred from that of the first.
std::vector<Shape> inferred(const OpDef& op, const Attributes& attributes, const Shape& first, size_t count) {
  std::vector<Symbol> variables;
  for (size_t i = 0; i < count; ++i) variables.push_back(Symbol::variable("v" + std::to_string(i)));
  std::vector<Shape> shapes;
  try {
    const Symbol node = apply(op.name, Inputs(variables), attributes);
    const InferredShapes known = infer_shape_partial(node, {{"v0", first}});
    std::map<std::string, Shape> by_name;
    const auto collect = [&](const std::vector<std::string>& names, const std::vector<std::vector<int64_t>>& dims) {
      for (size_t i = 0; i < names.size(); ++i) by_name[names[i]] = Shape(dims[i]);
    };
    collect(node.list_arguments(), known.args);
    collect(node.list_auxiliary_states(), known.aux);
    for (size_t i = 0; i < count; ++i) shapes.push_back(by_name["v" + std::to_string(i)]);
  } catch (const Error&) {
  }
  return shapes;
}

void random_inputs(Dice& dice, RandomCall& call) {
  const OpDef& op = *call.op;
  size_t count = 0;
  if (op.count_field.empty()) {
    try {
      count = op.all_input_count(op.parse_params(call.attributes, "").get());
    } catch (const Error&) {  // it is tried all the same
      count = op.all_input_count(op.make_params().get());
    }
  } else {
    count = static_cast<size_t>(dice.between(1, 4));
  }
  if (dice.chance(0.02)) count = static_cast<size_t>(dice.between(0, 5));
  const Shape first = random_shape(dice);
  const std::vector<Shape> fitting =
      dice.chance(0.8) ? inferred(op, call.attributes, first, count) : std::vector<Shape>{};
  const bool strict = dice.chance(0.8);
  for (size_t i = 0; i < count; ++i) {
    const bool known = i < fitting.size() && fitting[i].rank_known();
    Shape shape = i == 0 ? first : known ? fitting[i] : first;
    if (i > 0 && !strict && dice.chance(0.3)) shape = dice.chance(0.7) ? near(dice, shape) : random_shape(dice);
    for (int axis = 0; axis < shape.rank(); ++axis)
      if (shape[axis] < 0) shape[axis] = dice.between(1, 3);
    call.shapes.push_back(shape);
  }
  static const std::vector<DType> types{DType::float32, DType::float64, DType::float16, DType::bfloat16, DType::uint8,
                                        DType::int32,   DType::int8,    DType::int64,   DType::boolean};
  const DType common = dice.chance(0.6) ? DType::float32 : dice.any_of(types);
  const bool mixed = dice.chance(0.15);
  for (size_t i = 0; i < count; ++i) call.types.push_back(mixed ? dice.any_of(types) : common);
}

// What users can call.
const std::vector<const OpDef*>& operators() {
  static const std::vector<const OpDef*> all = [] {
    std::vector<const OpDef*> found;
    for (const OpDef* op : OpRegistry::get().all())
      if (!op->internal) found.push_back(op);
    return found;
  }();
  return all;
}

}  // namespace

RandomCall random_call(uint64_t number) {
  Dice dice(number);
  RandomCall call;
  call.op = dice.any_of(operators());
  call.attributes = random_attributes(dice, *call.op);
  random_inputs(dice, call);
  call.values = dice.engine();
  return call;
}

std::ostream& operator<<(std::ostream& out, const RandomCall& call) {
  out << call.op->name << " {";
  for (const auto& [key, value] : call.attributes) {
    out << key << "=";
    for (const char c : value)
      if (c == '\0')
        out << "\\0";
      else
        out << c;
    out << "; ";
  }
  out << "}";
  for (size_t i = 0; i < call.shapes.size(); ++i) out << " " << call.types[i] << call.shapes[i];
  return out << "\n" << std::flush;
}

std::vector<double> random_values(std::mt19937_64& dice, int64_t count) {
  static constexpr double special[] = {0.0,   -0.0,   1.0,          -1.0,   std::numeric_limits<double>::quiet_NaN(),
                                       1e-40, -1e-40, 1e30,         -1e30,  std::numeric_limits<double>::infinity(),
                                       65504, 1e308,  -1e308,       5e-324, -std::numeric_limits<double>::infinity(),
                                       127,   -128,   2147483648.0, 255,    0.5};
  std::uniform_real_distribution<> part(-2, 2);
  const uint64_t kind = dice() % 6;
  std::vector<double> values(static_cast<size_t>(count));
  for (double& value : values) {
    const bool is_special = kind == 0 || (kind == 1 && dice() % 8 == 0);
    if (is_special)
      value = special[dice() % std::size(special)];
    else if (kind == 2)
      value = static_cast<double>(dice() % 4);  // indices
    else if (kind == 3)
      value = static_cast<double>(dice() % 40) - 20;
    else
      value = part(dice);
  }
  return values;
}

}  // namespace symbind::fuzz
