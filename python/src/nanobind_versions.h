// Differences between nanobind 2 and 3 that its macros do not cover: C++ methods that a Python class overrides, and C++
// objects that live as long as a Python object.
#pragma once

#include <cstddef>
#include <utility>

#include <nanobind/trampoline.h>

namespace symbind::python {

namespace nb = nanobind;

#if NB_VERSION_MAJOR < 3
template <size_t methods>
using Trampoline = nb::detail::trampoline<methods>;

struct OverrideTicket : nb::detail::ticket {
  template <class Trampoline>
  OverrideTicket(const Trampoline& trampoline, const char* method) : ticket(trampoline, method, /*pure=*/false) {}
};
#else
template <size_t methods>
using Trampoline = nb::detail::trampoline;

struct OverrideTicket : nb::detail::ticket {
  OverrideTicket(const nb::detail::trampoline& trampoline, const char* method)
      : ticket(trampoline, method, nb::detail::str_hash(method), /*pure=*/false) {}
};
#endif

// A method of the Python object, if its class overrides it; then the GIL is held. Names are compared by address.
class Override {
 public:
  template <class Trampoline>
  Override(const Trampoline& trampoline, const char* method) : self_(trampoline.base()), ticket_(trampoline, method) {}

  explicit operator bool() const { return ticket_.key.is_valid(); }
  template <class... Args>
  nb::object operator()(Args&&... args) const {
    return self_.attr(ticket_.key)(std::forward<Args>(args)...);
  }

 private:
  nb::handle self_;
  OverrideTicket ticket_;
};

// Deletes `payload` when `keeper` is destroyed.
template <class T>
void delete_with(nb::handle keeper, T* payload) {
  constexpr auto end = [](void* ending) noexcept { delete static_cast<T*>(ending); };
#if NB_VERSION_MAJOR < 3
  nb::detail::keep_alive(keeper.ptr(), payload, end);
#else
  nb::keep_alive_cb(keeper, payload, end);
#endif
}

}  // namespace symbind::python
