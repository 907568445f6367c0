// Where the time of a step goes: operators by class of kernel, their milliseconds, the bytes they move and how fast,
// beside a plain copy on the same device. The numbers are those of exec/plan_table and exec/profiler.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <iomanip>
#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "symbind/symbind.h"

#include "bench/support/operator_class.h"

namespace bench {

using namespace symbind;

// Bytes read and written per second by the copy of a large array: what a kernel that computes nothing reaches.
inline double copy_bandwidth(Context context) {
  constexpr int64_t elements = int64_t{1} << 26;
  const NDArray from = zeros({elements}, context), to = zeros({elements}, context);
  double shortest = 1e300;
  for (int i = 0; i < 10; ++i) {
    waitall();
    const auto begin = std::chrono::steady_clock::now();
    from.copyto(to);
    waitall();
    shortest = std::min(shortest, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return 2 * sizeof(float) * static_cast<double>(elements) / shortest;
}

// Runs some steps with the operators outside of the plan recorded, and adds those to what the plan says. The executor
// must have been bound with CompileOptions::profile.
template <class Step>
std::vector<OperatorCost> measured_costs(Step& timed, int steps) {
  do timed.step();  // what libraries set up is not recorded
  while (!timed.is_taken());
  profiler::start({.symbolic = false});
  for (int i = 0; i < steps; ++i) timed.step();
  profiler::stop();
  std::vector<OperatorCost> costs = timed.executor().operator_costs();
  const auto bytes = timed.bytes_outside();
  std::map<std::string, OperatorCost> outside;
  for (const profiler::Event& event : profiler::take().events) {
    OperatorCost& cost = outside[event.name];
    cost.op = event.name;
    cost.steps = 1;
    cost.seconds += event.seconds / steps;
    if (bytes.contains(event.name)) cost.bytes = bytes.at(event.name);
  }
  for (const auto& [name, cost] : outside) costs.push_back(cost);
  return costs;
}

inline std::vector<OperatorCost> by_class(const std::vector<OperatorCost>& costs) {
  std::map<std::string, OperatorCost> classes;
  for (const OperatorCost& cost : costs) {
    OperatorCost& sum = classes[class_of(cost.op)];
    sum.steps += cost.steps;
    sum.seconds += cost.seconds;
    sum.bytes += cost.bytes;
  }
  std::vector<OperatorCost> sorted;
  for (auto& [name, cost] : classes) {
    cost.op = name;
    sorted.push_back(std::move(cost));
  }
  std::ranges::stable_sort(sorted, std::greater(), &OperatorCost::seconds);
  return sorted;
}

inline void print_cost_table(std::ostream& out, const std::vector<OperatorCost>& costs, double copy) {
  constexpr int class_width = 36;
  OperatorCost all{.op = "together"};
  for (const OperatorCost& cost : costs) {
    all.steps += cost.steps;
    all.seconds += cost.seconds;
    all.bytes += cost.bytes;
  }
  std::vector<OperatorCost> rows = by_class(costs);
  rows.push_back(all);
  out << std::left << std::setw(class_width) << "class" << std::right << std::setw(7) << "steps" << std::setw(11)
      << "ms" << std::setw(7) << "%" << std::setw(11) << "MB" << std::setw(9) << "GB/s" << std::setw(11) << "of copy\n"
      << std::fixed;
  for (const OperatorCost& row : rows) {
    const auto bytes = static_cast<double>(row.bytes);
    const double rate = row.seconds > 0 ? bytes / row.seconds : 0;
    out << std::left << std::setw(class_width) << row.op << std::right << std::setw(7) << row.steps
        << std::setprecision(3) << std::setw(11) << 1e3 * row.seconds << std::setprecision(1) << std::setw(7)
        << 100 * row.seconds / all.seconds << std::setw(11) << bytes / 1e6 << std::setw(9) << rate / 1e9
        << std::setprecision(2) << std::setw(10) << rate / copy << "\n";
  }
  out << "A copy of 256 MiB: " << std::setprecision(1) << copy / 1e9
      << " GB/s. Each step is waited for, so the sum is more than a step takes.\n"
      << std::defaultfloat << std::setprecision(6);
}

}  // namespace bench
