#include "symbind/core/random.h"

#include "symbind/core/device.h"

#include "bindings.h"
#include "convert.h"

namespace symbind::python {

void bind_random(nb::module_& m) {
  m.def(
      "seed",
      [](int64_t value, nb::handle ctx) {
        if (ctx.is_none() || (nb::isinstance<nb::str>(ctx) && nb::cast<std::string>(ctx) == "all"))
          seed(static_cast<uint64_t>(value));
        else
          Device::get(context_or_current(ctx)).random().seed(static_cast<uint64_t>(value));
      },
      nb::arg("seed_state"), nb::arg("ctx").none() = "all",
      "Seeds the random numbers of every device, of initializers and of shuffles; or those of one device.");
}

}  // namespace symbind::python
