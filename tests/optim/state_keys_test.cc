#include "symbind/optim/state_keys.h"

#include <gtest/gtest.h>

#include "tests/support/arrays.h"

namespace symbind::testing {
namespace {

StateKeys two_parameters(size_t devices) { return {.parameters = {{"a", {2, 3}}, {"b", {4}}}, .devices = devices}; }

SavedStates named(const std::string& name, const NDArray& state) {
  SavedStates saved;
  saved.states.emplace_back(name, StateTree(state));
  return saved;
}

TEST(StateKeys, AStateIsAsLongAsItsParameterOrSummedAlongAnAxisOrOneNumber) {
  for (const Shape& shape : {Shape{2, 3}, Shape{1, 3}, Shape{2, 1}, Shape{1, 1}, Shape{1}, Shape::scalar()})
    EXPECT_EQ(with_keys(named("a", zeros(shape)), two_parameters(1)).states.size(), 1u) << shape;
  for (const Shape& shape : {Shape{2}, Shape{3, 2}, Shape{2, 3, 1}, Shape{2, 2}, Shape{3}})
    EXPECT_TRUE(fails_with([&] { with_keys(named("a", zeros(shape)), two_parameters(1)); }, "a", "(2,3)")) << shape;
}

TEST(StateKeys, NumbersAreThoseOfAsManyDevicesAsFit) {
  SavedStates saved;
  for (int i = 0; i < 4; ++i) saved.states.emplace_back(i, StateTree(full(i < 2 ? Shape{2, 3} : Shape{4}, i)));
  const SavedStates one = with_keys(saved, two_parameters(1)), store = with_keys(saved, two_parameters(0)),
                    two = with_keys(saved, two_parameters(2));
  const auto values = [](const SavedStates& states) {
    std::map<ParamKey, double> found;
    for (const auto& [key, tree] : states.states) found[key] = tree.array.to_vector<double>()[0];
    return found;
  };
  using Values = std::map<ParamKey, double>;
  EXPECT_EQ(values(one), (Values{{0, 0}, {1, 2}}));
  EXPECT_EQ(values(store), (Values{{"a", 0}, {"b", 2}}));
  EXPECT_EQ(values(two), (Values{{0, 0}, {1, 1}, {2, 2}, {3, 3}})) << "each device goes on with its own";
}

TEST(StateKeys, NumbersAndNamesAreNotMixed) {
  SavedStates saved = named("a", zeros({2, 3}));
  saved.states.emplace_back(1, StateTree(zeros({4})));
  EXPECT_TRUE(fails_with([&] { with_keys(saved, two_parameters(1)); }, "by number and by name"));
}

}  // namespace
}  // namespace symbind::testing
