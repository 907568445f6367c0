// A store whose workers decide things together: whether a step is taken, for instance.
#pragma once

#include <string>

namespace symbind {

class Agreement {
 public:
  virtual ~Agreement() = default;
  // Did every worker say yes? Called by all workers, which wait for one another; errors name the subject: "the overflow
  // check". Where workers do not wait for one another (dist_async), the answer is one's own.
  virtual bool all_agree(const std::string& subject, bool own) = 0;
};

}  // namespace symbind
