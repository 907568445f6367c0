// The position in the random stream of every device, so that a resumed run draws the same numbers as an uninterrupted
// one.
#pragma once

#include <map>
#include <string>

#include "symbind/core/random.h"

namespace symbind {

// By context ("cpu(0)"), of all devices in use; "host" is the generator of shuffles and initializers.
std::map<std::string, RandomCursor> random_cursors();
// Contexts that this machine does not have are ignored.
void restore_random_cursors(const std::map<std::string, RandomCursor>& cursors);

// On destruction, resets the random streams (all of them, or only the host's, which shuffles use) to their positions at
// construction. Streams belong to the process: numbers that other threads draw meanwhile are drawn a second time.
class KeepRandomStreams {
 public:
  enum class Which { all, host };
  explicit KeepRandomStreams(Which which = Which::all);
  ~KeepRandomStreams();
  KeepRandomStreams(const KeepRandomStreams&) = delete;
  KeepRandomStreams& operator=(const KeepRandomStreams&) = delete;

 private:
  std::map<std::string, RandomCursor> before_;
};

}  // namespace symbind
