#include "symbind/data/text_rows.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>

#include "symbind/core/error.h"
#include "symbind/core/input_file.h"
#include "symbind/core/parallel.h"

namespace symbind {
namespace {

constexpr size_t block_bytes = size_t{1} << 24;
constexpr size_t pieces_per_block = 16;

// Piece i of the text, cut where lines end.
std::string_view piece_of(std::string_view text, size_t i) {
  const auto border = [&](size_t n) {
    if (n == 0) return size_t{0};
    const size_t at = text.size() * n / pieces_per_block;
    if (at == 0) return size_t{0};
    const size_t end = text.find('\n', at - 1);
    return end == std::string_view::npos ? text.size() : end + 1;
  };
  return text.substr(border(i), border(i + 1) - border(i));
}

void parse_block(const std::string& path, std::string_view block, int64_t lines_before,
                 const std::function<void(std::string_view, size_t)>& parse) {
  std::vector<std::optional<LineError>> wrong(pieces_per_block);
  const int64_t grain = block.size() < (size_t{1} << 16) ? pieces_per_block : 1;
  parallel_for(pieces_per_block, grain, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) try {
        parse(piece_of(block, i), i);
      } catch (LineError& error) {
        wrong[i] = std::move(error);
      }
  });
  for (const auto& error : wrong)
    if (error)
      fail("[", path, "] line ", lines_before + 1 + std::count(block.data(), error->at, '\n'), ": ", error->what);
}

}  // namespace

size_t most_pieces() { return pieces_per_block; }

std::vector<std::string> files_of(const std::string& path) {
  check_path(path);
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) return {path};
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(path, ignored))
    if (entry.is_regular_file(ignored)) files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  require(!files.empty(), "[", path, "] there are no files in this directory");
  return files;
}

void for_each_line_block(const std::string& path, const std::function<void(std::string_view, size_t)>& parse,
                         const std::function<void(size_t)>& take) {
  // One byte more than the file has, so that the end of file is detected by the same read.
  const auto block = static_cast<size_t>(std::min<uint64_t>(block_bytes, size_of_input(path) + 1));
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), &std::fclose);
  require(file != nullptr, "[", path, "] cannot read this file: ", std::strerror(errno));
  std::string text;  // what is read but not parsed
  int64_t lines = 0;
  for (bool more = true; more;) {
    const size_t before = text.size();
    text.resize(before + block);
    const size_t got = std::fread(text.data() + before, 1, block, file.get());
    require(std::ferror(file.get()) == 0, "[", path, "] cannot read this file: ", std::strerror(errno));
    text.resize(before + got);
    more = got == block;
    const size_t end = more ? text.rfind('\n') + 1 : text.size();  // 0 where no line ends in the block
    const std::string_view whole(text.data(), end);
    if (whole.empty()) continue;
    parse_block(path, whole, lines, parse);
    for (size_t i = 0; i < pieces_per_block; ++i) take(i);
    lines += std::count(whole.begin(), whole.end(), '\n');
    text.erase(0, end);
  }
}

std::string_view take_line(std::string_view& text) {
  const size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return trimmed(line);
}

std::string_view trimmed(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

template <class Number>
Number number_in(std::string_view text) {
  std::string_view digits = text;
  if (digits.size() > 1 && digits[0] == '+' && digits[1] != '-') digits.remove_prefix(1);
  Number number{};
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  const bool whole = end == digits.data() + digits.size() && !digits.empty();
  if (whole && error == std::errc{}) return number;
  if constexpr (std::is_floating_point_v<Number>) {
    // Too large or too small for the type: an infinity or zero.
    if (whole && error == std::errc::result_out_of_range) {
      long double wide = 0;
      if (std::from_chars(digits.data(), end, wide).ec == std::errc{}) return static_cast<Number>(wide);
      const bool tiny = digits.find("e-") != std::string_view::npos || digits.find("E-") != std::string_view::npos;
      return tiny ? Number{0} : std::copysign(std::numeric_limits<Number>::infinity(), digits[0] == '-' ? -1.F : 1.F);
    }
  }
  const char* kind = std::is_floating_point_v<Number> ? "a number" : "a whole number of the type";
  throw LineError{text.data(), join("expected ", kind, ": found '", text.substr(0, 40), "'")};
}

template float number_in(std::string_view text);
template double number_in(std::string_view text);
template int32_t number_in(std::string_view text);
template int64_t number_in(std::string_view text);

}  // namespace symbind
