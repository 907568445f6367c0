#include "symbind/core/interrupt.h"

#include <memory>
#include <mutex>
#include <utility>

namespace symbind {
namespace {

std::mutex mutex;
std::shared_ptr<const std::function<void()>> current;

}  // namespace

std::function<void()> set_interrupt_check(std::function<void()> check) {
  auto made = check ? std::make_shared<const std::function<void()>>(std::move(check)) : nullptr;
  const std::lock_guard lock(mutex);
  std::swap(current, made);
  return made ? *made : std::function<void()>();
}

void check_interrupt() {
  std::shared_ptr<const std::function<void()>> check;
  {
    const std::lock_guard lock(mutex);
    check = current;
  }
  if (check) (*check)();
}

}  // namespace symbind
