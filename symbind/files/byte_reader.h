// Binary data read from front to back, little-endian: a file, or bytes in memory. Every failure names the file, the
// offset, what was expected there and what was found; nothing is read beyond the end, so a size found in the data can
// be checked against remaining() before memory is allocated.
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
  // Bytes that outlive the reader, and start at an offset of `source`.
  ByteReader(std::string_view bytes, std::string_view source, uint64_t begin = 0)
      : source_(source), memory_(bytes.data()), begin_(begin), end_(begin + bytes.size()), offset_(begin) {}

  const std::string& source() const { return source_; }
  uint64_t offset() const { return offset_; }
  uint64_t remaining() const { return end_ - offset_; }

  // `what` is named when the data end before it: "the number of arrays".
  void read(void* data, uint64_t bytes, std::string_view what);
  template <class T>
  T read(std::string_view what) {
    static_assert(std::is_trivially_copyable_v<T>);
    T value;
    read(&value, sizeof(T), what);
    return value;
  }

  // Skips bytes, which must exist.
  void skip(uint64_t bytes);

  // A few bytes can expand to many (a sparse array). False if the bytes unpacked from this data so far, plus `bytes`,
  // exceed a plausible size: 1 GiB, or a thousand times its own size.
  bool may_unpack(uint64_t bytes);

  // "[weights.params] at offset 24 expected …: found …"
  template <class... Found>
  [[noreturn]] void fail_at(uint64_t offset, std::string_view expected, const Found&... found) const {
    fail("[", source_, "] at offset ", offset, " expected ", expected, ": found ", found...);
  }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::string source_;
  std::unique_ptr<std::FILE, Close> file_;
  const char* memory_ = nullptr;
  uint64_t begin_ = 0, end_ = 0, offset_ = 0;
  uint64_t unpacked_ = 0;
};

}  // namespace symbind
