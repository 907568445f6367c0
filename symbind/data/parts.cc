#include "symbind/core/part_sources.h"
#include "symbind/data/codec.h"

namespace symbind {

std::vector<Part> image_parts() { return {jpeg_part(), png_part()}; }

}  // namespace symbind
