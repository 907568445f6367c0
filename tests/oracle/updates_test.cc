// Operators that update many weights in one call, against MXNet's.
#include <gtest/gtest.h>

#include "symbind/exec/invoke.h"

#include "tests/support/arrays.h"
#include "tests/support/oracle.h"

namespace symbind::testing {
namespace {

std::vector<NDArray> decode_arrays(const nlohmann::json& encoded, Context context) {
  std::vector<NDArray> arrays;
  for (const auto& each : encoded) arrays.push_back(decode_array(each).as_copy_in(context));
  return arrays;
}

void expect_close(const NDArray& found, const NDArray& wanted, bool rough) {
  const double allowed = wanted.dtype() == DType::float16 ? 2e-3 : rough ? 2e-4 : 5e-6;
  EXPECT_EQ(found.dtype(), wanted.dtype());
  EXPECT_TRUE(
      all_close(found.to_vector<double>(), wanted.to_vector<double>(), {.relative = allowed, .absolute = allowed / 2}));
}

TEST(MultiUpdates, AreThoseOfMXNet) {
  const nlohmann::json recorded = read_recorded("updates.json.gz");
  ASSERT_GT(recorded["cases"].size(), 30u);
  for (const Context context : all_devices())
    for (const auto& each : recorded["cases"]) {
      SCOPED_TRACE(join(each["id"].get<std::string>(), " on ", context));
      Attributes attributes;
      for (const auto& [key, value] : each["attrs"].items()) attributes[key] = value.get<std::string>();
      const std::vector<NDArray> inputs = decode_arrays(each["inputs"], context);
      const auto outputs = invoke(each["op"].get<std::string>(), inputs, attributes);
      // In mixed precision MXNet's LAMB rounds the norms to 16 bits.
      const bool rough = each["op"] == "_multi_mp_lamb_update";
      const std::vector<NDArray> wanted = decode_arrays(each["outputs"], cpu());
      ASSERT_EQ(outputs.size(), wanted.size());
      for (size_t i = 0; i < wanted.size(); ++i) expect_close(outputs[i], wanted[i], rough);
      for (const auto& [index, state] : each["states"].items())
        expect_close(inputs.at(std::stoul(index)), decode_array(state), rough);
    }
}

}  // namespace
}  // namespace symbind::testing
