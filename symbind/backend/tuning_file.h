// Choices made by measurement, in a file, so that later processes need not measure again. Several processes may use one
// file: it is always replaced as a whole, and a choice that another process adds is found when it is needed. A file
// that cannot be understood is ignored with a warning and replaced when there is something to store.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace symbind {

class TuningFile {
 public:
  using Numbers = std::vector<int64_t>;
  struct Choice {
    Numbers numbers;
    double milliseconds = 0;
  };

  // `conditions`: all that the choices depend on besides their keys. There is a file for each subject and conditions.
  // Without a folder nothing is stored, and what is added is known to this object alone.
  TuningFile(const std::string& folder, std::string_view subject, std::string_view conditions);

  // Null: not known. Valid until the next call.
  const Choice* find(const Numbers& key);
  // Writes the file; if that fails, warns once.
  void add(const Numbers& key, Choice choice);

  const std::string& path() const { return path_; }

 private:
  using Choices = std::map<Numbers, Choice>;
  void read_if_changed();
  std::optional<Choices> parsed(std::string_view text) const;
  std::string text() const;
  void write();

  std::string path_;  // empty: nothing is stored
  std::string head_;  // the first line
  Choices choices_;
  std::optional<std::filesystem::file_time_type> read_at_;  // the time of the file that was read
  bool warned_ = false;
};

}  // namespace symbind
