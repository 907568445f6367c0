#include "symbind/version.h"

#include <gtest/gtest.h>

#include "symbind/core/error.h"

namespace symbind {
namespace {

TEST(Version, OfTheLibraryIsThatOfItsHeaders) {
  EXPECT_EQ(version(), join(SYMBIND_VERSION_MAJOR, ".", SYMBIND_VERSION_MINOR, ".", SYMBIND_VERSION_PATCH));
}

TEST(Version, IsANumberThatThePreprocessorCompares) {
#if SYMBIND_VERSION >= 100 && SYMBIND_VERSION < 1000000
  SUCCEED();
#else
  FAIL() << SYMBIND_VERSION;
#endif
}

}  // namespace
}  // namespace symbind
