// What debug_str() prints: the plan of a network as a table.
#include "symbind/exec/plan_table.h"

#include <cctype>
#include <cstdlib>
#include <map>
#include <sstream>

#include <gtest/gtest.h>

#include "symbind/exec/executor.h"

#include "tests/support/arrays.h"
#include "tests/support/networks.h"

namespace symbind {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// The first line that holds `what`, or nothing.
std::string line_with(const std::string& text, const std::string& what) {
  for (const std::string& line : lines_of(text))
    if (line.find(what) != std::string::npos) return line;
  return "";
}

TEST(PlanTable, SaysWhatEachStepOfLenetDoes) {
  const SimpleBindOptions unfused{.options = {.fuse = false}};
  const std::string table = testing::bind_with_values(testing::lenet(), cpu(), unfused)->debug_str();
  EXPECT_NE(line_with(table, "training, forward and backward"), "") << table;
  const std::string head = line_with(table, "step");
  for (const char* column : {"node", "operator", "how", "output", "in", "out", "where", "note"})
    EXPECT_NE(head.find(column), std::string::npos) << column << " in " << head;
  EXPECT_EQ(head.find("ms"), std::string::npos) << "nothing was timed: " << head;

  const std::string fc = line_with(table, " fc1 ");
  EXPECT_NE(fc.find("FullyConnected"), std::string::npos) << fc;
  EXPECT_NE(fc.find("arena+"), std::string::npos) << fc;
  const std::string loss = line_with(table, " softmax ");
  EXPECT_NE(loss.find("outside"), std::string::npos) << "the network's output: " << loss;
  EXPECT_NE(table.find("\n---- backward --"), std::string::npos) << table;
  EXPECT_LT(table.find(" fc1 "), table.find("---- backward"));
  EXPECT_NE(line_with(table, "view").find("nothing"), std::string::npos) << "Flatten needs no step";
  const std::string memory = line_with(table, "working memory");
  EXPECT_NE(memory.find(", live at the peak "), std::string::npos) << memory;
  EXPECT_NE(memory.find(", without sharing "), std::string::npos) << memory;
}

TEST(PlanTable, CountsTheStepsItLists) {
  const std::string table = testing::bind_with_values(testing::lenet())->debug_str();
  size_t next = 0, views = 0, in_place = 0;
  for (const std::string& line : lines_of(table)) {
    std::istringstream words(line);
    std::string first;
    words >> first;
    if (first == std::to_string(next)) ++next;
    if (line.find("nothing") != std::string::npos) ++views;
    if (line.ends_with("in place")) ++in_place;
  }
  EXPECT_GT(next, 10u) << table;
  EXPECT_GT(in_place, 0u) << table;
  const std::string summary = line_with(table, "views that need no step");
  EXPECT_TRUE(summary.starts_with(join("steps ", next, ": in place ", in_place, ","))) << summary;
  EXPECT_TRUE(summary.ends_with(join("step ", views))) << summary;
}

TEST(PlanTable, IsNoWiderThanATerminalWhateverTheNames) {
  const std::string long_name(150, 'n');
  const Symbol net = testing::fc(testing::relu(testing::var("data"), long_name + "_relu"), 3, long_name + "_fc");
  const std::string table = simple_bind(net, cpu(), {{"data", {2, 5}}})->debug_str();
  for (const std::string& line : lines_of(table)) EXPECT_LE(line.size(), 160u) << line;
  EXPECT_NE(table.find("..n"), std::string::npos) << "shortened in the middle:\n" << table;
  EXPECT_NE(table.find("_relu"), std::string::npos) << "the end is kept:\n" << table;
}

TEST(PlanTable, SaysWhatIsCopiedBetweenContexts) {
  Symbol net = testing::fc(testing::var("data"), 4, "near");
  {
    const AttrScope scope(Attributes{{"ctx_group", "far"}});
    net = testing::fc(net, 3, "far");
  }
  auto executor = simple_bind(net, cpu(), {{"data", {2, 5}}}, {.group2ctx = {{"far", cpu(1)}}});
  const std::string table = executor->debug_str();
  EXPECT_NE(line_with(table, " far ").find("cpu(1)"), std::string::npos) << table;
  EXPECT_NE(line_with(table, "steps ").find("copies between contexts"), std::string::npos) << table;
}

TEST(PlanTable, PrintsSizesShort) {
  EXPECT_EQ(short_bytes(0), "0");
  EXPECT_EQ(short_bytes(1023), "1023");
  EXPECT_EQ(short_bytes(1024), "1.00K");
  EXPECT_EQ(short_bytes(size_t{3} << 19), "1.50M");
  EXPECT_EQ(short_bytes(10239), "10.0K") << "rounds up to four digits otherwise";
  EXPECT_EQ(short_bytes(size_t{15} << 20), "15.0M");
  EXPECT_EQ(short_bytes(size_t{150} << 20), "150M");
  EXPECT_EQ(short_bytes(size_t{5} << 30), "5.00G");
}

// ---- Times ----------------------------------------------------------------------------------------------------------

TEST(Profile, TimesEveryStepAndCountsTheRuns) {
  for (const Context context : {cpu()}) {
    auto executor = testing::bind_with_values(testing::lenet(), context, {.options = {.profile = true}});
    for (int i = 0; i < 3; ++i) {
      executor->forward(true);
      executor->backward();
    }
    const std::string table = executor->debug_str();
    EXPECT_NE(line_with(table, "step").find("ms"), std::string::npos) << table;
    const std::string time = line_with(table, "time ");
    EXPECT_NE(time.find("mean of 2 forward and 2 backward"), std::string::npos)
        << "the first run does not count once there are others: " << time;
    EXPECT_GT(std::stod(time.substr(5)), 0.0) << time;
    EXPECT_NE(table.find("\noperator "), std::string::npos) << "times by operator:\n" << table;
    EXPECT_NE(line_with(table.substr(table.find("time ")), "Convolution"), "") << table;
  }
}

TEST(Profile, NumbersOfTheOperatorsEndWhereTheirHeadsEnd) {
  auto executor = testing::bind_with_values(testing::lenet(), cpu(), {.options = {.profile = true}});
  executor->forward(true);
  const std::string table = executor->debug_str();
  const std::vector<std::string> lines = lines_of(table.substr(table.find("\noperator ") + 1));
  ASSERT_GT(lines.size(), 3u) << table;
  for (const std::string head : {"steps", "ms", "%", "GB/s", "GFLOP/s"}) {
    const size_t last = lines[0].find(head) + head.size() - 1;
    for (size_t i = 1; i < lines.size() && !lines[i].empty(); ++i) {
      if (head == "GFLOP/s" && lines[i].size() <= last) continue;  // it multiplies no matrices
      ASSERT_LT(last, lines[i].size()) << table;
      EXPECT_TRUE(std::isdigit(lines[i][last])) << head << " in " << lines[i];
      EXPECT_TRUE(last + 1 == lines[i].size() || lines[i][last + 1] == ' ') << head << " in " << lines[i];
    }
  }
}

TEST(Profile, CountsTheBytesThatAnOperatorReadsAndWrites) {
  const Symbol net = testing::fc(testing::relu(testing::var("data"), "relu"), 3, "fc");
  const SimpleBindOptions options{.grad_req = "null", .options = {.fuse = false, .profile = true}};
  auto executor = simple_bind(net, cpu(), {{"data", {2, 5}}}, options);
  EXPECT_TRUE(testing::fails_with([&] { executor->operator_costs(); }, "[operator_costs]", "forward"));
  executor->forward(false);
  std::map<std::string, OperatorCost> costs;
  for (const OperatorCost& cost : executor->operator_costs()) costs[cost.op] = cost;
  ASSERT_TRUE(costs.contains("Activation") && costs.contains("FullyConnected")) << executor->debug_str();
  EXPECT_EQ(costs["Activation"].bytes, 4 * (10 + 10));
  EXPECT_EQ(costs["FullyConnected"].bytes, 4 * (10 + 15 + 3 + 6)) << "data, weight, bias and output";
  EXPECT_EQ(costs["FullyConnected"].steps, 1);
  EXPECT_EQ(costs["FullyConnected"].multiply_adds, 2 * 5 * 3);
  EXPECT_EQ(costs["Activation"].multiply_adds, 0);
  EXPECT_GT(costs["FullyConnected"].seconds, 0);
  const std::string table = executor->debug_str();
  EXPECT_NE(line_with(table.substr(table.find("\noperator ")), "operator").find("GB/s"), std::string::npos) << table;
}

TEST(Profile, CostsOfOperatorsNeedTimes) {
  auto executor = testing::bind_with_values(testing::mlp());
  executor->forward(true);
  EXPECT_TRUE(testing::fails_with([&] { executor->operator_costs(); }, "[operator_costs]", "profile"));
}

TEST(Profile, TheOnlyRunCounts) {
  auto executor = testing::bind_with_values(testing::mlp(), cpu(), {.options = {.profile = true}});
  executor->forward(true);
  EXPECT_NE(executor->debug_str().find("mean of 1 forward and 0 backward"), std::string::npos) << executor->debug_str();
}

TEST(Profile, ChangesNoNumbers) {
  auto usual = testing::bind_with_values(testing::lenet());
  auto timed = testing::bind_with_values(testing::lenet(), cpu(), {.options = {.profile = true}});
  EXPECT_EQ(timed->forward(true)[0].to_vector<float>(), usual->forward(true)[0].to_vector<float>());
}

// ---- What the environment asks for, in a process of its own ---------------------------------------------------------

void run_and_exit(const char* explain, const char* profile) {
  ::setenv("SYMBIND_EXPLAIN", explain, 1);
  ::setenv("SYMBIND_PROFILE", profile, 1);
  testing::bind_with_values(testing::mlp())->forward(false);
  std::exit(0);
}

class Explain : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(Explain, OnePrintsTheTable) {
  EXPECT_EXIT(run_and_exit("1", "0"), ::testing::ExitedWithCode(0), "^inference, forward\n *step .*working memory");
}

TEST_F(Explain, TwoPrintsTheChoicesToo) {
  EXPECT_EXIT(run_and_exit("2", "0"), ::testing::ExitedWithCode(0),
              "FullyConnected fc3. on cpu.0.: plain.*working memory");
}

TEST_F(Explain, WithProfileTheTimesArePrintedAtTheEnd) {
  EXPECT_EXIT(run_and_exit("1", "1"), ::testing::ExitedWithCode(0),
              "working memory.*working memory.*mean of 1 forward");
}

TEST_F(Explain, ZeroPrintsNothing) { EXPECT_EXIT(run_and_exit("0", "0"), ::testing::ExitedWithCode(0), "^$"); }

}  // namespace
}  // namespace symbind
