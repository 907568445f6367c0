// A chain of a hundred thousand nodes on a stack of 512 KiB: nothing may recurse (five bytes for each node), and
// nothing may be quadratic.
#include <functional>

#include <gtest/gtest.h>
#include <pthread.h>

#include "symbind/graph/builder.h"
#include "symbind/graph/symbol.h"
#include "symbind/passes/infer.h"

#include "tests/support/temp_dir.h"

namespace symbind {
namespace {

constexpr int depth = 100'000;

class DeepGraph : public ::testing::Test {
 protected:
  static void on_small_stack(const std::function<void()>& work) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 512 << 10);
    const auto run = [](void* given) -> void* {
      (*static_cast<const std::function<void()>*>(given))();
      return nullptr;
    };
    pthread_t thread{};
    ASSERT_EQ(pthread_create(&thread, &attributes, run, const_cast<std::function<void()>*>(&work)), 0);
    pthread_join(thread, nullptr);
    pthread_attr_destroy(&attributes);
  }
};

Symbol deep_chain() {
  const NameManager fresh;
  Symbol net = Symbol::variable("x");
  for (int i = 0; i < depth; ++i) net = apply("negative", net);
  return net;
}

TEST_F(DeepGraph, IsBuiltListedAndDestroyed) {
  on_small_stack([] {
    const Symbol net = deep_chain();
    EXPECT_EQ(net.list_arguments(), std::vector<std::string>{"x"});
    EXPECT_EQ(net.list_outputs(), std::vector<std::string>{"negative99999_output"});
    EXPECT_EQ(net.get_internals().size(), static_cast<size_t>(depth) + 1);
  });
}

TEST_F(DeepGraph, IsComposedWithoutRecursion) {
  on_small_stack([] {
    const Symbol net = deep_chain();
    const Symbol longer = net({{"x", Symbol::variable("y") + 1}});
    EXPECT_EQ(longer.list_arguments(), std::vector<std::string>{"y"});
  });
}

TEST_F(DeepGraph, InfersForwardsAndBackwards) {
  on_small_stack([] {
    const Symbol net = deep_chain();
    const InferredShapes shapes = infer_shape(net, {{"x", {2, 3}}});
    EXPECT_EQ(shapes.outputs[0], (std::vector<int64_t>{2, 3}));
    EXPECT_EQ(infer_type(net, {{"x", DType::float64}}).outputs[0], DType::float64);
    const Symbol sum = net + Symbol::variable("y");
    EXPECT_EQ(infer_shape(sum, {{"y", {4}}}).args[0], (std::vector<int64_t>{4})) << "from the end to the beginning";
  });
}

TEST_F(DeepGraph, IsSavedAndLoaded) {
  on_small_stack([] {
    const testing::TempDir folder;
    const Symbol net = deep_chain();
    net.save(folder.file("deep.json"));
    const Symbol again = Symbol::load(folder.file("deep.json"));
    EXPECT_EQ(again.list_outputs(), net.list_outputs());
    EXPECT_EQ(again.list_arguments(), net.list_arguments());
  });
}

TEST_F(DeepGraph, MayHaveNodesWithManyUsers) {
  on_small_stack([] {
    Symbol net = Symbol::variable("x");
    for (int i = 0; i < 100'000; ++i) net = net + net;  // 2 to the power of 100,000 paths
    EXPECT_EQ(net.list_arguments().size(), 1u);
    EXPECT_EQ(infer_shape(net, {{"x", {1}}}).outputs[0], (std::vector<int64_t>{1}));
  });
}

}  // namespace
}  // namespace symbind
