// A chain of a million nodes: nothing may recurse, and nothing may be quadratic.
#include <gtest/gtest.h>

#include "symbind/graph/builder.h"
#include "symbind/graph/symbol.h"
#include "symbind/passes/infer.h"

#include "tests/support/temp_dir.h"

namespace symbind {
namespace {

constexpr int depth = 1'000'000;

Symbol deep_chain() {
  const NameManager fresh;
  Symbol net = Symbol::variable("x");
  for (int i = 0; i < depth; ++i) net = apply("negative", net);
  return net;
}

TEST(DeepGraph, IsBuiltListedAndDestroyed) {
  const Symbol net = deep_chain();
  EXPECT_EQ(net.list_arguments(), std::vector<std::string>{"x"});
  EXPECT_EQ(net.list_outputs(), std::vector<std::string>{"negative999999_output"});
  EXPECT_EQ(net.get_internals().size(), static_cast<size_t>(depth) + 1);
}

TEST(DeepGraph, IsComposedWithoutRecursion) {
  const Symbol net = deep_chain();
  const Symbol longer = net({{"x", Symbol::variable("y") + 1}});
  EXPECT_EQ(longer.list_arguments(), std::vector<std::string>{"y"});
}

TEST(DeepGraph, InfersForwardsAndBackwards) {
  const Symbol net = deep_chain();
  const InferredShapes shapes = infer_shape(net, {{"x", {2, 3}}});
  EXPECT_EQ(shapes.outputs[0], (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(infer_type(net, {{"x", DType::float64}}).outputs[0], DType::float64);
  const Symbol sum = net + Symbol::variable("y");
  EXPECT_EQ(infer_shape(sum, {{"y", {4}}}).args[0], (std::vector<int64_t>{4})) << "from the end to the beginning";
}

TEST(DeepGraph, IsSavedAndLoaded) {
  const testing::TempDir folder;
  const Symbol net = deep_chain();
  net.save(folder.file("deep.json"));
  const Symbol again = Symbol::load(folder.file("deep.json"));
  EXPECT_EQ(again.list_outputs(), net.list_outputs());
  EXPECT_EQ(again.list_arguments(), net.list_arguments());
}

TEST(DeepGraph, MayHaveNodesWithManyUsers) {
  Symbol net = Symbol::variable("x");
  for (int i = 0; i < 100'000; ++i) net = net + net;  // 2 to the power of 100,000 paths
  EXPECT_EQ(net.list_arguments().size(), 1u);
  EXPECT_EQ(infer_shape(net, {{"x", {1}}}).outputs[0], (std::vector<int64_t>{1}));
}

}  // namespace
}  // namespace symbind
