// Simulates a full disk.
#pragma once

#include <csignal>

#include <sys/resource.h>

namespace symbind::testing {

// While it lives, no file of this process can grow beyond some bytes.
class NoRoomBeyond {
 public:
  explicit NoRoomBeyond(rlim_t bytes) {
    old_handler_ = ::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &old_);
    rlimit tight = old_;
    tight.rlim_cur = bytes;
    ::setrlimit(RLIMIT_FSIZE, &tight);
  }
  ~NoRoomBeyond() {
    ::setrlimit(RLIMIT_FSIZE, &old_);
    ::signal(SIGXFSZ, old_handler_);
  }
  NoRoomBeyond(const NoRoomBeyond&) = delete;
  NoRoomBeyond& operator=(const NoRoomBeyond&) = delete;

 private:
  rlimit old_{};
  void (*old_handler_)(int) = nullptr;
};

}  // namespace symbind::testing
