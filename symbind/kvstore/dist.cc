#include "symbind/kvstore/dist.h"

#include <set>
#include <utility>

#include "symbind/core/error.h"
#include "symbind/core/transfer.h"
#include "symbind/kvstore/dist_async.h"
#include "symbind/kvstore/dist_elastic.h"
#include "symbind/kvstore/dist_sync.h"
#include "symbind/kvstore/sum.h"

namespace symbind {
namespace {

std::shared_ptr<DistMember> make_member(DistStore::Kind kind, std::string type, std::shared_ptr<Peers> peers) {
  if (kind == DistStore::Kind::async) {
    require(!peers->elastic(), "[kvstore] ", type,
            " stores each value on one worker and would lose it with that worker: ",
            "an elastic job (SYMBIND_ELASTIC=1) needs dist_sync or horovod");
    return std::make_shared<AsyncMember>(std::move(peers), std::move(type));
  }
  if (peers->elastic())
    return std::make_shared<ElasticMember>(std::move(peers), std::move(type), kind != DistStore::Kind::allreduce);
  return std::make_shared<SyncMember>(std::move(peers), std::move(type));
}

}  // namespace

DistStore::DistStore(std::string type, Kind kind, SumOn sum_on, std::shared_ptr<Peers> peers)
    : kind_(kind), sum_on_(sum_on), member_(make_member(kind, std::move(type), std::move(peers))) {
  member_->join();
}

void DistStore::refuse_for_allreduce(const char* call) const {
  require(kind_ != Kind::allreduce, "[kvstore] ", type(), " has broadcast and pushpull, and no ", call,
          ": use dist_sync for the rest");
}

// ---- values ---------------------------------------------------------------------------------------------------------

void DistStore::init(const Keys& keys, const std::vector<NDArray>& values) {
  const InUse use = in_use("init");
  check_counts("init", keys.size(), values.size());
  kind_of_keys_.check(keys, "init");
  std::set<ParamKey> seen;
  for (size_t i = 0; i < keys.size(); ++i) {
    check_array("init", keys[i], values[i]);
    require((kind_ == Kind::allreduce || !member_->has(keys[i])) && seen.insert(keys[i]).second,
            "[kvstore] init of key ", keys[i], ", which has a value already: each key is initialised once");
  }
  kind_of_keys_.learn(keys);
  member_->init(keys, values);
}

void DistStore::broadcast(const Keys& keys, const std::vector<NDArray>& values, const Values& outs, int priority) {
  const InUse use = in_use("broadcast");
  init(keys, values);
  pull(keys, outs, priority);
}

// All errors of a push in this worker are detected here, before anything has changed. A key listed twice is one push of
// all its arrays.
std::vector<DistStore::Push> DistStore::checked_pushes(const Keys& keys, const Values& values) {
  check_counts("push", keys.size(), values.size());
  kind_of_keys_.check(keys, "push");
  require(kind_ != Kind::async || member_->update(), "[kvstore] ", type(),
          " applies each push by an optimizer: call set_optimizer first");
  std::vector<Push> pushes;
  std::map<const DistEntry*, size_t> position;
  for (size_t i = 0; i < keys.size(); ++i) {
    DistEntry& entry = member_->entry_of(keys[i], "push");
    require(!values[i].empty(), "[kvstore] push of key ", keys[i], " was given no arrays");
    for (const NDArray& array : values[i])
      check_pushed(keys[i], entry.stored, array, member_->compression().has_value());
    const auto [slot, is_new] = position.try_emplace(&entry, pushes.size());
    if (is_new) pushes.push_back({&entry, {}});
    auto& arrays = pushes[slot->second].arrays;
    arrays.insert(arrays.end(), values[i].begin(), values[i].end());
  }
  return pushes;
}

// The sum over this worker's devices, on the GPU where the workers may sum it there; else on the CPU, and its words
// where gradients are compressed. An array that the GPU still computes is on its way to the host until it is complete.
void DistStore::take_gradient(Push& push, bool in_place, const DeviceEventPtr& complete) const {
  DistEntry& entry = *push.entry;
  const std::optional<Context> gpu = gpu_for(push);
  entry.by_gpu = gpu.has_value();
  entry.after_queue = !complete;
  if (gpu) {
    if (!entry.device_sum || entry.device_sum.context() != *gpu || entry.device_sum.shape() != entry.stored.shape()) {
      entry.device_sum = NDArray(entry.stored.shape(), *gpu, entry.stored.dtype());
      entry.after_queue = true;  // its memory may still be used by work that was queued before it was released
    }
    const bool is_there = in_place && push.arrays.size() == 1 && push.arrays[0].context() == *gpu;
    if (!is_there) {
      sum_to(entry.device_sum, push.arrays, entry.copies);
      entry.after_queue = true;
    }
    entry.gradient = is_there ? push.arrays[0] : entry.device_sum;
    return;
  }
  if (complete) {
    const NDArray& array = entry.gradient = push.arrays[0];
    entry.download = start_download(array.storage().device(), array.data(), array.bytes(), *complete);
    return;
  }
  const bool as_it_is = in_place && push.arrays.size() == 1 && !push.arrays[0].context().is_gpu();
  if (as_it_is) {
    entry.gradient = push.arrays[0];
  } else {
    const Context first = push.arrays[0].context();
    if (!entry.local_sum) entry.local_sum = NDArray(entry.stored.shape(), cpu(), entry.stored.dtype());
    if (sum_on_ == SumOn::device && first.is_gpu() && push.arrays.size() > 1) {
      if (!entry.device_sum || entry.device_sum.context() != first)
        entry.device_sum = NDArray(entry.stored.shape(), first, entry.stored.dtype());
      sum_to(entry.device_sum, push.arrays, entry.copies);
      entry.device_sum.copyto(entry.local_sum);
    } else {
      sum_to(entry.local_sum, push.arrays, entry.copies);
    }
    entry.gradient = entry.local_sum;
  }
  if (!member_->compression()) return;
  if (!entry.residual) {
    entry.residual = zeros(entry.stored.shape());
    entry.words = NDArray(Shape{GradientCompression::words_for(entry.stored.size())}, cpu(), DType::int32);
  }
  member_->compression()->compress(entry.gradient, entry.residual, entry.words);
}

std::optional<Context> DistStore::gpu_for(const Push& push) const {
  if (sum_on_ != SumOn::device || push.entry->stored.size() == 0) return std::nullopt;
  return member_->gpu_for(push.arrays[0].context(), push.entry->stored.dtype());
}

void DistStore::start(std::vector<Push> pushes, int priority, bool in_place, const DeviceEventPtr& complete) {
  std::vector<DistEntry*> entries;
  for (const Push& each : pushes) entries.push_back(each.entry);
  member_->finish(entries);  // a key has at most one exchange at a time
  for (Push& each : pushes) {
    take_gradient(each, in_place, complete);
    each.entry->early = false;
  }
  if (!entries.empty()) member_->push(entries, priority, complete);
}

void DistStore::push(const Keys& keys, const Values& values, int priority) {
  const InUse use = in_use("push");
  refuse_for_allreduce("push");
  start(checked_pushes(keys, values), priority, false);
}

bool DistStore::may_push_early() const {
  const UpdateUnit unit = member_->update().unit();
  return kind_ != Kind::async && (unit == UpdateUnit::element || unit == UpdateUnit::parameter);
}

bool DistStore::returns_sums() const { return kind_ != Kind::async && !member_->update() && !member_->compression(); }

void DistStore::push_early(const Keys& keys, const Values& values, int priority, const DeviceEventPtr& complete) {
  const InUse use = in_use("push_early");
  if (complete && member_->compression()) return;
  std::vector<Push> pushes = checked_pushes(keys, values);
  std::vector<DistEntry*> entries;
  for (const Push& each : pushes) {
    require(!complete || each.arrays.size() == 1, "[kvstore] early push of key ", each.entry->key, ": ",
            each.arrays.size(), " arrays are waited for with one event");
    entries.push_back(each.entry);
  }
  start(std::move(pushes), priority, true, complete);
  for (DistEntry* const entry : entries) entry->early = true;
}

std::vector<DistEntry*> DistStore::checked_pulls(const Keys& keys, const Values& outs) {
  check_counts("pull", keys.size(), outs.size());
  kind_of_keys_.check(keys, "pull");
  std::vector<DistEntry*> entries;
  for (size_t i = 0; i < keys.size(); ++i) {
    entries.push_back(&member_->entry_of(keys[i], "pull"));
    for (const NDArray& out : outs[i]) check_pulled(keys[i], entries.back()->stored, out);
  }
  return entries;
}

void DistStore::pull(const Keys& keys, const Values& outs, int /*priority*/) {
  const InUse use = in_use("pull");
  copy_out(member_->pull(checked_pulls(keys, outs)), outs);
}

void DistStore::pushpull(const Keys& keys, const Values& values, const Values& outs, int priority) {
  const InUse use = in_use("pushpull");
  if (kind_ == Kind::allreduce) {  // keys need no init
    Keys unknown;
    std::vector<NDArray> first;
    for (size_t i = 0; i < std::min(keys.size(), values.size()); ++i)
      if (!member_->has(keys[i]) && !values[i].empty()) {
        unknown.push_back(keys[i]);
        first.push_back(values[i][0]);
      }
    init(unknown, first);
  }
  checked_pulls(keys, outs);  // before the push changes anything
  std::vector<Push> pushes = checked_pushes(keys, values);
  std::erase_if(pushes, [](const Push& each) { return std::exchange(each.entry->early, false); });
  start(std::move(pushes), priority, true);
  pull(keys, outs, priority);
}

void DistStore::row_sparse_pull(const Keys& keys, const Values&, const Values&, int) {
  fail("[kvstore] row_sparse_pull of key ", keys.empty() ? ParamKey("(none)") : keys[0],
       ": arrays are dense here and have no row_sparse form; use pull");
}

// ---- operations on them ---------------------------------------------------------------------------------------------

void DistStore::set_optimizer(OptimizerPtr optimizer) {
  const InUse use = in_use("set_optimizer");
  require(optimizer != nullptr, "[kvstore] set_optimizer was given no optimizer");
  refuse_for_allreduce("optimizer");
  require(kind_ != Kind::async || !optimizer->clip_global_norm, "[kvstore] ", type(),
          " never has all gradients of a step, whose norm clip_global_norm limits: use dist_sync");
  require(!member_->peers().elastic() || !optimizer->draws_random(), "[kvstore] ", optimizer->name(),
          " draws random numbers, which would be different ones on every worker of an elastic job (SYMBIND_ELASTIC=1)");
  member_->set_update({std::make_shared<Updater>(std::move(optimizer)), nullptr});
}

void DistStore::set_updater(UpdateFunction updater) {
  const InUse use = in_use("set_updater");
  refuse_for_allreduce("updater");
  require(
      kind_ != Kind::async || member_->peers().servers() == 0,
      "[kvstore] an updater is a function of the workers, which servers cannot call: use set_optimizer, or start the ",
      "job without servers (-s 0)");
  member_->set_update({nullptr, std::move(updater)});
}

void DistStore::set_gradient_compression(const std::map<std::string, std::string>& params) {
  const InUse use = in_use("set_gradient_compression");
  refuse_for_allreduce("gradient compression");
  member_->set_compression(GradientCompression(params));
}

void DistStore::barrier() {
  const InUse use = in_use("barrier");
  member_->barrier();
}

// In dist_async no worker waits for others.
bool DistStore::all_agree(const std::string& subject, bool own) {
  const InUse use = in_use("all_agree");
  return kind_ == Kind::async ? own : member_->all_agree(subject, own);
}

int DistStore::begin_epoch(int epoch, const std::function<std::string()>& write,
                           const std::function<void(const std::string&)>& read) {
  const InUse use = in_use("begin_epoch");
  return member_->begin_epoch(epoch, write, read);
}

void DistStore::send_command_to_servers(int head, const std::string& body) {
  const InUse use = in_use("send_command_to_servers");
  member_->send_command(head, body);
}

void DistStore::set_command_handler(CommandHandler handler) {
  const InUse use = in_use("set_command_handler");
  member_->set_command_handler(std::move(handler));
}

std::string DistStore::get_optimizer_states(bool dump_optimizer) const {
  const InUse use = in_use("get_optimizer_states");
  return write_states(member_->states(dump_optimizer));
}

void DistStore::set_optimizer_states(const SavedStates& states) {
  const InUse use = in_use("set_optimizer_states");
  member_->set_states(states);
}

}  // namespace symbind
