// How plans are compiled: what bind, executors and modules pass on to passes/lower.h.
#pragma once

#include <cstddef>

#include "symbind/core/api.h"

namespace SYMBIND_API symbind {

// Switches for tests and for finding bugs, and the memory budget. They do not change results.
struct CompileOptions {
  bool share_memory = true;         // tensors whose lifetimes do not overlap share memory
  bool fuse = true;                 // fuse operators into one kernel
  bool layout = true;               // let implementations choose the layouts of tensors
  bool capture = true;              // replay steps on a GPU as CUDA graphs
  bool concurrent_contexts = true;  // run the parts of a network on several contexts concurrently (exec/queues.h)
  bool recompute = true;            // recompute forward values in backward where an attribute or the budget requires it
  size_t memory_budget = 0;         // limit of a training plan's working memory in bytes; 0: no limit
  bool poison = false;              // fill unused working memory with NaN in every run; SYMBIND_POISON=1: everywhere
  bool profile = false;             // time every step, for debug_str(); SYMBIND_PROFILE=1: everywhere
};

}  // namespace symbind
