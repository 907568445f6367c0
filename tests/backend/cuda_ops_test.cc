// Every implementation of the CUDA backend against the CPU's: the same arrays through the same operator on both
// devices. Skipped where there is no GPU.
#include <algorithm>
#include <array>
#include <set>

#include <gtest/gtest.h>

#include "symbind/backend/concat.h"
#include "symbind/backend/movements.h"
#include "symbind/exec/invoke.h"
#include "symbind/ops/amp.h"
#include "symbind/ops/broadcast.h"
#include "symbind/ops/cast.h"
#include "symbind/ops/convert_arrays.h"
#include "symbind/passes/target.h"

#include "tests/backend/cuda_cases.h"
#include "tests/support/device_case.h"
#include "tests/support/gpu_test.h"

namespace symbind::testing {
namespace {

// Float32 products are compared at float tolerance.
const std::vector<DType>& floats = float_types;
const std::vector<DType> numbers = {DType::float32,  DType::float64, DType::float16,
                                    DType::bfloat16, DType::int32,   DType::int64};

using Case = DeviceCase;

std::vector<Case> elementwise_cases() {
  std::vector<Case> cases;
  const std::vector<Shape> shapes = {{7}, {3, 5, 2}, {0, 3}, {70001}};
  for (const Shape& shape : shapes) {
    for (const char* op : {"negative", "relu", "square"}) cases.push_back({op, {shape}, {}, numbers});
    for (const char* op : {"sigmoid", "tanh", "exp"}) cases.push_back({op, {shape}});
    for (const char* op : {"log", "sqrt"}) cases.push_back({op, {shape}, {}, floats, 0.25, 3});
    for (const char* op : {"elemwise_add", "elemwise_sub", "elemwise_mul", "_equal", "_not_equal", "_greater",
                           "_greater_equal", "_lesser", "_lesser_equal", "_backward_relu", "_backward_square"})
      cases.push_back({op, {shape, shape}, {}, numbers});
    for (const char* op : {"_power", "_backward_sigmoid", "_backward_tanh", "_backward_sqrt", "_backward_log"})
      cases.push_back({op, {shape, shape}, {}, floats, 0.25, 2});
    for (const char* op : {"elemwise_div", "_backward_div_lhs"})
      cases.push_back({op, {shape, shape}, {}, numbers, 0.25, 4});
    for (const char* op : {"_backward_div_rhs", "_backward_power_lhs", "_backward_power_rhs"})
      cases.push_back({op, {shape, shape, shape}, {}, floats, 0.25, 2});
  }
  for (const char* type : {"relu", "sigmoid", "softrelu", "softsign", "tanh"}) {
    cases.push_back({"Activation", {{5, 9}}, {{"act_type", type}}});
    cases.push_back({"_backward_Activation", {{5, 9}, {5, 9}}, {{"act_type", type}}, floats, 0.1, 0.9});
  }
  return cases;
}

// Arrays of several lengths and, in the last case, of all types, of which the last holds the factor.
std::vector<Case> conversion_cases() {
  std::vector<Case> cases;
  const std::vector<Shape> shapes{{3, 5}, {70001}, {1}, {4, 8}};
  for (const char* dtype : {"float32", "float64", "float16", "bfloat16"}) {
    cases.push_back({"_convert_arrays", shapes, {{"num_arrays", "4"}, {"dtype", dtype}}});
    Case mixed{"_convert_arrays", shapes, {{"num_arrays", "4"}, {"dtype", dtype}, {"scaled", "True"}}};
    mixed.inputs.push_back({1});
    mixed.dtypes = {DType::float32};
    mixed.input_types = {DType::float16, DType::float32, DType::float64, DType::bfloat16, DType::float32};
    cases.push_back(mixed);
  }
  Case many{"_convert_arrays", std::vector<Shape>(300, Shape{17}), {{"num_arrays", "300"}}};  // several launches
  cases.push_back(many);
  return cases;
}

// Arrays that become channels-last or plain, and others beside them: whole matrices in one tile, matrices cut along
// their rows, their columns and both, more of them than a launch takes.
struct Reordered {
  std::vector<Shape> shapes;
  std::vector<size_t> last_before, last_after;  // the arrays that are channels-last
};
const std::vector<Reordered> reordered_arrays = {
    {{{5, 3, 7, 7},
      {6, 70, 5, 3},
      {70001},
      {33, 64, 3, 3},
      {2, 513, 9},
      {2, 3, 50, 101},
      {2, 9, 2, 2, 7},
      {4, 8, 1, 1}},
     {1, 6},
     {0, 3, 4, 5, 7}},
    {{{3, 512, 3, 3}, {2, 130, 13, 11}, {1, 1000, 70}, {700, 2, 2}, {2, 5, 5001}, {3, 4, 4}}, {0, 1, 2, 3, 4, 5}, {}},
    {{{3, 512, 3, 3}, {2, 130, 13, 11}, {1, 1000, 70}, {700, 2, 2}, {2, 5, 5001}, {3, 4, 4}}, {5}, {0, 1, 2, 3, 4, 5}},
    {{{2, 1030, 3, 3}, {17, 64, 3, 3}, {5, 128, 3, 3}, {1, 2048, 3, 3}, {2, 96, 28, 28}, {1, 70, 9, 9}},
     {0, 1, 2, 3, 4, 5},
     {}},
    {{{2, 1030, 3, 3}, {17, 64, 3, 3}, {5, 128, 3, 3}, {1, 2048, 3, 3}, {2, 96, 28, 28}, {1, 70, 9, 9}},
     {},
     {0, 1, 2, 3, 4, 5}},
    {std::vector<Shape>(170, Shape{3, 5, 3}), {}, {0, 1, 79, 80, 81, 160, 169}},
};

void compare_reordered(const Reordered& arrays, const char* dtype, bool scaled, DType from) {
  Case tried{
      "_convert_arrays", arrays.shapes, {{"num_arrays", std::to_string(arrays.shapes.size())}, {"dtype", dtype}}};
  if (scaled) {
    tried.attributes["scaled"] = "True";
    tried.inputs.push_back({1});
    tried.input_types.assign(arrays.shapes.size(), DType::none);
    tried.input_types.push_back(DType::float32);
  }
  compare_channels_last(tried, from, arrays.last_before, arrays.last_after);
}

std::vector<Case> scalar_cases() {
  std::vector<Case> cases;
  for (const char* op : {"_plus_scalar", "_minus_scalar", "_rminus_scalar", "_mul_scalar", "_div_scalar",
                         "_rdiv_scalar", "_equal_scalar", "_not_equal_scalar", "_greater_scalar",
                         "_greater_equal_scalar", "_lesser_scalar", "_lesser_equal_scalar"})
    cases.push_back({op, {{4, 9}}, {{"scalar", "3"}}, numbers, 0.25, 4});
  for (const char* op : {"_power_scalar", "_rpower_scalar"})
    cases.push_back({op, {{4, 9}}, {{"scalar", "1.5"}}, floats, 0.25, 2});
  for (const char* op : {"_backward_rdiv_scalar", "_backward_power_scalar", "_backward_rpower_scalar"})
    cases.push_back({op, {{4, 9}, {4, 9}}, {{"scalar", "1.5"}}, floats, 0.25, 2});
  return cases;
}

std::vector<Case> broadcast_cases() {
  std::vector<Case> cases;
  const std::vector<std::pair<Shape, Shape>> shapes = {{{2, 3, 4}, {1, 3, 1}},
                                                       {{5, 1}, {1, 7}},
                                                       {{4}, {3, 4}},
                                                       {{1}, {2, 2}},
                                                       {{6, 5}, {6, 5}},
                                                       {{3, 0}, {1, 1}},
                                                       {{2, 1, 3, 1, 2}, {1, 4, 1, 5, 2}}};
  for (const auto& [a, b] : shapes) {
    for (const char* op :
         {"broadcast_add", "broadcast_sub", "broadcast_mul", "broadcast_equal", "broadcast_not_equal",
          "broadcast_greater", "broadcast_greater_equal", "broadcast_lesser", "broadcast_lesser_equal"})
      cases.push_back({op, {a, b}, {}, numbers});
    cases.push_back({"broadcast_div", {a, b}, {}, numbers, 0.25, 4});
    cases.push_back({"broadcast_power", {a, b}, {}, floats, 0.25, 2});
  }
  const std::string sum_to_like_op = op_of<SumToLike>().name, spread_like_op = op_of<SpreadLike>().name;
  for (const Shape& small : std::vector<Shape>{{1, 3, 1}, {3, 4}, {2, 3, 4}, {1}, {2, 1, 4}, {4}}) {
    cases.push_back({sum_to_like_op, {{2, 3, 4}, small}, {}, numbers});
    cases.push_back({spread_like_op, {small, {2, 3, 4}}, {}, numbers});
  }
  return cases;
}

std::vector<Case> reduce_cases() {
  std::vector<Case> cases;
  const std::vector<std::pair<Shape, std::string>> sums = {{{300000}, "None"},
                                                           {{3, 40000}, "1"},
                                                           {{5000, 3}, "0"},
                                                           {{64, 10}, "0"},
                                                           {{64, 10}, "1"},
                                                           {{100000, 33}, "0"},
                                                           {{4, 700, 33}, "1"},
                                                           {{2, 3, 4, 5}, "(1, 3)"},
                                                           {{2, 3, 4, 5}, "(0, 2)"},
                                                           {{2, 3, 4, 5}, "(2, 3)"},
                                                           {{2, 3, 4, 5}, "(0, 1)"},
                                                           {{1, 6, 1}, "0"},
                                                           {{0, 3}, "0"},
                                                           {{3, 0}, "0"},
                                                           {{7, 1025}, "-1"}};
  for (const auto& [shape, axis] : sums) {
    // Small numbers: a float16 holds every sum.
    cases.push_back({"sum", {shape}, {{"axis", axis}}, numbers, -1, 1, 4});
    if (shape.size() > 0) cases.push_back({"mean", {shape}, {{"axis", axis}}, numbers, -1, 1, 4});
  }
  for (const char* op : {"_backward_sum", "_backward_mean"}) {
    cases.push_back({op, {{4, 1, 6}, {4, 5, 6}}, {{"axis", "1"}, {"keepdims", "True"}}, numbers, -30, 30});
    cases.push_back({op, {{5}, {4, 5, 6}}, {{"axis", "(0, 2)"}}, numbers, -30, 30});
    cases.push_back({op, {{1}, {4, 5}}, {}, numbers, -30, 30});
  }
  return cases;
}

std::vector<Case> product_cases() {
  std::vector<Case> cases;
  for (const char* a : {"False", "True"})
    for (const char* b : {"False", "True"}) {
      const Attributes attributes = {{"transpose_a", a}, {"transpose_b", b}};
      const bool ta = a[0] == 'T', tb = b[0] == 'T';
      for (const auto& [m, k, n] :
           std::vector<std::array<int64_t, 3>>{{64, 784, 128}, {5, 7, 3}, {1, 1, 1}, {33, 10, 64}}) {
        const Shape lhs = ta ? Shape{k, m} : Shape{m, k}, rhs = tb ? Shape{n, k} : Shape{k, n}, out{m, n};
        cases.push_back({"dot", {lhs, rhs}, attributes, floats, -1, 1, 4});
        cases.push_back({"_backward_dot_lhs", {out, rhs, lhs}, attributes, floats, -1, 1, 4});
        cases.push_back({"_backward_dot_rhs", {lhs, out, rhs}, attributes, floats, -1, 1, 4});
      }
    }
  cases.push_back({"dot", {{2, 3, 4}, {4, 5}}, {}, floats, -1, 1, 4});
  cases.push_back({"dot", {{6}, {6}}, {}, floats, -1, 1, 4});
  cases.push_back({"dot", {{3, 0}, {0, 4}}, {}});
  for (const auto& [rows, inner, hidden] : std::vector<std::array<int64_t, 3>>{
           {64, 784, 128}, {64, 64, 10}, {3, 5, 7}, {1, 1, 1}, {1, 2048, 1000}, {70, 500, 16}, {16, 33, 17}}) {
    const std::string width = join(hidden);
    cases.push_back(
        {"FullyConnected", {{rows, inner}, {hidden, inner}, {hidden}}, {{"num_hidden", width}}, floats, -1, 1, 4});
    cases.push_back({"FullyConnected",
                     {{rows, inner}, {hidden, inner}},
                     {{"num_hidden", width}, {"no_bias", "True"}},
                     floats,
                     -1,
                     1,
                     4});
    for (const char* type : {"relu", "sigmoid", "softrelu", "softsign", "tanh"})
      cases.push_back({"_FullyConnected_Activation",
                       {{rows, inner}, {hidden, inner}, {hidden}},
                       {{"num_hidden", width}, {"act_type", type}},
                       floats,
                       -1,
                       1,
                       4});
  }
  cases.push_back(
      {"FullyConnected", {{2, 3, 4}, {5, 4}, {5}}, {{"num_hidden", "5"}, {"flatten", "False"}}, floats, -1, 1, 4});
  return cases;
}

bool has_field(const char* op, const std::string& name) {
  const auto& fields = OpRegistry::get().find(op).fields;
  return std::any_of(fields.begin(), fields.end(), [&](const ParamField& field) { return field.name == name; });
}

// Every rule, with clipping and without. States are above zero: some are sums of squares.
void add_updates(std::vector<Case>& cases) {
  const auto add = [&](const char* op, size_t arrays, const Attributes& special) {
    for (const char* clip : {"-1", "0.25"}) {
      Attributes attributes = special;
      for (const auto& [name, value] : Attributes{
               {"lr", "0.1"}, {"wd", "0.01"}, {"rescale_grad", "0.5"}, {"clip_gradient", clip}, {"clip_grad", clip}})
        if (has_field(op, name)) attributes[name] = value;
      cases.push_back({op, std::vector<Shape>(arrays, {501}), attributes, floats, 0.1, 2, 4});
    }
  };
  add("sgd_update", 2, {});
  add("sgd_mom_update", 3, {{"momentum", "0.9"}});
  add("nag_mom_update", 3, {{"momentum", "0.9"}});
  add("signsgd_update", 2, {});
  add("signum_update", 3, {{"momentum", "0.9"}, {"wd_lh", "0.1"}});
  add("adam_update", 4, {});
  add("ftml_update", 5, {{"t", "3"}});
  add("ftrl_update", 4, {});
  add("rmsprop_update", 3, {{"clip_weights", "1.5"}});
  add("rmspropalex_update", 5, {{"epsilon", "8"}});
  add("lamb_update_phase1", 4, {{"t", "2"}});
  add("_dcasgd_update", 4, {{"momentum", "0.9"}});
  add("_adamw_step", 4, {{"eta", "0.5"}});
  add("_adamax_update", 4, {});
  add("_nadam_update", 4, {{"grad_share", "0.5"}, {"mean_share", "0.4"}, {"square_correction", "0.9"}});
  add("_adagrad_update", 3, {});
  add("_adadelta_update", 4, {});
  const std::vector<DType> small{DType::float16, DType::bfloat16};
  const auto with_master = [&](const char* op, size_t arrays, Attributes attributes) {
    std::vector<DType> types(arrays, DType::float32);
    types[0] = types[1] = DType::none;
    attributes.insert({{"lr", "0.1"}, {"wd", "0.01"}});
    cases.push_back({op, std::vector<Shape>(arrays, {501}), attributes, small, -2, 2, 1, true, types});
  };
  with_master("mp_sgd_update", 3, {});
  with_master("mp_sgd_mom_update", 4, {{"momentum", "0.9"}});
  with_master("mp_nag_mom_update", 4, {{"momentum", "0.9"}});
}

// More arrays than one launch takes, of sizes from none to many blocks.
void add_multi_updates(std::vector<Case>& cases) {
  constexpr int64_t weights = 35;
  std::string rates = "(";
  std::array<std::vector<Shape>, 6> of_each;  // by the number of arrays that belong to a weight
  for (int64_t i = 0; i < weights; ++i) {
    rates += join(i ? ", " : "", 0.01 * static_cast<double>(i + 1));
    const Shape shape = i == 3 ? Shape{0} : i == 7 ? Shape{70001} : Shape{i % 5 + 1, 13};
    for (const size_t arrays : {2, 3, 4, 5}) of_each[arrays].insert(of_each[arrays].end(), arrays, shape);
  }
  const Attributes plain{{"lrs", rates + ")"}, {"wds", rates + ")"}, {"num_weights", join(weights)}};
  Attributes with_momentum = plain;
  with_momentum["momentum"] = "0.9";
  // The states of the forms with a master are float32.
  const auto states = [](size_t per_weight) {
    std::vector<DType> types;
    for (int64_t i = 0; i < weights; ++i)
      for (size_t k = 0; k < per_weight; ++k) types.push_back(k < 2 ? DType::none : DType::float32);
    return types;
  };
  const std::vector<DType> small{DType::float16, DType::bfloat16};
  cases.push_back({"multi_sgd_update", of_each[2], plain});
  cases.push_back({"multi_sgd_mom_update", of_each[3], with_momentum});
  cases.push_back({"multi_mp_sgd_update", of_each[3], plain, small, -2, 2, 1, true, states(3)});
  cases.push_back({"multi_mp_sgd_mom_update", of_each[4], with_momentum, small, -2, 2, 1, true, states(4)});

  // States above zero, since some are means of squares; then what serves all weights, in float32.
  const auto add = [&](const char* op, size_t per_weight, Attributes attributes, const std::vector<Shape>& after) {
    const bool mixed = std::string(op).find("mp_") != std::string::npos;
    std::vector<Shape> shapes = of_each[per_weight];
    std::vector<DType> types = mixed ? states(per_weight) : std::vector<DType>(shapes.size(), DType::none);
    shapes.insert(shapes.end(), after.begin(), after.end());
    types.insert(types.end(), after.size(), DType::float32);
    attributes["clip_gradient"] = "0.75";
    cases.push_back({op, shapes, attributes, mixed ? small : floats, 0.1, 2, 4, true, types});
  };
  const Attributes count{{"num_weights", join(weights)}}, momentum{{"num_weights", join(weights)}, {"momentum", "0.9"}};
  const Shape per_weight_numbers{weights};
  add("preloaded_multi_sgd_update", 2, count, {per_weight_numbers, per_weight_numbers});
  add("preloaded_multi_sgd_mom_update", 3, momentum, {per_weight_numbers, per_weight_numbers});
  add("preloaded_multi_mp_sgd_update", 3, count, {per_weight_numbers, per_weight_numbers});
  add("preloaded_multi_mp_sgd_mom_update", 4, momentum, {per_weight_numbers, per_weight_numbers});
  Attributes adamw = plain, lamb{{"learning_rates", rates + ")"}, {"wds", rates + ")"}, {"num_tensors", join(weights)}};
  adamw["etas"] = rates + ")";
  lamb["step_count"] = "(";
  for (int64_t i = 0; i < weights; ++i) lamb["step_count"] += join(i ? ", " : "", i % 3 + 1);
  lamb["step_count"] += ")";
  add("_multi_adamw_update", 4, adamw, {{1}});
  add("_multi_mp_adamw_update", 5, adamw, {{1}});
  add("_multi_lamb_update", 4, lamb, {});
  add("_multi_mp_lamb_update", 5, lamb, {});
}

std::vector<Case> other_cases() {
  std::vector<Case> cases;
  for (const char* op : {"_copy", "_relabel", "BlockGrad", "make_loss", "Flatten", "zeros_like", "ones_like"})
    cases.push_back({op, {{3, 4, 5}}, {}, numbers});
  cases.push_back({"Reshape", {{3, 4, 5}}, {{"shape", "(-1, 10)"}}, numbers});
  cases.push_back({"reshape_like", {{3, 4}, {2, 6}}, {}, numbers});
  cases.push_back({"expand_dims", {{3, 4}}, {{"axis", "1"}}, numbers});
  cases.push_back({"squeeze", {{3, 1, 4}}, {}, numbers});
  cases.push_back({"MAERegressionOutput", {{4, 3}, {4, 3}}});
  cases.push_back({"SVMOutput", {{4, 3}, {4}}});
  for (const char* dtype : {"float32", "float64", "float16", "bfloat16", "uint8", "int8", "int32", "int64", "bool"})
    cases.push_back({"Cast", {{5, 13}}, {{"dtype", dtype}}, numbers, -100, 100});
  cases.push_back({op_of<CastLike>().name, {{5, 3}, {5, 3}}, {}, numbers});
  cases.push_back({"amp_cast", {{5, 13}}, {{"dtype", "float16"}}, numbers});
  Case scale_gradient{op_of<ScaleGradient>().name, {{5, 13}, {1}}};
  scale_gradient.input_types = {DType::none, DType::float32};
  cases.push_back(scale_gradient);
  // Planes of whole packs, and others; more planes than a grid has rows of blocks; several packs for each thread.
  for (const Shape& images : std::vector<Shape>{{2, 3, 30, 40}, {2, 3, 5, 7}, {22000, 3, 1, 2}, {8, 3, 512, 512}})
    for (const char* dtype : {"float32", "float64", "float16", "bfloat16"})
      cases.push_back({"_normalize_pixels",
                       {images},
                       {{"mean", "(123.7, 116.8, 103.9)"}, {"std", "(58.4,)"}, {"scale", "0.5"}, {"dtype", dtype}},
                       {DType::uint8},
                       0,
                       255});
  cases.push_back({"_zeros", {}, {{"shape", "(3, 4)"}, {"dtype", "int32"}}});
  cases.push_back({"_ones", {}, {{"shape", "(3, 4)"}, {"dtype", "float16"}}});

  add_updates(cases);
  add_multi_updates(cases);

  for (const Shape& shape : std::vector<Shape>{{64, 10}, {3, 1}, {2, 3000}}) {
    const Shape label{shape[0]};
    cases.push_back({"SoftmaxOutput", {shape, label}});
    // Labels from 0 to 2, whole in every type once cut off.
    for (const char* normalization : {"null", "batch", "valid"})
      cases.push_back(
          {"_backward_SoftmaxOutput",
           {shape, label},
           {{"normalization", normalization}, {"use_ignore", "True"}, {"ignore_label", "1"}, {"grad_scale", "2"}},
           floats,
           0,
           2});
    cases.push_back({"_backward_SoftmaxOutput", {shape, label}, {{"smooth_alpha", "0.2"}}, floats, 0, 2});
    cases.push_back({"_backward_SoftmaxOutput", {shape, shape, label}, {{"out_grad", "True"}}, floats, 0, 2});
    cases.push_back({"_backward_SoftmaxOutput", {shape, shape}, {}, floats, 0, 1});
  }
  cases.push_back({"SoftmaxOutput", {{2, 4, 3, 5}, {2, 15}}, {{"multi_output", "True"}}});
  cases.push_back({"_backward_SoftmaxOutput",
                   {{2, 4, 3, 5}, {2, 15}},
                   {{"multi_output", "True"}, {"normalization", "valid"}},
                   floats,
                   0,
                   3});
  cases.push_back({"LinearRegressionOutput", {{4, 3}, {4, 3}}});
  cases.push_back({"_backward_LinearRegressionOutput", {{4, 3}, {4, 3}}, {{"grad_scale", "2"}}});
  cases.push_back({"MakeLoss", {{4, 3}}});
  cases.push_back({"_backward_MakeLoss", {{4, 3}}, {{"normalization", "batch"}}});

  for (const bool is_train : {true, false})
    cases.push_back({"Dropout", {{77, 13}}, {{"p", "0.3"}}, floats, -2, 2, 1, is_train});
  for (const char* dtype : {"float32", "float64", "float16", "bfloat16"}) {
    cases.push_back({"_random_uniform", {}, {{"low", "-1"}, {"high", "3"}, {"shape", "(1001,)"}, {"dtype", dtype}}});
    cases.push_back({"_random_normal", {}, {{"loc", "1"}, {"scale", "2"}, {"shape", "(1001,)"}, {"dtype", dtype}}});
  }
  return cases;
}

std::vector<Case> softmax_cases() {
  std::vector<Case> cases;
  for (const char* op : {"softmax", "log_softmax", "softmin"}) {
    cases.push_back({op, {{5, 37}}});
    cases.push_back({op, {{3, 2000}}, {{"temperature", "0.5"}}});
    cases.push_back({op, {{3, 7, 11}}, {{"axis", "1"}}});
    const std::string gradient = std::string("_backward_") + op;
    cases.push_back({gradient, {{5, 37}, {5, 37}, {5, 37}}, {{"temperature", "2"}}});
    cases.push_back({gradient, {{3, 7, 11}, {3, 7, 11}, {3, 7, 11}}, {{"axis", "1"}}});
  }
  cases.push_back({"SoftmaxActivation", {{5, 37}}});
  cases.push_back({"SoftmaxActivation", {{3, 7, 4, 5}}, {{"mode", "channel"}}});
  return cases;
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const auto& family : {elementwise_cases(), conversion_cases(), scalar_cases(), broadcast_cases(), reduce_cases(),
                             product_cases(), softmax_cases(), other_cases()})
    cases.insert(cases.end(), family.begin(), family.end());
  return cases;
}

using CudaOps = GpuTest;

TEST_F(CudaOps, ElementwiseFunctionsAgreeWithTheCpu) { compare_devices(elementwise_cases()); }
TEST_F(CudaOps, ConversionsOfManyArraysAgreeWithTheCpu) { compare_devices(conversion_cases()); }

TEST_F(CudaOps, ConversionsThatReorderManyArraysAgreeWithTheCpu) {
  for (const Reordered& arrays : reordered_arrays)
    for (const char* dtype : {"float32", "float64", "float16", "bfloat16"})
      for (const bool scaled : {false, true})
        for (const DType from : float_types) EXPECT_NO_THROW(compare_reordered(arrays, dtype, scaled, from));
}

// Not only those whose elements can be read in packs.
TEST_F(CudaOps, ArraysThatBeginAnywhereAreConverted) {
  for (const DType from : float_types)
    for (const DType dtype : {DType::float32, DType::float16}) {
      const NDArray data = random_array({70002}, 3, -1, 1, from, gpu(0)).slice(1, 70002);
      const ConvertArrays one{.num_arrays = 1, .dtype = dtype};
      const NDArray there = invoke(convert_arrays, {data}, one)[0],
                    copied = invoke(convert_arrays, {data.copy()}, one)[0];
      EXPECT_TRUE(all_close(there.as_copy_in(cpu()), copied.as_copy_in(cpu()), {0, 0})) << from << " to " << dtype;
    }
}

TEST_F(CudaOps, FunctionsOfAScalarAgreeWithTheCpu) { compare_devices(scalar_cases()); }
TEST_F(CudaOps, BroadcastsAgreeWithTheCpu) { compare_devices(broadcast_cases()); }
TEST_F(CudaOps, SumsAgreeWithTheCpu) { compare_devices(reduce_cases()); }
TEST_F(CudaOps, MatrixProductsAgreeWithTheCpu) { compare_devices(product_cases()); }
TEST_F(CudaOps, SoftmaxesAgreeWithTheCpu) { compare_devices(softmax_cases()); }
TEST_F(CudaOps, TheOthersAgreeWithTheCpu) { compare_devices(other_cases()); }

TEST(CudaOpCases, CoverEveryImplementation) {
  if (!built_with_cuda()) GTEST_SKIP() << "built without CUDA";
  std::set<std::string> tried;
  for (const auto& family : {all_cases(), cuda_cases_elsewhere()})
    for (const Case& each : family) tried.insert(each.op);
  tried.insert("_CrossDeviceCopy");                                   // needs two devices: see cuda_test.cc
  for (const auto& list : {taking_operators(), putting_operators()})  // see cuda_move_test.cc
    for (const auto& moving : list) tried.insert(moving.op->name);
  for (const auto& list : {joining_operators(), splitting_operators()})
    for (const auto& joining : list) tried.insert(joining.op->name);
  // See cuda_layers_test.cc.
  for (const char* op : {"_Convolution_Fused", "_BatchNorm_Relu", "_BatchNorm_Add_Relu", "_BatchNorm_recompute",
                         "_BatchNorm_Add_Relu_recompute", "_reorder"})
    tried.insert(op);
  for (const char* op : {"_Convolution_Statistics", "_BatchNorm_Given_Sums"})
    tried.insert(op);                                                             // cuda_statistics_test.cc
  tried.insert("_Pooling_Indices");                                               // cuda_pool_test.cc
  for (const char* op : {"_Relu_Signs", "_BatchNorm_Signs"}) tried.insert(op);    // cuda_relu_signs_test.cc
  tried.insert("_BatchNorm_Pair");                                                // cuda_batch_norm_pair_test.cc
  for (const char* op : {"_metric_sums", "_take_metric_sums"}) tried.insert(op);  // cuda_metric_test.cc
  for (const OpDef* op : OpRegistry::get().all()) {
    // What a user can call runs on every device in tests/ops, with its gradient.
    if (!op->internal || op->name.starts_with("_backward")) continue;
    const auto& implementations = Target::get(gpu(0)).implementations(*op);
    if (std::all_of(implementations.begin(), implementations.end(),
                    [](const Implementation& each) { return each.name == "nvrtc" || each.tier == Tier::host; }))
      continue;  // see cuda_pointwise_test.cc
    EXPECT_TRUE(tried.contains(op->name)) << op->name;
  }
}

TEST_F(CudaOps, MatrixProductsWorkOnViewsAtOddAddresses) {
  for (const DType dtype : floats) {
    const NDArray a = random_array({6, 5}, 1, -1, 1, dtype), b = random_array({8, 5}, 2, -1, 1, dtype);
    const NDArray bias = random_array({9}, 3, -1, 1, dtype);
    const NDArray on_gpu_a = a.as_copy_in(gpu(0)), on_gpu_b = b.as_copy_in(gpu(0)),
                  on_gpu_bias = bias.as_copy_in(gpu(0));
    const auto run = [](const NDArray& x, const NDArray& w, const NDArray& v) {
      return invoke("FullyConnected", {x.slice(1, 6), w.slice(1, 8), v.slice(1, 8)}, {{"num_hidden", "7"}})[0];
    };
    EXPECT_TRUE(all_close(run(on_gpu_a, on_gpu_b, on_gpu_bias).as_copy_in(cpu()), run(a, b, bias))) << dtype;
  }
}

TEST_F(CudaOps, SumsAreTheSameBitForBit) {
  const NDArray data = random_array({1000, 333}, 1, -1, 1, DType::float32, gpu(0));
  for (const char* axis : {"None", "0", "1"}) {
    const NDArray first = invoke("sum", {data}, {{"axis", axis}})[0];
    for (int again = 0; again < 3; ++again) EXPECT_TRUE(same_bits(invoke("sum", {data}, {{"axis", axis}})[0], first));
  }
}

}  // namespace
}  // namespace symbind::testing
