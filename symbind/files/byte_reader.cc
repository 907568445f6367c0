#include "symbind/files/byte_reader.h"

#include <bit>
#include <cerrno>
#include <cstring>
#include <filesystem>

namespace symbind {

static_assert(std::endian::native == std::endian::little, "files are read as the machine's own little-endian numbers");

ByteReader::ByteReader(const std::string& path) : path_(path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  require(std::filesystem::exists(status), "[", path, "] cannot read this file: ", std::strerror(ENOENT));
  require(std::filesystem::is_regular_file(status), "[", path, "] cannot read this file: it is not a regular file");
  file_.reset(std::fopen(path.c_str(), "rb"));
  require(file_ != nullptr, "[", path, "] cannot read this file: ", std::strerror(errno));
  size_ = std::filesystem::file_size(path, error);
  require(!error, "[", path, "] cannot read this file: ", error.message());
}

void ByteReader::read(void* data, uint64_t bytes, std::string_view what) {
  if (bytes > remaining()) fail_at(offset_, join(what, " (", bytes, " bytes)"), "the end of the file at ", size_);
  if (bytes == 0) return;
  const size_t got = std::fread(data, 1, bytes, file_.get());
  // The length was checked: the file shrank meanwhile, or the disk failed.
  if (got != bytes)
    fail_at(offset_ + got, what, std::ferror(file_.get()) ? std::strerror(errno) : "the end of the file");
  offset_ += bytes;
}

}  // namespace symbind
