// The amount of work of a piece of code, for tests that bound how it grows: in instructions of the calling thread where
// the system counts them, else in its processor time. Other programs on the machine change neither, or little.
#pragma once

#include <cstdint>
#include <cstring>
#include <ctime>

#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace symbind::testing {

class Instructions {
 public:
  Instructions() {
    perf_event_attr wanted;
    std::memset(&wanted, 0, sizeof wanted);
    wanted.size = sizeof wanted;
    wanted.type = PERF_TYPE_HARDWARE;
    wanted.config = PERF_COUNT_HW_INSTRUCTIONS;
    wanted.exclude_kernel = wanted.exclude_hv = 1;
    file_ = static_cast<int>(::syscall(SYS_perf_event_open, &wanted, 0, -1, -1, 0));
  }
  ~Instructions() {
    if (file_ >= 0) ::close(file_);
  }
  Instructions(const Instructions&) = delete;
  Instructions& operator=(const Instructions&) = delete;

  // So far; nanoseconds of processor time where instructions are not counted.
  double now() const {
    uint64_t count = 0;
    if (file_ >= 0 && ::read(file_, &count, sizeof count) == sizeof count && count > 0)
      return static_cast<double>(count);
    timespec time{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
  }

 private:
  int file_ = -1;
};

template <class Function>
double work_of(Function function) {
  const Instructions instructions;
  const double begin = instructions.now();
  function();
  return instructions.now() - begin;
}

}  // namespace symbind::testing
