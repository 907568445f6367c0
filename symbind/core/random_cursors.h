// The position in the random numbers of every device, so that a run that is resumed draws what it would have drawn.
#pragma once

#include <map>
#include <string>

#include "symbind/core/random.h"

namespace symbind {

// By context ("cpu(0)"), of all devices in use; "host" is the generator of shuffles and initializers.
std::map<std::string, RandomCursor> random_cursors();
// Contexts that this machine does not have are passed over.
void restore_random_cursors(const std::map<std::string, RandomCursor>& cursors);

// When it goes out of scope, the random streams (all of them, or the host's, which shuffles use) are where they were
// when it was made, whatever was drawn meanwhile. Streams belong to the process: draws that other threads take
// meanwhile are taken a second time.
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
