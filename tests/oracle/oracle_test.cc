// Every recorded case on every device: what MXNet 1.9.1 answered, we answer.
#include "tests/support/oracle.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "symbind/exec/executor.h"
#include "symbind/graph/builder.h"

#include "tests/support/arrays.h"
#include "tests/support/graphs.h"
#include "tests/support/lapack.h"

namespace symbind::testing {
namespace {

struct Run {
  const OracleCase* recorded;
  Context context;
  std::string name;
};

void PrintTo(const Run& run, std::ostream* out) { *out << *run.recorded << " on " << run.context; }

std::vector<Run> runs(const std::function<bool(const OracleCase&)>& wanted) {
  std::vector<Run> all;
  std::set<std::string> names;
  for (const Context context : all_devices()) {
    for (const OracleCase& each : oracle_cases()) {
      if (!wanted(each)) continue;
      std::string name = test_name(each.id, context);
      while (!names.insert(name).second) name += "_again";
      all.push_back({&each, context, name});
    }
  }
  return all;
}

std::string name_of_run(const ::testing::TestParamInfo<Run>& info) { return info.param.name; }

Symbol symbol_of(const OracleCase& recorded) {
  const OpDef& op = OpRegistry::get().find(recorded.op);
  Inputs named(std::vector<Symbol>{});
  std::vector<Symbol> in_order;
  for (const OracleInput& input : recorded.inputs) {
    in_order.push_back(Symbol::variable(input.name));
    named.add(input.name, in_order.back());
  }
  return apply(recorded.op, op.count_field.empty() ? named : Inputs(in_order), recorded.attributes, "op");
}

// A copy of an array that starts one element after the start of its storage.
NDArray shifted_copy(const NDArray& from, Context context) {
  NDArray room(Shape{from.size() + 1}, context, from.dtype());
  NDArray view(room.storage_ptr(), size_of(from.dtype()), from.shape(), from.dtype());
  from.copyto(view);
  return view;
}

struct Answer {
  std::vector<NDArray> outputs;
  NamedArrays grads, aux;
};

struct Manner {
  bool is_train = true;
  bool backward = true;
  std::string grad_req = "";               // empty: as recorded
  DType instead_of_float32 = DType::none;  // for the first input; the others follow by inference
  DType through = DType::none;             // inputs are rounded to this type first
  bool shifted = false;
  // Inputs that look like an earlier one have its values, or are the very same array.
  enum class Repeat { none, values, array } repeat = Repeat::none;
};

NDArray input_for(const NDArray& recorded, const Manner& manner, DType dtype, Context context) {
  NDArray values = recorded;
  if (manner.through != DType::none && is_floating(values.dtype()))
    values = values.astype(manner.through).astype(recorded.dtype());
  if (values.dtype() != dtype) values = values.astype(dtype);
  return manner.shifted ? shifted_copy(values, context) : values.as_copy_in(context);
}

NamedTypes types_for(const OracleCase& recorded, const Symbol& symbol, const Manner& manner) {
  NamedTypes types;
  if (manner.instead_of_float32 == DType::none) {
    for (const OracleInput& input : recorded.inputs) types[input.name] = input.array.dtype();
    return types;
  }
  const InferredTypes inferred = infer_type(symbol, {{recorded.inputs[0].name, manner.instead_of_float32}});
  const auto args = symbol.list_arguments(), aux = symbol.list_auxiliary_states();
  for (size_t i = 0; i < args.size(); ++i) types[args[i]] = inferred.args[i];
  for (size_t i = 0; i < aux.size(); ++i) types[aux[i]] = inferred.aux[i];
  for (auto& [name, dtype] : types)
    if (dtype == DType::none) dtype = manner.instead_of_float32;
  return types;
}

// One of these arrays with the shape and type of another, or none.
NDArray alike(const NamedArrays& arrays, const NDArray& other) {
  for (const auto& [name, array] : arrays)
    if (array.shape() == other.shape() && array.dtype() == other.dtype()) return array;
  return {};
}

Answer answer(const OracleCase& recorded, Context context, const Manner& manner) {
  const bool backward = manner.backward && recorded.grad_req != "null";
  const std::string grad_req = manner.grad_req.empty() ? recorded.grad_req : manner.grad_req;
  const Symbol symbol = symbol_of(recorded);
  const auto types = types_for(recorded, symbol, manner);
  NamedArrays args, grads, aux;
  for (const OracleInput& input : recorded.inputs) {
    const DType dtype = types.at(input.name);
    NDArray values = input_for(input.array, manner, dtype, context);
    if (const NDArray same = input.aux ? NDArray() : alike(args, values); same && manner.repeat != Manner::Repeat::none)
      values = manner.repeat == Manner::Repeat::array ? same : same.copy();
    (input.aux ? aux : args)[input.name] = values;
    if (!backward || input.aux) continue;
    const auto start = recorded.init_grads.find(input.name);
    grads[input.name] = start != recorded.init_grads.end() ? input_for(start->second, manner, dtype, context)
                                                           : full(values.shape(), 3, context, dtype);
  }
  auto executor =
      bind(symbol, context, args, {.args_grad = grads, .grad_req = backward ? grad_req : "null", .aux_states = aux});
  Answer result;
  for (const NDArray& output : executor->forward(manner.is_train)) result.outputs.push_back(output.copy());
  if (backward) {
    std::vector<NDArray> out_grads;
    for (size_t i = 0; i < recorded.out_grads.size(); ++i)
      out_grads.push_back(input_for(recorded.out_grads[i], manner, result.outputs[i].dtype(), context));
    if (recorded.error)  // none were recorded
      for (const NDArray& output : result.outputs)
        out_grads.push_back(full(output.shape(), 1, context, output.dtype()));
    executor->backward(out_grads, manner.is_train);
    result.grads = grads;
  }
  result.aux = aux;
  return result;
}

// By the coarsest type among the inputs: the wheel sums some of these in float16, and keeps its parameters (a momentum,
// a scale) as floats even where the arrays are doubles.
Tolerance tolerance_for(const OracleCase& recorded, DType dtype) {
  const bool half = std::any_of(recorded.inputs.begin(), recorded.inputs.end(),
                                [](const OracleInput& input) { return input.array.dtype() == DType::float16; });
  if (half && is_floating(dtype)) return {1e-2, 1e-3, 5e-3};
  switch (dtype) {
    case DType::float64:
      return {1e-7, 1e-8, 1e-8};
    case DType::float32:
      return {1e-5, 1e-6, 5e-6};
    case DType::float16:
      return {1e-2, 1e-3, 5e-3};
    default:
      return {};
  }
}

// Agrees with either of the answers MXNet has.
::testing::AssertionResult agrees(const OracleCase& recorded, const NDArray& actual, const NDArray& expected,
                                  const NDArray& otherwise) {
  if (!recorded.values) {
    if (actual.shape() == expected.shape() && actual.dtype() == expected.dtype()) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << actual.shape() << " of " << actual.dtype() << ", expected "
                                         << expected.shape() << " of " << expected.dtype();
  }
  const auto result = all_close(actual, expected, tolerance_for(recorded, expected.dtype()));
  if (result || !otherwise) return result;
  return all_close(actual, otherwise, tolerance_for(recorded, expected.dtype())) ? ::testing::AssertionSuccess()
                                                                                 : result;
}

NDArray find(const std::optional<NamedArrays>& arrays, const std::string& name) {
  if (!arrays || !arrays->contains(name)) return {};
  return arrays->at(name);
}

void expect_outputs(const OracleCase& recorded, const Answer& actual, const std::vector<NDArray>& expected) {
  ASSERT_EQ(actual.outputs.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    const auto& other = recorded.without_onednn.outputs;
    EXPECT_TRUE(agrees(recorded, actual.outputs[i], expected[i], other ? other->at(i) : NDArray())) << "output " << i;
  }
}

void expect_aux(const OracleCase& recorded, const Answer& actual, const std::optional<NamedArrays>& expected) {
  for (const OracleInput& input : recorded.inputs) {
    if (!input.aux || !expected) continue;
    const NDArray changed = find(expected, input.name);
    EXPECT_TRUE(agrees(recorded, actual.aux.at(input.name), changed ? changed : input.array,
                       find(recorded.without_onednn.aux_after, input.name)))
        << "auxiliary state " << input.name;
  }
}

NDArray plus(const NDArray& from, int64_t more) {
  const auto shifted = [&](auto values) {
    for (auto& value : values) value += static_cast<std::decay_t<decltype(value)>>(more);
    return array(values, from.shape(), cpu(), from.dtype());
  };
  return is_floating(from.dtype()) ? shifted(from.to_vector<double>()) : shifted(from.to_vector<int64_t>());
}

void expect_grads(const OracleCase& recorded, const Answer& actual, int64_t more) {
  if (!recorded.train.grads || (!recorded.quirk.empty() && recorded.sane_grads.empty())) return;
  for (const auto& [name, gradient] : recorded.sane_grads.empty() ? *recorded.train.grads : recorded.sane_grads) {
    if (std::count(recorded.untouched_grads.begin(), recorded.untouched_grads.end(), name) > 0) continue;
    NDArray expected = gradient, other = find(recorded.without_onednn.grads, name);
    for (NDArray* each : {&expected, &other}) {
      if (more == 0 || !*each) continue;
      *each = plus(*each, more);
    }
    EXPECT_TRUE(agrees(recorded, actual.grads.at(name), expected, other)) << "gradient of " << name;
  }
}

// ---- what MXNet computes -------------------------------------------------------------------------------------------

class RecordedCase : public ::testing::TestWithParam<Run> {
 protected:
  void SetUp() override {
    if (lacks_lapack(recorded().op, context())) GTEST_SKIP() << without_lapack;
  }
  const OracleCase& recorded() const { return *GetParam().recorded; }
  Context context() const { return GetParam().context; }
};

TEST_P(RecordedCase, TrainsAsMXNet) {
  const Answer actual = answer(recorded(), context(), {});
  expect_outputs(recorded(), actual, recorded().train.outputs.value());
  expect_grads(recorded(), actual, 0);
  // Our statistics move in forward, MXNet's in backward: without one, they differ.
  if (recorded().grad_req != "null" || recorded().op != "BatchNorm")
    expect_aux(recorded(), actual, recorded().train.aux_after);
}

TEST_P(RecordedCase, PredictsAsMXNet) {
  if (recorded().infer_error) GTEST_SKIP() << "MXNet cannot";
  const Answer actual = answer(recorded(), context(), {.is_train = false, .backward = false});
  const OracleAnswer& infer = recorded().infer;
  expect_outputs(recorded(), actual, infer.outputs ? *infer.outputs : recorded().train.outputs.value());
  expect_aux(recorded(), actual, infer.aux_after ? infer.aux_after : recorded().train.aux_after);
}

class RecordedGradient : public RecordedCase {};

TEST_P(RecordedGradient, IsAddedWhereAsked) {
  expect_grads(recorded(), answer(recorded(), context(), {.grad_req = "add"}), 3);
}

TEST_P(RecordedCase, TakesViewsAtUnalignedOffsets) {
  const Answer actual = answer(recorded(), context(), {.shifted = true});
  expect_outputs(recorded(), actual, recorded().train.outputs.value());
  expect_grads(recorded(), actual, 0);
}

// Random results, and steps that write onto their inputs, have no second run to be compared with.
bool takes_inputs_alike(const OracleCase& recorded) {
  const OpDef& op = OpRegistry::get().find(recorded.op);
  NamedArrays seen;
  bool has_equal_inputs = false;
  for (const OracleInput& input : recorded.inputs) {
    has_equal_inputs = has_equal_inputs || (!input.aux && alike(seen, input.array));
    if (!input.aux) seen[input.name] = input.array;
  }
  return has_equal_inputs && !recorded.error && recorded.values && op.name.find("_update") == std::string::npos;
}

class AliasedCase : public RecordedCase {};

TEST_P(AliasedCase, TakesOneArrayForTwoArguments) {
  const Answer apart = answer(recorded(), context(), {.repeat = Manner::Repeat::values});
  const Answer together = answer(recorded(), context(), {.repeat = Manner::Repeat::array});
  for (size_t i = 0; i < apart.outputs.size(); ++i)
    EXPECT_TRUE(same_bits(together.outputs[i], apart.outputs[i])) << "output " << i;
  for (const auto& [name, gradient] : apart.grads)
    EXPECT_TRUE(same_bits(together.grads.at(name), gradient)) << "gradient of " << name;
}

INSTANTIATE_TEST_SUITE_P(Oracle, AliasedCase, ::testing::ValuesIn(runs(takes_inputs_alike)), name_of_run);

INSTANTIATE_TEST_SUITE_P(Oracle, RecordedCase, ::testing::ValuesIn(runs([](auto& each) { return !each.error; })),
                         name_of_run);

INSTANTIATE_TEST_SUITE_P(Oracle, RecordedGradient,
                         ::testing::ValuesIn(runs([](auto& each) { return !each.error && each.grad_req == "write"; })),
                         name_of_run);

// ---- what MXNet refuses --------------------------------------------------------------------------------------------

class RefusedCase : public ::testing::TestWithParam<Run> {};

// MXNet has no kernel for these on a CPU, no answer, or no gradient; we have.
const std::set<std::string> taken_by_us{"Convolution/ndhwc", "Convolution/nhwc", "Pooling/error_same_no_pad",
                                        "_slice_assign/no_gradient", "_slice_assign_scalar/no_gradient"};

TEST_P(RefusedCase, IsRefusedByUsToo) {
  const auto run = [&] {
    answer(*GetParam().recorded, GetParam().context, {});
    waitall();  // a GPU refuses values when it is waited for
  };
  if (taken_by_us.contains(GetParam().recorded->id))
    EXPECT_NO_THROW(run());
  else
    EXPECT_THROW(run(), Error);
}

INSTANTIATE_TEST_SUITE_P(Oracle, RefusedCase, ::testing::ValuesIn(runs([](auto& each) { return each.error; })),
                         name_of_run);

// ---- types MXNet has no kernels for on a CPU -----------------------------------------------------------------------

bool names_a_type(const OracleCase& recorded) {
  return recorded.attributes.contains("dtype") || recorded.attributes.contains("out_dtype");
}

// Matrices are factorized in float32 and float64 alone.
bool is_linear_algebra(const OracleCase& recorded) { return recorded.op.starts_with("_linalg_"); }

bool is_float32(const OracleCase& recorded) {
  return !recorded.error && !is_linear_algebra(recorded) && recorded.values && !names_a_type(recorded) &&
         !recorded.inputs.empty() && std::all_of(recorded.inputs.begin(), recorded.inputs.end(), [](auto& input) {
           return input.array.dtype() == DType::float32;
         });
}

// What one type can hold and another cannot is not compared: float16 reaches 65504 only, float32 not the ends of
// float64.
bool overflows(const NDArray& array, DType dtype) {
  const double limit = dtype == DType::float16 ? 6e4 : 1e30;
  const auto values = array.to_vector<double>();
  return std::any_of(values.begin(), values.end(), [=](double value) { return !(std::abs(value) < limit); });
}

class Float32Case : public ::testing::TestWithParam<Run> {};

TEST_P(Float32Case, RoundsToTheSameInOtherFloatingTypes) {
  const OracleCase& recorded = *GetParam().recorded;
  const Context context = GetParam().context;
  for (const DType dtype : {DType::float64, DType::float16, DType::bfloat16}) {
    SCOPED_TRACE(join(dtype));
    const Answer expected = answer(recorded, context, {.through = dtype});
    const Answer actual = answer(recorded, context, {.instead_of_float32 = dtype, .through = dtype});
    const Tolerance tolerance = tolerance_of(dtype == DType::float64 ? DType::float32 : dtype);
    ASSERT_EQ(actual.outputs.size(), expected.outputs.size());
    for (size_t i = 0; i < expected.outputs.size(); ++i) {
      const NDArray& output = expected.outputs[i];
      if (overflows(output, dtype)) continue;
      EXPECT_TRUE(
          all_close(actual.outputs[i].to_vector<double>(), output.to_vector<double>(), tolerance, output.shape()))
          << "output " << i;
    }
    for (const auto& [name, gradient] : expected.grads) {
      if (overflows(gradient, dtype)) continue;
      EXPECT_TRUE(all_close(actual.grads.at(name).to_vector<double>(), gradient.to_vector<double>(), tolerance,
                            gradient.shape()))
          << "gradient of " << name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Oracle, Float32Case, ::testing::ValuesIn(runs(is_float32)), name_of_run);

// ---- what the cases cover ------------------------------------------------------------------------------------------

// Parameters that no recorded case sets to anything but their default. They belong to steps of optimizers, and recorded
// optimizers set them; lazy_update concerns sparse gradients alone.
const std::set<std::string> tried_by_optimizers{"adam_update.lazy_update", "lamb_update_phase1.beta2",
                                                "lamb_update_phase1.bias_correction", "nag_mom_update.wd",
                                                "rmspropalex_update.clip_weights"};

// The wheel knows these parameters, but lacks the input they speak of, takes the default alone, gets them wrong, or
// crashes on them.
const std::set<std::string> broken_in_the_wheel{"RNN.projection_size",
                                                "log_softmax.use_length",
                                                "softmin.use_length",
                                                "LeakyReLU.lower_bound",
                                                "LeakyReLU.upper_bound",
                                                "SequenceReverse.axis",
                                                "_contrib_bipartite_matching.topk",
                                                "_contrib_MultiBoxTarget.minimum_negative_samples",
                                                "_contrib_SyncBatchNorm.ndev",
                                                "_contrib_SyncBatchNorm.output_mean_var"};

// Parameters of which nothing but the default is taken here.
const std::set<std::string> defaults_alone{"all_finite.init_output", "multi_all_finite.init_output"};

TEST(Coverage, EveryParameterIsTriedOffItsDefault) {
  std::map<const OpDef*, std::set<std::string>> tried;
  for (const OracleCase& each : oracle_cases()) {
    if (each.error) continue;
    const OpDef& op = OpRegistry::get().find(each.op);
    Attributes all = each.attributes;
    if (!op.count_field.empty()) all.emplace(op.count_field, std::to_string(each.inputs.size()));
    for (const auto& [name, value] : op.print_params(op.parse_params(all, each.id).get())) tried[&op].insert(name);
  }
  for (const auto& [op, parameters] : tried)
    for (const ParamField& field : op->fields) {
      const std::string name = op->name + "." + field.name;
      EXPECT_TRUE(parameters.contains(field.name) || tried_by_optimizers.contains(name) ||
                  broken_in_the_wheel.contains(name) || defaults_alone.contains(name))
          << name;
    }
}

TEST(Coverage, EveryOperatorOfNetworksIsRecorded) {
  std::set<std::string> recorded;
  for (const OracleCase& each : oracle_cases()) recorded.insert(OpRegistry::get().find(each.op).name);
  // Those the passes put in; MXNet has no such operators. Custom is whatever a user
  // makes of it, the wheel crashes on fill_element_0index, its _contrib_allclose answers with an array without axes,
  // which there is none of here, and it has the modulated convolution, mask targets, fft and count_sketch for GPUs
  // alone. The steps of optimizers are recorded as optimizers, loops and branches as networks (control_flow.json.gz).
  // The wheel runs the last ones on sparse arrays, in place, with oneDNN's own arrays or inside of its own networks
  // alone, and has not got the plugin WarpCTC.
  std::set<std::string> ours{"Custom", "fill_element_0index", "_contrib_allclose", "_foreach", "_while_loop", "_cond"};
  ours.insert({"_contrib_ModulatedDeformableConvolution", "_contrib_mrcnn_mask_target", "_contrib_fft", "_contrib_ifft",
               "_contrib_count_sketch", "_adamw_step", "_normalize_pixels"});
  ours.insert({"_sparse_retain", "_contrib_getnnz", "_square_sum", "_scatter_set_nd", "_onehot_encode",
               "_contrib_BatchNormWithReLU", "_zeros_without_dtype", "reset_arrays", "WarpCTC"});
  ours.insert(operators_of_passes().begin(), operators_of_passes().end());
  const auto is_step = [](const std::string& name) {
    return name.find("_update") != std::string::npos || name.starts_with("multi_");
  };
  for (const OpDef* op : OpRegistry::get().all())
    if (!op->name.starts_with("_backward") && !ours.contains(op->name) && !is_step(op->name)) {
      EXPECT_TRUE(recorded.contains(op->name)) << op->name;
    }
}

// ---- what the wheel cannot -----------------------------------------------------------------------------------------

// A case the wheel has no answer for runs, or is refused with a sentence; it never brings the program down.
TEST(RejectedByTheWheel, RunsOrIsAnError) {
  for (const RejectedCase& rejected : rejected_cases()) {
    SCOPED_TRACE(join(rejected));
    OracleCase attempt;
    attempt.op = rejected.op;
    attempt.attributes = rejected.attributes;
    for (const auto& input : rejected.inputs) {
      const bool unsigned_type = input.dtype == DType::uint8 || input.dtype == DType::boolean;
      attempt.inputs.push_back(
          {input.name, false, random_array(input.shape, 3, unsigned_type ? 0 : -1, 1, input.dtype)});
    }
    try {
      const Symbol symbol = symbol_of(attempt);
      for (const auto& state : symbol.list_auxiliary_states())
        for (OracleInput& input : attempt.inputs) input.aux = input.aux || input.name == state;
      answer(attempt, cpu(), {});
    } catch (const Error& error) {
      EXPECT_STRNE(error.what(), "");
    }
  }
}

}  // namespace
}  // namespace symbind::testing
