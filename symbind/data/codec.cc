#include "symbind/data/codec.h"

#include "symbind/core/error.h"
#include "symbind/core/text.h"

namespace symbind {

bool is_jpeg(std::string_view bytes) { return bytes.starts_with("\xff\xd8"); }
bool is_png(std::string_view bytes) { return bytes.starts_with("\x89PNG\r\n\x1a\n"); }

ImageSize decode_image(std::string_view bytes, Channels channels, const AllocatePixels& allocate) {
  require(!bytes.empty(), "an image cannot be decoded from no bytes at all");
  if (is_jpeg(bytes)) return decode_jpeg(bytes, channels, allocate);
  if (is_png(bytes)) return decode_png(bytes, channels, allocate);
  fail("an image must be JPEG or PNG: these ", bytes.size(), " bytes begin with '", bytes.substr(0, 8), "'");
}

void decode_image(std::string_view bytes, Channels channels, Pixels& into) {
  decode_image(bytes, channels, [&](int64_t height, int64_t width, int64_t depth) {
    into.resize(height, width, depth);
    return into.data();
  });
}

std::string encode_image(PixelView image, std::string_view format, int quality) {
  const std::string lower = lower_case(format);
  if (lower == ".jpg" || lower == ".jpeg") return encode_jpeg(image, quality);
  if (lower == ".png") return encode_png(image, quality);
  fail("an image is encoded as .jpg, .jpeg or .png, not as '", format, "'");
}

}  // namespace symbind
