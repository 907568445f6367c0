// A binary file read from front to back, little-endian. Every failure names the file, the offset, what was expected
// there and what was found; nothing is read beyond the file's length, so a size found in a file can be checked against
// remaining() before memory is taken for it.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>

#include "symbind/core/error.h"

namespace symbind {

class ByteReader {
 public:
  explicit ByteReader(const std::string& path);

  uint64_t offset() const { return offset_; }
  uint64_t remaining() const { return size_ - offset_; }

  // `what` is named when the file ends before it: "the number of arrays".
  void read(void* data, uint64_t bytes, std::string_view what);
  template <class T>
  T read(std::string_view what) {
    static_assert(std::is_trivially_copyable_v<T>);
    T value;
    read(&value, sizeof(T), what);
    return value;
  }

  // "[weights.params] at offset 24 expected …: found …"
  template <class... Found>
  [[noreturn]] void fail_at(uint64_t offset, std::string_view expected, const Found&... found) const {
    fail("[", path_, "] at offset ", offset, " expected ", expected, ": found ", found...);
  }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
  uint64_t size_ = 0;
  uint64_t offset_ = 0;
};

}  // namespace symbind
