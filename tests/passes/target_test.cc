#include "symbind/passes/target.h"

#include <gtest/gtest.h>

#include "symbind/core/error.h"
#include "symbind/ops/all.h"

namespace symbind {
namespace {

Implementation named(std::string name, Tier tier) {
  Implementation made;
  made.name = std::move(name);
  made.tier = tier;
  return made;
}

std::vector<std::string> names_in(const ImplementationTable& table, const OpDef& op) {
  std::vector<std::string> names;
  for (const Implementation& each : table.of(op)) names.push_back(each.name);
  return names;
}

TEST(ImplementationTable, IsOrderedByTierAndThenByWhenAnEntryWasAdded) {
  ImplementationTable table;
  const OpDef& op = op_of<Convolution>();
  table.add(op, named("plain", Tier::plain));
  table.add(op, named("host", Tier::host));
  table.add(op, named("first gemm", Tier::optimised));
  table.add(op, named("second gemm", Tier::optimised));
  table.add(op, named("library", Tier::library));
  table.add(op, named("winograd", Tier::specialised));
  EXPECT_EQ(names_in(table, op),
            (std::vector<std::string>{"winograd", "library", "first gemm", "second gemm", "plain", "host"}));
  EXPECT_TRUE(table.of(op_of<Pooling>()).empty());
}

TEST(Choose, TakesTheFirstThatAcceptsAndReportsTheRefusals) {
  const Tensor half{{2, 8}, DType::float16}, weight{{4, 8}, DType::float16}, output{{2, 4}, DType::float16};
  FullyConnected params{.num_hidden = 4, .no_bias = true};
  const Tensor inputs[] = {half, weight}, outputs[] = {output};
  const NodeView node{op_of<FullyConnected>(), &params, "fc", inputs, outputs, false, -1, cpu()};
  std::vector<std::string> refused;
  const Implementation& chosen = choose(node, [&](const Implementation& each, const std::string& reason) {
    EXPECT_FALSE(reason.empty()) << each.name;
    refused.push_back(each.name);
  });
  const auto& all = Target::get(cpu()).implementations(op_of<FullyConnected>());
  ASSERT_LT(refused.size(), all.size());
  EXPECT_EQ(&chosen, &all[refused.size()]);
  EXPECT_TRUE(!chosen.refuse || chosen.refuse(node).empty());
  for (size_t i = 0; i < refused.size(); ++i) EXPECT_EQ(refused[i], all[i].name);
}

TEST(Choose, EveryPublicOperatorHasAnImplementationForAnyNodeOnACpu) {
  for (const OpDef* op : OpRegistry::get().all_public()) {
    if (op->own) continue;  // another test's
    const Implementation& last = last_resort(*op, cpu());
    EXPECT_TRUE(last.build) << op->name;
    EXPECT_TRUE(runs_on_device(*op, cpu())) << op->name;
  }
}

TEST(OpDef, ABatchNormWithAFixedGammaIgnoresIt) {
  const OpDef& op = op_of<BatchNorm>();
  const BatchNorm fixed{.fix_gamma = true}, learnt{.fix_gamma = false};
  ASSERT_TRUE(op.ignored_inputs);
  EXPECT_EQ(op.ignored_inputs(&fixed), Names{"gamma"});
  EXPECT_TRUE(op.ignored_inputs(&learnt).empty());
}

}  // namespace
}  // namespace symbind
