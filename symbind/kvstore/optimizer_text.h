// An optimizer on its way to a server: its kind, arguments, schedule, names, multipliers and counts, as a text that
// another process of the same program reads. The states of parameters are not in it.
#pragma once

#include <functional>
#include <string>

#include "symbind/optim/optimizer.h"

namespace SYMBIND_API symbind {

// Fails for an optimizer that has no text: one whose schedule is a class of one's own.
std::string write_optimizer(const OptimizerPtr& optimizer);
// An optimizer of one's own must be known by its name here, too (register_optimizer).
OptimizerPtr read_optimizer(const std::string& text);

// Where optimizers are objects of another language, which has texts for them.
struct OptimizerTexts {
  std::function<std::string(const OptimizerPtr& optimizer)> write;
  std::function<OptimizerPtr(const std::string& text)> read;
};
// In place of those above, in every process of a job; called before the first store is created.
void set_optimizer_texts(OptimizerTexts texts);

}  // namespace symbind
