// The progress of a store on each worker, which elastic jobs compare after a worker is lost (peers.h). An exchange ends
// earlier on some workers than on others; a worker is never more than one step behind, because an exchange starts only
// when all are ready for it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "symbind/kvstore/message.h"

namespace symbind {

struct Progress {
  uint64_t barriers = 0;                // passed
  uint64_t votes = 0;                   // counted
  bool unanimous = false;               // result of the last vote
  uint64_t admissions = 0;              // of new workers, completed
  std::map<std::string, int64_t> done;  // by key: the last step that is finished, 0: its initial value, -1: nothing yet
};

// The actions that bring the workers of a store back in step.
struct CatchUp {
  struct Transfer {
    std::string key;
    int64_t step = 0;
    int source = 0;           // a worker that has finished it
    std::vector<int> behind;  // those that have not
  };
  uint64_t barriers = 0, votes = 0, admissions = 0;
  bool unanimous = false;
  std::vector<Transfer> transfers;
};

// From the progress of every worker, in the order of their ranks.
CatchUp plan_catch_up(const std::vector<Progress>& of_workers);

void write(MessageWriter& out, const Progress& progress);
Progress read_progress(MessageReader& in);
void write(MessageWriter& out, const CatchUp& what);
CatchUp read_catch_up(MessageReader& in);

}  // namespace symbind
