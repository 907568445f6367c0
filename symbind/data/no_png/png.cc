#include "symbind/core/error.h"
#include "symbind/data/codec.h"

namespace symbind {
namespace {

constexpr const char* remedy = "built without libpng. Install it (Debian: libpng-dev) and build again.";

[[noreturn]] void fail_without_png() { fail("PNG images are not available: ", remedy); }

}  // namespace

ImageSize decode_png(std::string_view, Channels, const AllocatePixels&) { fail_without_png(); }
std::string encode_png(PixelView, int) { fail_without_png(); }
Part png_part() { return {"PNG images", false, remedy}; }

}  // namespace symbind
