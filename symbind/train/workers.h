// Persistent threads, one per device, that run the same job on all devices at once.
#pragma once

#include <functional>
#include <memory>

namespace symbind {

class Workers {
 public:
  // Each thread may use its share of `cores` for its own loops. One worker is the calling thread itself.
  Workers(size_t count, int cores);
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  // Runs job(0) … job(count - 1) at the same time and waits for all; throws the first exception there was.
  void run(const std::function<void(size_t worker)>& job);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace symbind
