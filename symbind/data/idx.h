// The idx format, in which MNIST and data sets modelled on it are published: one array of bytes per file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "symbind/core/shape.h"

namespace SYMBIND_API symbind {

struct IdxArray {
  Shape shape;
  std::vector<uint8_t> values;  // row-major
};

// Plain or gzipped, detected by content. Fails with the file's name, the offset (in the unpacked data) and what was
// expected there.
IdxArray read_idx(const std::string& path);

}  // namespace symbind
