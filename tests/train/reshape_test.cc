// Batches of other shapes through Module::forward.
#include <random>

#include <gtest/gtest.h>

#include "tests/support/memory.h"
#include "tests/support/training.h"

namespace symbind::testing {
namespace {

Symbol images_of_any_size() {
  Symbol net = Symbol::variable("data");
  net = convolution(net, {.kernel = {3, 3}, .pad = {1, 1}, .num_filter = 6}, "conv");
  net = activation(batch_norm(net, {}, "bn"), {.act_type = "relu"}, "relu");
  net = pooling(net, {.kernel = {1, 1}, .pool_type = "avg", .global_pool = true}, "pool");
  return softmax_output(fully_connected(net, {.num_hidden = 3}, "fc"), {}, "softmax");
}

int64_t live_bytes() { return Device::get(cpu(0)).memory().live + Device::get(cpu(1)).memory().live; }

TEST(ModuleReshape, AThousandRandomShapesLeaveMemoryFlat) {
  constexpr int64_t most_samples = 12, most_pixels = 20;
  Module module(images_of_any_size(), {.context = {cpu(0), cpu(1)}});
  module.bind({{"data", {most_samples, 2, most_pixels, most_pixels}}}, {{"softmax_label", {most_samples}}});
  module.init_params();
  module.init_optimizer({});
  const auto step = [&](int64_t samples, int64_t height, int64_t width, bool train) {
    const DataBatch batch{.data = {ones({samples, 2, height, width})}, .label = {labels_of(samples)}};
    module.forward(batch, train);
    EXPECT_EQ(module.output_shapes()[0].second, (Shape{samples, 3}));
    if (!train) return;
    module.backward();
    module.update();
  };
  std::mt19937 random(1);
  const auto random_step = [&] {
    const auto between = [&](int64_t low, int64_t high) {
      return std::uniform_int_distribution<int64_t>(low, high)(random);
    };
    step(between(2, most_samples), between(3, most_pixels), between(3, most_pixels), between(0, 3) > 0);
  };
  for (int i = 0; i < 1000; ++i) random_step();  // until caches are full: oneDNN keeps 1,024 primitives
  step(most_samples, most_pixels, most_pixels, true);
  const int64_t live = live_bytes(), resident = resident_bytes();
  for (int i = 0; i < 1000; ++i) random_step();
  step(most_samples, most_pixels, most_pixels, true);
  EXPECT_LE(live_bytes() - live, int64_t{64} << 10);
  if (resident_bytes_mean_something) {
    EXPECT_LE(resident_bytes() - resident, int64_t{8} << 20);
  }
}

TEST(ModuleReshape, ToWhatTheParametersDoNotFitFailsAndChangesNothing) {
  Module module(small_network(), {.context = {cpu(0), cpu(1)}});
  module.bind({{"data", {10, 4}}}, {{"softmax_label", {10}}});
  module.init_params({.arg_params = first_values()});
  const DataBatch right{.data = {random_array({10, 4}, 1)}, .label = {labels_of(10)}};
  module.forward(right, true);
  const NDArray expected = module.get_outputs()[0].copy();
  const DataBatch wrong{.data = {random_array({6, 5}, 1)}, .label = {labels_of(6)}};
  EXPECT_TRUE(fails_with([&] { module.forward(wrong, true); }, "fc1", "weight (8,4)", "data (3,5)"));
  EXPECT_EQ(module.data_shapes()[0].shape, (Shape{10, 4}));
  EXPECT_EQ(module.exec_group()->batch_size(), 10);
  module.forward(right, true);
  EXPECT_TRUE(same_bits(module.get_outputs()[0], expected));
  expect_same_bits(module.get_params().arg_params, first_values());
}

}  // namespace
}  // namespace symbind::testing
