// A store of a job in which new workers take the place of lost ones.
#pragma once

#include <functional>
#include <string>

namespace symbind {

class Replacement {
 public:
  virtual ~Replacement() = default;
  // Called by all workers before each epoch; returns the epoch to begin. In an elastic job new workers join here: their
  // stores get the values and the optimizer's states of worker 0, and `read` what `write` returned there. For them it
  // is the first call that involves the others. Other jobs return `epoch` immediately.
  virtual int begin_epoch(int epoch, const std::function<std::string()>& write,
                          const std::function<void(const std::string&)>& read) = 0;
};

}  // namespace symbind
