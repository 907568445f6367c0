// Movements against a loop over single elements, over extents beyond the squares that kernels work in.
#include "symbind/backend/cpu/move.h"

#include <numeric>

#include <gtest/gtest.h>

#include "symbind/core/error.h"

namespace symbind::cpu_backend {
namespace {

// The index in the other array of each element of the dense array.
std::vector<int64_t> indices_of(const Movement& movement) {
  std::vector<int64_t> indices{movement.start};
  for (size_t axis = 0; axis < movement.extents.size(); ++axis) {
    std::vector<int64_t> longer;
    for (const int64_t index : indices)
      for (int64_t i = 0; i < movement.extents[axis]; ++i) longer.push_back(index + i * movement.steps[axis]);
    indices = std::move(longer);
  }
  return indices;
}

// Without repetitions, into arrays of 20,000 elements.
const std::vector<Movement> movements{
    {{70, 45}, {1, 70}},                          // a matrix turned
    {{3, 33, 65}, {33 * 65, 1, 33}},              // several
    {{40, 3, 34}, {1, 40 * 34, 40}},              // with the axis that goes on in front
    {{64, 64}, {1, 128}},                         // a part of a larger one
    {{5, 7, 11}, {77, 11, 1}},                    // all as it is
    {{6, 50}, {100, 1}, 7},                       // rows
    {{6, 50}, {100, 2}, 1},                       // every second element
    {{50}, {-3}, 160},                            // backwards
    {{9, 40, 35}, {-1400, 35, 1}, 8 * 1400},      // planes backwards
    {{2, 3, 2, 5, 2, 7}, {1, 2, 6, 12, 60, 120}}  // every axis turned
};

template <class T>
void compare(const Movement& movement) {
  SCOPED_TRACE(join(comma_separated(movement.extents), " by ", comma_separated(movement.steps), ", ", sizeof(T),
                    " bytes an element"));
  const std::vector<int64_t> indices = indices_of(movement);
  std::vector<T> other(20000), dense(indices.size()), expected(indices.size());
  std::iota(other.begin(), other.end(), T(0));
  const Mover mover(movement, dtype_of<T>());
  mover.take(other.data(), dense.data());
  for (size_t i = 0; i < indices.size(); ++i) expected[i] = other[static_cast<size_t>(indices[i])];
  EXPECT_EQ(dense, expected);

  std::vector<T> changed = other, wanted = other;
  std::iota(dense.begin(), dense.end(), T(100));
  mover.put(changed.data(), dense.data());
  for (size_t i = 0; i < indices.size(); ++i) wanted[static_cast<size_t>(indices[i])] = dense[i];
  EXPECT_EQ(changed, wanted);

  const T value = 77;
  mover.fill(changed.data(), &value);
  for (const int64_t index : indices) wanted[static_cast<size_t>(index)] = value;
  EXPECT_EQ(changed, wanted);
}

TEST(Mover, TakesPutsAndFillsAsSingleElementsWould) {
  for (const Movement& movement : movements) {
    compare<uint8_t>(movement);
    compare<int32_t>(movement);
    compare<int64_t>(movement);
  }
}

TEST(Mover, RepeatsElements) {
  for (const Movement& movement :
       std::vector<Movement>{{{4, 30, 5}, {5, 0, 1}}, {{4, 5, 30}, {5, 1, 0}}, {{99}, {0}}}) {
    const std::vector<int64_t> indices = indices_of(movement);
    std::vector<float> other(20), dense(indices.size()), expected(indices.size());
    std::iota(other.begin(), other.end(), 1.0f);
    Mover(movement, DType::float32).take(other.data(), dense.data());
    for (size_t i = 0; i < indices.size(); ++i) expected[i] = other[static_cast<size_t>(indices[i])];
    EXPECT_EQ(dense, expected);
  }
}

TEST(Mover, LeavesEverythingWhereAnAxisHasNoElements) {
  std::vector<float> other{1, 2}, dense{3, 4};
  const Mover mover({{2, 0}, {1, 1}}, DType::float32);
  mover.take(other.data(), dense.data());
  mover.put(other.data(), dense.data());
  EXPECT_EQ(other, (std::vector<float>{1, 2}));
  EXPECT_EQ(dense, (std::vector<float>{3, 4}));
}

TEST(Movement, IsMergedAlongAxesThatGoOnEvenly) {
  const Movement whole = merged({{2, 1, 3, 4}, {12, 99, 4, 1}, 5});
  EXPECT_EQ(whole.extents, (std::vector<int64_t>{24}));
  EXPECT_EQ(whole.steps, (std::vector<int64_t>{1}));
  EXPECT_EQ(whole.start, 5);
  EXPECT_EQ(merged({{2, 3, 4}, {4, 8, 1}}).extents, (std::vector<int64_t>{2, 3, 4}));
  EXPECT_EQ(merged({{1, 1}, {7, 3}}).extents, (std::vector<int64_t>{1}));
}

}  // namespace
}  // namespace symbind::cpu_backend
