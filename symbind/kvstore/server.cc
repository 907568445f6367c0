#include "symbind/kvstore/server.h"

#include "symbind/core/environment.h"
#include "symbind/core/error.h"
#include "symbind/core/text.h"
#include "symbind/kvstore/dist_async.h"

namespace symbind {

bool is_server_process() {
  const std::string role = lower_case(environment::text("DMLC_ROLE").value());
  return !role.empty() && role != "worker";
}

// A worker that has left the job serves what it owns until all have left: a server leaves immediately and does only
// that.
void serve(const std::shared_ptr<Peers>& peers) {
  peers->serve([weak = std::weak_ptr(peers)] {
    if (auto held = weak.lock()) std::make_shared<AsyncMember>(std::move(held), "dist_async")->join();
  });
  peers->leave();
  if (const std::string failure = peers->failure(); !failure.empty()) throw Error(failure);
}

}  // namespace symbind
