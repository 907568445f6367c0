// BatchNorm of one channel at a time, as templates over an instruction set's vectors (see row_vectors.h). A channel is
// `inner` adjacent numbers of each image.
#pragma once

#include "symbind/backend/cpu/row_vectors.h"

namespace symbind::cpu_backend::vectors {

// Images whose numbers are summed in float before they are added to a sum in double.
template <class V>
[[gnu::always_inline]] inline int64_t images_together(const Channel& channel) {
  const int64_t images = chunk_vectors * V::width / (channel.inner + V::width);
  return images > 1 ? images : 1;
}

// As sums_of(), over all images: add(offset, ...).
template <class V, class Add>
[[gnu::always_inline]] inline Sums channel_sums(const Channel& channel, const Add& add) {
  using Float = typename V::Float;
  Sums total{0, 0};
  if (channel.inner > chunk_vectors * V::width) {
    for (int64_t start = 0; start < channel.outer * channel.step; start += channel.step) {
      const Sums sums = sums_of<V>(
          channel.inner, [&](int64_t k, auto some, Float& first, Float& second)
                             __attribute__((always_inline)) { add(start + k, some, first, second); });
      total.first += sums.first;
      total.second += sums.second;
    }
    return total;
  }
  const int64_t together = images_together<V>(channel);
  for (int64_t image = 0; image < channel.outer; image += together) {
    Float first[2] = {}, second[2] = {};
    const int64_t image_end = image + together < channel.outer ? image + together : channel.outer;
    for (int64_t each = image; each < image_end; ++each) {
      const int64_t start = each * channel.step, end = start + channel.inner;
      int64_t i = start;
      for (; i + 2 * V::width <= end; i += 2 * V::width) {
        add(i, Whole<V>{}, first[0], second[0]);
        add(i + V::width, Whole<V>{}, first[1], second[1]);
      }
      each_vector<V>(
          i, end, [&](int64_t at, auto some) __attribute__((always_inline)) { add(at, some, first[0], second[0]); });
    }
    total.first += static_cast<double>(V::sum(first[0] + first[1]));
    total.second += static_cast<double>(V::sum(second[0] + second[1]));
  }
  return total;
}

// Calls visit(offset, Whole or Part) for the vectors of all images.
template <class V, class Visit>
[[gnu::always_inline]] inline void each_of_channel(const Channel& channel, const Visit& visit) {
  for (int64_t start = 0; start < channel.outer * channel.step; start += channel.step)
    each_vector<V>(start, start + channel.inner, visit);
}

template <class V, class T>
ChannelStatistics measure_channel(const Channel& channel, const T* x) {
  using Float = typename V::Float;
  const double count = static_cast<double>(channel.outer * channel.inner);
  const float mean = static_cast<float>(channel_sums<V>(
                                            channel, [=](int64_t i, auto some, Float& sum, Float&)
                                                         __attribute__((always_inline)) { sum += some.load(x + i); })
                                            .first /
                                        count);
  const Sums away = channel_sums<V>(
      channel, [=](int64_t i, auto some, Float& squares, Float& rest) __attribute__((always_inline)) {
        const Float value = some.or_else(some.load(x + i) - mean, 0);
        squares += value * value;
        rest += value;
      });
  const double shift = away.second / count;  // the rounding error of the mean
  const double variance = away.first / count - shift * shift;
  return {static_cast<double>(mean) + shift, variance < 0 ? 0 : variance};
}

template <class V, bool relu, class T>
void normalise_channel_of(const Channel& channel, const ChannelScale& scale, const T* x, T* y) {
  using Float = typename V::Float;
  const Float mean = V::same(scale.mean), factor = V::same(scale.scale), shift = V::same(scale.shift);
  each_of_channel<V>(
      channel, [=](int64_t i, auto some) __attribute__((always_inline)) {
        const Float value = (some.load(x + i) - mean) * factor + shift;
        if constexpr (relu)
          some.store(y + i, value < Float{} ? Float{} : value);
        else
          some.store(y + i, value);
      });
}
template <class V, class T>
void normalise_channel(const Channel& channel, const ChannelScale& scale, const T* x, T* y) {
  scale.relu ? normalise_channel_of<V, true>(channel, scale, x, y)
             : normalise_channel_of<V, false>(channel, scale, x, y);
}

// The gradient through ReLU: zero where the result was zero.
template <bool relu, class Float>
[[gnu::always_inline]] inline Float through_relu(Float dy, Float away, const ChannelScale& scale) {
  if constexpr (relu)
    return away * scale.scale + scale.shift > Float{} ? dy : Float{};
  else
    return dy;
}

template <class V, bool relu, class T>
NormSums sum_channel_of(const Channel& channel, const ChannelScale& scale, const T* dy, const T* x) {
  using Float = typename V::Float;
  const Sums sums = channel_sums<V>(
      channel, [=](int64_t i, auto some, Float& sum, Float& product) __attribute__((always_inline)) {
        const Float away = some.load(x + i) - scale.mean;
        const Float grad = through_relu<relu>(some.load(dy + i), away, scale);
        sum += grad;
        product += grad * away;
      });
  return {sums.second, sums.first};
}
template <class V, class T>
NormSums sum_channel(const Channel& channel, const ChannelScale& scale, const T* dy, const T* x) {
  return scale.relu ? sum_channel_of<V, true>(channel, scale, dy, x) : sum_channel_of<V, false>(channel, scale, dy, x);
}

template <class V, bool relu, bool with_more, class T>
void spread_channel_of(const Channel& channel, const ChannelScale& scale, const ChannelSlope& slope, const T* dy,
                       const T* x, const T* more, T* dx) {
  using Float = typename V::Float;
  each_of_channel<V>(
      channel, [=](int64_t i, auto some) __attribute__((always_inline)) {
        const Float away = some.load(x + i) - scale.mean;
        const Float grad = through_relu<relu>(some.load(dy + i), away, scale);
        Float result = (grad - slope.of_mean - away * slope.of_deviation) * scale.scale;
        if constexpr (with_more) result += some.load(more + i);
        some.store(dx + i, result);
      });
}
template <class V, class T>
void spread_channel(const Channel& channel, const ChannelScale& scale, const ChannelSlope& slope, const T* dy,
                    const T* x, const T* more, T* dx) {
  if (!scale.relu)
    spread_channel_of<V, false, false>(channel, scale, slope, dy, x, more, dx);
  else if (more)
    spread_channel_of<V, true, true>(channel, scale, slope, dy, x, more, dx);
  else
    spread_channel_of<V, true, false>(channel, scale, slope, dy, x, more, dx);
}

template <class V, class T>
constexpr ChannelKernels<T> channel_kernels_of() {
  return {measure_channel<V, T>, normalise_channel<V, T>, sum_channel<V, T>, spread_channel<V, T>};
}

}  // namespace symbind::cpu_backend::vectors
