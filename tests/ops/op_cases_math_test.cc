#include <cmath>
#include <complex>
#include <numbers>

#include "tests/ops/op_cases.h"

namespace symbind::testing {
namespace {

struct Function {
  const char* op;
  double (*value)(double);
  double low = -2, high = 2;
  bool smooth = true;  // has a gradient that differences can see
};

const Function functions[] = {
    {"abs", [](double x) { return std::abs(x); }, 0.25, 2},
    {"sign", [](double x) { return x > 0   ? 1.0
                                   : x < 0 ? -1.0
                                           : 0.0; }, -2, 2, false},
    {"round", [](double x) { return std::round(x); }, -2, 2, false},
    {"rint", [](double x) { return x - std::floor(x) <= std::ceil(x) - x ? std::floor(x) : std::ceil(x); }, -2, 2,
     false},
    {"ceil", [](double x) { return std::ceil(x); }, -2, 2, false},
    {"floor", [](double x) { return std::floor(x); }, -2, 2, false},
    {"fix", [](double x) { return std::trunc(x); }, -2, 2, false},
    {"trunc", [](double x) { return std::trunc(x); }, -2, 2, false},
    {"rsqrt", [](double x) { return 1 / std::sqrt(x); }, 0.5, 4},
    {"cbrt", [](double x) { return std::cbrt(x); }, 0.5, 4},
    {"rcbrt", [](double x) { return 1 / std::cbrt(x); }, 0.5, 4},
    {"log2", [](double x) { return std::log2(x); }, 0.5, 4},
    {"log10", [](double x) { return std::log10(x); }, 0.5, 4},
    {"log1p", [](double x) { return std::log1p(x); }, -0.5, 2},
    {"expm1", [](double x) { return std::expm1(x); }},
    {"sin", [](double x) { return std::sin(x); }},
    {"cos", [](double x) { return std::cos(x); }},
    {"tan", [](double x) { return std::tan(x); }, -1, 1},
    {"arcsin", [](double x) { return std::asin(x); }, -0.75, 0.75},
    {"arccos", [](double x) { return std::acos(x); }, -0.75, 0.75},
    {"arctan", [](double x) { return std::atan(x); }},
    {"sinh", [](double x) { return std::sinh(x); }},
    {"cosh", [](double x) { return std::cosh(x); }},
    {"arcsinh", [](double x) { return std::asinh(x); }},
    {"arccosh", [](double x) { return std::acosh(x); }, 1.5, 4},
    {"arctanh", [](double x) { return std::atanh(x); }, -0.75, 0.75},
    {"degrees", [](double x) { return x * 180 / M_PI; }},
    {"radians", [](double x) { return x * M_PI / 180; }},
    {"erf", [](double x) { return std::erf(x); }},
    {"gamma", [](double x) { return std::tgamma(x); }, 0.75, 3},
    {"gammaln", [](double x) { return std::lgamma(x); }, 0.75, 3},
    {"reciprocal", [](double x) { return 1 / x; }, 0.5, 3},
    {"softsign", [](double x) { return x / (1 + std::abs(x)); }, 0.25, 2},
    {"logical_not", [](double x) { return x == 0 ? 1.0 : 0.0; }, -0.05, 0.05, false},
};

template <class Value>
Reference each(Value value) {
  return [value](Inputs_ in) {
    Values out = in[0];
    for (double& x : out.data) x = value(x);
    return std::vector{out};
  };
}

// Rows of the last axis.
Reference softmax_rows(double sign, bool logarithm) {
  return [=](Inputs_ in) {
    Values out = in[0];
    const auto length = static_cast<size_t>(in[0].shape[in[0].shape.rank() - 1]);
    for (size_t row = 0; row + length <= out.data.size() && length > 0; row += length) {
      double sum = 0;
      for (size_t k = 0; k < length; ++k) sum += std::exp(sign * in[0].data[row + k]);
      for (size_t k = 0; k < length; ++k) {
        const double log = sign * in[0].data[row + k] - std::log(sum);
        out.data[row + k] = logarithm ? log : std::exp(log);
      }
    }
    return std::vector{out};
  };
}

// -log of the probability of each label, summed.
std::vector<Values> cross_entropy_of_rows(Inputs_ in) {
  const auto probabilities = softmax_rows(1, true)(in)[0];
  const auto classes = static_cast<size_t>(in[0].shape[1]);
  double loss = 0;
  for (size_t row = 0; row < in[1].data.size(); ++row)
    loss -= probabilities.data[row * classes + static_cast<size_t>(in[1].data[row])];
  return {Values{{1}, {loss}}};
}

double half_squares(const std::vector<double>& y, const std::vector<double>& label, double (*each)(double, double)) {
  double loss = 0;
  for (size_t i = 0; i < y.size(); ++i) loss += each(y[i], label[i]);
  return loss / 4;
}

void add_losses(std::vector<OpCase>& cases) {
  const OpInput data{"data", {5, 4}, -2, 2},
      label{.name = "label", .shape = {5, 4}, .low = 0, .high = 1, .gradient = false};
  cases.push_back({.name = "LogisticRegressionOutput",
                   .op = "LogisticRegressionOutput",
                   .inputs = {data, label},
                   .reference = each([](double x) { return 1 / (1 + std::exp(-x)); }),
                   .loss = [](const std::vector<NDArray>& outputs, const std::vector<NDArray>& inputs) {
                     return half_squares(
                         outputs[0].to_vector<double>(), inputs[1].to_vector<double>(),
                         [](double y, double l) { return -l * std::log(y) - (1 - l) * std::log(1 - y); });
                   }});
  cases.push_back({.name = "MAERegressionOutput",
                   .op = "MAERegressionOutput",
                   .inputs = {{"data", {5, 4}, 1.25, 3}, label},
                   .reference = each([](double x) { return x; }),
                   .loss = [](const std::vector<NDArray>& outputs, const std::vector<NDArray>& inputs) {
                     return half_squares(outputs[0].to_vector<double>(), inputs[1].to_vector<double>(),
                                         [](double y, double l) { return std::abs(y - l); });
                   }});
  for (const bool linear : {false, true})
    cases.push_back({.name = linear ? "SVMOutput_linear" : "SVMOutput",
                     .op = "SVMOutput",
                     .attributes = {{"use_linear", linear ? "True" : "False"}, {"margin", "1.0078125"}},
                     .inputs = {data, {.name = "label", .shape = {5}, .low = 1, .high = 1, .gradient = false}},
                     .reference = each([](double x) { return x; }),
                     .loss = [linear](const std::vector<NDArray>& outputs, const std::vector<NDArray>&) {
                       const auto y = outputs[0].to_vector<double>();
                       double loss = 0;
                       for (size_t i = 0; i < y.size(); ++i) {
                         const double lack = std::max(0.0, 1.0078125 + (i % 4 == 1 ? -y[i] : y[i]));
                         loss += linear ? lack : lack * lack;
                       }
                       return loss;
                     }});
  cases.push_back({.name = "softmax_cross_entropy",
                   .op = "softmax_cross_entropy",
                   .inputs = {data, {.name = "label", .shape = {5}, .low = 2, .high = 2, .gradient = false}},
                   .reference = cross_entropy_of_rows,
                   .slack = 4});
}

// Sums by the definition: Σ x · e^(∓2πijk/d).
std::vector<Values> fourier(Inputs_ in) {
  const int last = in[0].shape.rank() - 1;
  const int64_t d = in[0].shape[last];
  Values out{in[0].shape.with(last, 2 * d), {}};
  for (size_t row = 0; row < in[0].data.size(); row += static_cast<size_t>(d))
    for (int64_t k = 0; k < d; ++k) {
      std::complex<double> sum = 0;
      for (int64_t j = 0; j < d; ++j)
        sum += in[0].data[row + static_cast<size_t>(j)] *
               std::polar(1.0, -2 * std::numbers::pi * static_cast<double>(j * k % d) / static_cast<double>(d));
      out.data.push_back(sum.real());
      out.data.push_back(sum.imag());
    }
  return {out};
}
std::vector<Values> inverse_fourier(Inputs_ in) {
  const int last = in[0].shape.rank() - 1;
  const int64_t d = in[0].shape[last] / 2;
  Values out{in[0].shape.with(last, d), {}};
  for (size_t row = 0; row < in[0].data.size(); row += static_cast<size_t>(2 * d))
    for (int64_t k = 0; k < d; ++k) {
      double sum = 0;
      for (int64_t j = 0; j < d; ++j) {
        const double angle = 2 * std::numbers::pi * static_cast<double>(j * k % d) / static_cast<double>(d);
        const size_t at = row + static_cast<size_t>(2 * j);
        sum += in[0].data[at] * std::cos(angle) - in[0].data[at + 1] * std::sin(angle);
      }
      out.data.push_back(sum);
    }
  return {out};
}

void add_transforms(std::vector<OpCase>& cases) {
  cases.push_back({.name = "fft",
                   .op = "_contrib_fft",
                   .inputs = {{"data", {2, 8}}},
                   .reference = fourier,
                   .more_shapes = {{{3, 1}}, {{2, 2, 7}}, {{12}}, {{2, 97}}, {{0, 4}}, {{3, 64}}},
                   .slack = 8});
  cases.push_back({.name = "ifft",
                   .op = "_contrib_ifft",
                   .inputs = {{"data", {2, 12}}},
                   .reference = inverse_fourier,
                   .more_shapes = {{{3, 2}}, {{2, 2, 16}}, {{26}}, {{0, 4}}},
                   .slack = 8});
}

}  // namespace

void add_math_cases(std::vector<OpCase>& cases) {
  add_transforms(cases);
  for (const Function& function : functions)
    cases.push_back({.name = function.op,
                     .op = function.op,
                     .inputs = {{"data", {3, 4}, function.low, function.high}},
                     .reference = each(function.value),
                     .differentiable = function.smooth,
                     .more_shapes = {{{1}}, {{0, 3}}, {{3, 1, 7}}, {{257}}},
                     .in_place = true,
                     .slack = 4});
  cases.push_back({.name = "erfinv", .op = "erfinv", .inputs = {{"data", {3, 4}, -0.75, 0.75}}, .slack = 4});
  cases.push_back({.name = "clip",
                   .op = "clip",
                   .attributes = {{"a_min", "-1.0078125"}, {"a_max", "0.5078125"}},
                   .inputs = {{"data", {3, 4}, -2, 2}},
                   .dtypes = {DType::float32, DType::float64},
                   .more_shapes = {{{1}}, {{0, 3}}, {{257}}},
                   .in_place = true});
  cases.push_back({.name = "hard_sigmoid",
                   .op = "hard_sigmoid",
                   .inputs = {{"data", {3, 4}, -4, 4}},
                   .reference = each([](double x) { return std::clamp(0.2 * x + 0.5, 0.0, 1.0); }),
                   .in_place = true,
                   .slack = 2});
  cases.push_back({.name = "smooth_l1",
                   .op = "smooth_l1",
                   .attributes = {{"scalar", "1.5"}},
                   .inputs = {{"data", {3, 4}, -2, 2}},
                   .reference = each(
                       [](double x) { return std::abs(x) < 1 / 2.25 ? 0.5 * 2.25 * x * x : std::abs(x) - 0.5 / 2.25; }),
                   .in_place = true,
                   .slack = 2});
  const std::pair<const char*, Reference> relatives[] = {{"softmax", softmax_rows(1, false)},
                                                         {"log_softmax", softmax_rows(1, true)},
                                                         {"softmin", softmax_rows(-1, false)},
                                                         {"SoftmaxActivation", softmax_rows(1, false)}};
  for (const auto& [op, reference] : relatives) {
    cases.push_back({.name = op,
                     .op = op,
                     .inputs = {{"data", {3, 5}, -2, 2}},
                     .reference = reference,
                     .more_shapes = {{{1, 1}}, {{0, 3}}, {{9, 65}}},
                     .slack = 4});
    if (std::string(op) != "SoftmaxActivation")
      cases.push_back({.name = std::string(op) + "_over_the_middle",
                       .op = op,
                       .attributes = {{"axis", "1"}, {"temperature", "2"}},
                       .inputs = {{"data", {2, 3, 4}, -2, 2}},
                       .slack = 4});
  }
  add_losses(cases);
}

}  // namespace symbind::testing
