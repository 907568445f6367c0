#include "symbind/core/atomic_file.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <random>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbind/core/error.h"
#include "symbind/core/input_file.h"

namespace symbind {
namespace {

constexpr size_t buffer_bytes = size_t{1} << 16;
constexpr int most_links = 40;                     // as many as the kernel follows
constexpr size_t largest_write = size_t{1} << 30;  // the kernel takes less than 2 GiB at a time

// The target of symbolic links, which need not exist yet.
std::string follow_links(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> resolved(::realpath(path.c_str(), nullptr), &std::free);
  if (resolved) return resolved.get();
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0) return path;  // a pipe behind /dev/stdout has no other name
  std::filesystem::path target = path;
  for (int links = 0; links < most_links; ++links) {
    std::error_code no_link;
    const std::filesystem::path next = std::filesystem::read_symlink(target, no_link);
    if (no_link) return target.string();
    target = target.parent_path() / next;
  }
  fail("[", path, "] cannot write this file: ", std::strerror(ELOOP));
}

std::string folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

constexpr std::string_view temporary_prefix = ".symbind-", temporary_suffix = ".tmp";
constexpr size_t temporary_digits = 16;

std::string random_temporary_name() {
  std::random_device source;
  std::string name(temporary_prefix);
  for (size_t i = 0; i < temporary_digits; ++i) name += "0123456789abcdef"[source() % 16];
  return name.append(temporary_suffix);
}

bool is_temporary_name(std::string_view name) {
  if (!name.starts_with(temporary_prefix) || !name.ends_with(temporary_suffix)) return false;
  if (name.size() != temporary_prefix.size() + temporary_digits + temporary_suffix.size()) return false;
  const std::string_view digits = name.substr(temporary_prefix.size(), temporary_digits);
  return digits.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// Calls `use` with each temporary file left behind by a process that died. A file that is locked is being written. The
// lock is held during the call, so that a writer that has just created the file finds it locked and chooses another
// name.
template <class Use>
void for_abandoned_files(const std::string& folder, const Use& use) {
  std::error_code ignored;
  for (std::filesystem::directory_iterator entry(folder, ignored), end; entry != end; entry.increment(ignored)) {
    if (ignored) return;
    if (!is_temporary_name(entry->path().filename().string())) continue;
    const std::string path = entry->path().string();
    const int descriptor = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (descriptor < 0) continue;
    if (::flock(descriptor, LOCK_EX | LOCK_NB) == 0) use(path);
    ::close(descriptor);
  }
}

// A directory entry reaches the disk only when the directory is synchronised too. File systems that cannot do that do
// not need it.
void synchronize_folder_of(const std::string& path) {
  const int descriptor = ::open(folder_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  ::fsync(descriptor);
  ::close(descriptor);
}

}  // namespace

AtomicFile::AtomicFile(const std::string& path) : path_(path) {
  check_path(path);
  target_ = follow_links(path);
  struct stat old {};
  const bool exists = ::stat(target_.c_str(), &old) == 0;
  if (!exists && errno != ENOENT) fail_to("write", errno);
  if (exists && S_ISDIR(old.st_mode)) fail_to("write", EISDIR);
  if (exists && !S_ISREG(old.st_mode)) {
    descriptor_ = ::open(target_.c_str(), O_WRONLY | O_CLOEXEC);
    if (descriptor_ < 0) fail_to("open", errno);
    return;
  }
  // A read-only file is not replaced, even if its directory would allow it.
  if (exists && ::access(target_.c_str(), W_OK) != 0) fail_to("write", errno);
  for_abandoned_files(folder_of(target_), [](const std::string& abandoned) { ::unlink(abandoned.c_str()); });
  open_temporary();
  if (exists) (void)!::fchmod(descriptor_, old.st_mode & 07777);
  buffer_.reserve(buffer_bytes);
}

void AtomicFile::open_temporary() {
  for (;;) {
    const std::string name = (std::filesystem::path(folder_of(target_)) / random_temporary_name()).string();
    descriptor_ = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor_ < 0 && errno == EEXIST) continue;
    if (descriptor_ < 0) fail_to("write", errno);
    // Another process may lock and remove the file before it is locked here. On a file system without locks (ENOLCK,
    // EOPNOTSUPP) the file is safe, since no other process can lock it either.
    struct stat own {};
    const bool taken = ::flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (!taken && ::fstat(descriptor_, &own) == 0 && own.st_nlink > 0) {
      temporary_ = name;
      lock_ = ::fcntl(descriptor_, F_DUPFD_CLOEXEC, 0);
      return;
    }
    close_all();
  }
}

void AtomicFile::close_all() noexcept {
  for (int* descriptor : {&descriptor_, &lock_})
    if (const int open = std::exchange(*descriptor, -1); open >= 0) ::close(open);
}

AtomicFile::~AtomicFile() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  close_all();
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
  AtomicFile* const only[] = {this};
  commit(only);
}

void AtomicFile::commit(std::span<AtomicFile* const> files) {
  for (AtomicFile* file : files) file->finish();
  for (AtomicFile* file : files) file->rename_to_target();
  for (AtomicFile* file : files) synchronize_folder_of(file->target_);
}

void AtomicFile::rename_to_target() {
  if (temporary_.empty()) return;
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) fail_to("write", errno);
  temporary_.clear();
  close_all();
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

std::vector<std::string> abandoned_files_beside(const std::string& path) {
  std::vector<std::string> found;
  for_abandoned_files(folder_of(path), [&](const std::string& abandoned) { found.push_back(abandoned); });
  return found;
}

void write_file_atomically(const std::string& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

}  // namespace symbind
