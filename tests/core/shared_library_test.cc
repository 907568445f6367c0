#include "symbind/core/shared_library.h"

#include <cmath>
#include <cstdlib>
#include <filesystem>

#include <gtest/gtest.h>

#include "tests/support/arrays.h"
#include "tests/support/temp_dir.h"

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

TEST(SharedLibrary, NamesTheFileThatWasOpened) {
  const Part found = mathematics.part(), absent = missing.part();
  EXPECT_EQ(found.name, "The C library's mathematics");
  EXPECT_TRUE(found.usable);
  EXPECT_NE(found.details.find("libm.so.6"), std::string::npos) << found.details;
  EXPECT_FALSE(absent.usable);
  EXPECT_NE(absent.details.find("install Absent 3"), std::string::npos) << absent.details;
}

TEST(SharedLibrary, IsFoundInTheFolderThatAVariableNames) {
  const TempDir folder;
  std::filesystem::create_directory(folder.file("lib64"));
  std::filesystem::create_symlink(mathematics.part().details, folder.file("lib64/libsymbind_named.so.1"));
  ::setenv("CUDA_HOME", folder.file("").c_str(), 1);
  const SharedLibraryName name{.title = "Named",
                               .file = "libsymbind_named.so",
                               .version = 1,
                               .remedy = "none",
                               .home = &environment::text("CUDA_HOME")};
  EXPECT_EQ(SharedLibrary(name).problem(), "");
  ::unsetenv("CUDA_HOME");
}

TEST(SharedLibrary, IsFoundInAnyFolderOfTheLibraryPath) {
  const TempDir folder;
  std::filesystem::create_symlink(mathematics.part().details, folder.file("libsymbind_on_path.so"));
  SharedLibrary library(
      {.title = "Listed", .file = "libsymbind_on_path.so", .version = no_version, .remedy = "install it"});
  EXPECT_NE(library.problem(), "");
  ::setenv("SYMBIND_LIBRARY_PATH", join("/nonexistent::", folder.file("")).c_str(), 1);
  EXPECT_EQ(library.problem(), "");
  ::unsetenv("SYMBIND_LIBRARY_PATH");
}

TEST(SharedLibrary, SaysWhichFunctionIsMissing) {
  EXPECT_TRUE(fails_with([] { unknown_function(1); }, "has no function cos_of_nothing"));
}

}  // namespace
}  // namespace symbind::testing
