#include "symbind/core/named_factories.h"

#include <functional>

#include <gtest/gtest.h>

#include "tests/support/arrays.h"

namespace symbind {
namespace {

using testing::fails_with;
using Factory = std::function<int()>;

TEST(NamedFactories, ListsTheKnownNamesForAnUnknownOne) {
  NamedFactories<Factory> factories("number");
  EXPECT_TRUE(fails_with([&] { factories.find("one"); }, "unknown number 'one'; none is registered"));
  factories.add("two", [] { return 2; });
  factories.add("three", [] { return 3; });
  EXPECT_TRUE(fails_with([&] { factories.find("one"); }, "unknown number 'one'; there are three, two"));
  EXPECT_EQ(factories.names(), (std::vector<std::string>{"three", "two"}));
}

TEST(NamedFactories, ReplacesAFactoryOfTheSameName) {
  NamedFactories<Factory> factories("number", [](auto& built_in) { built_in.add("one", [] { return 1; }); });
  EXPECT_EQ(factories.find("one")(), 1);
  EXPECT_FALSE(factories.add("one", [] { return 11; })) << "it is not new";
  EXPECT_EQ(factories.find("one")(), 11);
}

}  // namespace
}  // namespace symbind
