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
      "Starts the random numbers anew: of every device, of initializers and of shuffles; or of one device alone.");
}

}  // namespace symbind::python
