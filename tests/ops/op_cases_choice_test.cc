#include <algorithm>
#include <cmath>

#include "tests/ops/op_cases.h"

namespace symbind::testing {
namespace {

struct Pair {
  const char* word;
  double (*value)(double, double);
  bool smooth = true;
};
const Pair pairs[] = {
    {"maximum", [](double a, double b) { return std::max(a, b); }},
    {"minimum", [](double a, double b) { return std::min(a, b); }},
    {"hypot", [](double a, double b) { return std::hypot(a, b); }},
    {"mod", [](double a, double b) { return a - b * std::floor(a / b); }, false},
    {"logical_and", [](double a, double b) { return a != 0 && b != 0 ? 1.0 : 0.0; }, false},
    {"logical_or", [](double a, double b) { return a != 0 || b != 0 ? 1.0 : 0.0; }, false},
    {"logical_xor", [](double a, double b) { return (a != 0) != (b != 0) ? 1.0 : 0.0; }, false},
};

void add_pairs(std::vector<OpCase>& cases) {
  for (const Pair& pair : pairs) {
    const auto value = pair.value;
    const std::string word = pair.word;
    const bool logic = word.starts_with("logical");
    const double low = logic ? -0.05 : 0.5, high = logic ? 0.05 : 3;
    const auto elementwise = [value](Inputs_ in) {
      Values out = in[0];
      for (size_t i = 0; i < out.data.size(); ++i) out.data[i] = value(in[0].data[i], in[1].data[i]);
      return std::vector{out};
    };
    cases.push_back({.name = "_" + word,
                     .op = "_" + word,
                     .inputs = {{"lhs", {3, 4}, low, high}, {"rhs", {3, 4}, low, high}},
                     .reference = elementwise,
                     .differentiable = pair.smooth,
                     .more_shapes = {{{1}, {1}}, {{0, 3}, {0, 3}}, {{257}, {257}}},
                     .in_place = true,
                     .slack = 4});
    cases.push_back({.name = "broadcast_" + word,
                     .op = "broadcast_" + word,
                     .inputs = {{"lhs", {3, 4}, low, high}, {"rhs", {1, 4}, low, high}},
                     .reference =
                         [value](Inputs_ in) {
                           Values out = in[0];
                           for (size_t i = 0; i < out.data.size(); ++i)
                             out.data[i] = value(in[0].data[i], in[1].data[i % 4]);
                           return std::vector{out};
                         },
                     .differentiable = pair.smooth,
                     .slack = 4});
    for (const bool reversed : {false, true}) {
      if (reversed && word != "mod") continue;
      const std::string op = (reversed ? "_r" : "_") + word + "_scalar";
      cases.push_back({.name = op,
                       .op = op,
                       .attributes = {{"scalar", logic ? "0" : "1.2578125"}},
                       .inputs = {{"data", {3, 4}, low, high}},
                       .reference =
                           [=](Inputs_ in) {
                             Values out = in[0];
                             const double scalar = logic ? 0 : 1.2578125;
                             for (double& x : out.data) x = reversed ? value(scalar, x) : value(x, scalar);
                             return std::vector{out};
                           },
                       // What is left of a division jumps: half precision may fall on the other side.
                       .dtypes = word == "mod" ? std::vector{DType::float32, DType::float64}
                                               : std::vector{DType::float32, DType::float64, DType::float16},
                       .differentiable = pair.smooth,
                       .in_place = true,
                       .slack = 4});
    }
  }
}

// ---- elements by number ---------------------------------------------------------------------------------------------

OpInput numbers(const std::string& name, const Shape& shape, double number) {
  return {.name = name, .shape = shape, .low = number, .high = number, .dtype = DType::float32, .gradient = false};
}

// Row `row` of a matrix, `times` times.
Reference row_of_matrix(size_t input, int64_t row, Shape shape, int64_t times) {
  return [=](Inputs_ in) {
    Values out{shape, {}};
    const auto length = static_cast<size_t>(in[input].shape[1]);
    for (int64_t i = 0; i < times; ++i)
      for (size_t k = 0; k < length; ++k) out.data.push_back(in[input].data[static_cast<size_t>(row) * length + k]);
    return std::vector{out};
  };
}

Reference column_of_matrix(size_t column) {
  return [column](Inputs_ in) {
    Values out{{in[0].shape[0]}, {}};
    for (size_t row = 0; row < static_cast<size_t>(in[0].shape[0]); ++row)
      out.data.push_back(in[0].data[row * static_cast<size_t>(in[0].shape[1]) + column]);
    return std::vector{out};
  };
}

void add_gathers(std::vector<OpCase>& cases) {
  cases.push_back({.name = "take",
                   .op = "take",
                   .inputs = {{"a", {4, 3}}, numbers("indices", {2}, 3)},
                   .reference = row_of_matrix(0, 3, {2, 3}, 2)});
  cases.push_back({.name = "take_along_columns",
                   .op = "take",
                   .attributes = {{"axis", "1"}, {"mode", "wrap"}},
                   .inputs = {{"a", {2, 4, 33}}, numbers("indices", {2, 2}, -1)}});
  cases.push_back({.name = "Embedding",
                   .op = "Embedding",
                   .attributes = {{"input_dim", "4"}, {"output_dim", "3"}},
                   .inputs = {numbers("data", {2, 2}, 1), {"weight", {4, 3}}},
                   .reference = row_of_matrix(1, 1, {2, 2, 3}, 4)});
  cases.push_back({.name = "one_hot",
                   .op = "one_hot",
                   .attributes = {{"depth", "3"}},
                   .inputs = {numbers("indices", {2}, 1)},
                   .reference =
                       [](Inputs_) {
                         return std::vector{Values{{2, 3}, {0, 1, 0, 0, 1, 0}}};
                       },
                   .dtypes = {DType::float32},
                   .differentiable = false});
  cases.push_back({.name = "one_hot_of_no_classes",
                   .op = "one_hot",
                   .attributes = {{"depth", "0"}},
                   .inputs = {numbers("indices", {2}, 1)},
                   .reference =
                       [](Inputs_) {
                         return std::vector{Values{{2, 0}, {}}};
                       },
                   .dtypes = {DType::float32},
                   .differentiable = false});
  cases.push_back({.name = "pick",
                   .op = "pick",
                   .inputs = {{"data", {3, 4}}, numbers("index", {3}, 2)},
                   .reference = column_of_matrix(2)});
  cases.push_back({.name = "pick_keeping_the_axis",
                   .op = "pick",
                   .attributes = {{"axis", "1"}, {"keepdims", "True"}},
                   .inputs = {{"data", {2, 3, 4}}, numbers("index", {2, 4}, 1)}});
  for (const char* axis : {"0", "1"}) {
    const Attributes by_length{{"use_sequence_length", "True"}, {"axis", axis}};
    const OpInput lengths = numbers("sequence_length", {axis[0] == '0' ? 4 : 3}, 2);
    Attributes masked = by_length;
    masked["value"] = "0.5";
    const std::string suffix = axis[0] == '0' ? "" : "_batch_first";
    cases.push_back({.name = "SequenceMask" + suffix,
                     .op = "SequenceMask",
                     .attributes = masked,
                     .inputs = {{"data", {3, 4, 2}}, lengths},
                     .in_place = true});
    cases.push_back({.name = "SequenceLast" + suffix,
                     .op = "SequenceLast",
                     .attributes = by_length,
                     .inputs = {{"data", {3, 4, 2}}, lengths}});
  }
  cases.push_back({.name = "SequenceReverse",
                   .op = "SequenceReverse",
                   .attributes = {{"use_sequence_length", "True"}},
                   .inputs = {{"data", {3, 4, 2}}, numbers("sequence_length", {4}, 2)}});
  cases.push_back({.name = "batch_take",
                   .op = "batch_take",
                   .inputs = {{"a", {3, 4}}, numbers("indices", {3}, 1)},
                   .reference = column_of_matrix(1)});
  cases.push_back({.name = "fill_element_0index",
                   .op = "fill_element_0index",
                   .inputs = {{"lhs", {2, 2}}, {"mhs", {2}}, numbers("rhs", {2}, 1)},
                   .reference =
                       [](Inputs_ in) {
                         Values out = in[0];
                         out.data[1] = in[1].data[0];
                         out.data[3] = in[1].data[1];
                         return std::vector{out};
                       },
                   .differentiable = false,
                   .in_place = true});
  for (const double condition : {0.0, 2.0})
    cases.push_back({.name = condition == 0 ? "where_not" : "where",
                     .op = "where",
                     .inputs = {numbers("condition", {3, 4}, condition), {"x", {3, 4}}, {"y", {3, 4}}},
                     .reference = [condition](Inputs_ in) { return std::vector{in[condition == 0 ? 2 : 1]}; },
                     .more_shapes = {{{3}, {3, 2}, {3, 2}}, {{0, 3}, {0, 3}, {0, 3}}}});
  cases.push_back({.name = "gather_nd",
                   .op = "gather_nd",
                   .inputs = {{"data", {3, 4}}, numbers("indices", {1, 2}, 2)},
                   .reference = row_of_matrix(0, 2, {2, 4}, 2)});
  cases.push_back({.name = "scatter_nd",
                   .op = "scatter_nd",
                   .attributes = {{"shape", "(2, 3)"}},
                   .inputs = {{"data", {1, 3}}, numbers("indices", {1, 1}, 1)},
                   .reference = [](Inputs_ in) {
                     Values out{{2, 3}, {0, 0, 0}};
                     out.data.insert(out.data.end(), in[0].data.begin(), in[0].data.end());
                     return std::vector{out};
                   }});
}

// ---- reductions -----------------------------------------------------------------------------------------------------

// Of the rows of a matrix.
template <class Fold>
Reference of_rows(Fold fold) {
  return [fold](Inputs_ in) {
    Values out{{in[0].shape[0]}, {}};
    const auto length = in[0].shape[1];
    for (int64_t row = 0; row < in[0].shape[0]; ++row) {
      const auto first = in[0].data.begin() + row * length;
      out.data.push_back(fold(std::vector<double>(first, first + length)));
    }
    return std::vector{out};
  };
}

double product(const std::vector<double>& row) {
  double result = 1;
  for (const double x : row) result *= x;
  return result;
}
double sum(const std::vector<double>& row) {
  double result = 0;
  for (const double x : row) result += x;
  return result;
}

void add_reductions(std::vector<OpCase>& cases) {
  struct Reduction {
    const char* op;
    double (*fold)(const std::vector<double>&);
  };
  const Reduction reductions[] = {
      {"max", [](const std::vector<double>& row) { return *std::max_element(row.begin(), row.end()); }},
      {"min", [](const std::vector<double>& row) { return *std::min_element(row.begin(), row.end()); }},
      {"prod", product},
      {"nansum", sum},
      {"nanprod", product},
      {"norm",
       [](const std::vector<double>& row) {
         double squares = 0;
         for (const double x : row) squares += x * x;
         return std::sqrt(squares);
       }},
  };
  for (const Reduction& each : reductions) {
    const std::string op = each.op;
    const bool extreme = op == "max" || op == "min";
    // Extremes of distinct numbers; products of such that are not too large.
    cases.push_back({.name = op,
                     .op = op,
                     .attributes = {{"axis", "1"}},
                     .inputs = {{"data", {3, 5}, extreme ? -20 : 0.5, extreme ? 20 : 1.5}},
                     .reference = of_rows(each.fold),
                     .more_shapes = {{{1, 1}}, {{0, 5}}, {{70, 9}}},
                     .slack = 4});
    cases.push_back({.name = op + "_over_two_axes",
                     .op = op,
                     .attributes = {{"axis", "(0, 2)"}, {"keepdims", "True"}},
                     .inputs = {{"data", {2, 3, 4}, extreme ? -20 : 0.5, extreme ? 20 : 1.5}},
                     .slack = 4});
  }
  cases.push_back({.name = "norm_of_magnitudes",
                   .op = "norm",
                   .attributes = {{"ord", "1"}, {"axis", "1"}},
                   .inputs = {{"data", {3, 5}, 0.25, 2}},
                   .reference = of_rows(sum),
                   .slack = 2});
  for (const char* op : {"argmax", "argmin", "argmax_channel"}) {
    const bool largest = std::string(op) != "argmin";
    cases.push_back({.name = op,
                     .op = op,
                     .attributes = std::string(op) == "argmax_channel" ? Attributes{} : Attributes{{"axis", "1"}},
                     .inputs = {{"data", {3, 5}, -20, 20}},
                     .reference = of_rows([largest](const std::vector<double>& row) {
                       const auto found = largest ? std::max_element(row.begin(), row.end())
                                                  : std::min_element(row.begin(), row.end());
                       return static_cast<double>(found - row.begin());
                     }),
                     .differentiable = false,
                     .more_shapes = {{{1, 1}}, {{0, 5}}, {{70, 9}}}});
  }
}

}  // namespace

void add_choice_cases(std::vector<OpCase>& cases) {
  add_pairs(cases);
  add_gathers(cases);
  add_reductions(cases);
}

}  // namespace symbind::testing
