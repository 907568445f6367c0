// Every switch of CompileOptions by name, so that tests can turn off each one generically.
#pragma once

#include <string>
#include <vector>

#include "symbind/exec/executor.h"

namespace symbind::testing {

struct Switch {
  std::string name;
  void (*set)(CompileOptions& options, bool on);
};

inline const std::vector<Switch>& switches() {
  static const std::vector<Switch> all{
      {"shared_memory", [](CompileOptions& options, bool on) { options.share_memory = on; }},
      {"fusion", [](CompileOptions& options, bool on) { options.fuse = on; }},
      {"layouts", [](CompileOptions& options, bool on) { options.layout = on; }},
      {"capture", [](CompileOptions& options, bool on) { options.capture = on; }},
      {"recompute", [](CompileOptions& options, bool on) { options.recompute = on; }},
  };
  return all;
}

// All optimizations off: the plan that all others are compared with.
inline CompileOptions plainest() {
  CompileOptions options;
  for (const Switch& each : switches()) each.set(options, false);
  return options;
}

struct Variation {
  std::string name;
  CompileOptions options;
};

// The defaults, each switch off alone, and as much as possible recomputed, all with poisoned memory; then the defaults
// without poison.
inline std::vector<Variation> variations() {
  std::vector<Variation> all{{"everything", {.poison = true}}};
  for (const Switch& each : switches()) {
    all.push_back({"without_" + each.name, {.poison = true}});
    each.set(all.back().options, false);
  }
  all.push_back({"as_little_memory_as_possible", {.memory_budget = 1, .poison = true}});
  all.push_back({"plainest_poisoned", plainest()});
  all.back().options.poison = true;
  all.push_back({"default", {}});
  return all;
}

}  // namespace symbind::testing
