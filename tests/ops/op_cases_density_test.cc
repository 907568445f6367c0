// Densities of distributions, the casts of mixed precision, and checks of whole arrays.
#include <cmath>
#include <numbers>

#include "tests/ops/op_cases.h"

namespace symbind::testing {
namespace {

// A density at x with two parameters, by its definition.
using Density = double (*)(double x, double first, double second);

struct Distribution {
  const char* name;
  std::vector<OpInput> inputs;
  Density density;
};

const std::vector<Distribution>& distributions() {
  static const auto choose = [](double n, double k) {
    return std::exp(std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1));
  };
  static const std::vector<Distribution> all{
      {"uniform",
       {{"sample", {3, 4}, -0.75, 0.75}, {"low", {3}, -2, -1}, {"high", {3}, 1, 2}},
       [](double, double low, double high) { return 1 / (high - low); }},
      {"normal",
       {{"sample", {3, 4}, -2, 2}, {"mu", {3}, -1, 1}, {"sigma", {3}, 1, 2}},
       [](double x, double mu, double sigma) {
         return std::exp(-(x - mu) * (x - mu) / (2 * sigma * sigma)) / (sigma * std::sqrt(2 * std::numbers::pi));
       }},
      {"gamma",
       {{"sample", {3, 4}, 0.5, 3}, {"alpha", {3}, 1, 3}, {"beta", {3}, 0.5, 2}},
       [](double x, double alpha, double beta) {
         return std::pow(beta, alpha) * std::pow(x, alpha - 1) * std::exp(-beta * x) / std::tgamma(alpha);
       }},
      {"exponential",
       {{"sample", {3, 4}, 0.5, 3}, {"lam", {3}, 0.5, 2}},
       [](double x, double lam, double) { return lam * std::exp(-lam * x); }},
      {"poisson",
       {{.name = "sample", .shape = {3, 4}, .low = 2, .high = 2, .gradient = false}, {"lam", {3}, 1, 4}},
       [](double x, double lam, double) { return std::pow(lam, x) * std::exp(-lam) / std::tgamma(x + 1); }},
      {"negative_binomial",
       {{.name = "sample", .shape = {3, 4}, .low = 3, .high = 3, .gradient = false},
        {"k", {3}, 1, 4},
        {"p", {3}, 0.25, 0.75}},
       [](double x, double k, double p) { return choose(x + k - 1, x) * std::pow(p, k) * std::pow(1 - p, x); }},
      {"generalized_negative_binomial",
       {{.name = "sample", .shape = {3, 4}, .low = 3, .high = 3, .gradient = false},
        {"mu", {3}, 1, 3},
        {"alpha", {3}, 0.25, 1}},
       [](double x, double mu, double alpha) {
         const double k = 1 / alpha, p = 1 / (1 + mu * alpha);
         return choose(x + k - 1, x) * std::pow(p, k) * std::pow(1 - p, x);
       }}};
  return all;
}

// One sample for each parameter, no samples of three parameters, and no parameters.
std::vector<std::vector<Shape>> other_shapes(size_t parameters) {
  std::vector<std::vector<Shape>> all;
  for (const auto& [sample, parameter] :
       std::vector<std::pair<Shape, Shape>>{{{3}, {3}}, {{3, 0}, {3}}, {{0, 4}, {0}}}) {
    all.push_back({sample});
    all.back().insert(all.back().end(), parameters, parameter);
  }
  return all;
}

Reference density_of(Density density, bool is_log) {
  return [=](Inputs_ in) {
    Values out = in[0];
    const size_t each = in[1].data.empty() ? 1 : out.data.size() / in[1].data.size();
    for (size_t i = 0; i < out.data.size(); ++i) {
      const double value = density(in[0].data[i], in[1].data[i / each], in.back().data[i / each]);
      out.data[i] = is_log ? std::log(value) : value;
    }
    return std::vector{out};
  };
}

// Without numbers of the sample at 0, where the density of some is infinite.
Reference dirichlet(bool is_log) {
  return [=](Inputs_ in) {
    const auto length = static_cast<size_t>(in[1].shape[in[1].shape.rank() - 1]);
    Values out{in[0].shape.slice(0, in[0].shape.rank() - 1), {}};
    const size_t rows = in[0].data.size() / length, each = rows / (in[1].data.size() / length);
    for (size_t row = 0; row < rows; ++row) {
      double density = 1, sum = 0;
      for (size_t k = 0; k < length; ++k) {
        const double alpha = in[1].data[row / each * length + k];
        density *= std::pow(in[0].data[row * length + k], alpha - 1) / std::tgamma(alpha);
        sum += alpha;
      }
      density *= std::tgamma(sum);
      out.data.push_back(is_log ? std::log(density) : density);
    }
    return std::vector{out};
  };
}

// The rates of all kinds before an event are sums over the events before it, and their integrals sums over all events.
std::vector<Values> hawkes(Inputs_ in) {
  const int64_t batch = in[0].shape[0], kinds = in[0].shape[1], events = in[4].shape[1];
  const auto value = [&](size_t input, int64_t at) { return in[input].data[static_cast<size_t>(at)]; };
  Values likelihoods{{batch}, {}}, states{{batch, kinds}, {}};
  for (int64_t n = 0; n < batch; ++n) {
    const auto count = static_cast<int64_t>(value(6, n));
    const double end = value(7, n);
    std::vector<double> times;
    for (int64_t i = 0; i < count; ++i) times.push_back((i ? times.back() : 0) + value(4, n * events + i));
    const auto kind_of = [&](size_t i) { return static_cast<int64_t>(value(5, n * events + static_cast<int64_t>(i))); };
    // Σ e^(-beta · age) over the events of a kind before one, and what was there at the beginning.
    const auto state = [&](int64_t k, double time, size_t before) {
      double sum = value(3, n * kinds + k) * std::exp(-value(2, k) * time);
      for (size_t i = 0; i < before; ++i)
        if (kind_of(i) == k) sum += std::exp(-value(2, k) * (time - times[i]));
      return sum;
    };
    double likelihood = 0;
    for (size_t i = 0; i < times.size(); ++i) {
      const int64_t k = kind_of(i);
      likelihood += std::log(value(0, n * kinds + k) + value(1, k) * value(2, k) * state(k, times[i], i));
    }
    for (int64_t k = 0; k < kinds; ++k) {
      const double last = state(k, end, times.size());
      double happened = value(3, n * kinds + k);
      for (size_t i = 0; i < times.size(); ++i) happened += kind_of(i) == k ? 1 : 0;
      likelihood -= value(0, n * kinds + k) * end + value(1, k) * (happened - last);
      states.data.push_back(last);
    }
    likelihoods.data.push_back(likelihood);
  }
  return {likelihoods, states};
}

void add_processes(std::vector<OpCase>& cases) {
  cases.push_back({.name = "hawkesll",
                   .op = "_contrib_hawkesll",
                   .inputs = {{"lda", {3, 2}, 0.5, 2},
                              {"alpha", {2}, 0.25, 0.75},
                              {"beta", {2}, 0.5, 2},
                              {"state", {3, 2}, 0, 1},
                              {"lags", {3, 5}, 0.25, 0.75, DType::none, false},
                              {"marks", {3, 5}, 0, 1.9, DType::int32, false},
                              {"valid_length", {3}, 3, 5, DType::none, false},
                              {"max_time", {3}, 4, 6, DType::none, false}},
                   .reference = hawkes,
                   .dtypes = {DType::float32, DType::float64},
                   .more_shapes = {{{1, 2}, {2}, {2}, {1, 2}, {1, 5}, {1, 5}, {1}, {1}},
                                   {{0, 2}, {2}, {2}, {0, 2}, {0, 5}, {0, 5}, {0}, {0}}},
                   .slack = 8});
}

}  // namespace

void add_density_cases(std::vector<OpCase>& cases) {
  add_processes(cases);
  for (const bool is_log : {false, true}) {
    const std::string ending = is_log ? "_log" : "";
    for (const Distribution& each : distributions())
      cases.push_back({.name = join("random_pdf_", each.name, ending),
                       .op = join("_random_pdf_", each.name),
                       .attributes = {{"is_log", is_log ? "True" : "False"}},
                       .inputs = each.inputs,
                       .reference = density_of(each.density, is_log),
                       .more_shapes = other_shapes(each.inputs.size() - 1),
                       .slack = 4});
    cases.push_back({.name = "random_pdf_dirichlet" + ending,
                     .op = "_random_pdf_dirichlet",
                     .attributes = {{"is_log", is_log ? "True" : "False"}},
                     .inputs = {{"sample", {2, 3, 4}, 0.25, 1}, {"alpha", {2, 4}, 1, 3}},
                     .reference = dirichlet(is_log),
                     .more_shapes = {{{2, 0, 4}, {2, 4}}, {{0, 4}, {4}}, {{3, 4}, {3, 4}}},
                     .slack = 4});
  }
  cases.push_back({.name = "amp_cast",
                   .op = "amp_cast",
                   .attributes = {{"dtype", "float32"}},
                   .inputs = {{"data", {3, 4}}},
                   .reference = [](Inputs_ in) { return std::vector{in[0]}; },
                   .dtypes = {DType::float32, DType::float16},
                   .more_shapes = {{{1}}, {{0, 4}}, {{257, 33}}}});
  cases.push_back({.name = "amp_multicast",
                   .op = "amp_multicast",
                   .attributes = {{"num_outputs", "2"}},
                   .inputs = {{"data_0", {3, 4}}, {"data_1", {2}}},
                   .reference = [](Inputs_ in) {
                     return std::vector{in[0], in[1]};
                   }});
  const auto one = [](Inputs_) { return std::vector{Values{Shape{1}, {1}}}; };
  cases.push_back({.name = "all_finite",
                   .op = "all_finite",
                   .inputs = {{"data", {3, 4}}},
                   .reference = one,
                   .differentiable = false});
  cases.push_back({.name = "multi_all_finite",
                   .op = "multi_all_finite",
                   .attributes = {{"num_arrays", "2"}},
                   .inputs = {{"array_0", {3, 4}}, {"array_1", {2}}},
                   .reference = one,
                   .differentiable = false});
  cases.push_back({.name = "allclose",
                   .op = "_contrib_allclose",
                   .attributes = {{"atol", "10"}},
                   .inputs = {{"a", {3, 4}}, {"b", {3, 4}}},
                   .reference = one,
                   .differentiable = false});
}

}  // namespace symbind::testing
