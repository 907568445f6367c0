// What inference does to the random streams: nothing, unless the network samples.
#include <gtest/gtest.h>

#include "symbind/core/random_cursors.h"
#include "symbind/symbind.h"

#include "tests/support/arrays.h"

namespace symbind {
namespace {

using testing::same_bits;

bool same(const std::map<std::string, RandomCursor>& a, const std::map<std::string, RandomCursor>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.first == y.first && x.second.key == y.second.key && x.second.draw == y.second.draw;
  });
}

ExecutorPtr bound(const Symbol& net) {
  ExecutorPtr executor = simple_bind(net, cpu(), {{"data", {64}}});
  executor->arg_dict().at("data").fill(-1);
  return executor;
}

const Symbol& data() {
  static const Symbol variable = Symbol::variable("data");
  return variable;
}

TEST(RandomStreams, OfTrainingAreNotMovedByInference) {
  for (const Symbol& net : {dropout(data(), {.p = 0.5}), leaky_relu(data(), {.act_type = "rrelu"})}) {
    const ExecutorPtr executor = bound(net);
    seed(3);
    const NDArray expected = executor->forward(true)[0].copy();
    seed(3);
    const auto before = random_cursors();
    executor->forward(false);
    executor->backward({ones({64})}, false);  // the gradients of the network in test mode
    EXPECT_TRUE(same(random_cursors(), before)) << net.name();
    EXPECT_TRUE(same_bits(executor->forward(true)[0], expected)) << net.name();
  }
}

TEST(RandomStreams, AreNotMovedByAnOperatorThatIsTheIdentityNow) {
  seed(3);
  const auto before = random_cursors();
  invoke(dropout, {ones({10})}, {.p = 0.5});
  EXPECT_TRUE(same(random_cursors(), before));
  invoke(dropout, {ones({10})}, {.p = 0.5}, {.is_train = true});
  EXPECT_FALSE(same(random_cursors(), before));
}

TEST(RandomStreams, GoOnInInferenceWhereTheNetworkSamples) {
  for (const Symbol& net : {dropout(data(), {.p = 0.5, .mode = "always"}),
                            data() + random_uniform(std::vector<Symbol>{}, {.shape = {64}})}) {
    const ExecutorPtr executor = bound(net);
    const NDArray first = executor->forward(false)[0].copy();
    EXPECT_FALSE(same_bits(executor->forward(false)[0], first)) << net.name();
  }
}

TEST(RandomStreams, AreBackWhereTheyWereWhenKept) {
  seed(3);
  const auto before = random_cursors();
  {
    const KeepRandomStreams keep;
    invoke(random_uniform, {}, {.shape = {4}});
    host_random().take(2);
    EXPECT_FALSE(same(random_cursors(), before));
  }
  EXPECT_TRUE(same(random_cursors(), before));
  {
    const KeepRandomStreams keep(KeepRandomStreams::Which::host);
    invoke(random_uniform, {}, {.shape = {4}});
    host_random().take(2);
  }
  auto after = random_cursors();
  EXPECT_EQ(after.at("host").draw, before.at("host").draw);
  EXPECT_FALSE(same(after, before));
}

}  // namespace
}  // namespace symbind
