// Whatever the CompileOptions are, the numbers are those of the plainest plan: predictions, outputs, gradients,
// auxiliary states and parameters on the way through a training, with every device there is.
#include <cmath>

#include <gtest/gtest.h>

#include "symbind/core/log.h"
#include "symbind/core/random.h"
#include "symbind/exec/executor.h"
#include "symbind/exec/invoke.h"

#include "tests/support/compile_options.h"
#include "tests/support/networks.h"
#include "tests/support/record.h"
#include "tests/support/training.h"

namespace symbind {
namespace {

using testing::Record;

void descend(Executor& executor, const NamedShapes& inputs) {
  for (const auto& [name, gradient] : executor.grad_dict())
    if (const NDArray& weight = executor.arg_dict().at(name); !inputs.contains(name))
      invoke("sgd_update", {weight, gradient}, {{"lr", "0.05"}}, {.out = {weight}});
}

// Everything that can be seen of some steps of training, with a prediction before and after each.
Record training_record(const testing::Network& network, Context context, const CompileOptions& options, int steps,
                       testing::Noise noise = {}) {
  Record record;
  auto executor = testing::bind_with_values(network, context, {.grad_req = network.grad_req, .options = options});
  if (noise.size > 0) testing::disturb(*executor, noise);
  const auto out_grads = testing::out_grads_for(*executor);
  seed(11);
  executor->forward(false);
  record.add("first prediction", executor->output_dict());
  for (int step = 1; step <= steps; ++step) {
    executor->forward(true);
    record.add(join("step ", step, " output"), executor->output_dict());
    executor->backward(out_grads);
    record.add(join("step ", step, " gradient"), executor->grad_dict());
    record.add(join("step ", step, " state"), executor->aux_dict());
    descend(*executor, network.inputs);
    executor->forward(false);
    record.add(join("prediction after step ", step), executor->output_dict());
  }
  record.add("parameter", executor->arg_dict());
  executor->forward(false);
  executor->backward(out_grads);
  record.add("test-mode gradient", executor->grad_dict());
  return record;
}

class PlansOfNetworks : public ::testing::TestWithParam<size_t> {};

TEST_P(PlansOfNetworks, GiveTheNumbersOfThePlainestPlan) {
  const testing::Quiet quiet;  // about budgets that cannot be met
  const testing::Network network = testing::networks_for_plans()[GetParam()];
  const int steps = network.name.starts_with("resnet") ? 1 : 3;
  for (const Context context : testing::all_devices()) {
    testing::Reference plainest(
        [&](testing::Noise noise) { return training_record(network, context, testing::plainest(), steps, noise); });
    const Record& expected = plainest.expected();
    for (size_t i = 0; i < expected.arrays.size(); ++i)
      for (const double value : expected.arrays[i].to_vector<double>())
        ASSERT_TRUE(std::isfinite(value)) << expected.names[i] << " with the plainest plan on " << context;
    for (const testing::Variation& variation : testing::variations())
      EXPECT_TRUE(plainest.agrees_with(training_record(network, context, variation.options, steps), {1e-4, 1e-5, 3e-5}))
          << "with " << variation.name << " on " << context;
  }
}

INSTANTIATE_TEST_SUITE_P(CompileOptions, PlansOfNetworks,
                         ::testing::Range(size_t{0}, testing::networks_for_plans().size()),
                         [](const ::testing::TestParamInfo<size_t>& network) {
                           return testing::networks_for_plans()[network.param].name;
                         });

// Random networks run the same way with memory of its own for every array, and with as few bytes as possible.
TEST(CompileOptions, MemoryMakesNoDifferenceToRandomNetworks) {
  const LogSink before = set_log_sink([](LogLevel, std::string_view) {});  // the budget cannot be met
  for (uint32_t number = 0; number < 150; ++number) {
    SCOPED_TRACE(number);
    const Symbol net = testing::random_network(number, number % 3 == 0 ? 6 : 16);
    NamedShapes shapes;
    for (const std::string& name : net.list_arguments())
      if (name == "a" || name == "b") shapes[name] = {4, number % 3 == 0 ? 6 : 16};
    const auto results = [&](const CompileOptions& options) {
      auto executor = simple_bind(net, cpu(), shapes, {.options = options});
      testing::set_values(*executor, 0);
      std::vector<NDArray> found;
      for (int run = 0; run < 2; ++run) {
        seed(5);
        std::vector<NDArray> out_grads;
        for (const NDArray& output : executor->forward(true)) {
          found.push_back(output.copy());
          out_grads.push_back(testing::random_array(output.shape(), 9));
        }
        executor->backward(out_grads);
        for (const NDArray& gradient : executor->grad_arrays())
          if (gradient) found.push_back(gradient.copy());
      }
      return found;
    };
    const auto expected = results({.share_memory = false});
    for (const CompileOptions& options : {CompileOptions{}, CompileOptions{.memory_budget = 1}}) {
      const auto actual = results(options);
      ASSERT_EQ(actual.size(), expected.size());
      for (size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(testing::same_bits(actual[i], expected[i])) << i;
    }
    if (::testing::Test::HasFailure()) break;
  }
  set_log_sink(before);
}

// Channels of one image, joined and cut: pieces of the array in a plain layout and, block by block, in a blocked one.
TEST(CompileOptions, MemoryMakesNoDifferenceToPiecesOfChannels) {
  for (const char* end : {"48", "40", "56"}) {
    const auto conv = [](const Symbol& data, const std::string& name) {
      return apply("Convolution", data, {{"kernel", "(3, 3)"}, {"pad", "(1, 1)"}, {"num_filter", "32"}}, name);
    };
    const Symbol first = conv(testing::var("x"), "first");
    const Symbol joined = apply("Concat", {conv(first, "left"), testing::relu(conv(first, "right"), "relu")},
                                {{"num_args", "2"}}, "joined");
    const Symbol begin = apply("slice_axis", joined, {{"axis", "1"}, {"begin", "0"}, {"end", end}}, "begin");
    const Symbol rest = apply("slice_axis", joined, {{"axis", "1"}, {"begin", end}, {"end", "None"}}, "rest");
    const Symbol net = Symbol::group({conv(begin, "above"), conv(rest, "below"), apply("exp", joined)});
    const auto outputs = [&](const CompileOptions& options) {
      auto executor = simple_bind(net, cpu(), {{"x", {1, 16, 10, 12}}}, {.grad_req = "null", .options = options});
      testing::set_values(*executor, 0);
      return executor->forward(false);
    };
    const auto expected = outputs(testing::plainest()), actual = outputs({.poison = true});
    for (size_t i = 0; i < expected.size(); ++i)
      EXPECT_TRUE(testing::all_close(actual[i], expected[i], {1e-4, 1e-5, 1e-5})) << i << ", cut at " << end;
  }
}

TEST(CompileOptions, WithoutSharingNeedsMoreMemory) {
  const auto network = testing::lenet();
  auto shared = testing::bind_with_values(network);
  auto apart = testing::bind_with_values(network, cpu(), {.options = {.share_memory = false}});
  EXPECT_LT(shared->memory().arena, apart->memory().arena);
}

}  // namespace
}  // namespace symbind
