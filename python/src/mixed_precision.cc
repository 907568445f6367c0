#include "symbind/train/mixed_precision.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "bindings.h"

namespace symbind::python {
namespace {

using Names = std::vector<std::string>;
using Conditions = std::vector<std::tuple<std::string, std::string, Names>>;

}  // namespace

void bind_mixed_precision(nb::module_& m) {
  m.def(
      "_precision_rules",
      [] {
        const PrecisionRules rules = default_precision_rules();
        Conditions conditions;
        for (const auto& [op, parameter, values] : rules.full_if) conditions.emplace_back(op, parameter, values);
        return std::tuple(rules.low, rules.full, rules.widest, conditions);
      },
      "(operators of 16 bits, of float32, of the widest type that comes, [(operator, parameter, values) of float32]).");
  m.def(
      "_mixed_precision",
      [](const Symbol& symbol, DType target, Names low, Names full, Names widest, const Conditions& conditions,
         Names full_nodes) {
        // Lists as in MXNet have no narrowest types; operators that a list names are computed as that list states.
        PrecisionRules rules{.low = std::move(low),
                             .full = std::move(full),
                             .widest = std::move(widest),
                             .narrowest = default_precision_rules().narrowest,
                             .full_nodes = std::move(full_nodes)};
        for (const auto& [op, parameter, values] : conditions) rules.full_if.push_back({op, parameter, values});
        return mixed_precision(symbol, target, rules);
      },
      nb::arg("symbol"), nb::arg("target_dtype"), nb::arg("low"), nb::arg("full"), nb::arg("widest"),
      nb::arg("conditions"), nb::arg("full_nodes"));
  m.def("_with_low_parameters", &with_low_parameters, nb::arg("symbol"), nb::arg("target_dtype"), nb::arg("except_"));
}

}  // namespace symbind::python
