#pragma once

#include <map>
#include <string>
#include <vector>

#include "casters.h"

namespace symbind::python {

nb::list list_of(const std::vector<std::pair<std::string, Shape>>& shapes);  // of (name, shape)

// Per context, the contexts of the groups: from a dict of names to one context or a list of them (one per context), or
// from a list of dicts.
std::vector<std::map<std::string, Context>> group2ctxs_from(nb::handle value, size_t contexts);

}  // namespace symbind::python
