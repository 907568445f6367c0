#include "symbind/data/mnist_iter.h"

#include <gtest/gtest.h>

#include "symbind/core/log.h"

#include "tests/support/arrays.h"
#include "tests/support/temp_dir.h"

namespace symbind {
namespace {

using testing::fails_with;
using testing::read_file;
using testing::TempDir;
using testing::write_file;

std::string idx(std::initializer_list<uint32_t> dims, const std::string& values) {
  std::string text{'\0', '\0', '\x08', static_cast<char>(dims.size())};
  for (const uint32_t dim : dims)
    for (const int shift : {24, 16, 8, 0}) text.push_back(static_cast<char>(dim >> shift));
  return text + values;
}

// Five images of 1 × 2 pixels.
class MNIST : public ::testing::Test {
 protected:
  MNIST() {
    write_file(image, idx({5, 1, 2}, std::string("\x00\xff\x01\x02\x03\x04\x05\x06\x07\x08", 10)));
    write_file(label, idx({5}, std::string("\x09\x08\x07\x06\x05", 5)));
  }
  MNISTIterOptions options(int64_t batch_size) {
    return {.image = image, .label = label, .batch_size = batch_size, .shuffle = false, .silent = true};
  }
  template <class... Parts>
  ::testing::AssertionResult refused(const MNISTIterOptions& given, const Parts&... parts) {
    return fails_with([&] { MNISTIter iter(given); }, parts...);
  }

  TempDir dir;
  std::string image = dir.file("images"), label = dir.file("labels");
};

TEST_F(MNIST, PixelsLieInZeroToOneAndTheLastBatchIsLeftOut) {
  MNISTIter iter(options(2));
  for (int epoch = 0; epoch < 2; ++epoch, iter.reset()) {
    const auto first = iter.next(), second = iter.next();
    EXPECT_EQ(first->data[0].shape(), Shape({2, 1, 1, 2}));
    EXPECT_EQ(first->data[0].to_vector<float>(), std::vector<float>({0, 255.f / 256, 1.f / 256, 2.f / 256}));
    EXPECT_EQ(first->label[0].to_vector<float>(), std::vector<float>({9, 8}));
    EXPECT_EQ(second->label[0].to_vector<float>(), std::vector<float>({7, 6}));
    EXPECT_EQ(second->index, std::vector<int64_t>({2, 3}));
    EXPECT_FALSE(iter.next());
    EXPECT_FALSE(iter.next());
  }
  EXPECT_EQ(iter.batch_size(), 2);
  EXPECT_EQ(iter.num_data(), 5);
}

TEST_F(MNIST, ResetInTheMiddleBeginsAgain) {
  MNISTIter iter(options(2));
  iter.next();
  iter.reset();
  EXPECT_EQ(iter.next()->index, std::vector<int64_t>({0, 1}));
}

TEST_F(MNIST, NamesCanBeChosen) {
  auto given = options(2);
  given.data_name = "x";
  given.label_name = "y";
  given.flat = true;
  const MNISTIter iter(given);
  EXPECT_EQ(iter.provide_data()[0], (DataDesc{"x", {2, 2}}));
  EXPECT_EQ(iter.provide_label()[0], (DataDesc{"y", {2}}));
}

TEST_F(MNIST, SaysWhatItReadUnlessSilent) {
  std::string said;
  const LogSink before = set_log_sink([&](LogLevel, std::string_view message) { said += message; });
  auto given = options(2);
  const MNISTIter silent{given};
  EXPECT_EQ(said, "");
  given.silent = false;
  const MNISTIter telling{given};
  set_log_sink(before);
  EXPECT_NE(said.find("5 images"), std::string::npos) << said;
  EXPECT_NE(said.find("(2,1,1,2)"), std::string::npos) << said;
}

TEST_F(MNIST, WrongArgumentsAreRefused) {
  EXPECT_TRUE(refused(options(0), "[MNISTIter]", "batch_size", ": 0"));
  EXPECT_TRUE(refused(options(6), "batch_size must be at most the number of images, 5", ": 6"));
  EXPECT_EQ(MNISTIter(options(5)).next()->label[0].shape(), Shape({5})) << "all images in one batch";
  auto parts = options(3);
  parts.num_parts = 2;
  EXPECT_TRUE(refused(parts, "number of images, 2 in part 0 of 2", ": 3"));
  parts.part_index = 2;
  EXPECT_TRUE(refused(parts, "[MNISTIter]", "part_index", "between 0 and 1", ": 2"));
}

TEST_F(MNIST, WrongFilesAreRefused) {
  auto given = options(2);
  given.image = dir.file("missing");
  EXPECT_TRUE(refused(given, given.image, "cannot read this file"));

  write_file(dir.file("four"), idx({4}, "abcd"));
  given = options(2);
  given.label = dir.file("four");
  EXPECT_TRUE(refused(given, "as many labels as images", image, "holds 5", given.label, "holds 4"));

  given = options(2);
  std::swap(given.image, given.label);
  EXPECT_TRUE(refused(given, "images have 3 axes", label, "(5,)"));
  given.image = given.label = image;
  EXPECT_TRUE(refused(given, "labels have 1 axis", image, "(5,1,2)"));

  const std::string whole = read_file(image);
  for (const size_t size : {size_t{3}, size_t{9}, whole.size() - 1}) {
    write_file(dir.file("short"), whole.substr(0, size));
    given = options(2);
    given.image = dir.file("short");
    EXPECT_TRUE(refused(given, given.image, "offset")) << size;
  }
}

}  // namespace
}  // namespace symbind
