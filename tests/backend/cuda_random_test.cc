// Random arrays and densities on a GPU against the CPU's: the same seed gives the same integers, and the same floats to
// rounding.
#include <gtest/gtest.h>

#include "symbind/core/random.h"
#include "symbind/exec/invoke.h"

#include "tests/backend/cuda_cases.h"
#include "tests/support/gpu_test.h"

namespace symbind::testing {
namespace {

struct Distribution {
  const char* name;
  Attributes parameters;
  double low, high;  // of parameters that are elements of arrays
  size_t inputs;
};

const std::vector<Distribution>& distributions() {
  static const std::vector<Distribution> all = {
      {"uniform", {{"low", "-1"}, {"high", "3"}}, 0.25, 4, 2},
      {"normal", {{"loc", "1"}, {"scale", "2"}}, 0.25, 4, 2},
      {"exponential", {{"lam", "3"}}, 0.25, 4, 1},
      {"gamma", {{"alpha", "0.5"}, {"beta", "2"}}, 0.25, 4, 2},
      {"poisson", {{"lam", "4"}}, 0.25, 30, 1},
      {"negative_binomial", {{"k", "3"}, {"p", "0.4"}}, 0.25, 1, 2},
      {"generalized_negative_binomial", {{"mu", "20"}, {"alpha", "0.3"}}, 0.25, 4, 2}};
  return all;
}

void add_distributions(std::vector<DeviceCase>& cases) {
  for (const Distribution& each : distributions()) {
    const std::string name = each.name;
    for (const char* dtype : {"float32", "float64", "float16", "bfloat16"}) {
      Attributes attributes = each.parameters;
      attributes["shape"] = "(7, 143)";
      attributes["dtype"] = dtype;
      cases.push_back({"_random_" + name, {}, attributes, float_types, -2, 2, 2});
      cases.push_back({"_sample_" + name,
                       std::vector<Shape>(each.inputs, {3, 5}),
                       {{"shape", "(33)"}, {"dtype", dtype}},
                       float_types,
                       each.low,
                       each.high,
                       4});
    }
    cases.push_back({"_sample_" + name, std::vector<Shape>(each.inputs, {6}), {}, {DType::int32}, 1, 1, 4});
    cases.push_back({"_random_" + name + "_like", {{7, 31}}, each.parameters, float_types, -2, 2, 2});
  }
  for (const char* dtype : {"int32", "int64"})
    cases.push_back({"_random_randint", {}, {{"low", "-7"}, {"high", "1000"}, {"shape", "(501)"}, {"dtype", dtype}}});
}

void add_choices(std::vector<DeviceCase>& cases) {
  for (const Shape& data : std::vector<Shape>{{7}, {5, 7}, {2, 3, 4}, {3, 1000}}) {
    for (const char* dtype : {"int32", "int64", "float32", "uint8"})
      if (data.size() < 1000 || std::string(dtype) != "uint8")
        cases.push_back({"_sample_multinomial", {data}, {{"shape", "(40)"}, {"dtype", dtype}}, float_types, 0.25, 1});
    // Logarithms are compared as the indices are: not exactly.
    const Attributes with_logarithms{{"get_prob", "True"}, {"dtype", "float32"}};
    cases.push_back({"_sample_multinomial", {data}, with_logarithms, float_types, 0.25, 1, 2});
  }
  cases.push_back({"_backward_sample_multinomial",
                   {{3, 9}, {3, 5}, {3, 9}},
                   {},
                   float_types,
                   0.5,
                   5,
                   4,
                   true,
                   {DType::none, DType::none, DType::int32}});
  for (const char* shape : {"(1, 5)", "(3, 300)", "(70, 2)", "(2, 0)"})
    cases.push_back({"_sample_unique_zipfian", {}, {{"range_max", "2000"}, {"shape", shape}}});
  cases.push_back({"_sample_unique_zipfian", {}, {{"range_max", "20"}, {"shape", "(2, 20)"}}});
  for (const Shape& data : std::vector<Shape>{{1}, {2}, {50}, {5000}, {33, 3}, {100, 16}, {0, 3}, {3, 0}})
    cases.push_back({"_shuffle", {data}, {}, all_types, -100, 100});
}

void add_densities(std::vector<DeviceCase>& cases) {
  for (const Distribution& each : distributions())
    for (const char* is_log : {"False", "True"}) {
      const double high = std::string(each.name) == "negative_binomial" ? 0.9 : 3;
      const std::string name = std::string("random_pdf_") + each.name;
      std::vector<Shape> inputs{{4, 37}};
      inputs.insert(inputs.end(), each.inputs, {4});
      cases.push_back({"_" + name, inputs, {{"is_log", is_log}}, float_types, 0.25, high, 4});
      inputs.insert(inputs.begin(), {4, 37});
      cases.push_back({"_backward_" + name, inputs, {{"is_log", is_log}}, float_types, 0.25, high, 8});
    }
  for (const char* is_log : {"False", "True"}) {
    const Attributes attributes{{"is_log", is_log}};
    cases.push_back({"_random_pdf_dirichlet", {{4, 3, 5}, {4, 5}}, attributes, float_types, 0.1, 1.5, 8});
    cases.push_back(
        {"_backward_random_pdf_dirichlet", {{4, 3}, {4, 3, 5}, {4, 5}}, attributes, float_types, 0.1, 1.5, 16});
  }
}

}  // namespace

std::vector<DeviceCase> random_cases() {
  std::vector<DeviceCase> cases;
  add_distributions(cases);
  add_choices(cases);
  add_densities(cases);
  return cases;
}

namespace {

using CudaRandom = GpuTest;

TEST_F(CudaRandom, RandomArraysAndDensitiesAgreeWithTheCpu) { compare_devices(random_cases()); }

TEST_F(CudaRandom, ALargeShuffleIsTheSameAsOnACpu) {
  const NDArray data = counted({100000}, DType::int32);
  seed(3);
  const NDArray expected = invoke("_shuffle", {data}, {})[0];
  seed(3);
  const NDArray actual = invoke("_shuffle", {data.as_copy_in(gpu(0))}, {})[0];
  EXPECT_TRUE(same_bits(actual.as_copy_in(cpu()), expected));
}

}  // namespace
}  // namespace symbind::testing
