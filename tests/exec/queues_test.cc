// Parts of a network on several contexts concurrently: which step waits for which, the same numbers as on one context,
// errors, and that they do run concurrently.
#include "symbind/exec/queues.h"

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <random>
#include <thread>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "symbind/core/workers.h"
#include "symbind/exec/arithmetic.h"
#include "symbind/exec/executor.h"
#include "symbind/ops/custom.h"

#include "tests/support/arrays.h"
#include "tests/support/memory.h"
#include "tests/support/networks.h"

namespace symbind {
namespace {

using testing::fc;
using testing::relu;
using testing::softmax;
using testing::var;
using Steps = std::vector<size_t>;

// ---- Who waits for whom ---------------------------------------------------------------------------------------------

StepAccess step(int context, std::vector<ByteRange> reads, std::vector<ByteRange> writes) {
  return {cpu(context), std::move(reads), std::move(writes)};
}

TEST(Queues, ACopyWaitsForWhatItReads) {
  const Queues queues({step(0, {}, {{0, 0, 64}}),              // makes
                       step(1, {}, {{1, 0, 64}}),              // concerns no other step
                       step(1, {{0, 0, 64}}, {{1, 64, 128}}),  // copies
                       step(1, {{1, 64, 128}}, {{1, 0, 64}})});
  EXPECT_EQ(queues.count(), 2u);
  EXPECT_EQ(queues.waits_of(1), Steps{});
  EXPECT_EQ(queues.waits_of(2), Steps{0});
  EXPECT_EQ(queues.waits_of(3), Steps{}) << "its own queue is in order";
}

TEST(Queues, WhoWritesOverTheSourceWaitsForTheCopy) {
  const Queues queues({step(0, {}, {{0, 0, 64}}), step(1, {{0, 0, 64}}, {{1, 0, 64}}),  // copies
                       step(0, {}, {{0, 64, 128}}),                                     // beside it
                       step(0, {{0, 64, 128}}, {{0, 32, 48}}),                          // over a part of it
                       step(0, {}, {{0, 0, 16}})});                                     // and over another
  EXPECT_EQ(queues.waits_of(2), Steps{});
  EXPECT_EQ(queues.waits_of(3), Steps{1});
  EXPECT_EQ(queues.waits_of(4), Steps{}) << "its queue has waited already";
}

TEST(Queues, ReadersDoNotWaitForReaders) {
  const ByteRange weight{ByteRange::outside, 1000, 2000};
  const Queues queues({step(0, {weight}, {{0, 0, 64}}), step(1, {weight}, {{1, 0, 64}}), step(2, {}, {weight})});
  EXPECT_EQ(queues.waits_of(1), Steps{});
  EXPECT_EQ(queues.waits_of(2), (Steps{0, 1})) << "who writes it waits for both";
}

// Random reads and writes of a few cells by three contexts: every read finds what it finds one after the other.
TEST(Queues, KeepTheOrderOfAllThatMatters) {
  std::mt19937 random(7);
  Workers workers(3, 3);
  for (int round = 0; round < 50; ++round) {
    std::vector<StepAccess> steps;
    const auto cell = [&] {
      const uintptr_t begin = random() % 6;
      return ByteRange{static_cast<int>(random() % 2), begin, begin + 1 + random() % 2};
    };
    for (int i = 0; i < 60; ++i) steps.push_back(step(static_cast<int>(random() % 3), {cell(), cell()}, {cell()}));

    using Cells = std::array<std::array<uint64_t, 8>, 2>;
    const auto run_step = [&](size_t number, Cells& cells) {
      uint64_t sum = number + 1;
      for (const ByteRange& range : steps[number].reads)
        for (uintptr_t k = range.begin; k < range.end; ++k) sum = sum * 31 + cells[static_cast<size_t>(range.space)][k];
      for (const ByteRange& range : steps[number].writes)
        for (uintptr_t k = range.begin; k < range.end; ++k) cells[static_cast<size_t>(range.space)][k] = sum;
    };
    Cells expected{}, actual{};
    for (size_t i = 0; i < steps.size(); ++i) run_step(i, expected);
    Queues queues(steps);
    queues.run(workers, [&](size_t number) { run_step(number, actual); });
    EXPECT_EQ(actual, expected) << "round " << round;
  }
}

TEST(Queues, AStepThatFailsEndsTheRun) {
  Workers workers(2, 2);
  Queues queues({step(0, {}, {{0, 0, 64}}), step(1, {{0, 0, 64}}, {{1, 0, 64}}), step(0, {}, {{0, 0, 64}})});
  for (size_t failing = 0; failing < 3; ++failing) {
    try {
      queues.run(workers, [&](size_t number) { require(number != failing, "step ", number); });
      ADD_FAILURE() << "step " << failing << " should have failed";
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()), join("step ", failing));
    }
  }
  std::atomic<int> calls = 0;
  queues.run(workers, [&](size_t) { ++calls; });
  EXPECT_EQ(calls, 3) << "and the next run is whole";
}

// ---- The same numbers -----------------------------------------------------------------------------------------------

template <class Make>
Symbol in_group(const std::string& group, Make&& make) {
  const AttrScope scope(Attributes{{"ctx_group", group}});
  return make();
}

const std::map<std::string, Context> three_contexts{{"a", cpu(0)}, {"b", cpu(1)}, {"c", cpu(2)}};

// Layers of a recurrent network, each on a context of its own: while one does step t, the one below does step t + 1.
testing::Network recurrent(int layers, int length) {
  const std::vector<std::string> groups = {"a", "b", "c"};
  std::vector<Symbol> below;
  for (int t = 0; t < length; ++t) below.push_back(var(join("x", t)));
  for (int layer = 0; layer < layers; ++layer) {
    in_group(groups[static_cast<size_t>(layer)], [&] {
      const Symbol weight = var(join("layer", layer, "_weight")), bias = var(join("layer", layer, "_bias"));
      const Symbol state_weight = var(join("layer", layer, "_state_weight"));
      for (size_t t = 0; t < below.size(); ++t) {
        const std::string name = join("layer", layer, "_step", t);
        const auto product = [&](const Symbol& data, const Symbol& by, const std::string& what) {
          return apply("FullyConnected", {data, by, bias}, {{"num_hidden", "12"}}, name + what);
        };
        Symbol sum = product(below[t], weight, "_in");
        if (t > 0) sum = sum + product(below[t - 1], state_weight, "_state");
        below[t] = apply("Activation", {sum}, {{"act_type", "tanh"}}, name);
      }
      return below.back();
    });
  }
  NamedShapes shapes{{"softmax_label", {5}}};
  for (int t = 0; t < length; ++t) shapes[join("x", t)] = {5, 12};
  return {"recurrent", in_group("c", [&] { return softmax(fc(below.back(), 4, "out")); }), shapes, 4};
}

testing::Network diamond() {
  const Symbol stem = in_group("a", [] { return relu(fc(var("data"), 32, "stem"), "stem_relu"); });
  const Symbol left = in_group("b", [&] { return relu(fc(stem, 24, "left"), "left_relu"); });
  const Symbol right = in_group("c", [&] { return relu(fc(stem, 24, "right"), "right_relu"); });
  const Symbol sum = in_group("a", [&] { return softmax(fc(left + right, 4, "out")); });
  return {"diamond", sum, {{"data", {16, 20}}, {"softmax_label", {16}}}, 4};
}

testing::Network three_towers() {
  const Symbol data = var("data");
  std::vector<Symbol> towers;
  for (const char* group : {"a", "b", "c"})
    towers.push_back(in_group(group, [&] {
      Symbol tower = data;
      for (int i = 0; i < 4; ++i) tower = relu(fc(tower, 20, join(group, i)), join(group, i, "_relu"));
      return tower;
    }));
  return {"three_towers",
          softmax(fc(towers[0] + towers[1] + towers[2], 4, "out")),
          {{"data", {8, 20}}, {"softmax_label", {8}}},
          4};
}

class Concurrent : public ::testing::TestWithParam<int> {
 protected:
  testing::Network network() const {
    return GetParam() == 0 ? recurrent(3, 6) : GetParam() == 1 ? diamond() : three_towers();
  }
};

TEST_P(Concurrent, TrainingGivesTheNumbersOfOneContext) {
  const testing::Network net = network();
  auto one = testing::bind_with_values(net);
  auto several = testing::bind_with_values(net, cpu(), {.group2ctx = three_contexts});
  auto in_turn =
      testing::bind_with_values(net, cpu(), {.group2ctx = three_contexts, .options = {.concurrent_contexts = false}});
  EXPECT_TRUE(testing::all_close(several->forward(false)[0], one->forward(false)[0])) << "prediction";
  const auto expected = testing::train(*one, net.inputs, 10), actual = testing::train(*several, net.inputs, 10);
  const auto unhurried = testing::train(*in_turn, net.inputs, 10);
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_TRUE(testing::all_close(actual[i], expected[i])) << "array " << i;
    EXPECT_TRUE(testing::all_close(unhurried[i], expected[i])) << "array " << i;
  }
  for (const auto& [name, gradient] : one->grad_dict())
    EXPECT_TRUE(testing::all_close(several->grad_dict().at(name), gradient)) << "gradient of " << name;
}

TEST_P(Concurrent, EveryRunGivesTheSameBits) {
  auto executor = testing::bind_with_values(network(), cpu(), {.group2ctx = three_contexts});
  std::vector<std::vector<float>> first;
  for (int round = 0; round < 30; ++round) {
    std::vector<std::vector<float>> results = {executor->forward(true)[0].to_vector<float>()};
    executor->backward();
    for (const auto& [name, gradient] : executor->grad_dict()) results.push_back(gradient.to_vector<float>());
    if (round == 0) first = results;
    ASSERT_EQ(results, first) << "round " << round;
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, Concurrent, ::testing::Range(0, 3));

TEST(ConcurrentContexts, GradientsThatAreAddedStayRight) {
  const testing::Network net = diamond();
  auto one = testing::bind_with_values(net, cpu(), {.grad_req = "add"});
  auto several = testing::bind_with_values(net, cpu(), {.grad_req = "add", .group2ctx = three_contexts});
  for (int i = 0; i < 3; ++i)
    for (const ExecutorPtr& executor : {one, several}) {
      executor->forward(true);
      executor->backward();
    }
  for (const auto& [name, gradient] : one->grad_dict())
    EXPECT_TRUE(testing::all_close(several->grad_dict().at(name), gradient)) << "gradient of " << name;
}

TEST(ConcurrentContexts, ReshapedAndMonitoredExecutorsWorkToo) {
  auto executor = testing::bind_with_values(three_towers(), cpu(), {.group2ctx = three_contexts});
  executor->forward(true);
  auto smaller = executor->reshape({{"data", {3, 20}}, {"softmax_label", {3}}}, {.partial_shaping = true});
  smaller->forward(true);
  smaller->backward();
  EXPECT_EQ(smaller->outputs()[0].shape(), (Shape{3, 4}));
  int seen = 0;
  executor->set_monitor_callback([&](const std::string&, const NDArray&) { ++seen; });
  executor->forward(true);
  EXPECT_GT(seen, 20);
}

TEST(ConcurrentContexts, AForkedChildRunsThemInTurn) {
  if (!testing::forked_child_may_use_threads) GTEST_SKIP() << "the thread sanitizer cannot follow";
  auto executor = testing::bind_with_values(three_towers(), cpu(), {.group2ctx = three_contexts});
  const std::vector<float> expected = executor->forward(true)[0].to_vector<float>();
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(30);  // a child that waits for threads it does not have would wait for ever
    executor->forward(true);
    ::_exit(executor->outputs()[0].to_vector<float>() == expected ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << "it never ended";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

// ---- At the same time -----------------------------------------------------------------------------------------------

// Operators that cannot end alone: each waits until as many as `wanted` have begun.
class Meeting {
 public:
  bool attend(size_t wanted) {
    std::unique_lock lock(mutex_);
    threads_.push_back(std::this_thread::get_id());
    changed_.notify_all();
    return changed_.wait_for(lock, std::chrono::seconds(30), [&] { return threads_.size() >= wanted; });
  }
  void begin() {
    const std::lock_guard lock(mutex_);
    threads_.clear();
  }
  std::vector<std::thread::id> threads() {
    const std::lock_guard lock(mutex_);
    return threads_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::thread::id> threads_;
};
Meeting meeting;

class MeetingOp final : public CustomOp {
 public:
  explicit MeetingOp(size_t wanted) : wanted_(wanted) {}
  void forward(bool, const std::vector<OpReq>&, const std::vector<NDArray>& in_data,
               const std::vector<NDArray>& out_data, const std::vector<NDArray>&) override {
    require(meeting.attend(wanted_), "no other context came in forward");
    in_data[0].copyto(out_data[0]);
  }
  void backward(const std::vector<OpReq>&, const std::vector<NDArray>& out_grad, const std::vector<NDArray>&,
                const std::vector<NDArray>&, const std::vector<NDArray>& in_grad,
                const std::vector<NDArray>&) override {
    require(meeting.attend(wanted_), "no other context came in backward");
    out_grad[0].copyto(in_grad[0]);
  }

 private:
  size_t wanted_;
};

class FailingOp final : public CustomOp {
 public:
  void forward(bool, const std::vector<OpReq>&, const std::vector<NDArray>& in_data,
               const std::vector<NDArray>& out_data, const std::vector<NDArray>&) override {
    require(in_data[0].to_vector<float>()[0] >= 0, "no negative numbers in forward");
    in_data[0].copyto(out_data[0]);
  }
  void backward(const std::vector<OpReq>&, const std::vector<NDArray>& out_grad, const std::vector<NDArray>&,
                const std::vector<NDArray>&, const std::vector<NDArray>& in_grad,
                const std::vector<NDArray>&) override {
    require(out_grad[0].to_vector<float>()[0] >= 0, "no negative numbers in backward");
    out_grad[0].copyto(in_grad[0]);
  }
};

template <class Op, class... Arguments>
class PropOf final : public CustomOpProp {
 public:
  explicit PropOf(Arguments... arguments) : make_([=] { return std::make_shared<Op>(arguments...); }) {}
  std::shared_ptr<CustomOp> create_operator(Context, const std::vector<Shape>&,
                                            const std::vector<DType>&) const override {
    return make_();
  }

 private:
  std::function<std::shared_ptr<CustomOp>()> make_;
};

Symbol custom_op(const Symbol& data, const std::string& type, const std::string& name) {
  return custom(data, {.op_type = type}, name);
}

TEST(ConcurrentContexts, OperatorsOnTwoContextsMeet) {
  register_custom_op("meet_two", [](const Attributes&) { return std::make_shared<PropOf<MeetingOp, size_t>>(2); });
  const Symbol data = var("data");
  const Symbol left = in_group("a", [&] { return custom_op(data, "meet_two", "left"); });
  const Symbol right = in_group("b", [&] { return custom_op(data, "meet_two", "right"); });
  auto executor = simple_bind(left + right, cpu(), {{"data", {64}}}, {.group2ctx = three_contexts});
  for (const NDArray& array : executor->arg_arrays()) array.fill(3);
  for (int round = 0; round < 3; ++round) {
    meeting.begin();
    EXPECT_EQ(executor->forward(true)[0].to_vector<float>(), std::vector<float>(64, 6));
    ASSERT_EQ(meeting.threads().size(), 2u);
    EXPECT_NE(meeting.threads()[0], meeting.threads()[1]);
    meeting.begin();
    executor->backward({full({64}, 2)});
    EXPECT_EQ(executor->grad_dict().at("data").to_vector<float>(), std::vector<float>(64, 4));
  }
}

TEST(ConcurrentContexts, OperatorsOnThreeContextsMeet) {
  register_custom_op("meet_three", [](const Attributes&) { return std::make_shared<PropOf<MeetingOp, size_t>>(3); });
  const Symbol data = var("data");
  std::vector<Symbol> parts;
  for (const char* group : {"a", "b", "c"})
    parts.push_back(in_group(group, [&] { return custom_op(data, "meet_three", group); }));
  auto executor = simple_bind(parts[0] + parts[1] + parts[2], cpu(), {{"data", {64}}}, {.group2ctx = three_contexts});
  for (const NDArray& array : executor->arg_arrays()) array.fill(1);
  meeting.begin();
  EXPECT_EQ(executor->forward(false)[0].to_vector<float>(), std::vector<float>(64, 3));
}

TEST(ConcurrentContexts, AnErrorOnAnotherContextIsThrown) {
  register_custom_op("failing", [](const Attributes&) { return std::make_shared<PropOf<FailingOp>>(); });
  // The sum on cpu(0) waits for what never comes, in forward; the tower on cpu(0) in backward.
  const Symbol data = var("data");
  const Symbol left = in_group("a", [&] { return relu(fc(data, 16, "left"), "left_relu"); });
  const Symbol right = in_group("b", [&] { return custom_op(fc(data, 16, "right"), "failing", "check"); });
  const Symbol net = in_group("a", [&] { return left + right; });
  auto executor = simple_bind(net, cpu(), {{"data", {4, 16}}}, {.group2ctx = three_contexts});
  const auto message_of = [](auto&& action) -> std::string {
    try {
      action();
    } catch (const std::exception& error) {
      return error.what();
    }
    return "";
  };
  NDArray bias = executor->arg_dict().at("right_bias");
  for (int round = 0; round < 20; ++round) {
    bias.fill(-1);
    EXPECT_EQ(message_of([&] { executor->forward(true); }), "no negative numbers in forward");
    bias.fill(1);
    EXPECT_EQ(message_of([&] { executor->forward(true); }), "") << "a run after one that failed";
    EXPECT_EQ(executor->outputs()[0].to_vector<float>(), std::vector<float>(64, 1));
    EXPECT_EQ(message_of([&] { executor->backward({full({4, 16}, -1)}); }), "no negative numbers in backward");
    executor->forward(true);
    EXPECT_EQ(message_of([&] { executor->backward({full({4, 16}, 1)}); }), "");
  }
}

// ---- When it is worth it --------------------------------------------------------------------------------------------

TEST(ConcurrentContexts, AChainRunsOnTheCallingThread) {
  register_custom_op("meet_none", [](const Attributes&) { return std::make_shared<PropOf<MeetingOp, size_t>>(1); });
  Symbol net = in_group("a", [] { return custom_op(var("data"), "meet_none", "first"); });
  net = in_group("b", [&] { return custom_op(net, "meet_none", "second"); });
  auto executor = simple_bind(net, cpu(), {{"data", {64}}}, {.group2ctx = three_contexts});
  meeting.begin();
  executor->forward(false);
  EXPECT_EQ(meeting.threads(), std::vector<std::thread::id>(2, std::this_thread::get_id()))
      << "one waits for the other, so that neither gives up cores";
}

}  // namespace
}  // namespace symbind
