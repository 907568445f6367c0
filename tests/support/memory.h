// What a process holds, for tests that it stays flat.
#pragma once

#include <cstdint>
#include <fstream>

#include <unistd.h>

namespace symbind::testing {

// The address sanitizer keeps freed memory for a while, and the thread sanitizer notes on every byte: resident bytes
// say nothing then.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool resident_bytes_mean_something = false;
#else
inline constexpr bool resident_bytes_mean_something = true;
#endif

inline int64_t resident_bytes() {
  int64_t pages = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

}  // namespace symbind::testing
