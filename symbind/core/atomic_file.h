// A file that appears whole or not at all. It is written under a temporary name in the same folder, brought to the
// disk, and only then renamed over the old one: a crash, a full disk or an exception half way leaves the old file as it
// was.
//
// The temporary name is ".symbind-", 16 random hexadecimal digits and ".tmp". Its writer holds a lock (flock) on it
// until it is renamed, so a temporary file that can be locked belongs to a process that has died: the next file written
// in that folder removes it.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace symbind {

class AtomicFile {
 public:
  // Through a symbolic link the file it points to is replaced. Something that is no regular file (a pipe, a terminal)
  // cannot be replaced, and is written to as it is.
  explicit AtomicFile(const std::string& path);
  ~AtomicFile();  // without commit() nothing has happened
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(const void* data, size_t bytes);
  void write(std::string_view text) { write(text.data(), text.size()); }
  // Writes everything to the disk, under a temporary name: what can fail for lack of room has failed then. Several
  // files that belong together are finished first, and committed after that.
  void finish();
  void commit();
  // Finishes all, then renames one right after the other.
  static void commit(std::span<AtomicFile* const> files);

 private:
  void open_temporary();
  void rename_to_target();
  void close_all() noexcept;
  void write_out(const void* data, size_t bytes);
  [[noreturn]] void fail_to(std::string_view what, int error) const;

  std::string path_;       // as the caller wrote it, for messages
  std::string target_;     // where links lead
  std::string temporary_;  // empty: written straight to the target
  int descriptor_ = -1;
  int lock_ = -1;  // the same open file, which keeps the lock until the file has its name
  std::vector<char> buffer_;
};

// What processes that died left in the folder of a file, whole or not.
std::vector<std::string> abandoned_files_beside(const std::string& path);

// A whole text in one go.
void write_file_atomically(const std::string& path, std::string_view text);

}  // namespace symbind
