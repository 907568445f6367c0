// Pooling in device code: the extents of an array's windows, and which elements of an array a window has.
#pragma once

#include <optional>
#include <string>

#include "symbind/backend/cuda/kernels.cuh"
#include "symbind/backend/pooling.h"

namespace symbind::cuda_backend {

// Why the extents do not fit below; else empty.
inline std::string refuse_windows(const PoolingSize& size) {
  constexpr int64_t most = (int64_t{1} << 30);
  for (size_t axis = 0; axis < 3; ++axis)
    if ((size.out[axis] + 1) * size.stride[axis] + size.kernel[axis] > most) return "windows that reach too far";
  return size.in_size() < most && size.out_size() < most ? "" : "too many elements in a channel";
}

// The extents for device code. `last`: are the channels last?
struct PoolWindows {
  int64_t images;
  int channels;
  int in[3], out[3], kernel[3], stride[3], pad[3];
  bool last, count_padding;
  int norm;  // the p of a p-norm

  PoolWindows(const PoolingSize& size, bool channels_last, const Pooling& params)
      : images(size.batch),
        channels(static_cast<int>(size.channels)),
        last(channels_last),
        count_padding(size.count_padding),
        norm(static_cast<int>(params.p_value.value_or(1))) {
    for (size_t axis = 0; axis < 3; ++axis) {
      in[axis] = static_cast<int>(size.in[axis]);
      out[axis] = static_cast<int>(size.out[axis]);
      kernel[axis] = static_cast<int>(size.kernel[axis]);
      stride[axis] = static_cast<int>(size.stride[axis]);
      pad[axis] = static_cast<int>(size.pad[axis]);
    }
  }
  int64_t inputs() const { return images * channels * in[0] * in[1] * in[2]; }
  int64_t outputs() const { return images * channels * out[0] * out[1] * out[2]; }
  // Can 16 bytes of neighbouring channels be processed together, if the arrays are aligned?
  template <class T>
  bool fits_packs() const {
    return last && channels % widest<T> == 0;
  }
};

// The coordinates of an element of an array.
struct Position {
  int64_t image;
  int channel;
  int at[3];

  // Item `index` of an array with these extents; with `width` channels to an item where channels are last.
  __device__ Position(int64_t index, const int (&extent)[3], int channels, bool last, int width) {
    if (index >> 32)
      take_apart(index, extent, channels, last, width);
    else  // divisions of 64 bits are slow
      take_apart(static_cast<uint32_t>(index), extent, channels, last, width);
  }

 private:
  template <class Index>
  __device__ void take_apart(Index index, const int (&extent)[3], int channels, bool last, int width) {
    const auto take = [&](int among) {
      const Index rest = index / static_cast<Index>(among);
      const auto part = static_cast<int>(index - rest * static_cast<Index>(among));
      index = rest;
      return part;
    };
    if (last) channel = take(channels / width) * width;
    for (int axis = 2; axis >= 0; --axis) at[axis] = take(extent[axis]);
    if (!last) channel = take(channels);
    image = static_cast<int64_t>(index);
  }
};

// Where the elements of one image and channel are.
struct Plane {
  int64_t start;
  int step, extent1, extent2;

  __device__ Plane(const Position& position, const int (&extent)[3], int channels, bool last)
      : extent1(extent[1]), extent2(extent[2]) {
    const int64_t size = int64_t{extent[0]} * extent[1] * extent[2];
    start = last ? position.image * size * channels + position.channel
                 : (position.image * channels + position.channel) * size;
    step = last ? channels : 1;
  }
  __device__ int index(int d, int h, int w) const { return (d * extent1 + h) * extent2 + w; }
  __device__ int64_t offset(int index) const { return start + int64_t{index} * step; }
};

// The part of a window that is inside the data, and how many elements a mean divides by.
struct Window {
  int begin[3], end[3];
  int divisor = 1;

  __host__ __device__ Window(const PoolWindows& w, const int (&at)[3]) {
    for (int axis = 0; axis < 3; ++axis) {
      const int start = at[axis] * w.stride[axis] - w.pad[axis];
      const int stop = min(start + w.kernel[axis], w.in[axis] + w.pad[axis]);
      begin[axis] = max(start, 0);
      end[axis] = min(stop, w.in[axis]);
      divisor *= w.count_padding ? stop - start : end[axis] - begin[axis];
    }
  }
};

// The only window, if it has all elements of the data.
inline std::optional<Window> whole_window(const PoolWindows& w) {
  const Window window(w, {0, 0, 0});
  for (int axis = 0; axis < 3; ++axis)
    if (w.out[axis] != 1 || window.end[axis] < w.in[axis]) return std::nullopt;
  return window;
}

// The windows that contain a position of the data, along each axis.
struct Covering {
  int begin[3], end[3];

  __device__ Covering(const PoolWindows& w, const int (&at)[3]) {
    for (int axis = 0; axis < 3; ++axis) {
      const int reach = at[axis] + w.pad[axis];
      const int before = reach - w.kernel[axis] + 1;
      begin[axis] = before <= 0 ? 0 : (before + w.stride[axis] - 1) / w.stride[axis];
      end[axis] = min(reach / w.stride[axis] + 1, w.out[axis]);
    }
  }
};

// at_once: how many neighbours may be read before the first is used.
template <int at_once = 1, class Visit>
__device__ void each_in(const int (&begin)[3], const int (&end)[3], Visit visit) {
  for (int d = begin[0]; d < end[0]; ++d)
    for (int h = begin[1]; h < end[1]; ++h) {
#pragma unroll at_once
      for (int w = begin[2]; w < end[2]; ++w) visit(d, h, w);
    }
}

template <class T, int width>
__device__ Pack<T, width> read(const T* array, int64_t offset) {
  return *reinterpret_cast<const Pack<T, width>*>(array + offset);
}

}  // namespace symbind::cuda_backend
