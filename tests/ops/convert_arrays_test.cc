// Many arrays converted by one operator: to every type, with a factor, and from one layout to another.
#include "symbind/ops/convert_arrays.h"

#include <optional>

#include <gtest/gtest.h>

#include "symbind/core/error.h"

#include "tests/support/arrays.h"
#include "tests/support/kernel_runs.h"

namespace symbind::testing {
namespace {

const std::vector<DType> types = {DType::float32, DType::float64, DType::float16, DType::bfloat16};
const std::vector<Shape> shapes = {{5, 3, 7, 7},    {6, 11, 5, 3}, {4, 9},       {2, 33, 9},
                                   {2, 3, 2, 5, 7}, {3, 8, 1, 1},  {3, 1, 4, 4}, {0, 3, 2}};

// One element, in the types that the operator computes in.
double converted(double value, DType from, DType to, std::optional<double> factor) {
  return visit_floating(to, [&]<class To>(std::type_identity<To>) {
    if (from == DType::float64 || to == DType::float64)
      return static_cast<double>(static_cast<To>(value * factor.value_or(1)));
    return static_cast<double>(static_cast<To>(static_cast<float>(value) * static_cast<float>(factor.value_or(1))));
  });
}

// Every fourth array is channels-last before, the others after.
TestNode<double> node_of(DType from, DType to, bool scaled) {
  const ConvertArrays params{.num_arrays = static_cast<int64_t>(shapes.size()), .dtype = to, .scaled = scaled};
  auto node = make_test_node<double>(params, shapes, from);
  for (size_t i = 0; i < shapes.size(); ++i) {
    if (shapes[i].rank() < 3) continue;
    (i % 4 == 1 ? node.inputs : node.outputs)[i].layout = Layout::channels_last;
  }
  for (size_t i = 0; i < node.inputs.size(); ++i)
    for (double& value : node.values[i]) value = converted(value, DType::float64, node.inputs[i].dtype, std::nullopt);
  return node;
}

TEST(ConvertArrays, ChangeTypesAndLayouts) {
  for (const DType from : types)
    for (const DType to : types)
      for (const bool scaled : {false, true}) {
        const TestNode<double> node = node_of(from, to, scaled);
        const auto results = run(node, implementation(node.op, "plain"));
        for (size_t i = 0; i < shapes.size(); ++i)
          for (size_t k = 0; k < results[i].size(); ++k) {
            const double given = node.values[i][index_in_layout(node.inputs[i], k)];
            const std::optional<double> factor = scaled ? std::optional(node.values.back()[0]) : std::nullopt;
            ASSERT_EQ(results[i][index_in_layout(node.outputs[i], k)], converted(given, from, to, factor))
                << from << " to " << to << (scaled ? ", scaled" : "") << ": array " << i << ", element " << k;
          }
      }
}

TEST(ConvertArrays, KnowPlainAndChannelsLastOnly) {
  auto node = make_test_node<double>(ConvertArrays{.num_arrays = 1}, {{2, 16, 3, 3}});
  node.outputs[0].layout = Layout::blocked16;
  EXPECT_NE(error_of([&] { implementation(node.op, "plain").build(node.view()); }).find("a blocked layout"),
            std::string::npos);
}

}  // namespace
}  // namespace symbind::testing
