#include "symbind/exec/plan_picture.h"

#include <algorithm>
#include <regex>

#include <gtest/gtest.h>

#include "symbind/exec/executor.h"
#include "symbind/ops/activation.h"

#include "tests/support/graphs.h"
#include "tests/support/networks.h"

namespace symbind {
namespace {

struct Planned {
  Graph graph;
  MemoryPlan memory;
};

Planned plan_training(const testing::Network& network) {
  Graph graph = testing::training_graph(network.symbol, network.inputs).graph;
  place(graph, cpu(), {});
  separate_outputs(graph);
  select(graph);
  build_kernels(graph);
  MemoryPlan memory = plan_memory(graph, testing::outside_arrays(graph), true);
  return {std::move(graph), std::move(memory)};
}

size_t count(const std::string& text, const std::string& what) {
  size_t found = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + what.size())) ++found;
  return found;
}

TEST(BufferLives, NeverMeetInTheSameMemory) {
  for (const testing::Network& network : testing::all_networks()) {
    const Planned planned = plan_training(network);
    const std::vector<BufferLife> lives = buffer_lives(planned.graph, planned.memory);
    EXPECT_FALSE(lives.empty()) << network.name;
    for (size_t i = 0; i < lives.size(); ++i) {
      const BufferLife& a = lives[i];
      EXPECT_LE(a.offset + a.bytes, planned.memory.arena_bytes[0]) << network.name << " " << a.name;
      EXPECT_LE(a.first_step, a.last_step) << network.name << " " << a.name;
      for (size_t k = 0; k < i; ++k) {
        const BufferLife& b = lives[k];
        const bool same_time = a.first_step <= b.last_step && b.first_step <= a.last_step;
        const bool same_bytes = a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
        EXPECT_FALSE(same_time && same_bytes)
            << network.name << ": " << a.name << " (steps " << a.first_step << "-" << a.last_step << ") and " << b.name
            << " (steps " << b.first_step << "-" << b.last_step << ")";
      }
    }
  }
}

TEST(BufferLives, LastUntilTheLastStepThatReadsThem) {
  const Planned planned = plan_training(testing::lenet());
  const std::vector<BufferLife> lives = buffer_lives(planned.graph, planned.memory);
  int step = 0, reads = 0;
  for (const GraphNode& node : planned.graph.nodes) {
    if (node.is_variable() || planned.memory.skip[node.id]) continue;
    const std::vector<bool> shape_only = shape_only_inputs(node);
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      const Location& from = planned.memory.tensors[node.inputs[k]];
      if (from.kind != Location::Kind::arena || shape_only[k]) continue;
      ++reads;
      EXPECT_TRUE(std::any_of(lives.begin(), lives.end(),
                              [&](const BufferLife& life) {
                                const bool holds = life.offset <= from.offset && from.offset < life.offset + life.bytes;
                                return holds && static_cast<int>(life.first_step) <= step &&
                                       step <= static_cast<int>(life.last_step);
                              }))
          << node.source->name << " reads input " << k << " in step " << step;
    }
    ++step;
  }
  EXPECT_GT(reads, 10);
}

TEST(BufferLives, KnowWhatBackwardNeedsOfForward) {
  // x·w1 → tanh → ·w2: backward reads the activation, and nothing else of forward.
  const Symbol net =
      testing::fc(activation(testing::fc(testing::var("x"), 64, "one"), {.act_type = "tanh"}, "tanh"), 1, "two");
  const Planned planned = plan_training({"chain", net, {{"x", {32, 16}}}, 0});
  std::vector<std::string> kept;
  for (const BufferLife& life : buffer_lives(planned.graph, planned.memory))
    if (life.kind == BufferLife::Kind::kept_for_backward) kept.push_back(life.name);
  EXPECT_EQ(kept, std::vector<std::string>{"one"}) << "tanh overwrites what the first layer made: one buffer";
}

TEST(PlanPicture, DrawsEveryBufferThatCanBeSeen) {
  const Planned planned = plan_training(testing::lenet());
  const std::string svg = plan_picture(planned.graph, planned.memory, "a <b> & c");
  EXPECT_TRUE(svg.starts_with("<svg ")) << svg.substr(0, 100);
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
  EXPECT_NE(svg.find("a &lt;b&gt; &amp; c"), std::string::npos);
  size_t large = 0;
  for (const BufferLife& life : buffer_lives(planned.graph, planned.memory))
    large += life.bytes * 1000 > planned.memory.arena_bytes[0];
  EXPECT_GT(large, 5u);
  EXPECT_GE(count(svg, "<title>"), large);
  EXPECT_EQ(count(svg, "<title>"), count(svg, "</title></rect>"));
  for (const char* text : {">forward<", ">backward<", ">KiB<", "bytes alive", "cpu(0): "})
    EXPECT_NE(svg.find(text), std::string::npos) << text;
}

TEST(PlanPicture, ExplainsItsColorsAndItsLineInOneRow) {
  const Planned planned = plan_training(testing::lenet());
  const std::string svg = plan_picture(planned.graph, planned.memory, "lenet");
  // A sample of 12 pixels, its text 18 after the beginning of the sample, the next sample 250 after.
  std::smatch box, line, text;
  const std::string colors = svg.substr(0, svg.find("bytes alive"));
  ASSERT_TRUE(std::regex_search(svg, box, std::regex("<rect x=\"([0-9.]+)\" y=\"36\" width=\"12\"")));
  ASSERT_TRUE(std::regex_search(svg, line, std::regex("<path d=\"M([0-9.]+) 42L([0-9.]+) 42\"")));
  ASSERT_TRUE(std::regex_search(svg, text, std::regex("<text x=\"([0-9.]+)\" y=\"46\">bytes alive")));
  const double begin = std::stod(line[1]);
  EXPECT_EQ(std::stod(line[2]), begin + 12);
  EXPECT_EQ(std::stod(text[1]), begin + 18);
  EXPECT_EQ(begin, std::stod(box[1]) + 250 * static_cast<double>(count(colors, "y=\"36\"")));
}

TEST(PlanPicture, ComesFromAnExecutorToo) {
  auto executor = testing::bind_with_values(testing::mlp(), cpu(), {.grad_req = "null"});
  const std::string svg = executor->memory_picture("mlp");
  EXPECT_NE(svg.find(">mlp<"), std::string::npos) << svg;
  EXPECT_EQ(svg.find(">backward<"), std::string::npos) << "there is none:\n" << svg;
}

}  // namespace
}  // namespace symbind
