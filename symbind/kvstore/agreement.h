// A store whose workers make joint decisions, e.g. whether a step is taken.
#pragma once

#include <string>

namespace symbind {

class Agreement {
 public:
  virtual ~Agreement() = default;
  // Did every worker vote yes? Called by all workers, which wait for one another; errors name the subject: "the
  // overflow check". Where workers do not wait for one another (dist_async), the result is the caller's own vote.
  virtual bool all_agree(const std::string& subject, bool own) = 0;
};

}  // namespace symbind
