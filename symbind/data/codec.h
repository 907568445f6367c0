// JPEG and PNG. Each is a folder (jpeg/, png/) around its library, or a folder of stubs (no_jpeg/, no_png/): one of
// both is linked.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "symbind/core/parts.h"
#include "symbind/image/pixels.h"

namespace symbind {

// The channels to decode to: 1: grey, 3: red, green, blue; 4: and alpha (PNG alone); 0: as many channels as the image
// has.
using Channels = int;

// Returns memory for an image of this size, rows without gaps, and is called before anything is decoded into it. May
// throw, when the image is too large for its caller.
using AllocatePixels = std::function<uint8_t*(int64_t height, int64_t width, int64_t channels)>;

struct ImageSize {
  int64_t height = 0, width = 0, channels = 0;
};

// Fail on bytes that are not a whole image of the format; a JPEG whose data end early is not whole. May be called from
// any thread.
ImageSize decode_jpeg(std::string_view bytes, Channels channels, const AllocatePixels& allocate);
ImageSize decode_png(std::string_view bytes, Channels channels, const AllocatePixels& allocate);
std::string encode_jpeg(PixelView image, int quality);     // 1 … 100; 1 or 3 channels
std::string encode_png(PixelView image, int compression);  // 0 … 9; 1, 3 or 4 channels
Part jpeg_part();
Part png_part();

// By the first bytes.
bool is_jpeg(std::string_view bytes);
bool is_png(std::string_view bytes);
// Detects the format. Fails on any other, with the first bytes in the message.
ImageSize decode_image(std::string_view bytes, Channels channels, const AllocatePixels& allocate);
void decode_image(std::string_view bytes, Channels channels, Pixels& into);
// By the format's name: ".jpg", ".jpeg" or ".png". `quality` as above, of the format.
std::string encode_image(PixelView image, std::string_view format, int quality);

}  // namespace symbind
