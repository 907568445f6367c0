#include "symbind/files/checksum.h"

#include <zlib.h>

namespace symbind {

Checksum& Checksum::add(const void* data, size_t bytes) {
  value_ = static_cast<uint32_t>(crc32_z(value_, static_cast<const Bytef*>(data), bytes));
  return *this;
}

}  // namespace symbind
