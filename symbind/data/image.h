// Images as arrays of shape (height, width, channels): decoding, encoding, resizing, padding. `mx.image` in Python is
// built on these functions. All run on the CPU and may be called from any thread.
#pragma once

#include <string>
#include <string_view>

#include "symbind/core/ndarray.h"

namespace SYMBIND_API symbind {

struct DecodeOptions {
  int flag = 1;        // 1: three channels, 0: one (grey), -1: as many as the image has
  bool to_rgb = true;  // red first; otherwise blue first, as in OpenCV
};

// JPEG or PNG, as uint8. Fails on anything else, and on truncated images.
NDArray imdecode(std::string_view bytes, DecodeOptions options = {});
NDArray imread(const std::string& path, DecodeOptions options = {});
// `format` is ".jpg", ".jpeg" or ".png"; `quality` is JPEG's (0 … 100) or PNG's compression (0 … 9). `rgb`: red is the
// first channel.
std::string imencode(const NDArray& image, std::string_view format = ".jpg", int quality = 95, bool rgb = true);

// Arrays of uint8 and float32. `interp` is MXNet's number: 0 nearest, 1 bilinear, 2 cubic, 3 area, 4 Lanczos, 9 chosen
// by the sizes.
NDArray imresize(const NDArray& image, int64_t width, int64_t height, int interp = 1);
// The window whose upper left corner is column x0, row y0.
NDArray imcrop(const NDArray& image, int64_t x0, int64_t y0, int64_t width, int64_t height);
NDArray imflip(const NDArray& image);  // mirrored left to right

// How pixels outside the image are filled.
enum class Border { constant = 0, replicate = 1, reflect = 2, wrap = 3, reflect_101 = 4 };
NDArray copy_make_border(const NDArray& image, int64_t top, int64_t bottom, int64_t left, int64_t right,
                         Border border = Border::constant, const std::vector<double>& values = {0});

}  // namespace symbind
