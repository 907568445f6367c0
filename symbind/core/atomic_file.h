// A file that appears whole or not at all. It is written beside its place, brought to the disk, and only then put in
// place of the old one: a crash, a full disk or an exception half way leaves the old file as it was.
#pragma once

#include <cstddef>
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
  // Everything to the disk, still beside its place: what can fail for lack of room has failed then. Several files that
  // belong together are finished first, and committed after that.
  void finish();
  void commit();

 private:
  void write_out(const void* data, size_t bytes);
  [[noreturn]] void fail_to(std::string_view what, int error) const;

  std::string path_;       // as the caller wrote it, for messages
  std::string target_;     // where links lead
  std::string temporary_;  // empty: written straight to the target
  int descriptor_ = -1;
  std::vector<char> buffer_;
};

// A whole text in one go.
void write_file_atomically(const std::string& path, std::string_view text);

}  // namespace symbind
