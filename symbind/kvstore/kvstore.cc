#include "symbind/kvstore/kvstore.h"

#include <cstdlib>
#include <optional>
#include <set>
#include <sstream>

#include "symbind/core/atomic_file.h"
#include "symbind/core/error.h"
#include "symbind/core/sum_group.h"
#include "symbind/files/states.h"
#include "symbind/kvstore/dist.h"
#include "symbind/kvstore/gpu_group.h"
#include "symbind/kvstore/local.h"
#include "symbind/kvstore/server.h"
#include "symbind/kvstore/transport.h"
#include "symbind/kvstore/worker_sum.h"

namespace symbind {
namespace {

struct Kind {
  std::string name;
  bool on_device = false;                                     // sums where the arrays are
  std::optional<DistStore::Kind> distributed = std::nullopt;  // over the workers of a job
};

const std::vector<Kind>& named_kinds() {
  static const std::vector<Kind> kinds = {
      {"local"},
      {"local_update_cpu"},
      {"local_allreduce_cpu"},
      {"device", true},
      {"local_allreduce_device", true},
      {"nccl", true},
      {"horovod", true, DistStore::Kind::allreduce},
  };
  return kinds;
}

// As in MXNet the other distributed stores have no list of names: "dist_sync_device" and "dist_device_sync" are one
// kind, and synchronous is every one that does not say otherwise.
std::optional<Kind> kind_by_words(const std::string& name) {
  std::set<std::string> words;
  std::istringstream text(name);
  for (std::string word; std::getline(text, word, '_');) words.insert(word);
  if (!words.contains("dist")) return std::nullopt;
  return Kind{name, words.contains("device"), words.contains("async") ? DistStore::Kind::async : DistStore::Kind::sync};
}

Kind kind_of(const std::string& type) {
  const std::string name = lower_case(type);
  for (const Kind& kind : named_kinds())
    if (kind.name == name) return kind;
  if (const std::optional<Kind> kind = kind_by_words(name)) return *kind;
  std::vector<std::string> names;
  for (const Kind& kind : named_kinds()) names.push_back(kind.name);
  fail("[kvstore] unknown type \"", type, "\": there are ", comma_separated(names),
       ", dist_sync, dist_async, dist_sync_device, dist_async_device");
}

}  // namespace

std::shared_ptr<KVStore> KVStore::create(const std::string& type) {
  const Kind kind = kind_of(type);
  const std::string& name = kind.name;
  if (kind.distributed) {
    if (is_server_process()) {
      serve_job();
      std::exit(0);
    }
    const std::string problem = mpi_problem();
    require(problem.empty(), "[kvstore] ", name, " needs MPI: ", problem, "; on one host use local or device");
    const auto sum_on = kind.on_device ? DistStore::SumOn::device : DistStore::SumOn::cpu;
    auto store = std::make_shared<DistStore>(name, *kind.distributed, sum_on, Peers::of_process());
    if (*kind.distributed != DistStore::Kind::async) sum_over_workers_of_process();
    return store;
  }
  const auto sum_on = kind.on_device ? LocalStore::SumOn::device : LocalStore::SumOn::cpu;
  return std::make_shared<LocalStore>(name, sum_on, name == "nccl" ? nccl_groups() : GpuGroups());
}

void KVStore::leave_job() {
  set_worker_sum(nullptr);
  Peers::leave_process();
}

void KVStore::serve_job() {
  if (mpi_problem().empty()) serve(Peers::of_process());  // without MPI there is no job
}

bool KVStore::is_distributed(const std::string& type) { return kind_of(type).distributed.has_value(); }

void KVStore::broadcast(const Keys& keys, const std::vector<NDArray>& values, const Values& outs, int priority) {
  init(keys, values);
  pull(keys, outs, priority);
}

void KVStore::send_command_to_servers(int head, const std::string& body) {
  if (command_handler_) command_handler_(head, body);
}

void KVStore::set_command_handler(CommandHandler handler) { command_handler_ = std::move(handler); }

void KVStore::pushpull(const Keys& keys, const Values& values, const Values& outs, int priority) {
  push(keys, values, priority);
  pull(keys, outs, priority);
}

namespace {

// Errors about the states of a file name the file.
template <class Call>
auto naming(const std::string& path, Call&& call) {
  try {
    return call();
  } catch (const Error& error) {
    fail("[", path, "] ", error.what());
  }
}

}  // namespace

void KVStore::save_optimizer_states(const std::string& path, bool dump_optimizer) const {
  write_file_atomically(path, naming(path, [&] { return get_optimizer_states(dump_optimizer); }));
}

void KVStore::load_optimizer_states(const std::string& path) {
  const SavedStates states = load_states(path);
  naming(path, [&] { set_optimizer_states(states); });
}

}  // namespace symbind
