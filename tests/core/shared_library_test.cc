#include "symbind/core/shared_library.h"

#include <cmath>

#include <gtest/gtest.h>

#include "tests/support/arrays.h"

namespace symbind::testing {
namespace {

constinit SharedLibrary mathematics(
    {.title = "The C library's mathematics", .file = "libm.so", .version = 6, .remedy = "install the C library"});
constinit SharedFunction<double (*)(double)> cosine{mathematics, "cos"};
constinit SharedFunction<double (*)(double)> unknown_function{mathematics, "cos_of_nothing"};

constinit SharedLibrary missing({.title = "Absent",
                                 .file = "libsymbind_absent.so",
                                 .version = 3,
                                 .remedy = "install Absent 3",
                                 .usual_folder = "/nonexistent"});
constinit SharedFunction<int (*)()> missing_function{missing, "absent"};

TEST(SharedLibrary, IsOpenedWhenAFunctionIsCalled) {
  EXPECT_DOUBLE_EQ(cosine(0.5), std::cos(0.5));
  EXPECT_DOUBLE_EQ(cosine(0.25), std::cos(0.25));
  EXPECT_EQ(mathematics.problem(), "");
}

TEST(SharedLibrary, SaysWhichFileIsMissingAndWhatToDo) {
  for (int time = 0; time < 2; ++time)
    EXPECT_TRUE(fails_with([] { missing_function(); }, "Absent is not available: libsymbind_absent.so.3",
                           "install Absent 3, or add the folder that holds it to LD_LIBRARY_PATH"));
  EXPECT_NE(missing.problem(), "");
}

TEST(SharedLibrary, SaysWhichFunctionIsMissing) {
  EXPECT_TRUE(fails_with([] { unknown_function(1); }, "has no function cos_of_nothing"));
}

}  // namespace
}  // namespace symbind::testing
