// Colours and pixels of images, for every device. Random operators draw from one block of random numbers per call, so
// every thread gets the same factors.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include "symbind/backend/freestanding.h"
#include "symbind/backend/sampling.h"
#include "symbind/core/dtype.h"
#include "symbind/core/random.h"
#include "symbind/ops/image.h"

namespace symbind {

// Integer types: truncated, and clamped to the range of the type.
template <class T, class C>
constexpr auto as_pixel(C value) {
  if constexpr (std::is_integral_v<T>) {
    constexpr auto least = static_cast<C>(std::numeric_limits<T>::min());
    constexpr auto most = static_cast<C>(std::numeric_limits<T>::max());
    if (!(value > least)) return std::numeric_limits<T>::min();
    if (value >= most) return std::numeric_limits<T>::max();
    return static_cast<T>(value);
  } else {
    return value;
  }
}

// ---- Colours --------------------------------------------------------------------------------------------------------

enum class ColourChange : uint8_t { brightness, contrast, saturation, hue };

// A sequence of colour changes, each with a factor.
template <class C>
struct ColourChanges {
  int count = 0;
  ColourChange change[4] = {};
  C factor[4] = {};

  constexpr void add(ColourChange kind, C by) {
    change[count] = kind;
    factor[count++] = by;
  }
  // The changes before the one that needs the mean of the image; all if there is none.
  constexpr int before_contrast() const {
    for (int i = 0; i < count; ++i)
      if (change[i] == ColourChange::contrast) return i;
    return count;
  }
  constexpr bool has_contrast() const { return before_contrast() < count; }
};

// The ranges that factors are drawn from.
struct ColourRanges {
  int count = 0;
  ColourChange change[4] = {};
  double low[4] = {}, high[4] = {};
  bool shuffled = false;

  void add(ColourChange kind, double from, double to) {
    change[count] = kind;
    low[count] = from;
    high[count++] = to;
  }

  template <class C>
  constexpr ColourChanges<C> draw(const RandomCursor& cursor, uint64_t slot) const {
    const PhiloxBlock factors = philox(cursor.key, cursor.draw + slot, 0);
    int order[4] = {0, 1, 2, 3};
    if (shuffled) {
      const PhiloxBlock choices = philox(cursor.key, cursor.draw + slot, 1);
      for (int i = count - 1; i > 0; --i) {
        const int other = static_cast<int>(choices.words[i] % static_cast<uint32_t>(i + 1));
        const int kept = order[i];
        order[i] = order[other];
        order[other] = kept;
      }
    }
    ColourChanges<C> drawn;
    for (int i = 0; i < count; ++i) {
      const int which = order[i];
      const double part = static_cast<double>(unit_float(factors.words[which]));
      drawn.add(change[which], static_cast<C>(low[which] + part * (high[which] - low[which])));
    }
    return drawn;
  }
};

template <class C>
constexpr C grey_of(const C (&pixel)[3], int channels) {
  return channels == 1 ? pixel[0] : C(0.299) * pixel[0] + C(0.587) * pixel[1] + C(0.114) * pixel[2];
}

// Rotates the hue by a fraction of the circle; the largest and the smallest of the three values do not change.
template <class C>
constexpr void turn_hue(C (&pixel)[3], C part) {
  const C r = pixel[0], g = pixel[1], b = pixel[2];
  const C most = r > g ? (r > b ? r : b) : (g > b ? g : b), least = r < g ? (r < b ? r : b) : (g < b ? g : b);
  const C range = most - least;
  if (!(range > C(0))) return;
  // In sixths of the circle, from red over green and blue.
  C hue = most == r ? (g - b) / range : most == g ? C(2) + (b - r) / range : C(4) + (r - g) / range;
  hue += C(6) * part;
  hue -= C(6) * libm::floor(hue / C(6));
  for (int c = 0; c < 3; ++c) {
    C at = hue - C(2) * static_cast<C>(c);  // from where this channel is largest
    at -= C(6) * libm::floor(at / C(6) + C(0.5));
    const C distance = at < C(0) ? -at : at;  // 0 to 3
    pixel[c] = distance <= C(1) ? most : distance >= C(2) ? least : most - (distance - C(1)) * range;
  }
}

// `mean` is that of the grey values, for a change of contrast.
template <class C>
constexpr void change_pixel(const ColourChanges<C>& changes, int first, int end, C mean, C (&pixel)[3], int channels) {
  for (int i = first; i < end; ++i) {
    const C factor = changes.factor[i];
    switch (changes.change[i]) {
      case ColourChange::brightness:
        for (int c = 0; c < channels; ++c) pixel[c] *= factor;
        break;
      case ColourChange::contrast:
        for (int c = 0; c < channels; ++c) pixel[c] = pixel[c] * factor + mean * (C(1) - factor);
        break;
      case ColourChange::saturation: {
        const C grey = grey_of(pixel, channels);
        for (int c = 0; c < channels; ++c) pixel[c] = pixel[c] * factor + grey * (C(1) - factor);
        break;
      }
      case ColourChange::hue:
        if (channels == 3) turn_hue(pixel, factor);
        break;
    }
  }
}

inline ColourRanges one_range(ColourChange change, double low, double high) {
  ColourRanges ranges;
  ranges.add(change, low, high);
  return ranges;
}
inline ColourRanges ranges_of(const ImageRandomColorJitter& p) {
  ColourRanges ranges;
  ranges.shuffled = true;
  if (p.brightness > 0) ranges.add(ColourChange::brightness, 1 - p.brightness, 1 + p.brightness);
  if (p.contrast > 0) ranges.add(ColourChange::contrast, 1 - p.contrast, 1 + p.contrast);
  if (p.saturation > 0) ranges.add(ColourChange::saturation, 1 - p.saturation, 1 + p.saturation);
  if (p.hue > 0) ranges.add(ColourChange::hue, -p.hue, p.hue);
  return ranges;
}

// ---- Light ----------------------------------------------------------------------------------------------------------

// What is added to a channel by weights of the principal components of ImageNet's colours.
template <class C>
constexpr C light_of(int channel, C a0, C a1, C a2) {
  constexpr double components[3][3] = {{55.46 * -0.5675, 4.794 * 0.7192, 1.148 * 0.4009},
                                       {55.46 * -0.5808, 4.794 * -0.0045, 1.148 * -0.8140},
                                       {55.46 * -0.5836, 4.794 * -0.6948, 1.148 * 0.4203}};
  const double* const of_channel = components[channel];
  return static_cast<C>(of_channel[0]) * a0 + static_cast<C>(of_channel[1]) * a1 + static_cast<C>(of_channel[2]) * a2;
}

// Given weights, or normally distributed ones.
struct Light {
  double alpha[3] = {};
  double deviation = 0;
  bool random = false;

  template <class C>
  constexpr C added(int channel, const RandomCursor* cursor, uint64_t slot) const {
    if (!random) return light_of(channel, static_cast<C>(alpha[0]), static_cast<C>(alpha[1]), static_cast<C>(alpha[2]));
    const PhiloxBlock block = philox(cursor->key, cursor->draw + slot, 0);
    const auto of = [&](int i) {
      return static_cast<C>(sampling::normal<float>(block, i)) * static_cast<C>(deviation);
    };
    return light_of(channel, of(0), of(1), of(2));
  }
};
inline Light light_of(const ImageAdjustLighting& p) {
  const auto& alpha = p.alpha.get();
  return {{alpha[0], alpha[1], alpha[2]}, 0, false};
}
inline Light light_of(const ImageRandomLighting& p) { return {{0, 0, 0}, p.alpha_std, true}; }

// ---- Flips and normalization ----------------------------------------------------------------------------------------

// Images of rows × columns pixels, mirrored where the random number is below one half.
struct RandomFlip {
  int64_t rows, columns, channels;
  bool vertical;

  RandomFlip(const Shape& data, bool vertical_)
      : rows(data[-3]), columns(data[-2]), channels(data[-1]), vertical(vertical_) {}
  static constexpr bool flips(const RandomCursor& cursor, uint64_t slot) {
    return unit_float(philox(cursor.key, cursor.draw + slot, 0).words[0]) < 0.5f;
  }
  // Where element i comes from in an image that is mirrored.
  constexpr int64_t source(int64_t i) const {
    const int64_t channel = i % channels, column = i / channels % columns, row = i / (channels * columns) % rows;
    const int64_t image = i / (channels * columns * rows);
    const int64_t from_row = vertical ? rows - 1 - row : row, from_column = vertical ? column : columns - 1 - column;
    return ((image * rows + from_row) * columns + from_column) * channels + channel;
  }
};

// (x - mean) · scale / std for tensors (…, channels, rows, columns), whose planes are (rows, columns).
struct Normalization {
  int64_t planes, plane, channels;  // plane: its elements
  double mean[4], std[4], scale = 1;

  Normalization(const ImageNormalize& p, const Shape& data) : plane(data[-2] * data[-1]), channels(data[-3]) {
    planes = data.rank() == 4 ? data[0] * channels : channels;
    for (size_t c = 0; c < 4; ++c) {
      mean[c] = p.mean[p.mean.size() == 1 ? 0 : c % p.mean.size()];
      std[c] = p.std[p.std.size() == 1 ? 0 : c % p.std.size()];
    }
  }
  Normalization(const NormalizePixels& p, const Shape& data)
      : Normalization(static_cast<const ImageNormalize&>(p), data) {
    scale = p.scale;
  }

  template <class C>
  struct OfPlane {
    C mean, scale, std;
    constexpr C operator()(C value) const { return (value - mean) * scale / std; }
  };
  template <class C>
  constexpr OfPlane<C> of_plane(int64_t index) const {
    const int64_t channel = index % channels;
    return {static_cast<C>(mean[channel]), static_cast<C>(scale), static_cast<C>(std[channel])};
  }
};

}  // namespace symbind
