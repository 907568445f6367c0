#include "symbind/ops/image.h"

#include <gtest/gtest.h>

#include "symbind/core/random.h"
#include "symbind/exec/executor.h"
#include "symbind/exec/invoke.h"
#include "symbind/passes/infer.h"

#include "tests/support/arrays.h"

namespace symbind::testing {
namespace {

const auto x = Symbol::variable("x");

TEST(ImageOperators, BytesAreCutOffAndLimited) {
  const NDArray image = array({0, 101, 200}).reshape({1, 1, 3}).astype(DType::uint8);
  const auto lit = invoke(image_random_brightness, {image}, {.min_factor = 1.5, .max_factor = 1.5})[0];
  EXPECT_EQ(lit.to_vector<int>(), (std::vector<int>{0, 151, 255}));
  const auto darker = invoke(image_adjust_lighting, {image}, {.alpha = std::vector<double>{1, 0, 0}})[0];
  EXPECT_EQ(darker.to_vector<int>(), (std::vector<int>{0, 68, 167}));
}

TEST(ImageOperators, AFlipIsMadeInHalfOfTheCalls) {
  for (const Context context : all_devices()) {
    const NDArray row = counted({1, 2, 1}, DType::float32, context);
    const NDArray column = counted({2, 1, 1}, DType::float32, context);
    int rows = 0, columns = 0;
    for (int call = 0; call < 200; ++call) {
      rows += invoke(image_random_flip_left_right, {row})[0].to_vector<int>()[0] == 2;
      columns += invoke(image_random_flip_top_bottom, {column})[0].to_vector<int>()[0] == 2;
    }
    for (const int flipped : {rows, columns}) {
      EXPECT_GT(flipped, 60) << context;
      EXPECT_LT(flipped, 140) << context;
    }
  }
}

TEST(ImageOperators, JitterStaysInItsRangesAndRepeatsWithTheSeed) {
  const NDArray image = array(std::vector<float>(12, 100), {2, 2, 3});
  const ImageRandomColorJitter brightness{.brightness = 0.5, .contrast = 0, .saturation = 0, .hue = 0};
  double least = 1e9, most = 0;
  for (int call = 0; call < 100; ++call) {
    const float value = invoke(image_random_color_jitter, {image}, brightness)[0].to_vector<float>()[0];
    least = std::min<double>(least, value);
    most = std::max<double>(most, value);
  }
  EXPECT_GE(least, 50);
  EXPECT_LT(least, 60);
  EXPECT_LE(most, 150);
  EXPECT_GT(most, 140);

  const NDArray colours = random_array({4, 4, 3}, 1, 0, 255);
  const ImageRandomColorJitter all{.brightness = 0.5, .contrast = 0.5, .saturation = 0.5, .hue = 0.5};
  seed(7);
  const NDArray first = invoke(image_random_color_jitter, {colours}, all)[0];
  const NDArray second = invoke(image_random_color_jitter, {colours}, all)[0];
  seed(7);
  EXPECT_TRUE(same_bits(invoke(image_random_color_jitter, {colours}, all)[0], first));
  EXPECT_FALSE(same_bits(second, first));
}

TEST(ImageOperators, BatchesAreImagesOneByOne) {
  const NDArray batch = random_array({3, 5, 4, 3}, 1, 0, 255);
  const auto resized = invoke(image_resize, {batch}, {.size = {6, 7}})[0];
  const auto contrast = invoke(image_random_contrast, {batch}, {.min_factor = 0.5, .max_factor = 0.5})[0];
  for (int64_t i = 0; i < 3; ++i) {
    const NDArray image = batch.slice(i, i + 1).reshape({5, 4, 3});
    EXPECT_TRUE(
        same_bits(resized.slice(i, i + 1).reshape({7, 6, 3}), invoke(image_resize, {image}, {.size = {6, 7}})[0]));
    EXPECT_TRUE(all_close(contrast.slice(i, i + 1).reshape({5, 4, 3}),
                          invoke(image_random_contrast, {image}, {.min_factor = 0.5, .max_factor = 0.5})[0]));
  }
}

TEST(ImageOperators, PixelsAreNormalizedByChannel) {
  for (const Context context : all_devices())
    for (const Shape& shape : {Shape{2, 4, 30, 40}, Shape{3, 3, 3, 5}, Shape{1, 1, 1}, Shape{0, 3, 2, 2}}) {
      const NDArray pixels = random_array(shape, 4, 0, 255, DType::uint8);
      NormalizePixels params;
      params.mean = {99.5, 1, 2, 3};
      params.std = {3, 4, 5, 6};
      params.scale = 0.1;
      for (auto* each : {&params.mean, &params.std}) each->resize(static_cast<size_t>(shape[-3]));
      std::vector<float> expected = pixels.to_vector<float>();
      for (size_t i = 0; i < expected.size(); ++i) {
        const size_t channel = i / static_cast<size_t>(shape[-2] * shape[-1]) % params.mean.size();
        expected[i] =
            (expected[i] - static_cast<float>(params.mean[channel])) * 0.1F / static_cast<float>(params.std[channel]);
      }
      for (const DType dtype : {DType::float32, DType::float16, DType::bfloat16}) {
        params.dtype = dtype;
        const NDArray result = invoke(normalize_pixels, {pixels.as_in_context(context)}, params)[0];
        EXPECT_TRUE(same_bits(result.as_in_context(cpu()), array(expected, shape).astype(dtype)))
            << context << ", " << dtype;
      }
    }
}

TEST(ImageOperators, RefuseWhatIsNoImage) {
  EXPECT_TRUE(fails_with([&] { infer_shape(normalize_pixels(x), {{"x", {2, 4, 5}}}); }, "1, 3 or 4 channels"));
  NormalizePixels grey;
  grey.mean = {0};
  grey.std = {1};
  EXPECT_TRUE(fails_with([&] { invoke(normalize_pixels, {counted({1, 4, 5})}, grey); }, "uint8"));
  EXPECT_TRUE(fails_with([&] { infer_shape(image_to_tensor(x), {{"x", {2, 3}}}); }, "image", "(2,3)"));
  EXPECT_TRUE(fails_with([&] { infer_shape(image_normalize(x), {{"x", {3, 4, 5}}}); }, "one per channel"));
  EXPECT_TRUE(fails_with([&] { image_resize(x, {}); }, "size"));
  const auto crop = image_crop(x, {.x = 2, .y = 0, .width = 3, .height = 1}, "crop");
  EXPECT_TRUE(fails_with([&] { infer_shape(crop, {{"x", {2, 4, 3}}}); }, "[_image_crop crop]", "columns 2 to 5"));
  EXPECT_TRUE(fails_with(
      [&] {
        infer_shape(image_random_hue(x, {.min_factor = 0, .max_factor = 1}), {{"x", {2, 4, 2}}});
      },
      "1 or 3 channels"));
}

}  // namespace
}  // namespace symbind::testing
