// JPEG by libjpeg-turbo (or any libjpeg). The library reports errors by a function that may not return: it jumps back
// to the frame that called the library, in which nothing has a destructor.
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include <jerror.h>
#include <jpeglib.h>

#include "symbind/core/error.h"
#include "symbind/data/codec.h"

namespace symbind {
namespace {

constexpr int64_t most_pixels = int64_t{1} << 30;

struct ErrorState {
  jpeg_error_mgr manager;  // must be first: the library passes its address
  std::jmp_buf back;
  char message[JMSG_LENGTH_MAX];
  bool truncated = false;
};

ErrorState& state_of(j_common_ptr info) { return *reinterpret_cast<ErrorState*>(info->err); }

[[noreturn]] void jump_back(j_common_ptr info) {
  info->err->format_message(info, state_of(info).message);
  std::longjmp(state_of(info).back, 1);
}

// The library reports damaged data as warnings and continues with grey. Only truncated data is treated as an error:
// many images in use have some superfluous bytes.
void note_warning(j_common_ptr info, int level) {
  if (level < 0 && info->err->msg_code == JWRN_JPEG_EOF) state_of(info).truncated = true;
}

void set_up(ErrorState& state) {
  jpeg_std_error(&state.manager);
  state.manager.error_exit = jump_back;
  state.manager.emit_message = note_warning;
  state.manager.output_message = [](j_common_ptr) {};
}

struct Decoder {
  Decoder() {
    set_up(errors);
    info.err = &errors.manager;
  }
  ~Decoder() {
    if (created) jpeg_destroy_decompress(&info);
  }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  jpeg_decompress_struct info{};
  ErrorState errors{};
  bool created = false;
};

bool has_four_colors(const jpeg_decompress_struct& info) {
  return info.jpeg_color_space == JCS_CMYK || info.jpeg_color_space == JCS_YCCK;
}

// Reads the header and sets the output format; false after an error.
bool read_head(Decoder& decoder, std::string_view bytes, Channels channels) {
  if (setjmp(decoder.errors.back) != 0) return false;
  jpeg_decompress_struct& info = decoder.info;
  jpeg_create_decompress(&info);
  decoder.created = true;
  // Older versions of the library take a non-const pointer, but only read.
  jpeg_mem_src(&info, const_cast<unsigned char*>(reinterpret_cast<const unsigned char*>(bytes.data())),
               static_cast<unsigned long>(bytes.size()));
  jpeg_read_header(&info, TRUE);
  const bool grey = channels == 1 || (channels == 0 && info.jpeg_color_space == JCS_GRAYSCALE);
  info.out_color_space = has_four_colors(info) ? JCS_CMYK : grey ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_calc_output_dimensions(&info);
  return true;
}

// `rows` of `stride` bytes; false after an error.
bool read_rows(Decoder& decoder, uint8_t* rows, size_t stride) {
  if (setjmp(decoder.errors.back) != 0) return false;
  jpeg_decompress_struct& info = decoder.info;
  jpeg_start_decompress(&info);
  while (info.output_scanline < info.output_height) {
    JSAMPROW lines[8];
    for (JDIMENSION i = 0; i < 8; ++i) lines[i] = rows + stride * (info.output_scanline + i);
    jpeg_read_scanlines(&info, lines, 8);
  }
  jpeg_finish_decompress(&info);
  return true;
}

// Adobe's files store inverted values. Combines a colour and the black channel into one byte.
uint8_t ink(uint8_t color, uint8_t black) { return static_cast<uint8_t>((color * black + 127) / 255); }

void convert_four_colors(const uint8_t* from, bool inverted, int64_t pixels, int64_t channels, uint8_t* to) {
  for (int64_t i = 0; i < pixels; ++i, from += 4, to += channels) {
    uint8_t cmyk[4];
    for (int c = 0; c < 4; ++c) cmyk[c] = inverted ? from[c] : static_cast<uint8_t>(255 - from[c]);
    const uint8_t red = ink(cmyk[0], cmyk[3]), green = ink(cmyk[1], cmyk[3]), blue = ink(cmyk[2], cmyk[3]);
    if (channels == 1) {
      to[0] = static_cast<uint8_t>((red * 299 + green * 587 + blue * 114 + 500) / 1000);
    } else {
      to[0] = red;
      to[1] = green;
      to[2] = blue;
    }
  }
}

struct Encoder {
  Encoder() {
    set_up(errors);
    info.err = &errors.manager;
  }
  ~Encoder() {
    if (created) jpeg_destroy_compress(&info);
    std::free(bytes);
  }
  Encoder(const Encoder&) = delete;
  Encoder& operator=(const Encoder&) = delete;

  jpeg_compress_struct info{};
  ErrorState errors{};
  bool created = false;
  unsigned char* bytes = nullptr;
  unsigned long count = 0;
};

bool write_image(Encoder& encoder, PixelView image, int quality) {
  if (setjmp(encoder.errors.back) != 0) return false;
  jpeg_compress_struct& info = encoder.info;
  jpeg_create_compress(&info);
  encoder.created = true;
  jpeg_mem_dest(&info, &encoder.bytes, &encoder.count);
  info.image_height = static_cast<JDIMENSION>(image.height);
  info.image_width = static_cast<JDIMENSION>(image.width);
  info.input_components = static_cast<int>(image.channels);
  info.in_color_space = image.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, quality, TRUE);
  jpeg_start_compress(&info, TRUE);
  while (info.next_scanline < info.image_height) {
    auto* row = const_cast<uint8_t*>(image.row(info.next_scanline));
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  return true;
}

}  // namespace

ImageSize decode_jpeg(std::string_view bytes, Channels channels, const AllocatePixels& allocate) {
  Decoder decoder;
  const jpeg_decompress_struct& info = decoder.info;
  require(read_head(decoder, bytes, channels), "this JPEG cannot be decoded: ", decoder.errors.message);
  require(channels != 4, "a JPEG has no alpha channel: it cannot be decoded into 4 channels");
  const int64_t height = info.output_height, width = info.output_width;
  require(height * width <= most_pixels, "this JPEG has more pixels than are decoded: ", height, " x ", width);
  const bool four = has_four_colors(info);
  const ImageSize size{height, width, four ? (channels == 1 ? 1 : 3) : info.output_components};
  uint8_t* to = allocate(size.height, size.width, size.channels);
  std::unique_ptr<uint8_t[]> colors(four ? new uint8_t[static_cast<size_t>(height * width * 4)] : nullptr);
  uint8_t* const rows = four ? colors.get() : to;
  require(read_rows(decoder, rows, static_cast<size_t>(width) * (four ? 4 : static_cast<size_t>(size.channels))),
          "this JPEG cannot be decoded: ", decoder.errors.message);
  require(!decoder.errors.truncated, "this JPEG is truncated: its ", bytes.size(), " bytes end before the image does");
  if (four) convert_four_colors(rows, info.saw_Adobe_marker != 0, height * width, size.channels, to);
  return size;
}

std::string encode_jpeg(PixelView image, int quality) {
  require(image.channels == 1 || image.channels == 3, "a JPEG has 1 or 3 channels: ", image.channels);
  require(
      image.height >= 1 && image.width >= 1 && image.height <= JPEG_MAX_DIMENSION && image.width <= JPEG_MAX_DIMENSION,
      "a JPEG has between 1 and ", JPEG_MAX_DIMENSION, " rows and columns: ", image.height, " x ", image.width);
  require(quality >= 0 && quality <= 100, "the quality of a JPEG must be between 0 and 100: ", quality);
  Encoder encoder;
  require(write_image(encoder, image, quality), "this image cannot be encoded as JPEG: ", encoder.errors.message);
  return {reinterpret_cast<const char*>(encoder.bytes), encoder.count};
}

Part jpeg_part() { return {"JPEG images", true, join("libjpeg, interface ", JPEG_LIB_VERSION)}; }

}  // namespace symbind
