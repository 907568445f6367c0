// Augmentation of a decoded image.
#pragma once

#include "symbind/data/image_record_iter.h"
#include "symbind/data/sample_random.h"
#include "symbind/image/pixels.h"

namespace symbind {

// Serves one thread: it reuses its buffers between images.
class ImageAugmenter {
 public:
  explicit ImageAugmenter(const ImageRecordIterOptions& options);

  // Fails on options that contradict each other.
  static void check(const ImageRecordIterOptions& options);

  // Crops and colors: an image of data_shape's size, valid until the next call.
  PixelView augment(PixelView image, SampleRandom& random);
  // Writes it as (channels, height, width), mirrored; normalized, in the options' dtype, or with normalize_on_device
  // as uint8.
  void write(PixelView image, SampleRandom& random, void* to);

 private:
  PixelView warp(PixelView image, SampleRandom& random);
  PixelView padded(PixelView image);
  PixelView cropped(PixelView image, int64_t height, int64_t width, SampleRandom& random);
  PixelView resized_crop(PixelView image, SampleRandom& random);
  PixelView resized(PixelView image, int64_t height, int64_t width, Pixels& to, SampleRandom& random);
  PixelView window(PixelView image, int64_t full_height, int64_t full_width, int64_t y, int64_t x, int by);
  int method(PixelView image, int64_t height, int64_t width, SampleRandom& random) const;

  const ImageRecordIterOptions& options_;
  int64_t channels_, height_, width_;
  Pixels resized_, warped_, padded_, enlarged_, cropped_;
};

// Colors, in place, on three channels: red, green, blue.
void add_brightness(Pixels& image, float factor);
void add_contrast(Pixels& image, float factor);
void add_saturation(Pixels& image, float factor);
void add_light(Pixels& image, const float (&shift)[3]);
void add_hue_saturation_lightness(Pixels& image, int64_t hue, int64_t saturation, int64_t lightness);

}  // namespace symbind
