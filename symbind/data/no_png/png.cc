#include "symbind/core/error.h"
#include "symbind/data/codec.h"

namespace symbind {
namespace {

[[noreturn]] void fail_without_png() {
  fail("PNG images are not available: built without libpng. Install it (Debian: libpng-dev) and build again.");
}

}  // namespace

ImageSize decode_png(std::string_view, Channels, const AllocatePixels&) { fail_without_png(); }
std::string encode_png(PixelView, int) { fail_without_png(); }

}  // namespace symbind
