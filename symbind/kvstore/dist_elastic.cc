#include "symbind/kvstore/dist_elastic.h"

#include <algorithm>

#include "symbind/exec/arithmetic.h"

namespace symbind {

// The sums are divided among the workers, the updates are not.
Shares ElasticMember::divided(const DistEntry& entry) {
  shares_[&entry] = division_.next(entry.stored.size(), UpdateUnit::element);
  return {{peers_->rank(), 0, entry.stored.size()}};
}

const NDArray& ElasticMember::result_of(DistEntry& entry) {
  if (!entry.total) entry.total = NDArray(entry.stored.shape(), cpu(), entry.stored.dtype());
  return entry.total;
}

void ElasticMember::update(Round& round) {
  const double scale = update_.updater ? static_cast<double>(workers_of_update_) / peers_->workers() : 1;
  for (DistEntry* const entry : round.entries)
    for (const Share& share : summed_shares(*entry)) {
      if (share.owner != peers_->rank()) continue;
      NDArray sum = part_of(result_of(*entry), share);
      summed(*entry, share, pushed_parts(*entry, share), compression_.has_value(), sum);
      if (scale != 1) sum *= scale;
    }
}

void ElasticMember::finish_round(const std::shared_ptr<Round>& round) {
  peers_->work([this, round] { apply(round->entries); }, [this, round] { finish_entries(*round); });
}

// All workers do this in the same order, which some optimizers depend on. Completed updates are marked here and not
// later: a regrouping may happen in between.
void ElasticMember::apply(const std::vector<DistEntry*>& entries) {
  std::vector<DistEntry*> sorted = entries;
  std::sort(sorted.begin(), sorted.end(), [](const DistEntry* a, const DistEntry* b) { return a->key < b->key; });
  std::vector<Updater::Item> items;
  for (DistEntry* const entry : sorted) {
    if (update_)
      items.push_back({entry->key, entry->total, entry->stored});
    else
      entry->total.copyto(entry->stored);
  }
  update_now(std::move(items));
  const auto guard = peers_->lock();
  for (DistEntry* const entry : sorted) entry->done = entry->pushes;
}

// ---- after a regrouping ---------------------------------------------------------------------------------------------

void ElasticMember::regrouped() {
  SyncMember::regrouped();
  {
    const auto guard = peers_->lock();
    for (auto& [name, entry] : entries_)
      if (entry.pending && entry.done == entry.pushes) {  // nothing waited for its last message
        entry.pending = false;
        entry.gradient = {};
      }
  }
  peers_->changed();
}

Progress ElasticMember::progress() const {
  Progress progress;
  const auto guard = peers_->lock();
  progress.barriers = barriers_.finished;
  progress.votes = votes_.finished;
  progress.unanimous = unanimous_;
  progress.admissions = admissions_.finished;
  for (const auto& [name, entry] : entries_) progress.done[name] = entry.done;
  return progress;
}

bool ElasticMember::waits_for(const Ready& ready) const {
  const auto guard = peers_->lock();
  const int64_t step = ready.steps.at(0);
  const bool has_values = ready.kind == ExchangeKind::init || ready.kind == ExchangeKind::push;
  if (!has_values) return static_cast<int64_t>(count_of(*this, ready.kind).finished) < step;
  return entries_.at(ready.keys.at(0)).done < step;
}

void ElasticMember::catch_up(const CatchUp& what, std::function<void()> done) {
  constexpr int tag = 1;  // no other exchange runs meanwhile
  {
    const auto guard = peers_->lock();
    barriers_.finished = what.barriers;
    if (what.votes > votes_.finished) unanimous_ = what.unanimous;
    votes_.finished = what.votes;
    admissions_.finished = what.admissions;
  }
  peers_->changed();
  struct Missing {
    std::vector<DistEntry*> values, sums;
    size_t transfers = 1;
  };
  const auto missing = std::make_shared<Missing>();
  const auto caught_up = [this, missing, done = std::move(done)] {
    if (--missing->transfers > 0) return;
    peers_->work(
        [this, missing] {
          {
            const auto guard = peers_->lock();
            for (DistEntry* const entry : missing->values) entry->done = 0;
          }
          if (!missing->sums.empty()) apply(missing->sums);
          take_new_shares();
        },
        [this, done] {
          regrouped();  // requests that catching up has completed are no longer waited for
          done();
        });
  };
  for (const CatchUp::Transfer& each : what.transfers) {
    const bool is_behind = std::find(each.behind.begin(), each.behind.end(), peers_->rank()) != each.behind.end();
    if (!is_behind && each.source != peers_->rank()) continue;
    DistEntry& entry = entry_named(each.key);
    const NDArray& array = each.step == 0 ? entry.stored : result_of(entry);
    if (is_behind) {
      (each.step == 0 ? missing->values : missing->sums).push_back(&entry);
      ++missing->transfers;
      peers_->receive(each.source, tag, mutable_bytes_of(array), caught_up);
      continue;
    }
    for (const int worker : each.behind) {
      ++missing->transfers;
      peers_->send(worker, tag, bytes_of(array), caught_up);
    }
  }
  caught_up();
}

// Shares for the current workers. Keys that do not have a value on all of them get theirs when they do.
void ElasticMember::take_new_shares() {
  const auto guard = peers_->lock();
  in_order_.clear();
  division_ = Division(owners());
  for (auto& [name, entry] : entries_) {
    if (entry.done < 0) continue;
    in_order_.push_back(&entry);
    entry.shares = divided(entry);
    entry.received.clear();
  }
}

}  // namespace symbind
