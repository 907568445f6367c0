// Which source pixels a position of a resized axis reads, with which weights, and how bytes are summed: the arithmetic
// of resize.h for one position, for every device. It includes no other header of the library.
#pragma once

#include <cstdint>
#include <type_traits>

#include <math.h>  // NOLINT(modernize-deprecated-headers): functions outside of namespace std, as device code has them

namespace symbind::resizing {

// ---- Positions ------------------------------------------------------------------------------------------------------

// A position's centre among the source pixels: `fraction` of a pixel after the centre of pixel `index`.
struct SourcePosition {
  int64_t index = 0;
  float fraction = 0;
};

// `factor` is how much larger the result is. Positions are multiplied by its inverse, not divided by it: at exact pixel
// boundaries the last bit matters.
constexpr double factor_of(int64_t from, int64_t full) { return static_cast<double>(full) / static_cast<double>(from); }

constexpr SourcePosition centre(int64_t position, double factor) {
  const auto at = static_cast<float>((static_cast<double>(position) + 0.5) * (1 / factor) - 0.5);
  const float index = ::floorf(at);
  return {static_cast<int64_t>(index), at - index};
}

// Enlarging by area: a position between two source pixels is weighted by what it covers of each.
constexpr SourcePosition covered(int64_t position, double factor) {
  const auto index = static_cast<int64_t>(::floor(static_cast<double>(position) * (1 / factor)));
  const auto past = static_cast<float>(static_cast<double>(position + 1) - static_cast<double>(index + 1) * factor);
  return {index, past <= 0 ? 0 : past - ::floorf(past)};
}

constexpr int64_t nearest_source(int64_t position, int64_t from, int64_t full) {
  const auto index = static_cast<int64_t>(::floor(static_cast<double>(position) * (1 / factor_of(from, full))));
  return index < from - 1 ? index : from - 1;
}

// ---- Weights of neighbours ------------------------------------------------------------------------------------------

// 2: linear, or enlarging by area; 4: cubic; 8: Lanczos.
template <int taps>
struct Taps {
  int64_t source[taps];
  float weight[taps];
};

// At `fraction` between the second and the third of four pixels.
constexpr void cubic_weights(float fraction, float (&w)[4]) {
  constexpr float a = -0.75F;
  const auto near = [](float t) { return ((a + 2) * t - (a + 3)) * t * t + 1; };
  w[0] = ((a * (fraction + 1) - 5 * a) * (fraction + 1) + 8 * a) * (fraction + 1) - 4 * a;
  w[1] = near(fraction);
  w[2] = near(1 - fraction);
  w[3] = 1 - w[0] - w[1] - w[2];
}

// At `fraction` between the fourth and the fifth of eight pixels.
constexpr void lanczos_weights(float fraction, float (&w)[8]) {
  constexpr float least = 1.1920929e-7F;  // the distance of the next float after 1
  constexpr double pi = 3.14159265358979323846;
  const auto sinc = [](double t) { return ::sin(pi * t) / (pi * t); };
  double exact[8] = {}, sum = 0;
  for (int i = 0; i < 8; ++i) {
    const double distance = static_cast<double>(fraction) + 3 - i;
    exact[i] = fraction < least ? (i == 3 ? 1 : 0) : sinc(distance) * sinc(distance / 4);
    sum += exact[i];
  }
  for (int i = 0; i < 8; ++i) w[i] = static_cast<float>(exact[i] / sum);
}

template <int taps>
constexpr Taps<taps> taps_at(int64_t position, int64_t from, int64_t full, bool by_area) {
  const double factor = factor_of(from, full);
  SourcePosition source = by_area ? covered(position, factor) : centre(position, factor);
  Taps<taps> at{};
  if constexpr (taps == 2) {
    if (source.index < 0) source = {0, 0};
    if (source.index >= from - 1) source = {from - 1, 0};
    at.weight[0] = 1 - source.fraction;
    at.weight[1] = source.fraction;
  } else if constexpr (taps == 4) {
    cubic_weights(source.fraction, at.weight);
  } else {
    lanczos_weights(source.fraction, at.weight);
  }
  for (int tap = 0; tap < taps; ++tap) {
    const int64_t index = source.index - (taps / 2 - 1) + tap;
    at.source[tap] = index < 0 ? 0 : index > from - 1 ? from - 1 : index;
  }
  return at;
}

// ---- Sums of bytes --------------------------------------------------------------------------------------------------
// In integers, with weights in units of 1/2048.

inline constexpr int weight_bits = 11;

constexpr int16_t fixed_weight(float weight) {
  return static_cast<int16_t>(::nearbyintf(weight * static_cast<float>(1 << weight_bits)));
}

// Along x, two taps of bytes give 15 bits; four and eight give up to 20, and a sign.
template <class Element, int taps>
using RowSum =
    std::conditional_t<std::is_same_v<Element, float>, float, std::conditional_t<taps == 2, int16_t, int32_t>>;

template <int taps>
constexpr RowSum<uint8_t, taps> row_sum(int32_t sum) {
  return static_cast<RowSum<uint8_t, taps>>(taps == 2 ? sum >> 4 : sum);
}

constexpr uint8_t to_byte(int64_t value) { return static_cast<uint8_t>(value < 0 ? 0 : value > 255 ? 255 : value); }

// Products of two rows keep their upper 16 bits, of which two are for the final rounding.
constexpr uint8_t sum_of_two(int16_t above, int16_t below, int16_t w0, int16_t w1) {
  const auto upper = static_cast<int16_t>((int32_t{above} * w0) >> 16);
  const auto lower = static_cast<int16_t>((int32_t{below} * w1) >> 16);
  return static_cast<uint8_t>((upper + lower + 2) >> 2);
}

// The sum of four or eight rows starts with one half.
inline constexpr int64_t half_of_rows = int64_t{1} << (2 * weight_bits - 1);
constexpr uint8_t sum_of_rows(int64_t sum) { return to_byte(sum >> (2 * weight_bits)); }

// ---- Shrinking by area ----------------------------------------------------------------------------------------------

// The source pixels that a position covers, and how much of each; the weights' sum is 1.
struct Cover {
  int64_t first = 0, count = 0;
  float before = 0, inside = 0, after = 0;  // of a first pixel, if it is covered in part; of whole ones; of the last
  bool partly_before = false, partly_after = false;

  constexpr float weight(int64_t i) const {
    if (i == 0 && partly_before) return before;
    return i == count - 1 && partly_after ? after : inside;
  }
};

constexpr Cover cover_of(int64_t position, int64_t from, int64_t full) {
  const double scale = static_cast<double>(from) / static_cast<double>(full);
  const double begin = static_cast<double>(position) * scale, end = begin + scale;
  const double left = static_cast<double>(from) - begin, width = scale < left ? scale : left;
  auto first = static_cast<int64_t>(::ceil(begin)), last = static_cast<int64_t>(::floor(end));
  if (last > from - 1) last = from - 1;
  if (first > last) first = last;
  const double beyond = end - static_cast<double>(last), rest = beyond < 1 ? beyond : 1;
  Cover cover;
  cover.partly_before = static_cast<double>(first) - begin > 1e-3;
  cover.partly_after = rest > 1e-3;
  cover.before = static_cast<float>((static_cast<double>(first) - begin) / width);
  cover.inside = static_cast<float>(1 / width);
  cover.after = static_cast<float>((rest < width ? rest : width) / width);
  cover.first = cover.partly_before ? first - 1 : first;
  cover.count = last - first + (cover.partly_before ? 1 : 0) + (cover.partly_after ? 1 : 0);
  return cover;
}

// Averages of 2 × 2 bytes round halves up.
template <class Element>
constexpr Element from_average(float sum, bool halves) {
  if constexpr (std::is_same_v<Element, float>) {
    return sum;
  } else {
    // NOLINTNEXTLINE(bugprone-incorrect-roundings): sums are not negative, and this form is vectorised
    const auto half_up = static_cast<uint8_t>(sum + 0.5F);
    return halves ? half_up : to_byte(static_cast<int64_t>(::nearbyintf(sum)));
  }
}

}  // namespace symbind::resizing
