#include "symbind/core/atomic_file.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbind/core/error.h"

namespace symbind {
namespace {

constexpr size_t buffer_bytes = size_t{1} << 16;
constexpr int most_links = 40;                     // as many as the kernel follows
constexpr size_t largest_write = size_t{1} << 30;  // the kernel takes less than 2 GiB at a time

// Where links lead, to a file that is not there yet included.
std::string follow_links(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> resolved(::realpath(path.c_str(), nullptr), &std::free);
  if (resolved) return resolved.get();
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0) return path;  // a pipe behind /dev/stdout has no other name
  std::filesystem::path place = path;
  for (int links = 0; links < most_links; ++links) {
    std::error_code no_link;
    const std::filesystem::path next = std::filesystem::read_symlink(place, no_link);
    if (no_link) return place.string();
    place = place.parent_path() / next;
  }
  fail("[", path, "] cannot write this file: ", std::strerror(ELOOP));
}

// The name of a folder's entry reaches the disk only when the folder is synchronised too. File systems that cannot do
// that have no need of it.
void synchronize_folder_of(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  const int descriptor = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  ::fsync(descriptor);
  ::close(descriptor);
}

}  // namespace

AtomicFile::AtomicFile(const std::string& path) : path_(path), target_(follow_links(path)) {
  static std::atomic<unsigned> counter{0};
  struct stat old {};
  const bool exists = ::stat(target_.c_str(), &old) == 0;
  if (exists && S_ISDIR(old.st_mode)) fail_to("write", EISDIR);
  if (exists && !S_ISREG(old.st_mode)) {
    descriptor_ = ::open(target_.c_str(), O_WRONLY | O_CLOEXEC);
    if (descriptor_ < 0) fail_to("open", errno);
    return;
  }
  // A file its owner has protected is not replaced either, though its folder would allow it.
  if (exists && ::access(target_.c_str(), W_OK) != 0) fail_to("write", errno);
  do {
    temporary_ = join(target_, ".tmp.", ::getpid(), ".", counter++);
    descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  } while (descriptor_ < 0 && errno == EEXIST);
  if (descriptor_ < 0) {
    const int error = errno;
    temporary_.clear();
    fail_to("write", error);
  }
  if (exists) (void)!::fchmod(descriptor_, old.st_mode & 07777);
  buffer_.reserve(buffer_bytes);
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::write(const void* data, size_t bytes) {
  if (buffer_.size() + bytes > buffer_bytes) {
    write_out(buffer_.data(), buffer_.size());
    buffer_.clear();
  }
  if (bytes >= buffer_bytes) return write_out(data, bytes);
  const char* begin = static_cast<const char*>(data);
  buffer_.insert(buffer_.end(), begin, begin + bytes);
}

void AtomicFile::finish() {
  if (descriptor_ < 0) return;
  write_out(buffer_.data(), buffer_.size());
  buffer_.clear();
  // Pipes and terminals have nothing to synchronise.
  if (!temporary_.empty() && ::fsync(descriptor_) != 0) fail_to("write", errno);
  const int closed = ::close(std::exchange(descriptor_, -1));
  if (closed != 0) fail_to("write", errno);
}

void AtomicFile::commit() {
  finish();
  if (temporary_.empty()) return;
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) fail_to("write", errno);
  temporary_.clear();
  synchronize_folder_of(target_);
}

void AtomicFile::write_out(const void* data, size_t bytes) {
  const char* rest = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t written = ::write(descriptor_, rest, std::min(bytes, largest_write));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail_to("write", errno);
    rest += written;
    bytes -= static_cast<size_t>(written);
  }
}

void AtomicFile::fail_to(std::string_view what, int error) const {
  fail("[", path_, "] cannot ", what, " this file: ", std::strerror(error));
}

void write_file_atomically(const std::string& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

}  // namespace symbind
