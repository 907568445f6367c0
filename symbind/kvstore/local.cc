#include "symbind/kvstore/local.h"

#include <algorithm>
#include <set>

#include "symbind/core/error.h"
#include "symbind/core/parallel.h"
#include "symbind/kvstore/sum.h"

namespace symbind {
namespace {

void check_counts(const char* call, size_t keys, size_t values) {
  require(keys == values, "[kvstore] ", call, " takes one value per key: ", keys, " keys, ", values, " values");
}

void check_array(const char* call, const ParamKey& key, const NDArray& array) {
  require(bool(array), "[kvstore] ", call, " of key ", key, " was given an empty array");
}

constexpr size_t bytes_worth_threads = size_t{1} << 18;

const char* kind_text(bool numbered) { return numbered ? "a number" : "a name"; }

}  // namespace

void LocalStore::check_kind_of(const Keys& keys, const char* call) const {
  if (keys.empty()) return;
  const bool first = numbered_.value_or(keys[0].is_number());
  for (const ParamKey& key : keys)
    require(key.is_number() == first, "[kvstore] the keys of a store are all numbers or all names: ", call, " of key ",
            key, ", ", kind_text(!first), ", where the others are ", first ? "numbers" : "names");
}

LocalStore::Entry& LocalStore::entry_of(const ParamKey& key, const char* call) {
  const auto found = entries_.find(key);
  require(found != entries_.end(), "[kvstore] ", call, " of key ", key, ", which was never given to init");
  return found->second;
}

void LocalStore::init(const Keys& keys, const std::vector<NDArray>& values) {
  const std::lock_guard lock(mutex_);
  check_counts("init", keys.size(), values.size());
  check_kind_of(keys, "init");
  std::set<ParamKey> seen;
  for (size_t i = 0; i < keys.size(); ++i) {
    check_array("init", keys[i], values[i]);
    require(!entries_.count(keys[i]) && seen.insert(keys[i]).second, "[kvstore] init of key ", keys[i],
            ", which has a value already: each key is initialised once");
  }
  std::vector<NDArray> copies;
  for (const NDArray& value : values) copies.push_back(value.as_copy_in(cpu()));
  for (size_t i = 0; i < keys.size(); ++i) entries_[keys[i]].stored = copies[i];
  if (!keys.empty()) numbered_ = keys[0].is_number();
}

// Everything a push may find wrong is found here, before anything has changed. A key listed twice is one push of all
// its arrays.
std::vector<LocalStore::Push> LocalStore::checked_pushes(const Keys& keys, const Values& values) {
  check_counts("push", keys.size(), values.size());
  check_kind_of(keys, "push");
  std::vector<Push> pushes;
  pushes.reserve(keys.size());
  std::map<const Entry*, size_t> position;
  for (size_t i = 0; i < keys.size(); ++i) {
    Entry& entry = entry_of(keys[i], "push");
    require(!values[i].empty(), "[kvstore] push of key ", keys[i], " was given no arrays");
    for (const NDArray& array : values[i]) {
      check_array("push", keys[i], array);
      require(array.shape() == entry.stored.shape(), "[kvstore] push of key ", keys[i], " of shape ",
              entry.stored.shape(), ": an array on ", array.context(), " has shape ", array.shape());
      require(array.dtype() == entry.stored.dtype(), "[kvstore] push of key ", keys[i], " of type ",
              entry.stored.dtype(), ": an array on ", array.context(), " has type ", array.dtype());
      require(!compression_ || array.dtype() == DType::float32, "[kvstore] push of key ", keys[i],
              ": gradient compression takes float32, not ", array.dtype());
    }
    const auto [slot, is_new] = position.try_emplace(&entry, pushes.size());
    if (is_new) pushes.push_back({&keys[i], &entry, {}});
    auto& arrays = pushes[slot->second].arrays;
    arrays.insert(arrays.end(), values[i].begin(), values[i].end());
  }
  return pushes;
}

// The first push decides where a value and its optimizer state live.
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

NDArray LocalStore::sum_for_update(Push& push) const {
  Entry& entry = *push.entry;
  const bool as_it_is = push.arrays.size() == 1 && !compression_ && push.arrays[0].context() == entry.stored.context();
  if (as_it_is) return push.arrays[0];
  if (!entry.sum) entry.sum = NDArray(entry.stored.shape(), entry.stored.context(), entry.stored.dtype());
  sum_into(entry.sum, push);
  return entry.sum;
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
  if (!updates()) {
    for (Push& each : pushes) sum_into(each.entry->stored, each);
  } else if (update_function_) {
    for (Push& each : pushes) update_function_(*each.key, sum_for_update(each), each.entry->stored);
  } else {
    std::vector<Updater::Item> items;
    items.reserve(pushes.size());
    for (Push& each : pushes) items.push_back({*each.key, sum_for_update(each), each.entry->stored});
    (*updater_)(items);
  }
}

void LocalStore::check_pull(const Keys& keys, const Values& outs) {
  check_counts("pull", keys.size(), outs.size());
  check_kind_of(keys, "pull");
  for (size_t i = 0; i < keys.size(); ++i) {
    const Entry& entry = entry_of(keys[i], "pull");
    for (const NDArray& out : outs[i]) {
      check_array("pull", keys[i], out);
      require(out.shape() == entry.stored.shape(), "[kvstore] pull of key ", keys[i], " of shape ",
              entry.stored.shape(), ": an array on ", out.context(), " has shape ", out.shape());
    }
  }
}

void LocalStore::pull(const Keys& keys, const Values& outs, int /*priority*/) {
  const std::lock_guard lock(mutex_);
  check_pull(keys, outs);
  // Device by device: where these are CPU contexts whose threads share the copying, each copies what it will read.
  std::vector<std::pair<NDArray, NDArray>> copies;
  size_t devices = 0;
  for (const auto& of_key : outs) devices = std::max(devices, of_key.size());
  size_t bytes = 0;
  bool concurrent = true;  // the host makes all copies, and no two into one storage, where the last must stay
  std::set<const Storage*> written;
  for (size_t device = 0; device < devices; ++device)
    for (size_t i = 0; i < keys.size(); ++i) {
      if (device >= outs[i].size()) continue;
      copies.emplace_back(entry_of(keys[i], "pull").stored, outs[i][device]);
      bytes += outs[i][device].bytes();
      concurrent = concurrent && !copies.back().first.context().is_gpu() && !copies.back().second.context().is_gpu() &&
                   written.insert(&outs[i][device].storage()).second;
    }
  const auto copy = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      copies[static_cast<size_t>(i)].first.copyto(copies[static_cast<size_t>(i)].second);
  };
  const auto count = static_cast<int64_t>(copies.size());
  if (concurrent && bytes >= bytes_worth_threads)
    parallel_for(count, 1, copy);
  else
    copy(0, count);
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
