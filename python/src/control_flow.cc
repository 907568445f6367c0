// Loops and branches of networks, from Python functions that build their bodies.
#include "control_flow.h"

#include "symbind/ops/control_flow.h"

namespace symbind::python {
namespace {

using Symbols = std::vector<Symbol>;

// body(slices, states) returns (outputs, states), lists all of them.
nb::tuple foreach_loop(const nb::callable& body, const Symbols& data, const Symbols& init_states,
                       const std::string& name) {
  const LoopResult loop = foreach(
      [&](const Symbols& slices, const Symbols& states) {
        const auto [outputs, next] = nb::cast<std::pair<Symbols, Symbols>>(body(slices, states));
        return LoopResult{outputs, next};
      },
      data, init_states, name);
  return nb::make_tuple(loop.outputs, loop.states);
}

}  // namespace

void bind_control_flow(nb::module_& m) {
  m.def("_foreach_loop", &foreach_loop, nb::arg("body"), nb::arg("data"), nb::arg("init_states"), nb::arg("name"));
}

}  // namespace symbind::python
