#include "symbind/kvstore/kvstore.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "symbind/core/atomic_file.h"
#include "symbind/core/error.h"
#include "symbind/files/states.h"
#include "symbind/kvstore/local.h"

namespace symbind {
namespace {

// Every name there is. A kind that this build lacks says what it would need.
struct Kind {
  std::string_view name;
  LocalStore::SumOn sum_on = LocalStore::SumOn::cpu;
  std::string_view needs = "";
};

constexpr std::string_view needs_nccl = "NCCL, to sum over the GPUs of this host; use device instead";
constexpr std::string_view needs_mpi = "MPI, to exchange gradients between hosts; on one host use local or device";

constexpr std::array kinds = {
    Kind{"local"},
    Kind{"local_update_cpu"},
    Kind{"local_allreduce_cpu"},
    Kind{"device", LocalStore::SumOn::device},
    Kind{"local_allreduce_device", LocalStore::SumOn::device},
    Kind{"nccl", LocalStore::SumOn::device, needs_nccl},
    Kind{"dist_sync", LocalStore::SumOn::cpu, needs_mpi},
    Kind{"dist_device_sync", LocalStore::SumOn::device, needs_mpi},
    Kind{"dist_sync_device", LocalStore::SumOn::device, needs_mpi},
    Kind{"dist_async", LocalStore::SumOn::cpu, needs_mpi},
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
  require(kind.needs.empty(), "[kvstore] ", kind.name, " needs ", kind.needs, ": this build has none");
  return std::make_shared<LocalStore>(std::string(kind.name), kind.sum_on);
}

void KVStore::check_type(const std::string& type) { kind_of(type); }

void KVStore::pushpull(const Keys& keys, const Values& values, const Values& outs, int priority) {
  push(keys, values, priority);
  pull(keys, outs, priority);
}

namespace {

// What goes wrong with the states of a file says which.
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
