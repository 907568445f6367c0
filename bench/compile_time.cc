// How long it takes to turn a network into a plan, over the number of its nodes: what every phase takes, as a table. Up
// to as many nodes as is said, a hundred thousand otherwise: compile_time 1000000 [network]
#include <cstdlib>
#include <ctime>
#include <functional>
#include <iomanip>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>

#include "symbind/symbind.h"

#include "tests/support/large_graphs.h"

using namespace symbind;

namespace {

constexpr int width = 11;

// Of processor time: other programs change it little.
double now_ms() { return 1000.0 * static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

double ms(const std::function<void()>& work) {
  const double begin = now_ms();
  work();
  return now_ms() - begin;
}

void print_row(const testing::LargeGraph& graph, int nodes) {
  const NameManager fresh;
  const NamedShapes shapes{{"x", testing::large_graph_input()}};
  std::optional<Symbol> net;
  ExecutorPtr executor;
  std::string json;
  std::cout << std::left << std::setw(15) << graph.name << std::right << std::setw(9) << nodes << std::fixed
            << std::setprecision(1);
  const auto print = [](double time) { std::cout << std::setw(width) << time << std::flush; };
  const double begin = now_ms();
  print(ms([&] { net.emplace(graph.make(nodes)); }));
  print(ms([&] {
    (void)net->list_arguments();
    (void)net->list_outputs();
    (void)net->list_auxiliary_states();
    (void)net->get_internals().list_outputs();
    (void)net->attr_dict();
  }));
  print(ms([&] { json = net->tojson(); }));
  print(ms([&] { (void)Symbol::load_json(json); }));
  print(ms([&] { (void)infer_shape(*net, shapes); }));
  print(ms([&] { executor = simple_bind(*net, cpu(), shapes); }));
  print(ms([&] { (void)executor->memory(); }));
  std::cout << std::setw(width) << 1000 * (now_ms() - begin) / nodes << "\n";
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const int most = argc > 1 ? std::atoi(argv[1]) : 100'000;
    const std::string_view only = argc > 2 ? argv[2] : "";
    std::cout << "milliseconds of processor time per phase; the last column is microseconds per node, of all phases\n"
              << std::left << std::setw(15) << "network" << std::right << std::setw(9) << "nodes";
    for (const char* phase : {"build", "list", "to JSON", "from JSON", "infer", "bind", "compile", "us/node"})
      std::cout << std::setw(width) << phase;
    std::cout << "\n";
    for (const testing::LargeGraph& graph : testing::large_graphs())
      for (int nodes = 1000; nodes <= most; nodes *= 10)
        if (only.empty() || only == graph.name) print_row(graph, nodes);
  } catch (const std::exception& error) {
    std::cerr << "compile_time: " << error.what() << "\n";
    return 1;
  }
}
