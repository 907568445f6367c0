// A transport between threads of one process in the role of workers: the stores run on it without MPI, and under the
// thread sanitizer. Workers can be lost on purpose.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "symbind/kvstore/kvstore.h"
#include "symbind/kvstore/peers.h"
#include "symbind/kvstore/transport.h"

namespace symbind::testing {

// The messages between some workers and servers.
class Wires;
std::shared_ptr<Wires> make_wires(int workers, int servers = 0);
std::unique_ptr<Transport> open_thread_transport(std::shared_ptr<Wires> wires, int rank);
// A thread in place of a lost worker, which waits until the others admit it.
std::unique_ptr<Transport> open_replacement(std::shared_ptr<Wires> wires);
// Messages from and to this process are lost from now on, as if its host were cut off. In an elastic job the others
// are notified.
void cut_off(Wires& wires, int rank);

// Runs `work` on a thread for each worker, and for each that is started in place of a lost one; lets servers serve on
// one each, and waits for all. What a process throws is its text in the result, else "".
struct Worker {
  int rank;  // replacements have ranks after those of the first workers
  std::shared_ptr<Peers> peers;
  KVStorePtr store(const std::string& type = "dist_sync") const;
};
struct JobOptions {
  Peers::Options peers = {};
  std::shared_ptr<Wires> wires = nullptr;
  int servers = 0;
  bool replacements = true;  // do they come?
};
std::vector<std::string> run_job(int workers, const std::function<void(Worker&)>& work, const JobOptions& options = {});

}  // namespace symbind::testing
