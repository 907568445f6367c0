#include "symbind/core/error.h"
#include "symbind/data/codec.h"

namespace symbind {
namespace {

constexpr const char* remedy = "built without libjpeg. Install it (Debian: libjpeg-dev) and build again.";

[[noreturn]] void fail_without_jpeg() { fail("JPEG images are not available: ", remedy); }

}  // namespace

ImageSize decode_jpeg(std::string_view, Channels, const AllocatePixels&) { fail_without_jpeg(); }
std::string encode_jpeg(PixelView, int) { fail_without_jpeg(); }
Part jpeg_part() { return {"JPEG images", false, remedy}; }

}  // namespace symbind
