// Networks as text, in the form MXNet 1.9.1 writes; read in that of any version since 0.7 (graph/old_json.h).
#pragma once

#include <string>
#include <string_view>

#include "symbind/graph/symbol.h"

namespace symbind {

std::string to_json(const Symbol& symbol);
// Fails with the offset and what was expected. `source`, e.g. a file name, is named in errors.
Symbol from_json(std::string_view text, std::string_view source);

}  // namespace symbind
