#include "symbind/train/loaded_input.h"

#include <memory>

#include <gtest/gtest.h>

#include "symbind/symbind.h"

#include "tests/support/arrays.h"

namespace symbind::testing {
namespace {

constexpr BatchSlice all{0, 4}, half{0, 2};

LoadedInput loaded(const NDArray& target, const NDArray& given, BatchSlice slice = all) {
  LoadedInput input;
  input.start(given, slice);
  given.slice(slice.begin, slice.end).copyto(target);
  input.finish(target);
  return input;
}

TEST(LoadedInput, IsTheArrayItWasLoadedFrom) {
  const NDArray given = array({1, 2, 3, 4}), target = zeros({4});
  const LoadedInput input = loaded(target, given);
  EXPECT_TRUE(input.is_in(target, given, all));
  EXPECT_TRUE(input.is_in(target, given.reshape({4}), all)) << "another handle";
  EXPECT_FALSE(input.is_in(target, given.copy(), all));
  EXPECT_FALSE(input.is_in(target.copy(), given, all));
  EXPECT_FALSE(input.is_in(target, given, half));
  EXPECT_FALSE(input.is_in(target, given.reshape({2, 2}), all));
  EXPECT_FALSE(input.is_in(target, NDArray(), all));
  EXPECT_FALSE(LoadedInput().is_in(target, given, all));
}

TEST(LoadedInput, IsNoLongerThatArrayAfterAWrite) {
  for (const bool to_target : {false, true}) {
    const NDArray given = array({1, 2, 3, 4}), target = zeros({4});
    const LoadedInput input = loaded(target, given);
    (to_target ? target : given).fill(1);
    EXPECT_FALSE(input.is_in(target, given, all)) << to_target;
    EXPECT_TRUE(loaded(target, given).is_in(target, given, all));
    (to_target ? target : given).storage().mark_exported();
    EXPECT_FALSE(loaded(target, given).is_in(target, given, all)) << "it may be written unnoticed";
  }
}

TEST(LoadedInput, IsNotAnArrayOfAnotherType) {
  const NDArray given = array({1, 2, 3, 4}), target = zeros({4}, cpu(), DType::float16);
  EXPECT_FALSE(loaded(target, given).is_in(target, given, all));
}

TEST(LoadedInput, DoesNotKeepItsArraysAlive) {
  NDArray given = array({1, 2, 3, 4}), target = zeros({4});
  const LoadedInput input = loaded(target, given);
  const std::weak_ptr<Storage> storages[] = {given.storage_ptr(), target.storage_ptr()};
  given = target = {};
  for (const auto& storage : storages) EXPECT_TRUE(storage.expired());
  EXPECT_FALSE(input.is_in(zeros({4}), zeros({4}), all));
}

TEST(LoadedInput, IsUnknownAfterACopyThatFailed) {
  const NDArray first = array({1, 2, 3, 4}), second = array({5, 6, 7, 8}), target = zeros({4});
  LoadedInput input = loaded(target, first);
  input.start(second, all);
  EXPECT_FALSE(input.is_in(target, second, all));
  EXPECT_FALSE(input.is_in(target, first, all));
  input = loaded(target, first);
  input.forget();
  EXPECT_FALSE(input.is_in(target, first, all));
}

}  // namespace
}  // namespace symbind::testing
