// Ten steps of every optimizer as MXNet 1.9.1 took them: the weights and the states after each (see tests/oracle).
#include <gtest/gtest.h>

#include "symbind/core/log.h"
#include "symbind/optim/updater.h"

#include "tests/optim/recorded_schedules.h"
#include "tests/support/arrays.h"
#include "tests/support/oracle.h"

namespace symbind::testing {
namespace {

using nlohmann::json;

const json& recorded() {
  static const json all = read_recorded("optimizers.json.gz");
  return all;
}

std::vector<NDArray> decode_all(const json& encoded, DType dtype, Context context) {
  std::vector<NDArray> arrays;
  for (const json& each : encoded) arrays.push_back(decode_array(each).astype(dtype).as_in_context(context));
  return arrays;
}

OptimizerParams arguments_of(const json& each) {
  OptimizerParams params;
  for (const auto& [name, value] : each["arguments"].items()) {
    if (value.is_boolean())
      params.emplace(name, value.get<bool>());
    else if (value.is_string())
      params.emplace(name, value.get<std::string>());
    else
      params.emplace(name, value.get<double>());
  }
  if (each.contains("schedule"))
    params.emplace("lr_scheduler", recorded_schedule(each["schedule"][0], each["schedule"][1]));
  return params;
}

std::map<ParamKey, double> multipliers_of(const json& pairs) {
  std::map<ParamKey, double> multipliers;
  for (const json& pair : pairs) {
    if (pair[0].is_string())
      multipliers.emplace(pair[0].get<std::string>(), pair[1].get<double>());
    else
      multipliers.emplace(pair[0].get<int64_t>(), pair[1].get<double>());
  }
  return multipliers;
}

OptimizerPtr optimizer_of(const json& each) {
  OptimizerPtr optimizer = Optimizer::create(each["optimizer"], arguments_of(each));
  std::map<int64_t, std::string> names;
  for (const json& name : recorded()["names"]) names.emplace(static_cast<int64_t>(names.size()), name);
  std::map<std::string, Attributes> attributes;
  if (each.contains("symbol_mults"))
    for (const auto& [name, both] : each["symbol_mults"].items())
      attributes[name] = {{"__lr_mult__", both[0].dump()}, {"__wd_mult__", both[1].dump()}};
  optimizer->set_names(names, attributes);
  if (each.contains("lr_mult")) optimizer->set_lr_mult(multipliers_of(each["lr_mult"]));
  if (each.contains("wd_mult")) optimizer->set_wd_mult(multipliers_of(each["wd_mult"]));
  return optimizer;
}

// The wheel keeps its arguments as floats (1 - 0.999 has four digits then), and rounds 16-bit numbers after every
// operator where it has no kernel.
Tolerance tolerance_for(DType compared) {
  return compared == DType::float16 ? Tolerance{4e-3, 2e-3, 2e-3} : Tolerance{2e-5, 2e-6, 2e-6};
}
// In lamb it takes the norm of a 16-bit weight in 16 bits even where there is a float32 copy.
Tolerance tolerance_for(const json& each, DType compared) {
  const bool rough_norm = each["optimizer"] == "lamb" && each.value("dtype", "") == "float16";
  return tolerance_for(rough_norm ? DType::float16 : compared);
}

void expect_state(const StateTree& actual, const json& expected, const json& each) {
  if (expected.is_null()) {
    EXPECT_TRUE(actual.empty());
  } else if (expected.is_array()) {
    ASSERT_TRUE(actual.is_tuple);
    ASSERT_EQ(actual.tuple.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      SCOPED_TRACE(join("part ", i));
      expect_state(actual.tuple[i], expected[i], each);
    }
  } else {
    ASSERT_TRUE(bool(actual.array));
    const NDArray wanted = decode_array(expected);
    EXPECT_TRUE(all_close(actual.array, wanted, tolerance_for(each, wanted.dtype())));
  }
}

struct Run {
  const json* each;
  Context context;
};

void PrintTo(const Run& run, std::ostream* out) { *out << (*run.each)["id"] << " on " << run.context; }

std::vector<Run> runs() {
  std::vector<Run> all;
  for (const Context context : all_devices())
    for (const json& each : recorded()["cases"]) all.push_back({&each, context});
  return all;
}

std::string name_of_run(const ::testing::TestParamInfo<Run>& info) {
  return test_name((*info.param.each)["id"], info.param.context);
}

class RecordedOptimizer : public ::testing::TestWithParam<Run> {
 protected:
  void SetUp() override {
    before_ = set_log_sink([](LogLevel, std::string_view) {});
  }
  void TearDown() override { set_log_sink(before_); }

  // `together`: all parameters of a step in one call.
  void compare(bool together) {
    const json& each = *GetParam().each;
    const DType dtype = each.contains("dtype") ? dtype_from_name(each["dtype"].get<std::string>()) : DType::float32;
    const std::string shapes = each["shapes"];
    const std::vector<NDArray> weights = decode_all(recorded()["weights"][shapes], dtype, GetParam().context);
    const OptimizerPtr optimizer = optimizer_of(each);
    Updater updater(optimizer);
    for (size_t step = 0; step < each["steps"].size(); ++step) {
      SCOPED_TRACE(join("step ", step + 1));
      const auto grads = decode_all(recorded()["gradients"][shapes][step], dtype, GetParam().context);
      std::vector<Updater::Item> items;
      for (size_t i = 0; i < weights.size(); ++i) items.push_back({i, grads[i], weights[i]});
      if (together)
        updater(items);
      else
        for (const auto& item : items) updater(item.key, item.grad, item.weight);
      const json& answer = each["steps"][step];
      for (size_t i = 0; i < weights.size(); ++i) {
        SCOPED_TRACE(join("parameter ", recorded()["names"][i]));
        const NDArray wanted = decode_array(answer["weights"][i]);
        EXPECT_TRUE(all_close(weights[i].as_in_context(cpu()), wanted, tolerance_for(each, dtype)));
        expect_state(updater.states().at(i), answer["states"][i], each);
      }
      if (HasFailure()) return;
    }
    EXPECT_NEAR(optimizer->learning_rate(), each["learning_rate"].get<double>(), 1e-9);
    EXPECT_EQ(optimizer->num_update(), each["num_update"].get<int64_t>());
  }

 private:
  LogSink before_;
};

TEST_P(RecordedOptimizer, StepsAsMXNet) { compare(false); }

TEST_P(RecordedOptimizer, StepsTheSameTogether) {
  // The wheel corrects the momentum of the first call after a change of rate, so that there it matters.
  if ((*GetParam().each)["optimizer"] == "lars" && GetParam().each->contains("schedule"))
    GTEST_SKIP() << "MXNet's answer depends on the number of calls";
  compare(true);
}

INSTANTIATE_TEST_SUITE_P(Oracle, RecordedOptimizer, ::testing::ValuesIn(runs()), name_of_run);

}  // namespace
}  // namespace symbind::testing
