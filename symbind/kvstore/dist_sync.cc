#include "symbind/kvstore/dist_sync.h"

#include <algorithm>
#include <utility>

namespace symbind {
namespace {

constexpr int64_t per_word = 16;  // elements of a compressed gradient

bool all_by_gpu(const std::vector<DistEntry*>& entries) {
  return std::all_of(entries.begin(), entries.end(), [](const DistEntry* entry) { return entry->by_gpu; });
}

}  // namespace

void SyncMember::push(const std::vector<DistEntry*>& entries, int priority, const DeviceEventPtr& complete) {
  require_worker("push");
  const UpdateUnit unit = update_.unit();
  Ready ready{.store = number_,
              .kind = ExchangeKind::push,
              .keys = {},
              .bytes = {},
              .details = {settings()},
              .priority = priority,
              .together = unit == UpdateUnit::step || unit == UpdateUnit::sequence,
              .vote = all_by_gpu(entries)};
  {
    const auto guard = peers_->lock();
    for (DistEntry* const entry : entries) {
      entry->pending = true;
      ready.steps.push_back(++entry->pushes);
    }
  }
  for (const DistEntry* const entry : entries) {
    ready.keys.push_back(entry->key.str());
    ready.bytes.push_back(entry->stored.bytes());
  }
  if (!complete) return peers_->ready(std::move(ready));
  const auto are_complete = [entries, complete] {
    return complete->reached() && std::all_of(entries.begin(), entries.end(), [](const DistEntry* entry) {
             return !entry->download || entry->download->arrived();
           });
  };
  peers_->when(are_complete, [this, entries, ready = std::move(ready)] {
    for (DistEntry* const entry : entries)
      if (const auto download = std::exchange(entry->download, nullptr))
        entry->gradient = NDArray::from_blob(const_cast<void*>(download->data()), entry->gradient.shape(),
                                             entry->gradient.dtype(), download);
    peers_->announce(ready);
  });
}

std::vector<NDArray> SyncMember::pull(const std::vector<DistEntry*>& entries) {
  finish(entries);
  std::vector<NDArray> values;
  for (const DistEntry* const entry : entries) values.push_back(entry->is_on_gpu ? entry->device_sum : entry->stored);
  return values;
}

std::optional<Context> SyncMember::gpu_for(Context context, DType dtype) const {
  if (update_ || compression_) return std::nullopt;
  return peers_->gpus().gpu_for(context, dtype);
}

NDArray SyncMember::sent_part(const DistEntry& entry, const Share& share) const {
  if (!compression_) return part_of(entry.gradient, share);
  return entry.words.slice(share.begin / per_word, GradientCompression::words_for(share.end));
}

NDArray& SyncMember::received_part(DistEntry& entry, const Share& share, int worker) const {
  entry.received.resize(static_cast<size_t>(peers_->workers()));
  NDArray& part = entry.received[static_cast<size_t>(worker)];
  if (!part) {
    const NDArray like = sent_part(entry, share);
    part = NDArray(like.shape(), cpu(), like.dtype());
  }
  return part;
}

std::vector<NDArray> SyncMember::pushed_parts(DistEntry& entry, const Share& share) {
  std::vector<NDArray> parts;
  for (int worker = 0; worker < peers_->workers(); ++worker)
    parts.push_back(worker == peers_->rank() ? sent_part(entry, share) : received_part(entry, share, worker));
  return parts;
}

void SyncMember::exchange_pushed(const Exchange& exchange) {
  auto round = std::make_shared<Round>();
  for (const std::string& name : exchange.keys) round->entries.push_back(&entry_named(name));
  round->tag = static_cast<int>(1 + exchange.number % (largest_tag / 2 - 1) * 2);
  exchange.unanimous ? sum_by_gpu(round) : start_on_host(round);
}

void SyncMember::sum_by_gpu(const std::shared_ptr<Round>& round) {
  std::vector<WorkerGpus::Sum> sums;
  for (const DistEntry* const entry : round->entries)
    sums.push_back({entry->gradient, entry->device_sum, entry->after_queue});
  peers_->gpus().all_reduce(std::move(sums), [this, round](bool summed) {
    if (!summed) return start_on_host(round);
    for (DistEntry* const entry : round->entries) entry->is_on_gpu = true;
    finish_round(round);
  });
}

void SyncMember::start_on_host(const std::shared_ptr<Round>& round) {
  const auto stage = [round] {
    for (DistEntry* const entry : round->entries) {
      if (!std::exchange(entry->by_gpu, false)) continue;
      if (!entry->local_sum) entry->local_sum = NDArray(entry->stored.shape(), cpu(), entry->stored.dtype());
      entry->gradient.copyto(entry->local_sum);
      entry->gradient = entry->local_sum;
    }
  };
  for (DistEntry* const entry : round->entries) entry->is_on_gpu = false;
  const bool is_staged =
      std::any_of(round->entries.begin(), round->entries.end(), [](const DistEntry* entry) { return entry->by_gpu; });
  is_staged ? peers_->work(stage, [this, round] { start(round); }) : start(round);
}

// Receives for the results are posted at the start, so that they arrive at their destination without a copy.
void SyncMember::start(const std::shared_ptr<Round>& round) {
  const int me = peers_->rank();
  const auto contributed = [this, round] {
    if (--round->contributions > 0) return;
    peers_->work([this, round] { update(*round); }, [this, round] { publish(round); });
  };
  const auto transferred = [this, round] {
    --round->others;
    if (round->updated && round->others == 0) finish_round(round);
  };
  ++round->contributions;  // this worker's
  for (DistEntry* const entry : round->entries)
    for (const Share& share : summed_shares(*entry)) {
      if (share.owner != me) {
        round->others += 2;
        peers_->receive(share.owner, round->tag + 1, mutable_bytes_of(part_of(result_of(*entry), share)), transferred);
        peers_->send(share.owner, round->tag, bytes_of(sent_part(*entry, share)), transferred);
        continue;
      }
      for (int other = 0; other < peers_->workers(); ++other) {
        if (other == me) continue;
        ++round->contributions;
        peers_->receive(other, round->tag, mutable_bytes_of(received_part(*entry, share, other)), contributed);
      }
    }
  contributed();
}

// Learning rates depend on the number of updates of all parameters: updates by other workers are counted too, in order.
void SyncMember::count(const DistEntry& entry) {
  if (update_.updater && update_.updater->optimizer()->counts_updates())
    update_.updater->optimizer()->update_count(entry.key);
}

void SyncMember::update(Round& round) {
  std::vector<Updater::Item> items;
  std::vector<const DistEntry*> counted_later;
  for (DistEntry* const entry : round.entries) {
    const Share* const share = entry->share_of(peers_->rank());
    if (!share) {
      items.empty() ? count(*entry) : counted_later.push_back(entry);
      continue;
    }
    const NDArray stored = part_of(entry->stored, *share);
    const NDArray sum =
        summed(*entry, *share, pushed_parts(*entry, *share), compression_.has_value(), update_ ? NDArray() : stored);
    if (update_) items.push_back({entry->key, sum, stored});
  }
  update_now(std::move(items));
  for (const DistEntry* const entry : counted_later) count(*entry);
}

void SyncMember::publish(const std::shared_ptr<Round>& round) {
  const auto transferred = [this, round] {
    if (--round->others == 0) finish_round(round);
  };
  ++round->others;  // until all are sent
  for (DistEntry* const entry : round->entries)
    for (const Share& share : summed_shares(*entry))
      for (int other = 0; share.owner == peers_->rank() && other < peers_->workers(); ++other) {
        if (other == peers_->rank()) continue;
        ++round->others;
        peers_->send(other, round->tag + 1, bytes_of(part_of(result_of(*entry), share)), transferred);
      }
  round->updated = true;
  transferred();
}

void SyncMember::finish_round(const std::shared_ptr<Round>& round) { finish_entries(*round); }

void SyncMember::finish_entries(const Round& round) {
  {
    const auto guard = peers_->lock();
    for (DistEntry* const entry : round.entries) {
      entry->done = entry->pushes;
      entry->pending = false;
      entry->gradient = {};
    }
  }
  peers_->changed();
}

}  // namespace symbind
