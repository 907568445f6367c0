// Images in decoders and iterators: bytes, row by row, with interleaved channels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace symbind {

template <class Element>
struct BasicPixelView {
  Element* data = nullptr;
  int64_t height = 0, width = 0, channels = 0;
  int64_t stride = 0;  // elements from one row to the next

  Element* row(int64_t y) const { return data + y * stride; }
  BasicPixelView window(int64_t y, int64_t x, int64_t window_height, int64_t window_width) const {
    return {row(y) + x * channels, window_height, window_width, channels, stride};
  }
};
using PixelView = BasicPixelView<const uint8_t>;

// An image that owns its memory, which is reused if the next one is not larger. Its values are initially undefined.
class Pixels {
 public:
  void resize(int64_t height, int64_t width, int64_t channels) {
    const auto bytes = static_cast<size_t>(height * width * channels);
    if (bytes > capacity_) {
      data_.reset(new uint8_t[bytes]);
      capacity_ = bytes;
    }
    height_ = height;
    width_ = width;
    channels_ = channels;
  }

  int64_t height() const { return height_; }
  int64_t width() const { return width_; }
  int64_t channels() const { return channels_; }
  size_t bytes() const { return static_cast<size_t>(height_ * width_ * channels_); }
  uint8_t* data() { return data_.get(); }
  const uint8_t* data() const { return data_.get(); }
  uint8_t* row(int64_t y) { return data_.get() + y * width_ * channels_; }
  PixelView view() const { return {data_.get(), height_, width_, channels_, width_ * channels_}; }

 private:
  std::unique_ptr<uint8_t[]> data_;
  size_t capacity_ = 0;
  int64_t height_ = 0, width_ = 0, channels_ = 0;
};

}  // namespace symbind
