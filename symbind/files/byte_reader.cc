#include "symbind/files/byte_reader.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "symbind/core/input_file.h"

namespace symbind {

static_assert(std::endian::native == std::endian::little, "files are read as the machine's own little-endian numbers");

ByteReader::ByteReader(const std::string& path) : source_(path) {
  end_ = size_of_input(path);
  file_.reset(std::fopen(path.c_str(), "rb"));
  require(file_ != nullptr, "[", path, "] cannot read this file: ", std::strerror(errno));
}

void ByteReader::read(void* data, uint64_t bytes, std::string_view what) {
  if (bytes > remaining()) fail_at(offset_, join(what, " (", bytes, " bytes)"), "the end of the file at ", end_);
  if (bytes == 0) return;
  if (!file_) {
    std::memcpy(data, memory_ + (offset_ - begin_), bytes);
    offset_ += bytes;
    return;
  }
  const size_t got = std::fread(data, 1, bytes, file_.get());
  // The length was checked: the file shrank meanwhile, or the disk failed.
  if (got != bytes)
    fail_at(offset_ + got, what, std::ferror(file_.get()) ? std::strerror(errno) : "the end of the file");
  offset_ += bytes;
}

void ByteReader::skip(uint64_t bytes) {
  if (bytes > remaining()) fail_at(offset_, join(bytes, " bytes"), "the end of the file at ", end_);
  offset_ += bytes;
  if (file_ && ::fseeko(file_.get(), static_cast<off_t>(offset_), SEEK_SET) != 0)
    fail_at(offset_, "a file that can be read at any offset", std::strerror(errno));
}

bool ByteReader::may_unpack(uint64_t bytes) {
  const uint64_t most = std::max(uint64_t{1} << 30, (end_ - begin_) * 1024);
  if (bytes > most - unpacked_) return false;
  unpacked_ += bytes;
  return true;
}

}  // namespace symbind
