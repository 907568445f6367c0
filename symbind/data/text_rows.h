// Text files with a sample per line, read block by block and parsed on several threads.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace symbind {

// The path itself; for a folder, the regular files in it, in the order of their names.
std::vector<std::string> files_of(const std::string& path);

// An error in a line; for_each_line_block() adds the file's name and the line's number.
struct LineError {
  const char* at;  // in the text that was being parsed
  std::string what;
};

// Divides the file into pieces of whole lines and calls parse(piece, i) for several of them concurrently, then take(i)
// for each of them in the order of the file. A parser throws LineError.
void for_each_line_block(const std::string& path, const std::function<void(std::string_view text, size_t piece)>& parse,
                         const std::function<void(size_t piece)>& take);
size_t most_pieces();  // `piece` is below this

// Removes the next line from the text and returns it, without line end and surrounding blanks.
std::string_view take_line(std::string_view& text);
std::string_view trimmed(std::string_view text);

// A number that spans the whole text. Fails with LineError.
template <class Number>
Number number_in(std::string_view text);

}  // namespace symbind
