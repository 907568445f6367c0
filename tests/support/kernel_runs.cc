#include "tests/support/kernel_runs.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include <gtest/gtest.h>

#include "symbind/core/error.h"

namespace symbind::testing {
namespace {

using Values = std::vector<double>;

struct Memory {
  explicit Memory(size_t bytes) : data(std::aligned_alloc(64, (bytes + 127) / 64 * 64), std::free) {
    std::memset(data.get(), 0xff, (bytes + 127) / 64 * 64);  // NaN: unassigned elements show
  }
  std::unique_ptr<void, decltype(&std::free)> data;
};

}  // namespace

const Implementation& implementation(const OpDef& op, const std::string& name) {
  for (const Implementation& candidate : Target::get(cpu()).implementations(op))
    if (candidate.name == name) return candidate;
  fail("no implementation ", name);
}

std::vector<Values> run(const TestNode<double>& node, const Implementation& implementation) {
  const auto kernel = implementation.build(node.view());
  std::vector<Memory> memory;
  std::vector<void*> addresses;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    memory.emplace_back(node.inputs[i].bytes());
    visit_floating(node.inputs[i].dtype, [&](auto type) {
      auto* elements = static_cast<typename decltype(type)::type*>(memory.back().data.get());
      for (const double value : node.values[i]) *elements++ = typename decltype(type)::type(value);
    });
  }
  for (const Tensor& output : node.outputs) memory.emplace_back(output.bytes());
  for (const Memory& array : memory) addresses.push_back(array.data.get());
  const Memory scratch(kernel->scratch_bytes), cached(kernel->cached_bytes);
  const Args args{addresses.data(), addresses.data() + node.inputs.size(), scratch.data.get(), cached.data.get()};
  if (kernel->cached_bytes > 0) kernel->prepare(args);
  kernel->run(args);
  std::vector<Values> results;
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    Values values(static_cast<size_t>(node.outputs[i].shape.size()));
    visit_floating(node.outputs[i].dtype, [&](auto type) {
      const auto* elements = static_cast<const typename decltype(type)::type*>(addresses[node.inputs.size() + i]);
      for (double& value : values) value = static_cast<double>(*elements++);
    });
    results.push_back(std::move(values));
  }
  return results;
}

void expect_same_as_plain(const TestNode<double>& node, const std::string& name, double tolerance,
                          const std::string& what, const std::string& slow) {
  const Implementation& tested = implementation(node.op, name);
  const std::string reason = tested.refuse(node.view());
  ASSERT_TRUE(reason.empty() || reason == slow) << what << ": " << reason;
  const auto expected = run(node, implementation(node.op, "plain")), actual = run(node, tested);
  for (size_t array = 0; array < expected.size(); ++array) {
    double largest = 1;
    for (const double value : expected[array]) largest = std::max(largest, std::abs(value));
    for (size_t i = 0; i < expected[array].size(); ++i)
      if (!(std::abs(actual[array][i] - expected[array][i]) <= tolerance * largest)) {
        ADD_FAILURE() << what << ": array " << array << " element " << i << ": " << actual[array][i] << ", plain says "
                      << expected[array][i];
        return;
      }
  }
}

}  // namespace symbind::testing
