// Errors of a kind that callers tell apart. The library throws them where a test of that module says so.
#include "symbind/core/error_kinds.h"

#include <gtest/gtest.h>

#include "symbind/core/input_file.h"

#include "tests/support/temp_dir.h"

namespace symbind {
namespace {

TEST(ErrorKinds, AFileThatDoesNotExistIsOne) {
  const testing::TempDir folder;
  EXPECT_THROW(read_whole_file(folder.file("missing")), FileNotFoundError);
  try {
    read_whole_file(folder.file("."));
    FAIL() << "a folder was read";
  } catch (const Error& error) {
    EXPECT_EQ(dynamic_cast<const FileNotFoundError*>(&error), nullptr) << "a folder exists";
  }
}

TEST(ErrorKinds, AreErrorsWithAPrintableText) {
  try {
    require_as<IndexError>(true, "nothing");
    require_as<IndexError>(false, "index ", 7, " of \xff");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(dynamic_cast<const IndexError*>(&error), nullptr);
    EXPECT_EQ(std::string(error.what()), printable("index 7 of \xff"));
  }
}

}  // namespace
}  // namespace symbind
