// The contexts that a program's options ask for.
#pragma once

#include <vector>

#include "symbind/symbind.h"

namespace examples {

using namespace symbind;

// GPUs by their numbers; so many CPU contexts where there are none.
inline std::vector<Context> contexts_of(const std::vector<int64_t>& gpus, int64_t cpus = 1) {
  std::vector<Context> contexts;
  for (const int64_t number : gpus) contexts.push_back(gpu(static_cast<int>(number)));
  for (int64_t i = 0; gpus.empty() && i < cpus; ++i) contexts.push_back(cpu(static_cast<int>(i)));
  return contexts;
}

}  // namespace examples
