// Each of the BindOptions off, and all of them: the numbers stay.
#include <gtest/gtest.h>

#include "symbind/exec/executor.h"

#include "tests/support/arrays.h"
#include "tests/support/networks.h"

namespace symbind {
namespace {

struct Option {
  std::string name;
  BindOptions options;
};

const Option options[] = {
    {"without_shared_memory", {.share_memory = false}},
    {"without_fusion", {.fuse = false}},
    {"without_layouts", {.layout = false}},
    {"without_capture", {.capture = false}},
    {"without_anything", {.share_memory = false, .fuse = false, .layout = false, .capture = false}},
};

class TrainingWithOptions : public ::testing::TestWithParam<std::tuple<size_t, size_t>> {};

TEST_P(TrainingWithOptions, GivesTheSameNumbers) {
  const testing::Network network = testing::all_networks()[std::get<0>(GetParam())];
  const Option& option = options[std::get<1>(GetParam())];
  for (const Context context : testing::all_devices()) {
    auto usual = testing::bind_with_values(network, context);
    auto other = testing::bind_with_values(network, context, {.options = option.options});
    EXPECT_TRUE(testing::all_close(other->forward(false)[0], usual->forward(false)[0])) << "prediction on " << context;
    const auto expected = testing::train(*usual, network.inputs, 4), actual = testing::train(*other, network.inputs, 4);
    ASSERT_EQ(actual.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i)
      EXPECT_TRUE(testing::all_close(actual[i], expected[i], {1e-4, 1e-5, 1e-5})) << "array " << i << " on " << context;
    for (const auto& [name, gradient] : usual->grad_dict())
      EXPECT_TRUE(testing::all_close(other->grad_dict().at(name), gradient, {1e-4, 1e-5, 1e-5}))
          << "gradient of " << name << " on " << context;
  }
}

std::string name_of_training(const ::testing::TestParamInfo<std::tuple<size_t, size_t>>& training) {
  return testing::all_networks()[std::get<0>(training.param)].name + "_" + options[std::get<1>(training.param)].name;
}

INSTANTIATE_TEST_SUITE_P(BindOptions, TrainingWithOptions,
                         ::testing::Combine(::testing::Range(size_t{0}, size_t{5}),
                                            ::testing::Range(size_t{0}, std::size(options))),
                         name_of_training);

TEST(BindOptions, WithoutSharingNeedsMoreMemory) {
  const auto network = testing::lenet();
  auto shared = testing::bind_with_values(network);
  auto apart = testing::bind_with_values(network, cpu(), {.options = {.share_memory = false}});
  EXPECT_LT(shared->memory().arena, apart->memory().arena);
}

}  // namespace
}  // namespace symbind
