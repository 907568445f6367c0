// States of an optimizer as the pickle that MXNet loads, {key: None | array | tuple}, or a pair of that and the
// optimizer; and what such a pickle means.
#pragma once

#include <string>
#include <string_view>

#include "symbind/files/pickle.h"
#include "symbind/files/states.h"

namespace symbind {

std::string write_state_pickle(const SavedStates& states);
// Without the resume state, which is not in the pickle. `source` is named in errors.
SavedStates states_in(const Pickle& pickle, std::string_view source);

}  // namespace symbind
