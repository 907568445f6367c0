// Where the time of a step goes: operators by class of kernel, their milliseconds, the bytes they move and how fast,
// and how long they would take at the rates of a plain copy and of a large matrix product on the same device. The
// numbers are those of exec/plan_table and exec/profiler.
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

// What the device reaches where nothing else limits it.
struct DeviceRates {
  double bytes_per_second = 0;          // read and written by the copy of a large array
  double multiply_adds_per_second = 0;  // of the product of large matrices
};

template <class Work>
double shortest_seconds(const Work& work) {
  double shortest = 1e300;
  for (int i = 0; i < 10; ++i) {
    waitall();
    const auto begin = std::chrono::steady_clock::now();
    work();
    waitall();
    shortest = std::min(shortest, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return shortest;
}

inline DeviceRates rates_of(Context context, DType dtype) {
  constexpr int64_t elements = int64_t{1} << 26;
  const NDArray from = zeros({elements}, context), to = zeros({elements}, context);
  const double copying = shortest_seconds([&] { from.copyto(to); });
  const int64_t extent = context.is_gpu() ? 8192 : 1024;
  // Random, since the clock of a GPU depends on the power that it draws.
  const NDArray matrix = random::normal({.shape = {extent, extent}}).as_in_context(context).astype(dtype);
  const double multiplying = shortest_seconds([&] { invoke(dot, {matrix, matrix}); });
  const auto rows = static_cast<double>(extent);
  return {2 * sizeof(float) * static_cast<double>(elements) / copying, rows * rows * rows / multiplying};
}

// How long an operator takes if only its bytes, or only its products, limit it: the longer of the two times.
inline double ideal_seconds(const OperatorCost& cost, const DeviceRates& rates) {
  return std::max(static_cast<double>(cost.bytes) / rates.bytes_per_second,
                  cost.multiply_adds / rates.multiply_adds_per_second);
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

// A row of the table.
struct ClassCost {
  std::string name;
  size_t steps = 0;
  double seconds = 0, ideal = 0;
  size_t bytes = 0;
  double multiply_adds = 0;

  void add(const OperatorCost& cost, const DeviceRates& rates) {
    steps += cost.steps;
    seconds += cost.seconds;
    ideal += ideal_seconds(cost, rates);
    bytes += cost.bytes;
    multiply_adds += cost.multiply_adds;
  }
};

// The slowest first, then their sum.
inline std::vector<ClassCost> by_class(const std::vector<OperatorCost>& costs, const DeviceRates& rates) {
  std::map<std::string, ClassCost> classes;
  ClassCost all{.name = "together"};
  for (const OperatorCost& cost : costs) {
    classes[class_of(cost.op)].add(cost, rates);
    all.add(cost, rates);
  }
  std::vector<ClassCost> rows;
  for (auto& [name, cost] : classes) {
    cost.name = name;
    rows.push_back(std::move(cost));
  }
  std::ranges::stable_sort(rows, std::greater(), &ClassCost::seconds);
  rows.push_back(std::move(all));
  return rows;
}

inline void print_cost_table(std::ostream& out, const std::vector<OperatorCost>& costs, const DeviceRates& rates) {
  constexpr int class_width = 36;
  const std::vector<ClassCost> rows = by_class(costs, rates);
  const double all_seconds = rows.back().seconds;
  out << std::left << std::setw(class_width) << "class" << std::right << std::setw(7) << "steps" << std::setw(11)
      << "ms" << std::setw(7) << "%" << std::setw(11) << "MB" << std::setw(9) << "GB/s" << std::setw(11) << "GFLOP/s"
      << std::setw(11) << "ideal ms" << std::setw(10) << "of ideal\n"
      << std::fixed;
  for (const ClassCost& row : rows) {
    const auto bytes = static_cast<double>(row.bytes);
    const auto rate = [&](double amount) { return row.seconds > 0 ? 1e-9 * amount / row.seconds : 0; };
    out << std::left << std::setw(class_width) << row.name << std::right << std::setw(7) << row.steps
        << std::setprecision(3) << std::setw(11) << 1e3 * row.seconds << std::setprecision(1) << std::setw(7)
        << 100 * row.seconds / all_seconds << std::setw(11) << bytes / 1e6 << std::setw(9) << rate(bytes)
        << std::setw(11) << rate(2 * row.multiply_adds) << std::setprecision(3) << std::setw(11) << 1e3 * row.ideal
        << std::setprecision(2) << std::setw(9) << (row.seconds > 0 ? row.ideal / row.seconds : 0) << "\n";
  }
  out << "Ideal: each operator at " << std::setprecision(1) << rates.bytes_per_second / 1e9
      << " GB/s, those of a copy of 256 MiB, or " << 2e-9 * rates.multiply_adds_per_second
      << " GFLOP/s, those of a product of large matrices, whichever takes longer.\n"
      << "Each step is waited for, so the sum is more than a step takes.\n"
      << std::defaultfloat << std::setprecision(6);
}

}  // namespace bench
