#include "symbind/core/part_sources.h"

namespace symbind {

std::vector<Part> gpu_parts() { return {{"CUDA", false, "Symbind was built without CUDA"}}; }

}  // namespace symbind
