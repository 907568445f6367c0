#include "symbind/kvstore/kvstore.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>
#include <string_view>

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

// All names.
struct Kind {
  std::string_view name;
  bool on_device = false;                                     // sums where the arrays are
  std::optional<DistStore::Kind> distributed = std::nullopt;  // over the workers of a job
};

constexpr std::array kinds = {
    Kind{"local"},
    Kind{"local_update_cpu"},
    Kind{"local_allreduce_cpu"},
    Kind{"device", true},
    Kind{"local_allreduce_device", true},
    Kind{"nccl", true},
    Kind{"dist_sync", false, DistStore::Kind::sync},
    Kind{"dist_device_sync", true, DistStore::Kind::sync},
    Kind{"dist_sync_device", true, DistStore::Kind::sync},
    Kind{"dist_async", false, DistStore::Kind::async},
    Kind{"dist_device_async", true, DistStore::Kind::async},
    Kind{"dist_async_device", true, DistStore::Kind::async},
    Kind{"horovod", true, DistStore::Kind::allreduce},
};

const Kind& kind_of(const std::string& type) {
  const std::string name = lower_case(type);
  for (const Kind& kind : kinds)
    if (kind.name == name) return kind;
  std::vector<std::string_view> names;
  for (const Kind& kind : kinds) names.push_back(kind.name);
  fail("[kvstore] unknown type \"", type, "\": there are ", comma_separated(names));
}

}  // namespace

std::shared_ptr<KVStore> KVStore::create(const std::string& type) {
  const Kind& kind = kind_of(type);
  const std::string name(kind.name);
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
