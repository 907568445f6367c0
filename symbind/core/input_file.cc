#include "symbind/core/input_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include <sys/stat.h>

#include "symbind/core/error_kinds.h"

namespace symbind {

void check_path(const std::string& path) {
  require(path.find('\0') == std::string::npos, "[", path, "] a path cannot contain a NUL byte");
}

uint64_t size_of_input(const std::string& path) {
  check_path(path);
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    const int reason = errno;
    const std::string message = join("[", path, "] cannot read this file: ", std::strerror(reason));
    require_as<FileNotFoundError>(reason != ENOENT, message);
    fail(message);
  }
  require(S_ISREG(status.st_mode), "[", path, "] cannot read this file: it is ",
          S_ISDIR(status.st_mode) ? "a directory, " : "", "not a regular file");
  return static_cast<uint64_t>(status.st_size);
}

std::string read_whole_file(const std::string& path) {
  std::string bytes(size_of_input(path), '\0');
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), &std::fclose);
  require(file != nullptr, "[", path, "] cannot read this file: ", std::strerror(errno));
  const size_t got = std::fread(bytes.data(), 1, bytes.size(), file.get());
  require(got == bytes.size(), "[", path, "] cannot read this file: ",
          std::ferror(file.get()) ? std::strerror(errno) : "it became shorter while it was read");
  return bytes;
}

}  // namespace symbind
