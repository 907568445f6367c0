// CRC-32 over bytes that come in pieces.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace symbind {

class Checksum {
 public:
  Checksum& add(const void* data, size_t bytes);
  Checksum& add(std::string_view bytes) { return add(bytes.data(), bytes.size()); }
  uint32_t value() const { return value_; }

 private:
  uint32_t value_ = 0;
};

}  // namespace symbind
