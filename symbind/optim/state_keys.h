// The keys of states. A store that updates knows parameters by name; updates outside it number them, and every device
// has its own: parameter i on device d of n is number i·n + d. A file may come from either, and from another number of
// devices.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "symbind/files/states.h"

namespace symbind {

struct StateKeys {
  struct Parameter {
    std::string name;
    Shape shape;
    bool trained = true;  // has a gradient, and so a state
  };
  std::vector<Parameter> parameters;  // in the order of their numbers
  size_t devices = 0;                 // 0: keyed by name
};

// The same states under the requested keys. From another number of devices, or from names, each parameter has one
// state for all: that of the first device. Numbers that fit no number of devices fail.
SavedStates with_keys(const SavedStates& saved, const StateKeys& wanted);

// The name of a number in ResumeState that belongs to one parameter: "gathered:number:3", "gathered:name:fc_bias".
std::string number_of_parameter(std::string_view what, const ParamKey& key);

}  // namespace symbind
