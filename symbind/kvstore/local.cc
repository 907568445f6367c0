#include "symbind/kvstore/local.h"

#include <algorithm>
#include <set>

#include "symbind/core/error.h"
#include "symbind/kvstore/sum.h"

namespace symbind {
namespace {

// Then the order of the copies matters.
bool write_one_storage_twice(const KVStore::Values& outs) {
  std::set<const Storage*> written;
  for (const std::vector<NDArray>& arrays : outs)
    for (const NDArray& array : arrays)
      if (!written.insert(&array.storage()).second) return true;
  return false;
}

}  // namespace

LocalStore::Entry& LocalStore::entry_of(const ParamKey& key, const char* call) {
  const auto found = entries_.find(key);
  require(found != entries_.end(), "[kvstore] ", call, " of key ", key, ", which was never given to init");
  return found->second;
}

void LocalStore::init(const Keys& keys, const std::vector<NDArray>& values) {
  const std::lock_guard lock(mutex_);
  check_counts("init", keys.size(), values.size());
  kind_.check(keys, "init");
  std::set<ParamKey> seen;
  for (size_t i = 0; i < keys.size(); ++i) {
    check_array("init", keys[i], values[i]);
    require(!entries_.count(keys[i]) && seen.insert(keys[i]).second, "[kvstore] init of key ", keys[i],
            ", which has a value already: each key is initialised once");
  }
  std::vector<NDArray> copies;
  for (const NDArray& value : values) copies.push_back(value.as_copy_in(cpu()));
  for (size_t i = 0; i < keys.size(); ++i) entries_[keys[i]].stored = copies[i];
  kind_.learn(keys);
}

// All errors of a push are detected here, before anything has changed. A key listed twice is one push of all its
// arrays.
std::vector<LocalStore::Push> LocalStore::checked_pushes(const Keys& keys, const Values& values) {
  check_counts("push", keys.size(), values.size());
  kind_.check(keys, "push");
  std::vector<Push> pushes;
  pushes.reserve(keys.size());
  std::map<const Entry*, size_t> position;
  for (size_t i = 0; i < keys.size(); ++i) {
    Entry& entry = entry_of(keys[i], "push");
    require(!values[i].empty(), "[kvstore] push of key ", keys[i], " was given no arrays");
    for (const NDArray& array : values[i]) check_pushed(keys[i], entry.stored, array, compression_.has_value());
    const auto [slot, is_new] = position.try_emplace(&entry, pushes.size());
    if (is_new) pushes.push_back({&keys[i], &entry, {}});
    auto& arrays = pushes[slot->second].arrays;
    arrays.insert(arrays.end(), values[i].begin(), values[i].end());
  }
  return pushes;
}

// The first push decides the device of a value and its optimizer state.
void LocalStore::place(Entry& entry, const NDArray& first) const {
  if (entry.placed) return;
  if (sum_on_ == SumOn::device) entry.stored = entry.stored.as_in_context(first.context());
  entry.placed = true;
}

void LocalStore::sum_into(const NDArray& out, Push& push) const {
  if (compression_)
    sum_compressed(out, push);
  else
    sum_to(out, push.arrays, push.entry->copies);
}

// Null: the arrays are summed or copied one by one.
GpuGroup* LocalStore::group_of(const std::vector<NDArray>& arrays, const NDArray& stored) const {
  if (!groups_ || stored.size() == 0) return nullptr;
  std::vector<Context> contexts;
  for (const NDArray& array : arrays) {
    if (array.dtype() != stored.dtype()) return nullptr;
    contexts.push_back(array.context());
  }
  if (std::find(contexts.begin(), contexts.end(), stored.context()) == contexts.end()) return nullptr;
  return groups_(contexts, stored.dtype());
}

// Without an updater the sum replaces the value; else an only array of the value's device is passed on as it is.
NDArray LocalStore::place_of_sum(Push& push) const {
  Entry& entry = *push.entry;
  if (!updates()) return entry.stored;
  const bool as_it_is = push.arrays.size() == 1 && !compression_ && push.arrays[0].context() == entry.stored.context();
  if (as_it_is) return push.arrays[0];
  if (!entry.sum) entry.sum = NDArray(entry.stored.shape(), entry.stored.context(), entry.stored.dtype());
  return entry.sum;
}

std::vector<NDArray> LocalStore::sums_of(std::vector<Push>& pushes) const {
  std::vector<NDArray> sums;
  sums.reserve(pushes.size());
  std::map<GpuGroup*, std::vector<GpuGroup::Sum>> by_group;
  for (Push& push : pushes) {
    const NDArray& sum = sums.emplace_back(place_of_sum(push));
    if (updates() && sum.same_memory(push.arrays[0])) continue;
    if (GpuGroup* const group = compression_ ? nullptr : group_of(push.arrays, push.entry->stored))
      by_group[group].push_back({push.arrays, sum});
    else
      sum_into(sum, push);
  }
  for (const auto& [group, of_group] : by_group) group->reduce(of_group);
  return sums;
}

// Compressed and summed by the host, whatever the devices: the words of a GPU's gradient are made from a copy of it.
void LocalStore::sum_compressed(const NDArray& out, Push& push) const {
  Entry& entry = *push.entry;
  const size_t count = push.arrays.size();
  if (entry.copies.size() < count) entry.copies.resize(count);
  while (entry.residuals.size() < count) {
    entry.residuals.push_back(zeros(entry.stored.shape()));
    entry.words.emplace_back(Shape{GradientCompression::words_for(entry.stored.size())}, cpu(), DType::int32);
  }
  for (size_t i = 0; i < count; ++i)
    compression_->compress(brought_to(cpu(), push.arrays[i], entry.copies[i]), entry.residuals[i], entry.words[i]);
  const auto words = std::span(entry.words).first(count);
  if (!out.context().is_gpu()) return compression_->sum_to(out, words);
  if (!entry.host_sum) entry.host_sum = NDArray(out.shape());
  compression_->sum_to(entry.host_sum, words);
  entry.host_sum.copyto(out);
}

void LocalStore::push(const Keys& keys, const Values& values, int /*priority*/) {
  const std::lock_guard lock(mutex_);
  std::vector<Push> pushes = checked_pushes(keys, values);
  for (Push& each : pushes) place(*each.entry, each.arrays[0]);
  const std::vector<NDArray> sums = sums_of(pushes);
  if (update_function_) {
    for (size_t i = 0; i < pushes.size(); ++i) update_function_(*pushes[i].key, sums[i], pushes[i].entry->stored);
  } else if (updater_) {
    std::vector<Updater::Item> items;
    items.reserve(pushes.size());
    for (size_t i = 0; i < pushes.size(); ++i) items.push_back({*pushes[i].key, sums[i], pushes[i].entry->stored});
    (*updater_)(items);
  }
}

void LocalStore::check_pull(const Keys& keys, const Values& outs) {
  check_counts("pull", keys.size(), outs.size());
  kind_.check(keys, "pull");
  for (size_t i = 0; i < keys.size(); ++i) {
    const Entry& entry = entry_of(keys[i], "pull");
    for (const NDArray& out : outs[i]) check_pulled(keys[i], entry.stored, out);
  }
}

void LocalStore::pull(const Keys& keys, const Values& outs, int /*priority*/) {
  const std::lock_guard lock(mutex_);
  check_pull(keys, outs);
  std::vector<NDArray> stored;
  for (const ParamKey& key : keys) stored.push_back(entry_of(key, "pull").stored);
  if (!groups_ || write_one_storage_twice(outs)) return copy_out(stored, outs);
  std::map<GpuGroup*, std::vector<GpuGroup::Copy>> by_group;
  for (size_t i = 0; i < keys.size(); ++i)
    if (GpuGroup* const group = group_of(outs[i], stored[i]))
      by_group[group].push_back({stored[i], outs[i]});
    else
      copy_out(std::span(&stored[i], 1), {outs[i]});
  for (const auto& [group, copies] : by_group) group->broadcast(copies);
}

void LocalStore::pushpull(const Keys& keys, const Values& values, const Values& outs, int priority) {
  const std::lock_guard lock(mutex_);
  check_pull(keys, outs);  // before the push changes anything
  push(keys, values, priority);
  pull(keys, outs, priority);
}

void LocalStore::row_sparse_pull(const Keys& keys, const Values&, const Values&, int) {
  fail("[kvstore] row_sparse_pull of key ", keys.empty() ? ParamKey("(none)") : keys[0],
       ": arrays are dense here and have no row_sparse form; use pull");
}

void LocalStore::set_optimizer(OptimizerPtr optimizer) {
  require(optimizer != nullptr, "[kvstore] set_optimizer was given no optimizer");
  const std::lock_guard lock(mutex_);
  updater_ = std::make_shared<Updater>(std::move(optimizer));
  update_function_ = nullptr;
}

void LocalStore::set_updater(UpdateFunction updater) {
  const std::lock_guard lock(mutex_);
  update_function_ = std::move(updater);
  updater_.reset();
}

void LocalStore::set_gradient_compression(const std::map<std::string, std::string>& params) {
  require(sum_on_ == SumOn::device, "[kvstore] gradient compression is for the stores that exchange gradients between ",
          "devices (device, local_allreduce_device, dist_…), not for ", type_);
  const GradientCompression compression(params);
  const std::lock_guard lock(mutex_);
  compression_ = compression;
  for (auto& [key, entry] : entries_) {
    entry.residuals.clear();
    entry.words.clear();
  }
}

std::string LocalStore::get_optimizer_states(bool dump_optimizer) const {
  const std::lock_guard lock(mutex_);
  require(updater_ != nullptr, "[kvstore] the store has no optimizer whose states could be saved; call set_optimizer");
  return updater_->get_states(dump_optimizer);
}

void LocalStore::set_optimizer_states(const SavedStates& states) {
  const std::lock_guard lock(mutex_);
  require(updater_ != nullptr, "[kvstore] the store has no optimizer whose states could be loaded; call set_optimizer");
  updater_->set_states(states);
}

}  // namespace symbind
