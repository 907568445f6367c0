#include "symbind/data/image.h"

#include <gtest/gtest.h>

#include "symbind/data/codec.h"
#include "symbind/image/resize.h"

#include "tests/support/arrays.h"
#include "tests/support/codec_test.h"
#include "tests/support/source_dir.h"
#include "tests/support/temp_dir.h"

namespace symbind {
namespace {

using testing::fails_with;
using testing::read_file;
using testing::TempDir;
using testing::write_file;

NDArray gradient(int64_t height, int64_t width, int64_t channels) {
  NDArray image({height, width, channels}, cpu(), DType::uint8);
  auto* pixel = static_cast<uint8_t*>(image.mutable_data());
  for (int64_t i = 0; i < height * width * channels; ++i)
    pixel[i] = static_cast<uint8_t>(i / channels / width * 3 + i / channels % width * 2 + i % channels * 20);
  return image;
}

std::string recorded_image(const std::string& name) {
  return read_file(testing::source_dir() + "/tests/oracle/recorded/images/" + name);
}

class ImageFiles : public testing::CodecTest {};

TEST_F(ImageFiles, PNGsComeBackExactly) {
  for (const int64_t channels : {1, 3, 4}) {
    const NDArray image = gradient(9, 14, channels);
    const std::string bytes = imencode(image, ".PNG", 3);
    EXPECT_TRUE(is_png(bytes));
    const NDArray back = imdecode(bytes, {.flag = -1});
    EXPECT_EQ(back.shape(), image.shape());
    EXPECT_EQ(back.to_vector<int>(), image.to_vector<int>());
  }
}

TEST_F(ImageFiles, JPEGsComeBackClosely) {
  for (const int64_t channels : {1, 3}) {
    const NDArray image = gradient(24, 32, channels);
    const std::string bytes = imencode(image, ".jpg", 98);
    EXPECT_TRUE(is_jpeg(bytes));
    const auto back = imdecode(bytes, {.flag = -1}).to_vector<int>(), before = image.to_vector<int>();
    ASSERT_EQ(back.size(), before.size());
    for (size_t i = 0; i < back.size(); ++i) EXPECT_NEAR(back[i], before[i], 6);
  }
}

TEST_F(ImageFiles, BlueComesFirstWhereAskedFor) {
  const NDArray image = gradient(3, 4, 3);
  const std::string bytes = imencode(image, ".png", 3);
  const auto rgb = imdecode(bytes).to_vector<int>(), bgr = imdecode(bytes, {.to_rgb = false}).to_vector<int>();
  for (size_t i = 0; i < rgb.size(); i += 3) {
    EXPECT_EQ(rgb[i], bgr[i + 2]);
    EXPECT_EQ(rgb[i + 1], bgr[i + 1]);
    EXPECT_EQ(rgb[i + 2], bgr[i]);
  }
  EXPECT_EQ(imdecode(imencode(imdecode(bytes, {.to_rgb = false}), ".png", 3, false)).to_vector<int>(), rgb);
}

TEST_F(ImageFiles, InksBecomeTheGreyOfTheirColors) {
  const std::string bytes = recorded_image("cmyk.jpg");
  const auto colors = imdecode(bytes).to_vector<int>(), grey = imdecode(bytes, {.flag = 0}).to_vector<int>();
  ASSERT_EQ(colors.size(), 3 * grey.size());
  for (size_t i = 0; i < grey.size(); ++i)
    EXPECT_EQ(grey[i], (299 * colors[3 * i] + 587 * colors[3 * i + 1] + 114 * colors[3 * i + 2] + 500) / 1000) << i;
}

TEST(Images, WhatIsNoImageIsRefused) {
  EXPECT_TRUE(fails_with([] { imdecode(""); }, "no bytes"));
  EXPECT_TRUE(fails_with([] { imdecode("GIF89a-----"); }, "JPEG or PNG", "GIF89a"));
  EXPECT_TRUE(fails_with([] { imdecode("\xff\xd8nonsense"); }, "JPEG"));
  EXPECT_TRUE(fails_with([] { imdecode("\x89PNG\r\n\x1a\nnonsense"); }, "PNG"));
  EXPECT_TRUE(fails_with([] { imdecode(recorded_image("rgb.jpg"), {.flag = 7}); }, "flag"));
}

TEST_F(ImageFiles, TruncatedImagesAreRefused) {
  for (const std::string name : {"rgb.jpg", "gray.jpg", "prog.jpg", "cmyk.jpg", "rgba.png", "pal.png"}) {
    const std::string bytes = recorded_image(name);
    ASSERT_NO_THROW(imdecode(bytes)) << name;
    for (size_t part = 1; part < 10; ++part)
      EXPECT_THROW(imdecode(std::string_view(bytes).substr(0, bytes.size() * part / 10)), Error) << name << ' ' << part;
  }
}

TEST_F(ImageFiles, APNGThatPromisesTooMuchIsRefused) {
  std::string bytes = recorded_image("rgba.png");
  bytes[17] = bytes[21] = '\x0f';  // the third bytes of width and height
  EXPECT_THROW(imdecode(bytes), Error);
}

TEST(Images, FilesAreNamedInErrors) {
  const TempDir dir;
  const std::string path = dir.file("some.jpg");
  EXPECT_TRUE(fails_with([&] { imread(path); }, path, "No such file"));
  write_file(path, "nonsense");
  EXPECT_TRUE(fails_with([&] { imread(path); }, path, "JPEG or PNG"));
}

TEST_F(ImageFiles, WrongArgumentsAreRefused) {
  const NDArray image = gradient(4, 5, 3);
  EXPECT_TRUE(fails_with([&] { imresize(image, 0, 3); }, "width and height"));
  EXPECT_TRUE(fails_with([&] { imresize(image, 3, 3, 7); }, "interpolation", "7"));
  EXPECT_TRUE(fails_with([&] { imresize(zeros({4, 5}), 3, 3); }, "(height, width, channels)"));
  EXPECT_TRUE(fails_with([&] { imresize(zeros({4, 5, 3}, cpu(), DType::int32), 3, 3); }, "uint8 or float32"));
  EXPECT_TRUE(fails_with([&] { imcrop(image, 2, 2, 4, 2); }, "inside the image", "4 x 2 from (2, 2)"));
  EXPECT_TRUE(fails_with([&] { imencode(image, ".gif"); }, ".gif"));
  EXPECT_TRUE(fails_with([&] { imencode(image, ".jpg", 101); }, "quality"));
  EXPECT_TRUE(fails_with([&] { imencode(gradient(2, 2, 2), ".png", 1); }, "1, 3 or 4 channels"));
  EXPECT_TRUE(fails_with([&] { copy_make_border(image, -1, 0, 0, 0); }, "border"));
}

TEST(Images, CropsAndFlipsMovePixels) {
  const NDArray image = gradient(5, 6, 3);
  const auto all = image.to_vector<int>(), part = imcrop(image, 2, 1, 3, 2).to_vector<int>(),
             flipped = imflip(image).to_vector<int>();
  for (size_t y = 0; y < 2; ++y)
    for (size_t x = 0; x < 9; ++x) EXPECT_EQ(part[y * 9 + x], all[(y + 1) * 18 + 6 + x]);
  for (size_t y = 0; y < 5; ++y)
    for (size_t x = 0; x < 6; ++x)
      for (size_t c = 0; c < 3; ++c) EXPECT_EQ(flipped[(y * 6 + x) * 3 + c], all[(y * 6 + 5 - x) * 3 + c]);
}

TEST(Images, AWindowIsAPartOfTheWholeResult) {
  const NDArray image = gradient(40, 50, 3);
  const PixelView from{static_cast<const uint8_t*>(image.data()), 40, 50, 3, 150};
  for (int method = 0; method <= 4; ++method)
    for (const auto& [height, width] :
         std::vector<std::pair<int64_t, int64_t>>{{20, 25}, {17, 31}, {60, 90}, {40, 50}}) {
      Pixels whole, part;
      whole.resize(height, width, 3);
      part.resize(10, 12, 3);
      resize<uint8_t>(from, {whole.data(), height, width, 3, width * 3}, method);
      resize_window<uint8_t>(from, height, width, 5, 7, {part.data(), 10, 12, 3, 36}, method);
      for (int64_t y = 0; y < 10; ++y)
        for (int64_t x = 0; x < 36; ++x) ASSERT_EQ(part.row(y)[x], whole.row(y + 5)[x + 21]) << method << ' ' << height;
    }
}

}  // namespace
}  // namespace symbind
