// Where the list of parts comes from. Each function is supplied when linking, by the folder that has the part or by its
// stubs.
#pragma once

#include <vector>

#include "symbind/core/parts.h"

namespace symbind {

std::vector<Part> cpu_parts();    // backend/cpu
Part onednn_part();               // backend/onednn
std::vector<Part> gpu_parts();    // backend/cuda
std::vector<Part> image_parts();  // data
std::vector<Part> store_parts();  // kvstore

}  // namespace symbind
