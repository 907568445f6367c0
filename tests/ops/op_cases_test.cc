// A table of all operators: what goes in, what the definition says comes out. Each line is checked in every way
// op_case.h knows. What is particular to an operator is tested in its family's own file.
#include "tests/ops/op_cases.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <gtest/gtest.h>

#include "symbind/graph/op.h"

#include "tests/ops/op_cases_detection.h"
#include "tests/support/graphs.h"
#include "tests/support/op_case.h"

namespace symbind::testing {
namespace {

// ---- plain definitions ---------------------------------------------------------------------------------------------

// Calls visit(index in the result, index in `from`) for every element of `to`, where `from` broadcasts to it.
template <class Visit>
void for_each_broadcast(const Shape& to, const Shape& from, Visit visit) {
  const auto to_strides = to.strides(), from_strides = from.strides();
  for (int64_t i = 0; i < to.size(); ++i) {
    int64_t rest = i, at = 0;
    for (int axis = 0; axis < to.rank(); ++axis) {
      const int64_t index = rest / to_strides[static_cast<size_t>(axis)];
      rest %= to_strides[static_cast<size_t>(axis)];
      const int own = axis - (to.rank() - from.rank());
      if (own >= 0 && from[own] != 1) at += index * from_strides[static_cast<size_t>(own)];
    }
    visit(static_cast<size_t>(i), static_cast<size_t>(at));
  }
}

template <class Function>
Reference unary(Function function) {
  return [function](Inputs_ in) {
    Values out = in[0];
    for (double& value : out.data) value = function(value);
    return std::vector{out};
  };
}

template <class Function>
Reference binary(Function function) {
  return [function](Inputs_ in) {
    Values out{broadcast(in[0].shape, in[1].shape, ""), {}};
    out.data.resize(static_cast<size_t>(out.shape.size()));
    std::vector<double> left(out.data.size()), right(out.data.size());
    for_each_broadcast(out.shape, in[0].shape, [&](size_t to, size_t from) { left[to] = in[0].data[from]; });
    for_each_broadcast(out.shape, in[1].shape, [&](size_t to, size_t from) { right[to] = in[1].data[from]; });
    for (size_t i = 0; i < out.data.size(); ++i) out.data[i] = function(left[i], right[i]);
    return std::vector{out};
  };
}

// The sum over the axes for which the result has extent 1, times a factor that may depend on how many were summed.
Reference reduction(Shape with_ones, Shape result, bool mean) {
  return [=](Inputs_ in) {
    Values out{result, std::vector<double>(static_cast<size_t>(result.size()), 0.0)};
    for_each_broadcast(in[0].shape, with_ones, [&](size_t from, size_t to) { out.data[to] += in[0].data[from]; });
    const double count = static_cast<double>(in[0].shape.size()) / static_cast<double>(result.size());
    if (mean)
      for (double& value : out.data) value /= count;
    return std::vector{out};
  };
}

Reference same_values(Shape shape) {
  return [shape](Inputs_ in) { return std::vector{Values{shape.rank_known() ? shape : in[0].shape, in[0].data}}; };
}

std::vector<Values> plain_dot(Inputs_ in) {
  const int64_t rows = in[0].shape[0], inner = in[0].shape[1], columns = in[1].shape[1];
  Values out{{rows, columns}, std::vector<double>(static_cast<size_t>(rows * columns), 0.0)};
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t k = 0; k < inner; ++k)
      for (int64_t j = 0; j < columns; ++j)
        out.data[static_cast<size_t>(i * columns + j)] +=
            in[0].data[static_cast<size_t>(i * inner + k)] * in[1].data[static_cast<size_t>(k * columns + j)];
  return {out};
}

std::vector<Values> plain_transpose(Inputs_ in) {
  const int64_t rows = in[0].shape[0], columns = in[0].shape[1];
  Values out{{columns, rows}, std::vector<double>(in[0].data.size())};
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      out.data[static_cast<size_t>(j * rows + i)] = in[0].data[static_cast<size_t>(i * columns + j)];
  return {out};
}

// One image, one channel at a time: stride 1, no padding.
std::vector<Values> plain_convolution(Inputs_ in) {
  const Shape &x = in[0].shape, &w = in[1].shape;
  const int64_t height = x[2] - w[2] + 1, width = x[3] - w[3] + 1;
  Values out{{x[0], w[0], height, width}, {}};
  for (int64_t n = 0; n < x[0]; ++n)
    for (int64_t f = 0; f < w[0]; ++f)
      for (int64_t i = 0; i < height; ++i)
        for (int64_t j = 0; j < width; ++j) {
          double sum = in[2].data[static_cast<size_t>(f)];
          for (int64_t c = 0; c < w[1]; ++c)
            for (int64_t a = 0; a < w[2]; ++a)
              for (int64_t b = 0; b < w[3]; ++b)
                sum += in[0].data[static_cast<size_t>(((n * x[1] + c) * x[2] + i + a) * x[3] + j + b)] *
                       in[1].data[static_cast<size_t>(((f * w[1] + c) * w[2] + a) * w[3] + b)];
          out.data.push_back(sum);
        }
  return {out};
}

// Windows of 2x2 that do not overlap.
Reference plain_pooling(bool max) {
  return [max](Inputs_ in) {
    const Shape& x = in[0].shape;
    Values out{{x[0], x[1], x[2] / 2, x[3] / 2}, {}};
    for (int64_t plane = 0; plane < x[0] * x[1]; ++plane)
      for (int64_t i = 0; i < x[2] / 2; ++i)
        for (int64_t j = 0; j < x[3] / 2; ++j) {
          double sum = 0, most = -1e30;
          for (int64_t a = 0; a < 2; ++a)
            for (int64_t b = 0; b < 2; ++b) {
              const double value = in[0].data[static_cast<size_t>((plane * x[2] + 2 * i + a) * x[3] + 2 * j + b)];
              sum += value;
              most = std::max(most, value);
            }
          out.data.push_back(max ? most : sum / 4);
        }
    return std::vector{out};
  };
}

std::vector<Values> plain_fully_connected(Inputs_ in) {
  const int64_t rows = in[0].shape[0], outputs = in[1].shape[0];
  const int64_t inner = rows ? static_cast<int64_t>(in[0].data.size()) / rows : in[1].shape[1];
  Values out{{rows, outputs}, {}};
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t o = 0; o < outputs; ++o) {
      double sum = in[2].data[static_cast<size_t>(o)];
      for (int64_t k = 0; k < inner; ++k)
        sum += in[0].data[static_cast<size_t>(i * inner + k)] * in[1].data[static_cast<size_t>(o * inner + k)];
      out.data.push_back(sum);
    }
  return {out};
}

std::vector<Values> plain_softmax(Inputs_ in) {
  Values out = in[0];
  const int64_t rows = out.shape[0], classes = out.shape[1];
  for (int64_t i = 0; i < rows; ++i) {
    double* row = out.data.data() + i * classes;
    double sum = 0;
    for (int64_t j = 0; j < classes; ++j) sum += row[j] = std::exp(row[j]);
    for (int64_t j = 0; j < classes; ++j) row[j] /= sum;
  }
  return {out};
}

double cross_entropy(const std::vector<NDArray>& outputs, const std::vector<NDArray>& inputs) {
  const auto probabilities = outputs[0].to_vector<double>(), labels = inputs[1].to_vector<double>();
  const auto classes = static_cast<size_t>(outputs[0].shape()[1]);
  double loss = 0;
  for (size_t i = 0; i < labels.size(); ++i)
    loss -= std::log(probabilities[i * classes + static_cast<size_t>(labels[i])]);
  return loss;
}

// ---- the table -----------------------------------------------------------------------------------------------------

const std::vector<std::vector<Shape>> one_odd_shapes{{{1}}, {{7}}, {{3, 5, 7}}, {{0, 4}}, {{257, 33}}};
const std::vector<std::vector<Shape>> two_odd_shapes{
    {{1}, {1}}, {{3, 5, 7}, {3, 5, 7}}, {{0, 4}, {0, 4}}, {{1031}, {1031}}};
const std::vector<std::vector<Shape>> broadcasts{
    {{3, 4}, {1, 4}}, {{2, 1, 3}, {1, 5, 1}}, {{1}, {4, 3}}, {{0, 4}, {1, 4}}, {{2, 3, 4, 5}, {1, 3, 1, 1}}};

OpCase unary_case(const std::string& op, Reference reference, double low = -2, double high = 2) {
  return {.name = op,
          .op = op,
          .inputs = {{"data", {3, 4}, low, high}},
          .reference = std::move(reference),
          .more_shapes = one_odd_shapes,
          .in_place = true};
}

OpCase binary_case(const std::string& op, Reference reference, double low = -2, double high = 2) {
  return {.name = op,
          .op = op,
          .inputs = {{"lhs", {3, 4}, low, high}, {"rhs", {3, 4}, low, high}},
          .reference = std::move(reference),
          .more_shapes = two_odd_shapes,
          .in_place = true,
          .slack = 4};
}

OpCase broadcast_case(const std::string& op, Reference reference, double low = -2, double high = 2) {
  OpCase made = binary_case(op, std::move(reference), low, high);
  made.more_shapes = broadcasts;
  made.in_place = false;
  return made;
}

OpCase scalar_case(const std::string& op, Reference reference, double low = -2, double high = 2) {
  OpCase made = unary_case(op, std::move(reference), low, high);
  made.attributes = {{"scalar", "1.5"}};
  made.slack = 4;
  return made;
}

OpCase without_gradient(OpCase made) {
  made.differentiable = false;
  return made;
}

void add_pointwise(std::vector<OpCase>& cases) {
  const auto itself = [](double x) { return x; };
  for (const char* op : {"_copy", "relu", "negative", "exp", "tanh", "sigmoid", "square"}) {
    const std::string name = op;
    cases.push_back(unary_case(name, unary([=](double x) {
                                 if (name == "relu") return std::max(x, 0.0);
                                 if (name == "negative") return -x;
                                 if (name == "exp") return std::exp(x);
                                 if (name == "tanh") return std::tanh(x);
                                 if (name == "sigmoid") return 1 / (1 + std::exp(-x));
                                 return name == "square" ? x * x : itself(x);
                               })));
  }
  cases.push_back(unary_case("log", unary([](double x) { return std::log(x); }), 0.5, 4));
  cases.push_back(unary_case("sqrt", unary([](double x) { return std::sqrt(x); }), 0.5, 4));
  cases.push_back(without_gradient(unary_case("BlockGrad", unary(itself))));
  cases.push_back(without_gradient(unary_case("zeros_like", unary([](double) { return 0.0; }))));
  cases.push_back(without_gradient(unary_case("ones_like", unary([](double) { return 1.0; }))));

  struct Binary {
    const char *elementwise, *scalar, *reversed;
    std::function<double(double, double)> function;
    double low, high;
  };
  const Binary arithmetic[] = {
      {"add", "_plus_scalar", nullptr, [](double a, double b) { return a + b; }, -2, 2},
      {"sub", "_minus_scalar", "_rminus_scalar", [](double a, double b) { return a - b; }, -2, 2},
      {"mul", "_mul_scalar", nullptr, [](double a, double b) { return a * b; }, -2, 2},
      {"div", "_div_scalar", "_rdiv_scalar", [](double a, double b) { return a / b; }, 0.5, 3},
      {"power", "_power_scalar", "_rpower_scalar", [](double a, double b) { return std::pow(a, b); }, 0.5, 3},
  };
  for (const Binary& each : arithmetic) {
    const std::string word = each.elementwise;
    const auto function = each.function;
    cases.push_back(
        binary_case(word == "power" ? "_power" : "elemwise_" + word, binary(function), each.low, each.high));
    cases.push_back(broadcast_case("broadcast_" + word, binary(function), each.low, each.high));
    cases.push_back(scalar_case(each.scalar, unary([=](double x) { return function(x, 1.5); }), each.low, each.high));
    if (each.reversed)
      cases.push_back(
          scalar_case(each.reversed, unary([=](double x) { return function(1.5, x); }), each.low, each.high));
  }
  const std::pair<const char*, std::function<double(double, double)>> comparisons[] = {
      {"equal", [](double a, double b) { return a == b; }},
      {"not_equal", [](double a, double b) { return a != b; }},
      {"greater", [](double a, double b) { return a > b; }},
      {"greater_equal", [](double a, double b) { return a >= b; }},
      {"lesser", [](double a, double b) { return a < b; }},
      {"lesser_equal", [](double a, double b) { return a <= b; }},
  };
  for (const auto& comparison : comparisons) {
    const std::string word = comparison.first;
    const auto function = comparison.second;
    cases.push_back(without_gradient(binary_case("_" + word, binary(function), -0.1, 0.1)));
    cases.push_back(without_gradient(broadcast_case("broadcast_" + word, binary(function), -0.1, 0.1)));
    cases.push_back(without_gradient(
        scalar_case("_" + word + "_scalar", unary([=](double x) { return function(x, 1.5); }), 1.3, 1.7)));
  }
}

void add_arrays(std::vector<OpCase>& cases) {
  const OpInput matrix{"data", {3, 4}}, cube{"data", {2, 3, 4}};
  cases.push_back({.name = "Flatten", .op = "Flatten", .inputs = {cube}, .reference = same_values({2, 12})});
  cases.push_back({.name = "Reshape",
                   .op = "Reshape",
                   .attributes = {{"shape", "(-1, 3)"}},
                   .inputs = {cube},
                   .reference = same_values({8, 3})});
  cases.push_back({.name = "reshape_like",
                   .op = "reshape_like",
                   .inputs = {{"lhs", {2, 3, 4}}, {.name = "rhs", .shape = {4, 6}, .gradient = false}},
                   .reference = same_values({4, 6})});
  cases.push_back({.name = "transpose",
                   .op = "transpose",
                   .inputs = {matrix},
                   .reference = plain_transpose,
                   .more_shapes = {{{1, 5}}, {{0, 3}}, {{33, 65}}}});
  cases.push_back({.name = "slice",
                   .op = "slice",
                   .attributes = {{"begin", "(1,)"}, {"end", "(3,)"}},
                   .inputs = {matrix},
                   .reference = [](Inputs_ in) {
                     return std::vector{Values{{2, 4}, {in[0].data.begin() + 4, in[0].data.end()}}};
                   }});
  cases.push_back({.name = "slice_with_steps",
                   .op = "slice",
                   .attributes = {{"begin", "(None, 3)"}, {"end", "(None, None)"}, {"step", "(2, -2)"}},
                   .inputs = {matrix}});
  cases.push_back({.name = "slice_assign",
                   .op = "_slice_assign",
                   .attributes = {{"begin", "(0, 1)"}, {"end", "(3, 3)"}},
                   .inputs = {{"lhs", {3, 4}}, {"rhs", {3, 2}}}});
  cases.push_back({.name = "slice_assign_scalar",
                   .op = "_slice_assign_scalar",
                   .attributes = {{"begin", "(0, 1)"}, {"end", "(3, 3)"}, {"scalar", "2.5"}},
                   .inputs = {matrix}});
  cases.push_back({.name = "Concat",
                   .op = "Concat",
                   .attributes = {{"dim", "0"}, {"num_args", "2"}},
                   .inputs = {{"arg0", {2, 3}}, {"arg1", {1, 3}}},
                   .reference =
                       [](Inputs_ in) {
                         Values out{{in[0].shape[0] + in[1].shape[0], 3}, in[0].data};
                         out.data.insert(out.data.end(), in[1].data.begin(), in[1].data.end());
                         return std::vector{out};
                       },
                   .more_shapes = {{{0, 3}, {2, 3}}}});
  cases.push_back({.name = "Concat_inside",
                   .op = "Concat",
                   .attributes = {{"dim", "1"}, {"num_args", "3"}},
                   .inputs = {{"arg0", {2, 3, 2}}, {"arg1", {2, 1, 2}}, {"arg2", {2, 2, 2}}}});
  cases.push_back({.name = "Cast",
                   .op = "Cast",
                   .attributes = {{"dtype", "float64"}},
                   .inputs = {matrix},
                   .reference = same_values({}),
                   .more_shapes = one_odd_shapes});
  cases.push_back({.name = "dot",
                   .op = "dot",
                   .inputs = {{"lhs", {3, 4}}, {"rhs", {4, 5}}},
                   .reference = plain_dot,
                   .more_shapes = {{{1, 1}, {1, 1}}, {{0, 4}, {4, 5}}, {{3, 0}, {0, 5}}, {{17, 33}, {33, 9}}}});
  cases.push_back({.name = "dot_transposed",
                   .op = "dot",
                   .attributes = {{"transpose_a", "True"}, {"transpose_b", "True"}},
                   .inputs = {{"lhs", {4, 3}}, {"rhs", {5, 4}}}});
  for (const bool mean : {false, true}) {
    const std::string op = mean ? "mean" : "sum";
    cases.push_back({.name = op, .op = op, .inputs = {cube}, .reference = reduction({1, 1, 1}, {1}, mean)});
    cases.push_back({.name = op + "_over_the_middle",
                     .op = op,
                     .attributes = {{"axis", "1"}},
                     .inputs = {cube},
                     .reference = reduction({2, 1, 4}, {2, 4}, mean)});
    cases.push_back({.name = op + "_keeping_axes",
                     .op = op,
                     .attributes = {{"axis", "(0, 2)"}, {"keepdims", "True"}},
                     .inputs = {cube},
                     .reference = reduction({1, 3, 1}, {1, 3, 1}, mean)});
  }
}

void add_layers(std::vector<OpCase>& cases) {
  cases.push_back({.name = "FullyConnected",
                   .op = "FullyConnected",
                   .attributes = {{"num_hidden", "5"}},
                   .inputs = {{"data", {3, 2, 2}}, {"weight", {5, 4}}, {"bias", {5}}},
                   .reference = plain_fully_connected,
                   .more_shapes = {{{1, 4}, {5, 4}, {5}}, {{0, 4}, {5, 4}, {5}}, {{7, 33}, {5, 33}, {5}}}});
  cases.push_back({.name = "Convolution",
                   .op = "Convolution",
                   .attributes = {{"kernel", "(3, 2)"}, {"num_filter", "4"}},
                   .inputs = {{"data", {2, 3, 5, 4}}, {"weight", {4, 3, 3, 2}}, {"bias", {4}}},
                   .reference = plain_convolution,
                   .more_shapes = {{{1, 1, 3, 2}, {4, 1, 3, 2}, {4}}, {{0, 3, 5, 4}, {4, 3, 3, 2}, {4}}},
                   .slack = 2});
  cases.push_back({.name = "Convolution_in_groups",
                   .op = "Convolution",
                   .attributes = {{"kernel", "(3,)"},
                                  {"num_filter", "4"},
                                  {"num_group", "2"},
                                  {"stride", "(2,)"},
                                  {"dilate", "(2,)"},
                                  {"pad", "(1,)"},
                                  {"no_bias", "True"}},
                   .inputs = {{"data", {2, 4, 9}}, {"weight", {4, 2, 3}}},
                   .slack = 2});
  cases.push_back({.name = "Convolution_in_space",
                   .op = "Convolution",
                   .attributes = {{"kernel", "(2, 2, 2)"}, {"num_filter", "2"}},
                   .inputs = {{"data", {1, 2, 3, 3, 3}}, {"weight", {2, 2, 2, 2, 2}}, {"bias", {2}}},
                   .slack = 2});
  for (const bool max : {true, false})
    cases.push_back({.name = max ? "Pooling_max" : "Pooling_avg",
                     .op = "Pooling",
                     .attributes = {{"kernel", "(2, 2)"}, {"stride", "(2, 2)"}, {"pool_type", max ? "max" : "avg"}},
                     .inputs = {{"data", {2, 3, 4, 6}, -20, 20}},
                     .reference = plain_pooling(max),
                     .more_shapes = {{{1, 1, 2, 2}}, {{0, 2, 4, 4}}, {{1, 17, 6, 6}}}});
  for (const char* act : {"relu", "sigmoid", "tanh", "softrelu", "softsign"})
    cases.push_back({.name = std::string("Activation_") + act,
                     .op = "Activation",
                     .attributes = {{"act_type", act}},
                     .inputs = {{"data", {3, 4}, -2, 2}},
                     .more_shapes = one_odd_shapes});
  for (const char* is_fixed : {"True", "False"})
    cases.push_back(
        {.name = std::string("BatchNorm_fix_gamma_") + is_fixed,
         .op = "BatchNorm",
         .attributes = {{"fix_gamma", is_fixed}},
         .inputs =
             {{"data", {4, 3, 2, 2}, -2, 2},
              {.name = "gamma", .shape = {3}, .low = 0.5, .high = 1.5, .dtype = DType::float32},
              {.name = "beta", .shape = {3}, .dtype = DType::float32},
              {.name = "moving_mean", .shape = {3}, .dtype = DType::float32, .aux = true},
              {.name = "moving_var", .shape = {3}, .low = 0.5, .high = 1.5, .dtype = DType::float32, .aux = true}},
         .dtypes = {DType::float32, DType::float16, DType::bfloat16},
         .slack = 4});
  cases.push_back({.name = "Dropout", .op = "Dropout", .attributes = {{"p", "0.4"}}, .inputs = {{"data", {5, 7}}}});
  cases.push_back(
      {.name = "SoftmaxOutput",
       .op = "SoftmaxOutput",
       .inputs = {{"data", {5, 4}, -2, 2}, {.name = "label", .shape = {5}, .low = 0, .high = 0, .gradient = false}},
       .reference = plain_softmax,
       .more_shapes = {{{1, 1}, {1}}, {{0, 4}, {0}}, {{9, 33}, {9}}},
       .loss = cross_entropy});
  cases.push_back({.name = "LinearRegressionOutput",
                   .op = "LinearRegressionOutput",
                   .inputs = {{"data", {5, 4}}, {.name = "label", .shape = {5, 4}, .gradient = false}},
                   .reference = same_values({}),
                   .loss = [](const std::vector<NDArray>& outputs, const std::vector<NDArray>& inputs) {
                     const auto y = outputs[0].to_vector<double>(), label = inputs[1].to_vector<double>();
                     double loss = 0;
                     for (size_t i = 0; i < y.size(); ++i) loss += 0.5 * (y[i] - label[i]) * (y[i] - label[i]) / 4;
                     return loss;
                   }});
  for (const char* op : {"MakeLoss", "make_loss"})
    cases.push_back({.name = std::string(op) + "_of_numbers",
                     .op = op,
                     .inputs = {{"data", {3, 4}}},
                     .reference = same_values({}),
                     .loss = [](const std::vector<NDArray>& outputs, const std::vector<NDArray>&) {
                       double loss = 0;
                       for (const double value : outputs[0].to_vector<double>()) loss += value;
                       return loss;
                     }});
}

std::vector<OpCase> all_cases() {
  std::vector<OpCase> cases;
  add_pointwise(cases);
  add_arrays(cases);
  add_layers(cases);
  add_math_cases(cases);
  add_choice_cases(cases);
  add_shape_cases(cases);
  add_layer_cases(cases);
  add_index_cases(cases);
  add_vision_cases(cases);
  add_rnn_cases(cases);
  add_density_cases(cases);
  add_ctc_cases(cases);
  add_linalg_cases(cases);
  add_detection_cases(cases);
  add_contrib_cases(cases);
  add_image_cases(cases);
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Operators, OpCaseTest, on_every_device(all_cases()), op_case_name);

TEST(OpCases, CoverEveryOperatorAUserCanCall) {
  std::set<std::string> tried;
  for (const OpCase& each : all_cases()) tried.insert(OpRegistry::get().find(each.op).name);
  // Those without inputs to differentiate by, and those the passes put in, have tests of their own.
  std::set<std::string> elsewhere{"_zeros",         "_ones",           "_full",          "_random_uniform",
                                  "_random_normal", "_sample_uniform", "_sample_normal", "multi_sum_sq",
                                  "multi_lars",     "Custom",          "_arange",        "_linspace",
                                  "_eye",           "_shuffle"};
  for (const char* name : {"exponential", "gamma", "poisson", "negative_binomial", "generalized_negative_binomial"}) {
    elsewhere.insert(join("_random_", name));
    elsewhere.insert(join("_sample_", name));
    elsewhere.insert(join("_random_", name, "_like"));
  }
  elsewhere.insert("WarpCTC");
  elsewhere.insert({"reset_arrays", "_adamw_step", "_normalize_pixels"});
  elsewhere.insert({"_random_randint", "_sample_multinomial", "_sample_unique_zipfian"});
  elsewhere.insert({"_random_uniform_like", "_random_normal_like", "_zeros_without_dtype"});
  elsewhere.insert(
      {"_image_random_flip_left_right", "_image_random_flip_top_bottom", "_foreach", "_while_loop", "_cond"});
  elsewhere.insert(operators_of_passes().begin(), operators_of_passes().end());
  for (const OpDef* op : OpRegistry::get().all())
    if (!op->name.starts_with("_backward") && !elsewhere.contains(op->name) &&
        op->name.find("_update") == std::string::npos) {  // tried by tests/optim
      EXPECT_TRUE(tried.contains(op->name)) << op->name << " has no case";
    }
}

}  // namespace
}  // namespace symbind::testing
