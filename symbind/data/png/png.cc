// PNG by libpng. The library reports errors by a function that may not return: it jumps back to the frame that called
// the library, in which nothing has a destructor.
#include <algorithm>
#include <csetjmp>
#include <cstring>
#include <vector>

#include <png.h>

#include "symbind/core/error.h"
#include "symbind/data/codec.h"

namespace symbind {
namespace {

constexpr int64_t most_pixels = int64_t{1} << 30;

struct ErrorState {
  std::jmp_buf back;
  char message[128] = "";
};

[[noreturn]] void jump_back(png_structp png, png_const_charp message) {
  auto& state = *static_cast<ErrorState*>(png_get_error_ptr(png));
  std::strncpy(state.message, message, sizeof state.message - 1);
  std::longjmp(state.back, 1);
}
void ignore_warning(png_structp, png_const_charp) {}

struct Source {
  std::string_view rest;
};

void read_bytes(png_structp png, png_bytep to, size_t count) {
  auto& rest = static_cast<Source*>(png_get_io_ptr(png))->rest;
  if (count > rest.size()) png_error(png, "the data end early: it is truncated");
  std::memcpy(to, rest.data(), count);
  rest.remove_prefix(count);
}

struct Decoder {
  Decoder() : png(png_create_read_struct(PNG_LIBPNG_VER_STRING, &errors, jump_back, ignore_warning)) {
    require(png != nullptr, "libpng could not be initialized");
    info = png_create_info_struct(png);
  }
  ~Decoder() { png_destroy_read_struct(&png, &info, nullptr); }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  ErrorState errors;
  png_structp png = nullptr;
  png_infop info = nullptr;
};

// Reads the header and sets the output format; false after an error.
bool read_head(Decoder& decoder, Source& source, Channels channels) {
  if (setjmp(decoder.errors.back) != 0) return false;
  png_structp png = decoder.png;
  png_set_read_fn(png, &source, read_bytes);
  png_set_user_limits(png, 1 << 20, 1 << 20);
  png_read_info(png, decoder.info);
  const int type = png_get_color_type(png, decoder.info);
  png_set_strip_16(png);
  png_set_packing(png);
  if (type == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png);
  if (type == PNG_COLOR_TYPE_GRAY) png_set_expand_gray_1_2_4_to_8(png);
  const bool color = (type & PNG_COLOR_MASK_COLOR) != 0;
  const bool alpha = (type & PNG_COLOR_MASK_ALPHA) != 0 || png_get_valid(png, decoder.info, PNG_INFO_tRNS) != 0;
  const int wanted = channels != 0 ? channels : alpha ? 4 : color ? 3 : 1;
  if (wanted == 4) {
    png_set_tRNS_to_alpha(png);
    if (!alpha) png_set_add_alpha(png, 255, PNG_FILLER_AFTER);
  } else {
    png_set_strip_alpha(png);
  }
  if (wanted >= 3 && !color) png_set_gray_to_rgb(png);
  if (wanted == 1 && color) png_set_rgb_to_gray_fixed(png, PNG_ERROR_ACTION_NONE, 29900, 58700);
  png_set_interlace_handling(png);
  png_read_update_info(png, decoder.info);
  return true;
}

bool read_rows(Decoder& decoder, png_bytepp rows) {
  if (setjmp(decoder.errors.back) != 0) return false;
  png_read_image(decoder.png, rows);
  png_read_end(decoder.png, nullptr);
  return true;
}

struct Encoder {
  Encoder() : png(png_create_write_struct(PNG_LIBPNG_VER_STRING, &errors, jump_back, ignore_warning)) {
    require(png != nullptr, "libpng could not be initialized");
    info = png_create_info_struct(png);
  }
  ~Encoder() { png_destroy_write_struct(&png, &info); }
  Encoder(const Encoder&) = delete;
  Encoder& operator=(const Encoder&) = delete;

  ErrorState errors;
  png_structp png = nullptr;
  png_infop info = nullptr;
};

void append_bytes(png_structp png, png_bytep from, size_t count) {
  static_cast<std::string*>(png_get_io_ptr(png))->append(reinterpret_cast<const char*>(from), count);
}
void flush_nothing(png_structp) {}

bool write_image(Encoder& encoder, PixelView image, int compression, std::string& bytes) {
  if (setjmp(encoder.errors.back) != 0) return false;
  png_set_write_fn(encoder.png, &bytes, append_bytes, flush_nothing);
  const int type = image.channels == 1   ? PNG_COLOR_TYPE_GRAY
                   : image.channels == 3 ? PNG_COLOR_TYPE_RGB
                                         : PNG_COLOR_TYPE_RGB_ALPHA;
  png_set_IHDR(encoder.png, encoder.info, static_cast<png_uint_32>(image.width), static_cast<png_uint_32>(image.height),
               8, type, PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_set_compression_level(encoder.png, compression);
  png_write_info(encoder.png, encoder.info);
  for (int64_t y = 0; y < image.height; ++y) png_write_row(encoder.png, image.row(y));
  png_write_end(encoder.png, encoder.info);
  return true;
}

}  // namespace

ImageSize decode_png(std::string_view bytes, Channels channels, const AllocatePixels& allocate) {
  Source source{bytes};
  Decoder decoder;
  require(read_head(decoder, source, channels), "this PNG cannot be decoded: ", decoder.errors.message);
  const ImageSize size{png_get_image_height(decoder.png, decoder.info), png_get_image_width(decoder.png, decoder.info),
                       png_get_channels(decoder.png, decoder.info)};
  // Deflate compresses by at most 1032:1: no memory is allocated for an image that these bytes cannot hold.
  const int64_t packed = int64_t{1032} * 8 * static_cast<int64_t>(bytes.size());
  require(size.height * size.width <= std::min(most_pixels, packed), "this PNG promises ", size.height, " x ",
          size.width, " pixels, more than its ", bytes.size(), " bytes could hold, or than are decoded");
  uint8_t* const to = allocate(size.height, size.width, size.channels);
  std::vector<png_bytep> rows(static_cast<size_t>(size.height));
  for (size_t y = 0; y < rows.size(); ++y) rows[y] = to + y * static_cast<size_t>(size.width * size.channels);
  require(read_rows(decoder, rows.data()), "this PNG cannot be decoded: ", decoder.errors.message);
  return size;
}

std::string encode_png(PixelView image, int compression) {
  require(image.channels == 1 || image.channels == 3 || image.channels == 4,
          "a PNG has 1, 3 or 4 channels: ", image.channels);
  require(image.height >= 1 && image.width >= 1, "a PNG has at least one pixel: ", image.height, " x ", image.width);
  require(compression >= 0 && compression <= 9, "the compression of a PNG must be between 0 and 9: ", compression);
  std::string bytes;
  Encoder encoder;
  require(write_image(encoder, image, compression, bytes),
          "this image cannot be encoded as PNG: ", encoder.errors.message);
  return bytes;
}

Part png_part() { return {"PNG images", true, join("libpng ", png_get_libpng_ver(nullptr))}; }

}  // namespace symbind
