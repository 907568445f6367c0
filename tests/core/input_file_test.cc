#include "symbind/core/input_file.h"

#include <filesystem>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "symbind/files/params.h"
#include "symbind/graph/symbol.h"

#include "tests/support/arrays.h"
#include "tests/support/temp_dir.h"

namespace symbind::testing {
namespace {

TEST(InputFile, IsReadWhole) {
  const TempDir dir;
  write_file(dir.file("a"), std::string_view("a\0b\n", 4));
  EXPECT_EQ(read_whole_file(dir.file("a")), std::string("a\0b\n", 4));
  write_file(dir.file("empty"), "");
  EXPECT_EQ(read_whole_file(dir.file("empty")), "");
}

// A device or a pipe may never end: /dev/zero as a symbol file would fill the memory, a pipe would wait for ever.
TEST(InputFile, DevicesPipesAndFoldersAreRefusedByEveryReader) {
  const TempDir dir;
  const std::string pipe = dir.file("pipe"), folder = std::filesystem::path(pipe).parent_path().string();
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& path : {pipe, folder, std::string("/dev/zero"), std::string("/dev/null")}) {
    EXPECT_TRUE(fails_with([&] { Symbol::load(path); }, path, "cannot read", "not a regular file"));
    EXPECT_TRUE(fails_with([&] { load(path); }, path, "cannot read", "not a regular file"));
  }
  const std::string missing = dir.file("missing");
  EXPECT_TRUE(fails_with([&] { Symbol::load(missing); }, missing, "cannot read", "No such file"));
}

// The system would see another file: the part of the name before the NUL.
TEST(InputFile, PathsWithNulAreRefused) {
  const TempDir dir;
  const std::string before = dir.file("net.params"), path = before + std::string("\0.bak", 5);
  save(before, {{"w", ones({1})}});
  EXPECT_TRUE(fails_with([&] { load(path); }, "net.params\\x00.bak", "NUL"));
  EXPECT_TRUE(fails_with([&] { Symbol::load(path); }, "net.params\\x00.bak", "NUL"));
  EXPECT_TRUE(fails_with([&] { save(path, {{"w", zeros({1})}}); }, "net.params\\x00.bak", "NUL"));
  EXPECT_TRUE(fails_with([&] { Symbol::variable("x").save(path); }, "net.params\\x00.bak", "NUL"));
  EXPECT_EQ(load(before).dict().at("w").item(), 1);
}

}  // namespace
}  // namespace symbind::testing
