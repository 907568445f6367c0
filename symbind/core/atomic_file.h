// A file that appears whole or not at all. It is written under a temporary name in the same folder, synchronised to
// disk, and only then renamed over the old one: a crash, a full disk or an exception leaves the old file unchanged.
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
  // Through a symbolic link the file it points to is replaced. Anything but a regular file (a pipe, a terminal) cannot
  // be replaced, and is written to directly.
  explicit AtomicFile(const std::string& path);
  ~AtomicFile();  // without commit() the target is unchanged
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(const void* data, size_t bytes);
  void write(std::string_view text) { write(text.data(), text.size()); }
  // Writes everything to the disk, under a temporary name: a full disk is detected here. Files that belong together are
  // all finished first, then committed.
  void finish();
  void commit();
  // Finishes all files, then renames them one after the other.
  static void commit(std::span<AtomicFile* const> files);

 private:
  void open_temporary();
  void rename_to_target();
  void close_all() noexcept;
  void write_out(const void* data, size_t bytes);
  [[noreturn]] void fail_to(std::string_view what, int error) const;

  std::string path_;       // as the caller wrote it, for messages
  std::string target_;     // target of symbolic links
  std::string temporary_;  // empty: written straight to the target
  int descriptor_ = -1;
  int lock_ = -1;  // the same open file, which keeps the lock until the file has its name
  std::vector<char> buffer_;
};

// The temporary files, complete or not, that processes that died left in the folder of a file.
std::vector<std::string> abandoned_files_beside(const std::string& path);

// Writes a whole string.
void write_file_atomically(const std::string& path, std::string_view text);

}  // namespace symbind
