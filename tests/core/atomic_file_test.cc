#include "symbind/core/atomic_file.h"

#include <filesystem>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/arrays.h"
#include "tests/support/full_disk.h"
#include "tests/support/temp_dir.h"

namespace symbind {
namespace {

using testing::fails_with;
using testing::NoRoomBeyond;
using testing::read_file;
using testing::TempDir;
using testing::write_file;

size_t entries(const TempDir& dir) {
  const auto folder = std::filesystem::path(dir.file("x")).parent_path();
  return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

TEST(AtomicFile, AppearsWithCommit) {
  const TempDir dir;
  const std::string path = dir.file("a");
  AtomicFile file(path);
  file.write("hello ");
  file.write("world");
  EXPECT_FALSE(std::filesystem::exists(path));
  file.commit();
  EXPECT_EQ(read_file(path), "hello world");
  EXPECT_EQ(entries(dir), 1u);
}

TEST(AtomicFile, WithoutCommitTheOldFileStays) {
  const TempDir dir;
  const std::string path = dir.file("a");
  write_file(path, "old");
  { AtomicFile(path).write(std::string(1 << 20, 'x')); }
  EXPECT_EQ(read_file(path), "old");
  EXPECT_EQ(entries(dir), 1u);
}

TEST(AtomicFile, AFullDiskIsAnErrorAndLeavesTheOldFile) {
  const TempDir dir;
  const std::string path = dir.file("a");
  write_file(path, "old");
  {
    const NoRoomBeyond limit(1 << 16);
    EXPECT_TRUE(fails_with([&] { write_file_atomically(path, std::string(1 << 20, 'x')); }, path, "cannot write"));
  }
  EXPECT_EQ(read_file(path), "old");
  EXPECT_EQ(entries(dir), 1u);
  EXPECT_TRUE(fails_with([] { write_file_atomically("/dev/full", "x"); }, "/dev/full", "No space left"));
}

TEST(AtomicFile, FinishedIsOnTheDiskUnderATemporaryName) {
  const TempDir dir;
  const std::string path = dir.file("a");
  write_file(path, "old");
  AtomicFile file(path);
  file.write("new");
  file.finish();
  EXPECT_EQ(read_file(path), "old");
  EXPECT_EQ(entries(dir), 2u);
  file.commit();
  EXPECT_EQ(read_file(path), "new");
  EXPECT_EQ(entries(dir), 1u);
}

TEST(AtomicFile, AllSizesArriveWhole) {
  const TempDir dir;
  std::string all;
  AtomicFile file(dir.file("a"));
  for (const size_t size : {0, 1, 65535, 65536, 65537, 3, 200000, 65533}) {
    const std::string piece(size, static_cast<char>('a' + all.size() % 26));
    file.write(piece);
    all += piece;
  }
  file.commit();
  EXPECT_TRUE(read_file(dir.file("a")) == all);
}

TEST(AtomicFile, KeepsPermissionsAndLinks) {
  const TempDir dir;
  const std::string path = dir.file("a"), link = dir.file("link");
  write_file(path, "old");
  ::chmod(path.c_str(), 0640);
  std::filesystem::create_symlink(path, link);
  write_file_atomically(link, "new");
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_EQ(read_file(path), "new");
  struct stat status {};
  ::stat(path.c_str(), &status);
  EXPECT_EQ(status.st_mode & 0777, 0640u);
}

TEST(AtomicFile, LinksLeadToFilesThatAreNotThereYet) {
  const TempDir dir;
  const std::string link = dir.file("link"), second = dir.file("second"), loop = dir.file("loop");
  std::filesystem::create_symlink("a", second);
  std::filesystem::create_symlink(second, link);
  write_file_atomically(link, "new");
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_TRUE(std::filesystem::is_symlink(second));
  EXPECT_FALSE(std::filesystem::is_symlink(dir.file("a")));
  EXPECT_EQ(read_file(dir.file("a")), "new");
  std::filesystem::create_symlink(loop, loop);
  EXPECT_TRUE(fails_with([&] { write_file_atomically(loop, "new"); }, loop, "cannot write", "symbolic links"));
  EXPECT_TRUE(std::filesystem::is_symlink(loop));
}

TEST(AtomicFile, AFolderThatIsNotThereIsNamed) {
  EXPECT_TRUE(fails_with([] { AtomicFile("/no/such/folder/file"); }, "/no/such/folder/file", "No such file"));
  const TempDir dir;
  const auto folder = std::filesystem::path(dir.file("x")).parent_path().string();
  EXPECT_TRUE(fails_with([&] { AtomicFile file(folder); }, folder, "directory"));
}

TEST(AtomicFile, NamesMayBeAsLongAsTheFileSystemAllows) {
  const TempDir dir;
  for (const size_t length : {250, 255}) {
    const std::string path = dir.file(std::string(length, 'n'));
    write_file_atomically(path, "new");
    EXPECT_EQ(read_file(path), "new");
  }
  const std::string path = dir.file(std::string(256, 'n'));
  EXPECT_TRUE(fails_with([&] { AtomicFile file(path); }, path, "cannot write", "name too long"));
  EXPECT_EQ(entries(dir), 2u);
}

TEST(AtomicFile, WhatADeadProcessLeftIsRemovedByTheNextFile) {
  const TempDir dir;
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    AtomicFile file(dir.file("a"));
    file.write("torn");
    file.finish();
    ::_exit(0);  // as a kill would, without the destructor
  }
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_EQ(entries(dir), 1u) << "a temporary file is left";
  EXPECT_EQ(abandoned_files_beside(dir.file("b")).size(), 1u);
  write_file_atomically(dir.file("b"), "new");
  EXPECT_EQ(entries(dir), 1u);
  EXPECT_EQ(read_file(dir.file("b")), "new");
}

TEST(AtomicFile, FilesInTheMakingAndOfOthersAreNotRemoved) {
  const TempDir dir;
  for (const char* name : {".symbind-0123.tmp", ".symbind-0123456789abcdeX.tmp", "a.tmp", ".symbind-0123456789abcdef"})
    write_file(dir.file(name), "somebody's");
  AtomicFile first(dir.file("a"));
  first.write("first");
  AtomicFile second(dir.file("b"));  // of this process, and not finished
  first.finish();
  write_file_atomically(dir.file("c"), "third");
  EXPECT_EQ(abandoned_files_beside(dir.file("a")).size(), 0u);
  first.commit();
  second.write("second");
  second.commit();
  EXPECT_EQ(read_file(dir.file("a")) + read_file(dir.file("b")) + read_file(dir.file("c")), "firstsecondthird");
  EXPECT_EQ(entries(dir), 7u);
}

TEST(AtomicFile, SeveralAreCommittedTogether) {
  const TempDir dir;
  AtomicFile first(dir.file("a")), second(dir.file("b"));
  first.write("1");
  second.write("2");
  AtomicFile* const both[] = {&first, &second};
  AtomicFile::commit(both);
  EXPECT_EQ(read_file(dir.file("a")) + read_file(dir.file("b")), "12");
  EXPECT_EQ(entries(dir), 2u);
}

}  // namespace
}  // namespace symbind
