#include "symbind/backend/tuning_file.h"

#include <algorithm>
#include <charconv>

#include "symbind/core/atomic_file.h"
#include "symbind/core/error.h"
#include "symbind/core/input_file.h"
#include "symbind/core/log.h"

namespace symbind {
namespace {

constexpr int format = 1;  // of the file
constexpr int most_numbers = 1000;

// "NVIDIA H200, driver 13000" as a part of a file's name: NVIDIA_H200_driver_13000.
std::string name_part(std::string_view text) {
  std::string name;
  for (const char c : text) {
    const bool is_plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (is_plain)
      name += c;
    else if (!name.empty() && name.back() != '_')
      name += '_';
  }
  return name;
}

// The part of a text up to a separator, which is removed from it; all of it if there is none.
std::string_view take_until(std::string_view& text, char separator) {
  const size_t end = std::min(text.find(separator), text.size());
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return part;
}

template <class T>
std::optional<T> number(std::string_view text) {
  T value{};
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, value);
  if (read.ptr != end || read.ec != std::errc()) return std::nullopt;
  return value;
}

std::optional<TuningFile::Numbers> numbers(std::string_view text) {
  TuningFile::Numbers values;
  while (!text.empty()) {
    const std::optional<int64_t> value = number<int64_t>(take_until(text, ' '));
    if (!value || values.size() == most_numbers) return std::nullopt;
    values.push_back(*value);
  }
  return values;
}

std::string text_of(const TuningFile::Numbers& values) {
  std::string text;
  for (const int64_t value : values) text += (text.empty() ? "" : " ") + std::to_string(value);
  return text;
}

std::string text_of(double value) {
  char text[64];
  return {text, std::to_chars(std::begin(text), std::end(text), value).ptr};
}

}  // namespace

TuningFile::TuningFile(const std::string& folder, std::string_view subject, std::string_view conditions)
    : path_(folder.empty() ? "" : join(folder, "/", subject, "-", name_part(conditions), ".txt")),
      head_(join("Symbind ", subject, ", format ", format, ": ", conditions)) {}

const TuningFile::Choice* TuningFile::find(const Numbers& key) {
  auto found = choices_.find(key);
  if (found == choices_.end()) {
    read_if_changed();
    found = choices_.find(key);
  }
  return found == choices_.end() ? nullptr : &found->second;
}

void TuningFile::add(const Numbers& key, Choice choice) {
  read_if_changed();
  choices_[key] = std::move(choice);
  if (!path_.empty()) write();
}

void TuningFile::read_if_changed() {
  if (path_.empty()) return;
  std::error_code missing;
  const auto time = std::filesystem::last_write_time(path_, missing);
  if (missing || time == read_at_) return;
  read_at_ = time;
  std::string reason;
  try {
    if (std::optional<Choices> read = parsed(read_whole_file(path_))) {
      choices_.merge(*read);  // what this process has found stays
      return;
    }
    reason = "it is damaged";
  } catch (const Error& error) {
    reason = error.what();
  }
  log_warning("[cache] ", path_, " is ignored: ", reason, ". It will be replaced when something is measured.");
}

// A line for each choice: the numbers of the key, those of the choice, the time; with colons between them.
std::string TuningFile::text() const {
  std::string text = head_ + "\n";
  for (const auto& [key, choice] : choices_)
    text += join(text_of(key), ":", text_of(choice.numbers), ":", text_of(choice.milliseconds), "\n");
  return text;
}

std::optional<TuningFile::Choices> TuningFile::parsed(std::string_view text) const {
  if (!text.ends_with('\n') || take_until(text, '\n') != head_) return std::nullopt;
  Choices choices;
  while (!text.empty()) {
    std::string_view line = take_until(text, '\n');
    const auto key = numbers(take_until(line, ':')), choice = numbers(take_until(line, ':'));
    const auto milliseconds = number<double>(line);
    if (!key || !choice || !milliseconds) return std::nullopt;
    choices[*key] = {*choice, *milliseconds};
  }
  return choices;
}

void TuningFile::write() {
  try {
    std::filesystem::create_directories(std::filesystem::path(path_).parent_path());
    write_file_atomically(path_, text());
    std::error_code missing;
    if (const auto time = std::filesystem::last_write_time(path_, missing); !missing) read_at_ = time;
  } catch (const std::exception& error) {
    if (warned_) return;
    warned_ = true;
    log_warning("[cache] measured choices are not stored: ", error.what(),
                ". Set SYMBIND_CACHE_DIR to a folder that can be written, or to off.");
  }
}

}  // namespace symbind
