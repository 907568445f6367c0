#include "symbind/files/byte_reader.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <filesystem>

namespace symbind {

static_assert(std::endian::native == std::endian::little, "files are read as the machine's own little-endian numbers");

ByteReader::ByteReader(const std::string& path) : source_(path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  require(std::filesystem::exists(status), "[", path, "] cannot read this file: ", std::strerror(ENOENT));
  require(std::filesystem::is_regular_file(status), "[", path, "] cannot read this file: it is not a regular file");
  file_.reset(std::fopen(path.c_str(), "rb"));
  require(file_ != nullptr, "[", path, "] cannot read this file: ", std::strerror(errno));
  end_ = std::filesystem::file_size(path, error);
  require(!error, "[", path, "] cannot read this file: ", error.message());
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

bool ByteReader::may_unpack(uint64_t bytes) {
  const uint64_t most = std::max(uint64_t{1} << 30, (end_ - begin_) * 1024);
  if (bytes > most - unpacked_) return false;
  unpacked_ += bytes;
  return true;
}

}  // namespace symbind
