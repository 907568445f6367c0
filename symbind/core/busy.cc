#include "symbind/core/busy.h"

#include <utility>

#include "symbind/core/error.h"

namespace symbind {
namespace {

// Null: the thread itself, identified by the address of this variable.
thread_local const void* works_for = nullptr;

}  // namespace

const void* InUse::current_user() noexcept { return works_for ? works_for : &works_for; }

void InUse::fail_busy(std::string_view call, std::string_view what, std::string_view advice) {
  fail("[", call, "] ", what, " is in use by another thread, and serves one thread at a time",
       advice.empty() ? "" : "; ", advice);
}

WorkFor::WorkFor(const void* user) noexcept : before_(std::exchange(works_for, user)) {}
WorkFor::~WorkFor() { works_for = before_; }

}  // namespace symbind
