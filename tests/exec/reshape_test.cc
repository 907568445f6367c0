// Executors that share memory: reshape, shared_exec, shared_buffer.
#include <gtest/gtest.h>

#include "symbind/exec/executor.h"
#include "symbind/graph/builder.h"

#include "tests/support/arrays.h"
#include "tests/support/memory.h"
#include "tests/support/networks.h"

namespace symbind {
namespace {

using testing::all_close;
using testing::fails_with;
using testing::resident_bytes;
using testing::same_bits;

NamedShapes mlp_shapes(int64_t batch) { return {{"data", {batch, 12}}, {"softmax_label", {batch}}}; }

int64_t live_bytes(Context context = cpu()) { return Device::get(context).memory().live; }

void step(Executor& executor) {
  executor.forward(true);
  executor.backward();
}

TEST(Reshape, SharesTheParameters) {
  auto first = testing::bind_with_values(testing::mlp());
  auto second = first->reshape(mlp_shapes(3));
  for (const std::string name : {"fc1_weight", "fc2_bias", "fc3_weight"}) {
    EXPECT_TRUE(second->arg_dict().at(name).same_memory(first->arg_dict().at(name))) << name;
    EXPECT_TRUE(second->grad_dict().at(name).same_memory(first->grad_dict().at(name))) << name;
  }
  EXPECT_EQ(second->outputs()[0].shape(), (Shape{3, 4}));
  EXPECT_EQ(second->arg_dict().at("data").shape(), (Shape{3, 12}));
}

TEST(Reshape, GivesTheNumbersOfAFreshExecutor) {
  for (const auto& network : {testing::mlp(), testing::lenet(), testing::batch_norm_net()}) {
    auto first = testing::bind_with_values(network);
    step(*first);
    NamedShapes smaller = network.inputs;
    for (auto& [name, shape] : smaller) shape[0] = 2;
    auto second = first->reshape(smaller);
    auto fresh = simple_bind(network.symbol, cpu(), smaller);
    testing::set_values(*second, network.classes, 5);
    testing::set_values(*fresh, network.classes, 5);
    for (auto& executor : {second, fresh}) step(*executor);
    EXPECT_TRUE(all_close(second->outputs()[0], fresh->outputs()[0])) << network.name;
    for (const auto& [name, gradient] : fresh->grad_dict())
      EXPECT_TRUE(all_close(second->grad_dict().at(name), gradient)) << network.name << " " << name;
  }
}

TEST(Reshape, ToASmallerShapeNeedsNoNewMemory) {
  auto first = testing::bind_with_values(testing::mlp());
  step(*first);
  const int64_t before = live_bytes();
  auto second = first->reshape(mlp_shapes(3));
  step(*second);
  // The new outputs are arrays of their own; a few hundred bytes.
  EXPECT_LE(live_bytes() - before, 1024);
}

TEST(Reshape, ToALargerShapeMustBeAllowed) {
  auto first = testing::bind_with_values(testing::mlp());
  EXPECT_TRUE(fails_with([&] { first->reshape(mlp_shapes(60)); }, "data", "(6,12)", "(60,12)", "allow_up_sizing"));
  auto larger = first->reshape(mlp_shapes(60), {.allow_up_sizing = true});
  step(*larger);
  EXPECT_EQ(larger->outputs()[0].shape(), (Shape{60, 4}));
  EXPECT_NO_THROW(step(*first)) << "the first still works, in the memory that has grown";
}

TEST(Reshape, OfAnArgumentThatWasNotNamedMustBeAllowed) {
  auto first = testing::bind_with_values(testing::mlp());
  EXPECT_TRUE(fails_with([&] { first->reshape({{"data", {3, 12}}}); }, "softmax_label", "partial_shaping"));
  auto partial = first->reshape({{"data", {3, 12}}}, {.partial_shaping = true});
  EXPECT_EQ(partial->arg_dict().at("softmax_label").shape(), (Shape{3}));
}

TEST(Reshape, BackAndForthKeepsEverythingRight) {
  const auto network = testing::mlp();
  auto six = testing::bind_with_values(network);
  step(*six);
  const NDArray expected = six->outputs()[0].copy(), gradient = six->grad_dict().at("fc1_weight").copy();
  auto three = six->reshape(mlp_shapes(3));
  auto again = three->reshape(mlp_shapes(6));
  EXPECT_TRUE(again->arg_dict().at("data").same_memory(six->arg_dict().at("data")));
  for (int round = 0; round < 3; ++round) {
    step(*three);
    testing::set_values(*again, network.classes);
    step(*again);
    EXPECT_TRUE(same_bits(again->outputs()[0], expected));
    EXPECT_TRUE(same_bits(again->grad_dict().at("fc1_weight"), gradient));
  }
}

TEST(Reshape, TenThousandTimesLeavesMemoryFlat) {
  auto executor = testing::bind_with_values(testing::mlp());
  const auto reshape_and_run = [&](int round) {
    executor = executor->reshape(mlp_shapes(1 + round % 6));
    if (round % 10 == 0) step(*executor);
  };
  for (int round = 0; round < 500; ++round) reshape_and_run(round);
  executor = executor->reshape(mlp_shapes(6));
  const int64_t live = live_bytes(), resident = resident_bytes();
  for (int round = 0; round < 10'000; ++round) reshape_and_run(round);
  executor = executor->reshape(mlp_shapes(6));
  EXPECT_EQ(live_bytes(), live);
  if (testing::resident_bytes_mean_something) {
    EXPECT_LE(resident_bytes() - resident, int64_t{8} << 20);
  }
}

// ---- shared_exec and shared_buffer ---------------------------------------------------------------------------------

TEST(SharedExec, SharesTheWorkingMemory) {
  const auto network = testing::lenet();
  auto first = testing::bind_with_values(network);
  step(*first);
  const int64_t before = live_bytes();
  auto second = simple_bind(network.symbol, cpu(), network.inputs, {.grad_req = "null", .shared_exec = first});
  second->forward();
  const MemoryReport memory = second->memory();
  EXPECT_LE(live_bytes() - before, static_cast<int64_t>(memory.arguments + memory.outputs + memory.cached) + 16 * 64);
}

TEST(SharedExec, SharesTheNamedArrays) {
  const auto network = testing::batch_norm_net();
  auto first = testing::bind_with_values(network);
  auto second = simple_bind(network.symbol, cpu(), {{"data", {2, 3, 6, 6}}},
                            {.shared_arg_names = {"conv1_weight", "fc_bias", "data"}, .shared_exec = first});
  EXPECT_TRUE(second->arg_dict().at("conv1_weight").same_memory(first->arg_dict().at("conv1_weight")));
  EXPECT_TRUE(second->grad_dict().at("fc_bias").same_memory(first->grad_dict().at("fc_bias")));
  EXPECT_FALSE(second->arg_dict().at("conv2_weight").same_memory(first->arg_dict().at("conv2_weight"))) << "not named";
  EXPECT_FALSE(second->arg_dict().at("data").same_memory(first->arg_dict().at("data"))) << "another shape";
  EXPECT_TRUE(second->aux_dict().at("bn1_moving_mean").same_memory(first->aux_dict().at("bn1_moving_mean")));
}

TEST(SharedExec, WithLargerMemoryMovesTheFirstOne) {
  const auto network = testing::mlp();
  auto small = testing::bind_with_values(network);
  const NDArray expected = small->forward()[0].copy();
  auto large = simple_bind(network.symbol, cpu(), mlp_shapes(500), {.shared_exec = small});
  step(*large);
  EXPECT_TRUE(same_bits(small->forward()[0], expected)) << "its addresses are taken again";
  step(*small);
  step(*large);
}

TEST(SharedExec, ThatCannotGrowLeavesTheFirstOneItsMemory) {
  const auto network = testing::mlp();
  auto first = testing::bind_with_values(network);
  const NDArray expected = first->forward(true)[0].copy();
  const Symbol product = apply("broadcast_mul", {Symbol::variable("a"), Symbol::variable("b")});
  auto second = simple_bind(apply("sum", apply("tanh", product)), cpu(), {{"a", {1 << 22, 1}}, {"b", {1, 1 << 22}}},
                            {.shared_exec = first});
  EXPECT_THROW(second->forward(), Error) << "an arena of 64 TB";
  EXPECT_TRUE(same_bits(first->forward(true)[0], expected));
}

TEST(SharedBuffer, IsUsedWhereItIsLargeEnough) {
  NamedArrays buffer{{"data", full({100}, 7)}};
  auto executor = simple_bind(testing::mlp().symbol, cpu(), mlp_shapes(6), {.shared_buffer = &buffer});
  EXPECT_TRUE(executor->arg_dict().at("data").same_memory(buffer.at("data")));
  EXPECT_EQ(executor->arg_dict().at("data").shape(), (Shape{6, 12}));
  EXPECT_TRUE(buffer.contains("fc1_weight")) << "new arrays are added to it";
  EXPECT_TRUE(executor->arg_dict().at("fc1_weight").same_memory(buffer.at("fc1_weight")));
}

TEST(SharedBuffer, IsReplacedWhereItIsTooSmall) {
  NamedArrays buffer;
  auto small = simple_bind(testing::mlp().symbol, cpu(), mlp_shapes(2), {.shared_buffer = &buffer});
  auto large = simple_bind(testing::mlp().symbol, cpu(), mlp_shapes(9), {.shared_buffer = &buffer});
  auto again = simple_bind(testing::mlp().symbol, cpu(), mlp_shapes(4), {.shared_buffer = &buffer});
  EXPECT_FALSE(large->arg_dict().at("data").same_memory(small->arg_dict().at("data")));
  EXPECT_TRUE(again->arg_dict().at("data").same_memory(large->arg_dict().at("data")));
  EXPECT_TRUE(again->arg_dict().at("fc1_weight").same_memory(small->arg_dict().at("fc1_weight")));
  EXPECT_NO_THROW(small->forward()) << "what it was bound to stays alive";
}

}  // namespace
}  // namespace symbind
