// How plans are compiled: what bind, executors and modules pass on to passes/lower.h.
#pragma once

#include <cstddef>

#include "symbind/core/api.h"

namespace SYMBIND_API symbind {

// Switches for tests and for hunting bugs, and the memory budget; results agree whatever they are.
struct CompileOptions {
  bool share_memory = true;
  bool fuse = true;
  bool layout = true;
  bool capture = true;
  bool at_once = true;       // parts of the network on several contexts run at the same time, where they can
  bool recompute = true;     // recompute forward values in backward where a mirror attribute or the budget asks for it
  size_t memory_budget = 0;  // bytes of working memory a training plan should need at most; 0: no limit
  bool poison = false;       // memory that holds nothing is NaN in every run; SYMBIND_POISON=1: in all executors
  bool profile = false;      // times every step, for debug_str(); SYMBIND_PROFILE=1 does so for all executors
};

}  // namespace symbind
