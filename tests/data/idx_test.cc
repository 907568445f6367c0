#include "symbind/data/idx.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include <gtest/gtest.h>
#include <zlib.h>

#include "tests/support/arrays.h"
#include "tests/support/source_dir.h"
#include "tests/support/temp_dir.h"

namespace symbind {
namespace {

using testing::fails_with;
using testing::read_file;
using testing::TempDir;
using testing::write_file;

std::string idx_header(uint8_t type, std::initializer_list<uint32_t> dims) {
  std::string text{'\0', '\0', static_cast<char>(type), static_cast<char>(dims.size())};
  for (const uint32_t dim : dims)
    for (const int shift : {24, 16, 8, 0}) text.push_back(static_cast<char>(dim >> shift));
  return text;
}

class Idx : public ::testing::Test {
 protected:
  std::string gzipped(const std::string& bytes) {
    const std::string packed = dir.file("packed");
    gzFile file = gzopen(packed.c_str(), "wb");
    gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
    gzclose(file);
    return read_file(packed);
  }
  template <class... Parts>
  ::testing::AssertionResult refused(const std::string& bytes, const Parts&... parts) {
    write_file(path, bytes);
    return fails_with([this] { read_idx(path); }, path, parts...);
  }

  TempDir dir;
  std::string path = dir.file("digits");
};

TEST_F(Idx, PlainAndGzippedFilesHoldTheSame) {
  const std::string plain = idx_header(8, {2, 3}) + "abcdef";
  for (const std::string& bytes : {plain, gzipped(plain)}) {
    write_file(path, bytes);  // told apart by content: the name says nothing
    const IdxArray array = read_idx(path);
    EXPECT_EQ(array.shape, Shape({2, 3}));
    EXPECT_EQ(std::string(array.values.begin(), array.values.end()), "abcdef");
  }
}

TEST_F(Idx, ReadsTheDigitsOfTheRepository) {
  const std::string data = testing::source_dir() + "/data/";
  const IdxArray images = read_idx(data + "train-images-idx3-ubyte.gz"),
                 labels = read_idx(data + "train-labels-idx1-ubyte.gz");
  EXPECT_EQ(images.shape, Shape({1437, 28, 28}));
  EXPECT_EQ(labels.shape, Shape({1437}));
  std::array<int, 10> counts{};
  for (const uint8_t label : labels.values) {
    ASSERT_LT(label, 10);
    ++counts[label];
  }
  for (const int count : counts) EXPECT_GT(count, 100);
  EXPECT_EQ(*std::max_element(images.values.begin(), images.values.end()), 255);
}

TEST_F(Idx, ArraysMayHaveNoElements) {
  write_file(path, idx_header(8, {0, 28, 28}));
  EXPECT_EQ(read_idx(path).shape, Shape({0, 28, 28}));
  EXPECT_TRUE(read_idx(path).values.empty());
}

TEST_F(Idx, AFileCutAnywhereIsRefusedWithAnOffset) {
  const std::string plain = idx_header(8, {2, 3}) + "abcdef", packed = gzipped(plain);
  for (size_t length = 0; length < plain.size(); ++length)
    EXPECT_TRUE(refused(plain.substr(0, length), "at offset ", "expected ")) << "cut to " << length;
  for (size_t length = 0; length < packed.size(); ++length)
    EXPECT_TRUE(refused(packed.substr(0, length), "at offset ", "expected ")) << "cut to " << length;
  EXPECT_TRUE(refused(plain + "x", "at offset 18", "the end of the data"));
  EXPECT_TRUE(refused(gzipped(plain + "x"), "at offset 18", "the end of the data"));
}

TEST_F(Idx, DamagedGzipIsRefused) {
  const std::string packed = gzipped(idx_header(8, {1000}) + std::string(1000, 'x'));
  std::string checksum = packed;
  checksum[packed.size() - 6] = static_cast<char>(~checksum[packed.size() - 6]);
  EXPECT_TRUE(refused(checksum, "damaged gzipped data"));
  std::string body = packed;
  body[12] = '\xff';
  EXPECT_TRUE(refused(body, "at offset "));
}

TEST_F(Idx, SizesThatTheFileCannotHoldTakeNoMemory) {
  EXPECT_TRUE(refused(idx_header(8, {0xffffffff, 0xffffffff, 0xffffffff}), "at offset 4", "(4294967295,"));
  EXPECT_TRUE(refused(idx_header(8, {0xffffffff, 0xffffffff}), "at offset 4"));
  EXPECT_TRUE(refused(gzipped(idx_header(8, {0xffffffff})), "at offset 4", "unpacked"));
}

TEST_F(Idx, WhatIsNotReadIsNamed) {
  EXPECT_TRUE(refused(idx_header(0x0D, {1}) + "abcd", "at offset 2", "float32"));
  EXPECT_TRUE(refused(idx_header(0x42, {1}) + "abcd", "at offset 2", "element type", "66"));
  EXPECT_TRUE(refused("hello world", "at offset 0", "zero bytes"));
  EXPECT_TRUE(refused(idx_header(8, {1, 1, 1, 1, 1, 1, 1, 1, 1}) + "a", "at offset 3", "rank"));
  EXPECT_TRUE(fails_with([] { read_idx("/no/such/file"); }, "/no/such/file", "No such file"));
  const std::string folder = std::filesystem::path(path).parent_path();
  EXPECT_TRUE(fails_with([&] { read_idx(folder); }, folder, "not a regular file"));
}

}  // namespace
}  // namespace symbind
