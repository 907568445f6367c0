#include "symbind/data/image_augment.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "symbind/core/error.h"
#include "symbind/image/resize.h"

namespace symbind {
namespace {

BasicPixelView<uint8_t> mutable_view(Pixels& image) {
  return {image.data(), image.height(), image.width(), image.channels(), image.width() * image.channels()};
}

bool warps(const ImageRecordIterOptions& o) {
  const bool random =
      !o.random_resized_crop && (o.max_random_scale != 1 || o.min_random_scale != 1 || o.max_aspect_ratio != 0 ||
                                 o.max_img_size != 1e10F || o.min_img_size != 0);
  return random || o.max_rotate_angle > 0 || o.max_shear_ratio > 0 || o.rotate > 0;
}

bool changes_colors(const ImageRecordIterOptions& o) {
  return o.brightness > 0 || o.contrast > 0 || o.saturation > 0 || o.pca_noise > 0 || o.random_h != 0 ||
         o.random_s != 0 || o.random_l != 0;
}

float aspect(const ImageRecordIterOptions& o, SampleRandom& random) {
  if (o.min_aspect_ratio) return random.uniform(*o.min_aspect_ratio, o.max_aspect_ratio);
  return random.uniform(1 - o.max_aspect_ratio, 1 + o.max_aspect_ratio);
}

// From a position of the result to one of the source: a linear map, and a shift.
struct Affine {
  double xx = 1, xy = 0, x1 = 0, yx = 0, yy = 1, y1 = 0;
};

// The inverse of: scaling by width_scale and height_scale, shearing x by y, rotating by the angle; around the centres.
Affine inverse_map(double angle, double shear, double width_scale, double height_scale, PixelView from, float to_height,
                   float to_width) {
  const double c = std::cos(angle), s = std::sin(angle);
  const double xx = c * width_scale, xy = (c * shear + s) * height_scale;
  const double yx = -s * width_scale, yy = (c - s * shear) * height_scale;
  const double determinant = xx * yy - xy * yx;
  Affine map{yy / determinant, -xy / determinant, 0, -yx / determinant, xx / determinant, 0};
  const double cx = static_cast<double>(to_width) / 2, cy = static_cast<double>(to_height) / 2;
  map.x1 = static_cast<double>(from.width) / 2 - map.xx * cx - map.xy * cy;
  map.y1 = static_cast<double>(from.height) / 2 - map.yx * cx - map.yy * cy;
  return map;
}

// Bilinear (or nearest) samples of the source; pixels outside it are `fill`.
void warp_affine(PixelView from, const Affine& map, int method, uint8_t fill, Pixels& to) {
  const auto pixel = [&](int64_t y, int64_t x, int64_t c) -> float {
    if (y < 0 || x < 0 || y >= from.height || x >= from.width) return fill;
    return from.row(y)[x * from.channels + c];
  };
  uint8_t* out = to.data();
  for (int64_t y = 0; y < to.height(); ++y)
    for (int64_t x = 0; x < to.width(); ++x) {
      double sx = map.xx * static_cast<double>(x) + map.xy * static_cast<double>(y) + map.x1;
      double sy = map.yx * static_cast<double>(x) + map.yy * static_cast<double>(y) + map.y1;
      // Positions are quantized to a fraction of a pixel, as in OpenCV.
      const double parts = method == interpolation::nearest ? 1 : 32;
      sx = std::floor(sx * parts + 0.5) / parts;
      sy = std::floor(sy * parts + 0.5) / parts;
      // Positions far outside are moved to just outside, so that indices stay small.
      sx = std::clamp(sx, -2., static_cast<double>(from.width) + 1);
      sy = std::clamp(sy, -2., static_cast<double>(from.height) + 1);
      const auto x0 = static_cast<int64_t>(std::floor(sx)), y0 = static_cast<int64_t>(std::floor(sy));
      const auto fx = static_cast<float>(sx - static_cast<double>(x0)),
                 fy = static_cast<float>(sy - static_cast<double>(y0));
      for (int64_t c = 0; c < from.channels; ++c) {
        const float above = pixel(y0, x0, c) * (1 - fx) + pixel(y0, x0 + 1, c) * fx;
        const float below = pixel(y0 + 1, x0, c) * (1 - fx) + pixel(y0 + 1, x0 + 1, c) * fx;
        *out++ = static_cast<uint8_t>(std::lround(above * (1 - fy) + below * fy));
      }
    }
}

}  // namespace

ImageAugmenter::ImageAugmenter(const ImageRecordIterOptions& options)
    : options_(options),
      channels_(options.data_shape[0]),
      height_(options.data_shape[1]),
      width_(options.data_shape[2]) {}

void ImageAugmenter::check(const ImageRecordIterOptions& o) {
  const auto in_order = [](double low, double high, const char* what) {
    require(low <= high, "[ImageRecordIter] min_", what, " must be at most max_", what, ": ", low, " and ", high);
  };
  in_order(o.min_random_scale, o.max_random_scale, "random_scale");
  in_order(o.min_random_area, o.max_random_area, "random_area");
  in_order(o.min_img_size, o.max_img_size, "img_size");
  require(o.min_random_scale > 0, "[ImageRecordIter] min_random_scale must be positive: ", o.min_random_scale);
  require(o.min_random_area > 0, "[ImageRecordIter] min_random_area must be positive: ", o.min_random_area);
  if (o.min_aspect_ratio) {
    in_order(*o.min_aspect_ratio, o.max_aspect_ratio, "aspect_ratio");
    require(*o.min_aspect_ratio > 0, "[ImageRecordIter] min_aspect_ratio must be positive: ", *o.min_aspect_ratio);
  } else {
    require(o.max_aspect_ratio >= 0 && o.max_aspect_ratio < 1,
            "[ImageRecordIter] max_aspect_ratio without min_aspect_ratio must be in [0, 1): ", o.max_aspect_ratio);
  }
  require((o.max_crop_size > 0) == (o.min_crop_size > 0) && o.min_crop_size <= o.max_crop_size,
          "[ImageRecordIter] max_crop_size and min_crop_size must be given together, and in order: ", o.max_crop_size,
          " and ", o.min_crop_size);
  require(o.fill_value >= 0 && o.fill_value <= 255, "[ImageRecordIter] fill_value must be in 0 … 255: ", o.fill_value);
  require(o.pad >= 0 && o.pad <= 10000, "[ImageRecordIter] pad must be between 0 and 10000: ", o.pad);
  require(o.resize == -1 || (o.resize >= 1 && o.resize <= 100000),
          "[ImageRecordIter] resize must be between 1 and 100000, or -1: ", o.resize);
  for (const float deviation : {o.std_r, o.std_g, o.std_b, o.std_a})
    require(deviation > 0, "[ImageRecordIter] std_r, std_g, std_b and std_a must be positive: ", deviation);
  if (o.inter_method != interpolation::random)
    (void)interpolation_for(static_cast<int>(o.inter_method), 1, 1, 1, 1, "ImageRecordIter");
  if (o.mean_image)
    require(o.mean_image.shape() == o.data_shape && o.mean_image.dtype() == DType::float32,
            "[ImageRecordIter] the mean image must be of float32 and data_shape, ", o.data_shape, ": ",
            o.mean_image.dtype(), ' ', o.mean_image.shape());
  require(!changes_colors(o) || o.data_shape[0] == 3,
          "[ImageRecordIter] brightness, contrast, saturation, pca_noise, random_h, random_s and random_l are for 3 "
          "channels: data_shape ",
          o.data_shape);
}

// ---- geometry -------------------------------------------------------------------------------------------------------

int ImageAugmenter::method(PixelView image, int64_t height, int64_t width, SampleRandom& random) const {
  const auto asked = static_cast<int>(options_.inter_method);
  if (asked == interpolation::random) return static_cast<int>(random.whole(0, 4));
  return interpolation_for(asked, image.height, image.width, height, width, "ImageRecordIter");
}

PixelView ImageAugmenter::resized(PixelView image, int64_t height, int64_t width, Pixels& to, SampleRandom& random) {
  to.resize(height, width, image.channels);
  resize<uint8_t>(image, mutable_view(to), method(image, height, width, random));
  return to.view();
}

// A window of the image resized to full_height × full_width; only the window is computed.
PixelView ImageAugmenter::window(PixelView image, int64_t full_height, int64_t full_width, int64_t y, int64_t x,
                                 int by) {
  cropped_.resize(height_, width_, channels_);
  resize_window<uint8_t>(image, full_height, full_width, y, x, mutable_view(cropped_), by);
  return cropped_.view();
}

PixelView ImageAugmenter::warp(PixelView image, SampleRandom& random) {
  const ImageRecordIterOptions& o = options_;
  const float shear = random.uniform(-o.max_shear_ratio, o.max_shear_ratio);
  const int64_t degrees = o.rotate > 0 ? o.rotate : random.whole(-o.max_rotate_angle, o.max_rotate_angle);
  float scale = 1, ratio = 1;
  if (!o.random_resized_crop) {
    scale = random.uniform(o.min_random_scale, o.max_random_scale);
    ratio = aspect(o, random);
  }
  const float height_scale = 2 * scale / (1 + ratio), width_scale = ratio * height_scale;
  const auto side = [&](int64_t length) {
    return std::clamp(scale * static_cast<float>(length), std::max(1.F, o.min_img_size),
                      std::min(1e5F, o.max_img_size));
  };
  const float height = side(image.height), width = side(image.width);
  warped_.resize(static_cast<int64_t>(height), static_cast<int64_t>(width), image.channels);
  const Affine map = inverse_map(static_cast<double>(degrees) * 3.14159265358979323846 / 180, shear, width_scale,
                                 height_scale, image, height, width);
  warp_affine(image, map, method(image, warped_.height(), warped_.width(), random), static_cast<uint8_t>(o.fill_value),
              warped_);
  return warped_.view();
}

PixelView ImageAugmenter::padded(PixelView image) {
  const int64_t pad = options_.pad;
  padded_.resize(image.height + 2 * pad, image.width + 2 * pad, image.channels);
  std::memset(padded_.data(), static_cast<int>(options_.fill_value), padded_.bytes());
  for (int64_t y = 0; y < image.height; ++y)
    std::memcpy(padded_.row(y + pad) + pad * image.channels, image.row(y),
                static_cast<size_t>(image.width * image.channels));
  return padded_.view();
}

// A window of data_shape's size, out of the image resized to height × width. Where that is too small it is enlarged
// first to data_shape's height, then to its width, as in MXNet.
PixelView ImageAugmenter::cropped(PixelView image, int64_t height, int64_t width, SampleRandom& random) {
  // And not by cubic interpolation, unless requested.
  const bool linear = options_.inter_method == interpolation::automatic && (height < height_ || width < width_);
  const auto resize_now = [&](Pixels& to, int by) {
    if (height == image.height && width == image.width) return;
    to.resize(height, width, image.channels);
    resize<uint8_t>(image, mutable_view(to), by);
    image = to.view();
  };
  if (height < height_ || width < width_) resize_now(resized_, method(image, height, width, random));
  if (height < height_) {
    width = std::max<int64_t>(1, width * height_ / height);
    height = height_;
    if (width < width_) resize_now(enlarged_, linear ? interpolation::linear : method(image, height, width, random));
  }
  if (width < width_) {
    height = height * width_ / width;
    width = width_;
  }
  const bool anywhere = options_.rand_crop;
  const int64_t y = anywhere ? random.whole(0, height - height_) : (height - height_) / 2;
  const int64_t x = anywhere ? random.whole(0, width - width_) : (width - width_) / 2;
  if (height == image.height && width == image.width) return image.window(y, x, height_, width_);
  return window(image, height, width, y, x, linear ? interpolation::linear : method(image, height, width, random));
}

// A crop of another size than data_shape's, resized to it.
PixelView ImageAugmenter::resized_crop(PixelView image, SampleRandom& random) {
  const ImageRecordIterOptions& o = options_;
  const auto area = static_cast<float>(image.height * image.width);
  for (int attempt = 0; attempt < 10 && o.random_resized_crop; ++attempt) {
    const float target = random.uniform(o.min_random_area, o.max_random_area) * area, ratio = aspect(o, random);
    auto height = static_cast<int64_t>(std::lround(std::sqrt(target / ratio)));
    auto width = static_cast<int64_t>(std::lround(std::sqrt(target * ratio)));
    if (random.coin()) std::swap(height, width);
    if (height < 1 || width < 1 || height > image.height || width > image.width) continue;
    const int64_t y = random.whole(0, image.height - height), x = random.whole(0, image.width - width);
    const PixelView part = image.window(y, x, height, width);
    return window(part, height_, width_, 0, 0, method(part, height_, width_, random));
  }
  if (o.random_resized_crop) return cropped(image, image.height, image.width, random);
  const int64_t most = std::min(image.height, image.width);
  const int64_t side = std::min(most, random.whole(o.min_crop_size, o.max_crop_size));
  const int64_t y = o.rand_crop ? random.whole(0, image.height - side) : (image.height - side) / 2;
  const int64_t x = o.rand_crop ? random.whole(0, image.width - side) : (image.width - side) / 2;
  const PixelView part = image.window(y, x, side, side);
  return window(part, height_, width_, 0, 0, method(part, height_, width_, random));
}

PixelView ImageAugmenter::augment(PixelView image, SampleRandom& random) {
  const ImageRecordIterOptions& o = options_;
  int64_t height = image.height, width = image.width;
  if (o.resize > 0) {
    height = image.height > image.width ? o.resize * image.height / image.width : o.resize;
    width = image.height > image.width ? o.resize : o.resize * image.width / image.height;
  }
  const bool crops_resized = o.random_resized_crop || o.max_crop_size > 0;
  if (warps(o) || o.pad > 0 || crops_resized) {
    if (height != image.height || width != image.width) image = resized(image, height, width, resized_, random);
    if (warps(o)) image = warp(image, random);
    if (o.pad > 0) image = padded(image);
    height = image.height;
    width = image.width;
  }
  image = crops_resized ? resized_crop(image, random) : cropped(image, height, width, random);
  if (!changes_colors(o)) return image;

  if (image.data != cropped_.data()) {
    cropped_.resize(height_, width_, channels_);
    for (int64_t y = 0; y < height_; ++y)
      std::memcpy(cropped_.row(y), image.row(y), static_cast<size_t>(width_ * channels_));
  }
  std::array<int, 3> order{0, 1, 2};
  for (size_t i = 2; i > 0; --i)
    std::swap(order[i], order[static_cast<size_t>(random.whole(0, static_cast<int64_t>(i)))]);
  for (const int step : order) {
    if (step == 0 && o.brightness > 0) add_brightness(cropped_, 1 + random.uniform(-o.brightness, o.brightness));
    if (step == 1 && o.contrast > 0) add_contrast(cropped_, 1 + random.uniform(-o.contrast, o.contrast));
    if (step == 2 && o.saturation > 0) add_saturation(cropped_, 1 + random.uniform(-o.saturation, o.saturation));
  }
  if (o.pca_noise > 0) {
    // The principal components of ImageNet's colors.
    constexpr float values[3] = {55.46F, 4.794F, 1.148F};
    constexpr float vectors[3][3] = {
        {-0.5675F, 0.7192F, 0.4009F}, {-0.5808F, -0.0045F, -0.8140F}, {-0.5836F, -0.6948F, 0.4203F}};
    float shift[3] = {0, 0, 0};
    for (int k = 0; k < 3; ++k) {
      const float amount = random.normal(o.pca_noise) * values[k];
      for (int c = 0; c < 3; ++c) shift[c] += vectors[c][k] * amount;
    }
    add_light(cropped_, shift);
  }
  if (o.random_h != 0 || o.random_s != 0 || o.random_l != 0) {
    const auto amount = [&](int64_t most) { return random.whole(-most, most); };
    const int64_t h = amount(o.random_h), s = amount(o.random_s), l = amount(o.random_l);
    add_hue_saturation_lightness(cropped_, h, s, l);
  }
  return cropped_.view();
}

// ---- colors ---------------------------------------------------------------------------------------------------------

namespace {

constexpr float red_part = 0.299F, green_part = 0.587F, blue_part = 0.114F;

uint8_t to_byte(float value) { return static_cast<uint8_t>(std::lround(std::clamp(value, 0.F, 255.F))); }

float grey_of(const uint8_t* pixel) {
  return red_part * static_cast<float>(pixel[0]) + green_part * static_cast<float>(pixel[1]) +
         blue_part * static_cast<float>(pixel[2]);
}

int64_t pixels_of(const Pixels& image) { return image.height() * image.width(); }

// Every value v of channel c becomes by[c][v].
void look_up(Pixels& image, const std::array<std::array<uint8_t, 256>, 3>& by) {
  uint8_t* pixel = image.data();
  for (int64_t i = 0; i < pixels_of(image); ++i, pixel += 3)
    for (size_t c = 0; c < 3; ++c) pixel[c] = by[c][pixel[c]];
}

void scale_and_shift(Pixels& image, float factor, const float (&shift)[3]) {
  std::array<std::array<uint8_t, 256>, 3> by{};
  for (size_t c = 0; c < 3; ++c)
    for (size_t v = 0; v < 256; ++v) by[c][v] = to_byte(static_cast<float>(v) * factor + shift[c]);
  look_up(image, by);
}

// Of a color in [0, 255]: hue in degrees, lightness and saturation in [0, 1].
struct Hls {
  float hue = 0, lightness = 0, saturation = 0;
};

Hls hls_of(const uint8_t* pixel) {
  const float r = static_cast<float>(pixel[0]) / 255, g = static_cast<float>(pixel[1]) / 255,
              b = static_cast<float>(pixel[2]) / 255;
  const float high = std::max({r, g, b}), low = std::min({r, g, b}), range = high - low;
  Hls color{0, (high + low) / 2, 0};
  if (range <= 0) return color;
  color.saturation = color.lightness < 0.5F ? range / (high + low) : range / (2 - high - low);
  color.hue = 60 * (high == r ? (g - b) / range : high == g ? 2 + (b - r) / range : 4 + (r - g) / range);
  if (color.hue < 0) color.hue += 360;
  return color;
}

void to_rgb(const Hls& color, uint8_t* pixel) {
  const float chroma = (1 - std::abs(2 * color.lightness - 1)) * color.saturation;
  const float base = color.lightness - chroma / 2;
  const auto channel = [&](float offset) {
    const float k = std::fmod(color.hue / 60 + offset, 6.F);
    return to_byte(255 * (base + chroma * std::clamp(std::abs(k - 3) - 1, 0.F, 1.F)));
  };
  pixel[0] = channel(0);
  pixel[1] = channel(4);
  pixel[2] = channel(2);
}

}  // namespace

void add_brightness(Pixels& image, float factor) { scale_and_shift(image, factor, {0, 0, 0}); }

void add_contrast(Pixels& image, float factor) {
  double sum = 0;
  for (int64_t i = 0; i < pixels_of(image); ++i) sum += static_cast<double>(grey_of(image.data() + 3 * i));
  const float rest = (1 - factor) * static_cast<float>(sum / static_cast<double>(pixels_of(image)));
  scale_and_shift(image, factor, {rest, rest, rest});
}

void add_saturation(Pixels& image, float factor) {
  uint8_t* pixel = image.data();
  for (int64_t i = 0; i < pixels_of(image); ++i, pixel += 3) {
    const float rest = (1 - factor) * grey_of(pixel);
    for (int c = 0; c < 3; ++c) pixel[c] = to_byte(static_cast<float>(pixel[c]) * factor + rest);
  }
}

void add_light(Pixels& image, const float (&shift)[3]) { scale_and_shift(image, 1, shift); }

void add_hue_saturation_lightness(Pixels& image, int64_t hue, int64_t saturation, int64_t lightness) {
  // The values are in OpenCV's units: half degrees, and 1/255.
  uint8_t* pixel = image.data();
  for (int64_t i = 0; i < pixels_of(image); ++i, pixel += 3) {
    Hls color = hls_of(pixel);
    color.hue = std::clamp(color.hue + 2 * static_cast<float>(hue), 0.F, 359.99F);
    color.lightness = std::clamp(color.lightness + static_cast<float>(lightness) / 255, 0.F, 1.F);
    color.saturation = std::clamp(color.saturation + static_cast<float>(saturation) / 255, 0.F, 1.F);
    to_rgb(color, pixel);
  }
}

// ---- into the batch -------------------------------------------------------------------------------------------------

namespace {

// Rows of pixels become one plane per channel, each value v of channel c as by[c][v].
template <class Element>
void write_planes(PixelView image, bool mirror, const std::array<std::array<Element, 256>, 4>& by, Element* to) {
  const int64_t plane = image.height * image.width;
  for (int64_t y = 0; y < image.height; ++y) {
    const int64_t step = mirror ? -image.channels : image.channels;
    const uint8_t* const first = image.row(y) + (mirror ? (image.width - 1) * image.channels : 0);
    for (int64_t c = 0; c < image.channels; ++c) {
      const uint8_t* pixel = first + c;
      const std::array<Element, 256>& values = by[static_cast<size_t>(c)];
      Element* out = to + c * plane + y * image.width;
      for (int64_t x = 0; x < image.width; ++x, pixel += step) out[x] = values[*pixel];
    }
  }
}

template <class Element, class Value>
std::array<std::array<Element, 256>, 4> table_of(Value value) {
  std::array<std::array<Element, 256>, 4> table{};
  for (size_t c = 0; c < 4; ++c)
    for (size_t v = 0; v < 256; ++v) table[c][v] = static_cast<Element>(value(c, static_cast<float>(v)));
  return table;
}

}  // namespace

void ImageAugmenter::write(PixelView image, SampleRandom& random, void* to) {
  const ImageRecordIterOptions& o = options_;
  const bool mirror = o.mirror || (o.rand_mirror && random.coin());
  if (o.dtype == DType::uint8 || o.normalize_on_device) {
    static const auto same = table_of<uint8_t>([](size_t, float v) { return v; });
    return write_planes(image, mirror, same, static_cast<uint8_t*>(to));
  }
  if (o.dtype == DType::int8) {
    static const auto saturated = table_of<int8_t>([](size_t, float v) { return std::min(v, 127.F); });
    return write_planes(image, mirror, saturated, static_cast<int8_t*>(to));
  }
  const float contrast =
      o.max_random_contrast > 0 ? 1 + random.uniform(-o.max_random_contrast, o.max_random_contrast) : 1;
  const float light =
      o.max_random_illumination > 0 ? random.uniform(-o.max_random_illumination, o.max_random_illumination) : 0;
  const std::array<float, 4> mean{o.mean_r, o.mean_g, o.mean_b, o.mean_a},
      deviation{o.std_r, o.std_g, o.std_b, o.std_a};
  const bool by_image = static_cast<bool>(o.mean_image);
  const auto normalized = [&](size_t c, float v) {
    return ((v - (by_image ? 0 : mean[c])) * contrast + light) * o.scale / deviation[c];
  };
  if (o.dtype == DType::float16)
    return write_planes(image, mirror, table_of<float16>(normalized), static_cast<float16*>(to));
  auto* const out = static_cast<float*>(to);
  write_planes(image, mirror, table_of<float>(normalized), out);
  if (!by_image) return;
  const auto* const means = static_cast<const float*>(o.mean_image.data());
  const int64_t plane = height_ * width_;
  for (int64_t i = 0; i < channels_ * plane; ++i)
    out[i] -= means[i] * contrast * o.scale / deviation[static_cast<size_t>(i / plane)];
}

}  // namespace symbind
