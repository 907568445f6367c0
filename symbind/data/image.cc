#include "symbind/data/image.h"

#include <algorithm>
#include <cstring>

#include "symbind/core/error.h"
#include "symbind/core/input_file.h"
#include "symbind/data/codec.h"
#include "symbind/image/resize.h"

namespace symbind {
namespace {

constexpr int64_t longest_side = int64_t{1} << 20;

void check_image(const NDArray& image, std::string_view who) {
  require(static_cast<bool>(image) && image.shape().rank() == 3 && image.shape().size() > 0, "[", who,
          "] an image is an array of shape (height, width, channels): ",
          image ? join(image.shape()) : std::string("no array"));
  require(!image.context().is_gpu(), "[", who, "] images are on the CPU: ", image.context());
}

template <class Element>
BasicPixelView<const Element> view_of(const NDArray& image) {
  const Shape& shape = image.shape();
  return {static_cast<const Element*>(image.data()), shape[0], shape[1], shape[2], shape[1] * shape[2]};
}
template <class Element>
BasicPixelView<Element> mutable_view_of(const NDArray& image) {
  const Shape& shape = image.shape();
  return {static_cast<Element*>(image.mutable_data()), shape[0], shape[1], shape[2], shape[1] * shape[2]};
}

void swap_red_and_blue(uint8_t* pixels, int64_t count, int64_t channels) {
  if (channels < 3) return;
  for (int64_t i = 0; i < count; ++i, pixels += channels) std::swap(pixels[0], pixels[2]);
}

template <class Element>
NDArray resized(const NDArray& image, int64_t width, int64_t height, int method) {
  NDArray result({height, width, image.shape()[2]}, cpu(), image.dtype());
  resize<Element>(view_of<Element>(image), mutable_view_of<Element>(result), method);
  return result;
}

// The source of position `at` in 0 … size - 1; -1: none.
int64_t border_source(int64_t at, int64_t size, Border border) {
  if (at >= 0 && at < size) return at;
  switch (border) {
    case Border::constant:
      return -1;
    case Border::replicate:
      return std::clamp<int64_t>(at, 0, size - 1);
    case Border::wrap:
      return (at % size + size) % size;
    default: {
      if (size == 1) return 0;
      const int64_t skip = border == Border::reflect_101 ? 1 : 0;  // the outermost pixel is not repeated
      const int64_t period = 2 * (size - skip);
      const int64_t in_period = (at % period + period) % period;
      return in_period < size ? in_period : period - 1 - in_period + skip;
    }
  }
}

template <class Element>
void fill_bordered(BasicPixelView<const Element> from, int64_t top, int64_t left, Border border,
                   const std::vector<double>& values, BasicPixelView<Element> to) {
  for (int64_t y = 0; y < to.height; ++y)
    for (int64_t x = 0; x < to.width; ++x) {
      const int64_t row = border_source(y - top, from.height, border);
      const int64_t column = border_source(x - left, from.width, border);
      for (int64_t c = 0; c < to.channels; ++c)
        to.row(y)[x * to.channels + c] =
            row >= 0 && column >= 0
                ? from.row(row)[column * to.channels + c]
                : static_cast<Element>(values[std::min<size_t>(static_cast<size_t>(c), values.size() - 1)]);
    }
}

}  // namespace

NDArray imdecode(std::string_view bytes, DecodeOptions options) {
  require(options.flag >= -1 && options.flag <= 1,
          "[imdecode] flag must be 1 (color), 0 (grey) or -1 (as it is): ", options.flag);
  const int channels = options.flag == 1 ? 3 : options.flag == 0 ? 1 : 0;
  NDArray image;
  uint8_t* pixels = nullptr;
  const ImageSize size = decode_image(bytes, channels, [&](int64_t height, int64_t width, int64_t depth) {
    image = NDArray({height, width, depth}, cpu(), DType::uint8);
    return pixels = static_cast<uint8_t*>(image.mutable_data());
  });
  if (!options.to_rgb) swap_red_and_blue(pixels, size.height * size.width, size.channels);
  return image;
}

NDArray imread(const std::string& path, DecodeOptions options) {
  const std::string bytes = read_whole_file(path);
  try {
    return imdecode(bytes, options);
  } catch (const Error& error) {
    fail("[", path, "] ", error.what());
  }
}

std::string imencode(const NDArray& image, std::string_view format, int quality, bool rgb) {
  check_image(image, "imencode");
  require(image.dtype() == DType::uint8, "[imencode] images are written from uint8: ", image.dtype());
  PixelView view = view_of<uint8_t>(image);
  Pixels swapped;
  if (!rgb && view.channels >= 3) {
    swapped.resize(view.height, view.width, view.channels);
    std::memcpy(swapped.data(), view.data, swapped.bytes());
    swap_red_and_blue(swapped.data(), view.height * view.width, view.channels);
    view = swapped.view();
  }
  return encode_image(view, format, quality);
}

NDArray imresize(const NDArray& image, int64_t width, int64_t height, int interp) {
  check_image(image, "imresize");
  require(width >= 1 && height >= 1 && width <= longest_side && height <= longest_side,
          "[imresize] width and height must be between 1 and ", longest_side, ": ", width, " x ", height);
  const int method = interpolation_for(interp, image.shape()[0], image.shape()[1], height, width, "imresize");
  if (image.dtype() == DType::uint8) return resized<uint8_t>(image, width, height, method);
  require(image.dtype() == DType::float32, "[imresize] images are of uint8 or float32: ", image.dtype());
  return resized<float>(image, width, height, method);
}

NDArray imcrop(const NDArray& image, int64_t x0, int64_t y0, int64_t width, int64_t height) {
  check_image(image, "imcrop");
  const Shape& shape = image.shape();
  require(x0 >= 0 && y0 >= 0 && width >= 1 && height >= 1 && width <= shape[1] - x0 && height <= shape[0] - y0,
          "[imcrop] the window must be inside the image, ", shape[1], " x ", shape[0], ": ", width, " x ", height,
          " from (", x0, ", ", y0, ")");
  NDArray result({height, width, shape[2]}, cpu(), image.dtype());
  const size_t pixel = static_cast<size_t>(shape[2]) * size_of(image.dtype());
  const auto* from = static_cast<const char*>(image.data());
  auto* to = static_cast<char*>(result.mutable_data());
  const size_t bytes = static_cast<size_t>(width) * pixel;
  for (int64_t y = 0; y < height; ++y)
    std::memcpy(to + static_cast<size_t>(y) * bytes, from + static_cast<size_t>((y0 + y) * shape[1] + x0) * pixel,
                bytes);
  return result;
}

NDArray imflip(const NDArray& image) {
  check_image(image, "imflip");
  const Shape& shape = image.shape();
  NDArray result(shape, cpu(), image.dtype());
  const size_t pixel = static_cast<size_t>(shape[2]) * size_of(image.dtype());
  const auto* from = static_cast<const char*>(image.data());
  auto* to = static_cast<char*>(result.mutable_data());
  for (int64_t y = 0; y < shape[0]; ++y)
    for (int64_t x = 0; x < shape[1]; ++x, to += pixel)
      std::memcpy(to, from + static_cast<size_t>((y + 1) * shape[1] - 1 - x) * pixel, pixel);
  return result;
}

NDArray copy_make_border(const NDArray& image, int64_t top, int64_t bottom, int64_t left, int64_t right, Border border,
                         const std::vector<double>& values) {
  check_image(image, "copyMakeBorder");
  for (const int64_t side : {top, bottom, left, right})
    require(side >= 0 && side <= longest_side, "[copyMakeBorder] a border has between 0 and ", longest_side,
            " pixels: ", side);
  require(border >= Border::constant && border <= Border::reflect_101,
          "[copyMakeBorder] type must be 0 (constant), 1 (replicate), 2 (reflect), 3 (wrap) or 4 (reflect_101): ",
          static_cast<int>(border));
  require(!values.empty(), "[copyMakeBorder] needs a value for the border");
  const Shape& shape = image.shape();
  NDArray result({top + shape[0] + bottom, left + shape[1] + right, shape[2]}, cpu(), image.dtype());
  if (image.dtype() == DType::uint8) {
    fill_bordered<uint8_t>(view_of<uint8_t>(image), top, left, border, values, mutable_view_of<uint8_t>(result));
  } else {
    require(image.dtype() == DType::float32, "[copyMakeBorder] images are of uint8 or float32: ", image.dtype());
    fill_bordered<float>(view_of<float>(image), top, left, border, values, mutable_view_of<float>(result));
  }
  return result;
}

}  // namespace symbind
