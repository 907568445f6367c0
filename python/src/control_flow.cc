// Loops and branches of networks, from Python functions that build their bodies.
#include "control_flow.h"

#include "symbind/ops/cond.h"
#include "symbind/ops/control_flow.h"
#include "symbind/ops/while_loop.h"

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

// condition(variables) returns a symbol, body(variables) (outputs, variables).
nb::tuple loop_while(const nb::callable& condition, const nb::callable& body, const Symbols& loop_vars,
                     int64_t max_iterations, const std::string& name) {
  const LoopResult loop = while_loop([&](const Symbols& variables) { return nb::cast<Symbol>(condition(variables)); },
                                     [&](const Symbols& variables) {
                                       const auto [outputs, next] =
                                           nb::cast<std::pair<Symbols, Symbols>>(body(variables));
                                       return LoopResult{outputs, next};
                                     },
                                     loop_vars, max_iterations, name);
  return nb::make_tuple(loop.outputs, loop.states);
}

Symbols branch(const Symbol& pred, const nb::callable& then_body, const nb::callable& else_body,
               const std::string& name) {
  return cond(
      pred, [&] { return nb::cast<Symbols>(then_body()); }, [&] { return nb::cast<Symbols>(else_body()); }, name);
}

}  // namespace

void bind_control_flow(nb::module_& m) {
  m.def("_foreach_loop", &foreach_loop, nb::arg("body"), nb::arg("data"), nb::arg("init_states"), nb::arg("name"));
  m.def("_while_loop", &loop_while, nb::arg("condition"), nb::arg("body"), nb::arg("loop_vars"),
        nb::arg("max_iterations"), nb::arg("name"));
  m.def("_cond", &branch, nb::arg("pred"), nb::arg("then_body"), nb::arg("else_body"), nb::arg("name"));
}

}  // namespace symbind::python
