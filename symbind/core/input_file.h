// Checks and reads input files.
#pragma once

#include <cstdint>
#include <string>

namespace symbind {

// Refuses a path with a NUL byte: the system would stop at it and open another file.
void check_path(const std::string& path);

// The size of a regular file. Fails with the path for anything else: a folder, or a device or pipe, which has no size
// and may never end.
uint64_t size_of_input(const std::string& path);

// All bytes of a regular file.
std::string read_whole_file(const std::string& path);

}  // namespace symbind
