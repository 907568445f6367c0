// The state of an optimizer in files: arrays by parameter, in MXNet's pickle format, and a trailer of Symbind's that
// makes resuming exact.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "symbind/core/param_key.h"
#include "symbind/core/random.h"
#include "symbind/core/state_tree.h"

namespace SYMBIND_API symbind {

// The contents of the trailer, with which training resumes exactly; MXNet ignores it.
struct ResumeState {
  int64_t num_update = 0;
  int64_t begin_num_update = 0;
  std::map<ParamKey, int64_t> index_update_count = {};
  std::map<std::string, double> numbers = {};       // of the optimizer and its schedule, by name
  std::map<std::string, RandomCursor> random = {};  // by context
};

// A class instance found in a pickle (the optimizer itself, where it was dumped with the states), as far as it is plain
// data. Nested values follow their field under dotted names: "lr_mult.fc1_weight", "_index_update_count.0", and for an
// object "lr_scheduler" (its class, as text: "mxnet.lr_scheduler.FactorScheduler"), "lr_scheduler.factor"; a list
// "a.step" is the text "list", "a.step.0", …. When an optimizer is written, fields that MXNet's requires (update counts
// from the resume state, empty multipliers) are added if missing.
struct PickledObject {
  std::string module, name;
  std::map<std::string, std::variant<std::monostate, bool, int64_t, double, std::string>> fields;
};

struct SavedStates {
  std::vector<std::pair<ParamKey, StateTree>> states;
  std::optional<PickledObject> optimizer;
  std::optional<ResumeState> resume;
};

// The bytes of a .states file. MXNet 1.9.1 loads them. Reading never runs Python: protocols 0 to 5, and nothing but the
// arrays, numbers, texts, tuples, lists and dictionaries that optimizer states are made of; anything else fails with
// the offset. `source` is named in errors.
std::string write_states(const SavedStates& states);
SavedStates read_states(std::string_view bytes, std::string_view source);

// Which .params file states belong to: its size and checksum. It ends a .states file that was saved as part of a
// checkpoint; MXNet ignores it.
struct ParamsMark {
  uint64_t bytes = 0;
  uint32_t checksum = 0;
  friend bool operator==(const ParamsMark&, const ParamsMark&) = default;
};
std::string with_params_mark(std::string states, const ParamsMark& mark);
// Of a .states file; none where it was saved alone, by MXNet or by a version of Symbind before there were marks.
std::optional<ParamsMark> params_mark_of(const std::string& path);

void save_states(const std::string& path, const SavedStates& states);
SavedStates load_states(const std::string& path);

}  // namespace symbind
