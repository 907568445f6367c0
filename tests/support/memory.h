// The memory of a process, for tests that it does not grow; and the effects of sanitizers on it.
#pragma once

#include <cstdint>
#include <fstream>

#include <unistd.h>

namespace symbind::testing {

// The address sanitizer keeps freed memory for a while, and the thread sanitizer stores data about every byte: resident
// bytes are meaningless then.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool resident_bytes_mean_something = false;
#else
inline constexpr bool resident_bytes_mean_something = true;
#endif

// The thread sanitizer loses count of its threads when a process that has several forks and its child starts or joins
// some.
#if defined(__SANITIZE_THREAD__)
inline constexpr bool forked_child_may_use_threads = false;
#else
inline constexpr bool forked_child_may_use_threads = true;
#endif

inline int64_t resident_bytes() {
  int64_t pages = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

}  // namespace symbind::testing
