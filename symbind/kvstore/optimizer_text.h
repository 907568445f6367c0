// Serializes an optimizer for a server: its kind, arguments, schedule, names, multipliers and counts, as text that
// another process of the same program reads. The states of parameters are not in it.
#pragma once

#include <functional>
#include <string>

#include "symbind/optim/optimizer.h"

namespace SYMBIND_API symbind {

// Fails for an optimizer that cannot be serialized: one whose schedule is a user-defined class.
std::string write_optimizer(const OptimizerPtr& optimizer);
// A user-defined optimizer must be registered in this process, too (register_optimizer).
OptimizerPtr read_optimizer(const std::string& text);

// The serialization of optimizers that are objects of another language.
struct OptimizerTexts {
  std::function<std::string(const OptimizerPtr& optimizer)> write;
  std::function<OptimizerPtr(const std::string& text)> read;
};
// Replaces the functions above, in every process of a job; call it before the first store is created.
void set_optimizer_texts(OptimizerTexts texts);

}  // namespace symbind
