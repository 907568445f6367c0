#include <algorithm>
#include <cmath>

#include "tests/ops/op_cases.h"

namespace symbind::testing {
namespace {

template <class Function>
Reference each(Function function) {
  return [function](Inputs_ in) {
    Values out = in[0];
    for (double& x : out.data) x = function(x);
    return std::vector{out};
  };
}

void add_rectifiers(std::vector<OpCase>& cases) {
  const OpInput data{"data", {3, 4}, 0.25, 2}, negative{"data", {3, 4}, -2, -0.25};
  const std::pair<const char*, double (*)(double)> functions[] = {
      {"leaky", [](double x) { return x > 0 ? x : 0.25 * x; }},
      {"elu", [](double x) { return x > 0 ? x : 0.25 * std::expm1(x); }},
      {"selu", [](double x) { return 1.0507009873554805 * (x > 0 ? x : 1.6732632423543772 * std::expm1(x)); }},
      {"gelu", [](double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }},
  };
  for (const auto& [type, function] : functions)
    for (const OpInput& input : {data, negative})
      cases.push_back({.name = std::string("LeakyReLU_") + type + (input.low > 0 ? "" : "_below_zero"),
                       .op = "LeakyReLU",
                       .attributes = {{"act_type", type}},
                       .inputs = {input},
                       .reference = each(function),
                       .more_shapes = {{{1}}, {{0, 3}}, {{257}}},
                       .in_place = true,
                       .slack = 4});
  for (const Shape& gamma : {Shape{3}, Shape{1}})
    cases.push_back({.name = gamma[0] == 1 ? "LeakyReLU_prelu_one" : "LeakyReLU_prelu",
                     .op = "LeakyReLU",
                     .attributes = {{"act_type", "prelu"}},
                     .inputs = {{"data", {2, 3, 4}, -2, -0.25}, {"gamma", gamma, 0.25, 1}},
                     .slack = 2});
  cases.push_back(
      {.name = "LeakyReLU_rrelu", .op = "LeakyReLU", .attributes = {{"act_type", "rrelu"}}, .inputs = {negative}});
}

void add_normalizations(std::vector<OpCase>& cases) {
  cases.push_back({.name = "L2Normalization",
                   .op = "L2Normalization",
                   .inputs = {{"data", {2, 3}, 0.5, 2}},
                   .reference =
                       [](Inputs_ in) {
                         Values out = in[0];
                         for (size_t i = 0; i < out.data.size(); ++i) {
                           double squares = 1e-10;
                           for (size_t k = i / 3 * 3; k < i / 3 * 3 + 3; ++k) squares += in[0].data[k] * in[0].data[k];
                           out.data[i] /= std::sqrt(squares);
                         }
                         return std::vector{out};
                       },
                   .more_shapes = {{{1, 3}}, {{0, 3}}},
                   .slack = 4});
  for (const char* mode : {"channel", "spatial"})
    cases.push_back({.name = std::string("L2Normalization_") + mode,
                     .op = "L2Normalization",
                     .attributes = {{"mode", mode}},
                     .inputs = {{"data", {2, 3, 2, 2}, 0.5, 2}},
                     .slack = 4});
  cases.push_back({.name = "LRN",
                   .op = "LRN",
                   .attributes = {{"nsize", "3"}, {"alpha", "0.5"}},
                   .inputs = {{"data", {2, 5, 2, 2}, -2, 2}},
                   .slack = 4});
  cases.push_back({.name = "InstanceNorm",
                   .op = "InstanceNorm",
                   .inputs = {{"data", {2, 3, 5}, -2, 2}, {"gamma", {3}, 0.5, 1.5}, {"beta", {3}}},
                   .slack = 16});
  cases.push_back({.name = "GroupNorm",
                   .op = "GroupNorm",
                   .attributes = {{"num_groups", "2"}},
                   .inputs = {{"data", {2, 4, 3}, -2, 2}, {"gamma", {2}, 0.5, 1.5}, {"beta", {2}}},
                   .more_shapes = {{{0, 4, 3}, {2}, {2}}, {{3, 2, 7}, {2}, {2}}},
                   .slack = 16});
  cases.push_back({.name = "LayerNorm",
                   .op = "LayerNorm",
                   .inputs = {{"data", {3, 5}, -2, 2}, {"gamma", {5}, 0.5, 1.5}, {"beta", {5}}},
                   .slack = 16});
  cases.push_back({.name = "LayerNorm_inside",
                   .op = "LayerNorm",
                   .attributes = {{"axis", "1"}},
                   .inputs = {{"data", {2, 5, 3}, -2, 2}, {"gamma", {5}, 0.5, 1.5}, {"beta", {5}}},
                   .slack = 16});
}

}  // namespace

void add_layer_cases(std::vector<OpCase>& cases) {
  add_rectifiers(cases);
  add_normalizations(cases);
  const auto rows_in_order = [](Inputs_ in) {
    Values out = in[0];
    for (size_t row = 0; row + 4 <= out.data.size(); row += 4)
      std::sort(out.data.begin() + static_cast<ptrdiff_t>(row), out.data.begin() + static_cast<ptrdiff_t>(row) + 4);
    return std::vector{out};
  };
  cases.push_back({.name = "sort",
                   .op = "sort",
                   .inputs = {{"data", {3, 4}, -20, 20}},
                   .reference = rows_in_order,
                   .more_shapes = {{{1, 4}}, {{0, 4}}, {{9, 4}}}});
  cases.push_back({.name = "sort_downwards_inside",
                   .op = "sort",
                   .attributes = {{"axis", "1"}, {"is_ascend", "False"}},
                   .inputs = {{"data", {2, 5, 3}, -20, 20}}});
  for (const char* op : {"argsort", "topk"})
    cases.push_back({.name = op, .op = op, .inputs = {{"data", {3, 4}, -20, 20}}, .differentiable = false});
  cases.push_back({.name = "topk_values",
                   .op = "topk",
                   .attributes = {{"ret_typ", "value"}, {"k", "2"}, {"axis", "1"}},
                   .inputs = {{"data", {2, 5, 3}, -20, 20}}});
  cases.push_back({.name = "UpSampling",
                   .op = "UpSampling",
                   .attributes = {{"scale", "2"}, {"sample_type", "nearest"}, {"num_args", "1"}},
                   .inputs = {{"arg0", {1, 1, 1, 2}}},
                   .reference = [](Inputs_ in) {
                     const double a = in[0].data[0], b = in[0].data[1];
                     return std::vector{Values{{1, 1, 2, 4}, {a, a, b, b, a, a, b, b}}};
                   }});
  for (const char* mode : {"concat", "sum"})
    cases.push_back(
        {.name = std::string("UpSampling_") + mode,
         .op = "UpSampling",
         .attributes = {{"scale", "2"}, {"sample_type", "nearest"}, {"num_args", "2"}, {"multi_input_mode", mode}},
         .inputs = {{"arg0", {2, 2, 2, 2}}, {"arg1", {2, 2, 1, 2}}},
         .slack = 2});
  cases.push_back({.name = "UpSampling_bilinear",
                   .op = "UpSampling",
                   .attributes = {{"scale", "2"}, {"sample_type", "bilinear"}, {"num_filter", "3"}, {"num_args", "2"}},
                   .inputs = {{"data", {2, 3, 2, 3}}, {"weight", {3, 1, 4, 4}}},
                   .more_shapes = {{{0, 3, 2, 3}, {3, 1, 4, 4}}, {{1, 3, 5, 7}, {3, 1, 4, 4}}},
                   .slack = 4});
  // One element spreads the whole kernel.
  cases.push_back({.name = "Deconvolution",
                   .op = "Deconvolution",
                   .attributes = {{"kernel", "(2, 2)"}, {"num_filter", "1"}, {"no_bias", "False"}},
                   .inputs = {{"data", {1, 1, 1, 1}}, {"weight", {1, 1, 2, 2}}, {"bias", {1}}},
                   .reference =
                       [](Inputs_ in) {
                         Values out{{1, 1, 2, 2}, in[1].data};
                         for (double& value : out.data) value = value * in[0].data[0] + in[2].data[0];
                         return std::vector{out};
                       },
                   .slack = 2});
  cases.push_back({.name = "Deconvolution_in_steps",
                   .op = "Deconvolution",
                   .attributes = {{"kernel", "(3, 3)"},
                                  {"num_filter", "4"},
                                  {"num_group", "2"},
                                  {"stride", "(2, 2)"},
                                  {"pad", "(1, 1)"},
                                  {"adj", "(1, 1)"}},
                   .inputs = {{"data", {2, 4, 3, 4}}, {"weight", {4, 2, 3, 3}}},
                   .slack = 4});
  // Without a penalty the gradient is that of the identity.
  cases.push_back({.name = "IdentityAttachKLSparseReg",
                   .op = "IdentityAttachKLSparseReg",
                   .attributes = {{"penalty", "0"}},
                   .inputs = {{"data", {3, 4}, 0, 1}, {.name = "moving_avg", .shape = {4}, .low = 0.25, .aux = true}},
                   .reference = [](Inputs_ in) { return std::vector{in[0]}; },
                   .dtypes = {DType::float32, DType::float64},
                   .more_shapes = {{{0, 4}, {4}}, {{2, 3, 5}, {3}}}});
  cases.push_back({.name = "batch_dot",
                   .op = "batch_dot",
                   .inputs = {{"lhs", {2, 1, 2}}, {"rhs", {2, 2, 1}}},
                   .reference =
                       [](Inputs_ in) {
                         const auto &a = in[0].data, &b = in[1].data;
                         return std::vector{Values{{2, 1, 1}, {a[0] * b[0] + a[1] * b[1], a[2] * b[2] + a[3] * b[3]}}};
                       },
                   .slack = 2});
  cases.push_back({.name = "batch_dot_transposed",
                   .op = "batch_dot",
                   .attributes = {{"transpose_a", "True"}, {"transpose_b", "True"}},
                   .inputs = {{"lhs", {2, 4, 3}}, {"rhs", {2, 5, 4}}},
                   .more_shapes = {{{0, 4, 3}, {0, 5, 4}}, {{3, 17, 5}, {3, 9, 17}}},
                   .slack = 2});
}

}  // namespace symbind::testing
