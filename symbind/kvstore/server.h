// A process that holds keys for the workers of a job and trains nothing itself.
#pragma once

#include <memory>

namespace symbind {

class Peers;

// Is this process one, by DMLC_ROLE?
bool is_server_process();
// Serves until all workers have left; throws the failure of the job, if any.
void serve(const std::shared_ptr<Peers>& peers);

}  // namespace symbind
