#include "symbind/kvstore/coordinator.h"

#include <algorithm>

#include "symbind/core/error.h"

namespace symbind {

Coordinator::Coordinator(std::vector<std::string> hosts) : hosts_(std::move(hosts)) {}

void Coordinator::admit(std::vector<std::string> hosts) {
  hosts_ = std::move(hosts);
  for (auto& [name, unit] : units_) unit.offers.resize(hosts_.size());
}

std::string Coordinator::worker_text(int worker) const {
  return join("worker ", worker, " on host ", hosts_.at(static_cast<size_t>(worker)));
}

void Coordinator::add(int worker, const Ready& ready, Clock::time_point now) {
  const auto unit_of = [&](std::string keys) -> Unit& {
    Unit& unit = units_[join(ready.store, " ", static_cast<int>(ready.kind), " ", keys)];
    unit.store = ready.store;
    unit.kind = ready.kind;
    unit.offers.resize(hosts_.size());
    return unit;
  };
  const auto detail = [&](size_t key) {
    return ready.details.empty() ? "" : ready.details[std::min(key, ready.details.size() - 1)];
  };
  if (ready.together || ready.keys.empty()) {
    std::vector<std::string> sorted = ready.keys;
    std::sort(sorted.begin(), sorted.end());
    uint64_t bytes = 0;
    for (const uint64_t each : ready.bytes) bytes += each;
    offer(worker, unit_of(comma_separated(sorted)),
          {arrived_++, ready.priority, ready.keys, bytes, detail(0), ready.vote, now});
    return;
  }
  for (size_t i = 0; i < ready.keys.size(); ++i)
    offer(worker, unit_of(ready.keys[i]),
          {arrived_++, ready.priority, {ready.keys[i]}, ready.bytes.at(i), detail(i), ready.vote, now});
}

void Coordinator::offer(int worker, Unit& unit, Offer given) {
  int other = 0;
  if (const Offer* const first = first_offer(unit, &other); first && first->detail != given.detail)
    fail("[kvstore] workers disagree about ", text_of(unit), ": ", worker_text(other), " has ", first->detail, ", ",
         worker_text(worker), " has ", given.detail);
  std::deque<Offer>& offers = unit.offers[static_cast<size_t>(worker)];
  offers.push_back(std::move(given));
  if (offers.size() > 1) return;  // this worker is ahead of the others
  if (++unit.workers_ready == hosts_.size()) ready_.push_back(&unit);
}

std::vector<Exchange> Coordinator::take(size_t bytes_each) {
  std::vector<Exchange> taken;
  const auto rank_0 = [](const Unit* unit) -> const Offer& { return unit->offers[0].front(); };
  std::vector<Unit*> again;
  std::sort(ready_.begin(), ready_.end(), [&](const Unit* a, const Unit* b) {
    const Offer &first = rank_0(a), &second = rank_0(b);
    return first.priority != second.priority ? first.priority > second.priority : first.order < second.order;
  });
  size_t bytes = 0;
  for (Unit* const unit : ready_) {
    const Offer& offer = rank_0(unit);
    const bool moves_arrays = unit->kind == ExchangeKind::init || unit->kind == ExchangeKind::push;
    const bool joins = !taken.empty() && moves_arrays && taken.back().kind == unit->kind &&
                       taken.back().store == unit->store && offer.keys.size() == 1 && bytes + offer.bytes <= bytes_each;
    if (!joins) {
      taken.push_back({++exchanges_, unit->store, unit->kind, {}});
      bytes = 0;
    }
    taken.back().keys.insert(taken.back().keys.end(), offer.keys.begin(), offer.keys.end());
    bytes += offer.keys.size() == 1 ? offer.bytes : bytes_each;  // keys exchanged together are not combined
    ++unit->step;
    unit->warned = false;
    for (auto& offers : unit->offers) {
      taken.back().unanimous &= offers.front().vote;
      offers.pop_front();
      if (offers.empty()) --unit->workers_ready;
    }
    if (unit->workers_ready == hosts_.size()) again.push_back(unit);
  }
  ready_ = std::move(again);
  return taken;
}

std::string Coordinator::text_of(const Unit& unit) {
  if (unit.kind == ExchangeKind::barrier) return join("barrier ", unit.step);
  if (unit.kind == ExchangeKind::admission) return "the admission of new workers";
  std::string keys = "none";
  for (const auto& offers : unit.offers)
    if (!offers.empty()) {
      const auto& all = offers.front().keys;
      keys = all.size() <= 3 ? comma_separated(all) : join(all[0], " and ", all.size() - 1, " more");
      break;
    }
  if (unit.kind == ExchangeKind::vote) return join(keys, " at step ", unit.step);
  if (unit.kind == ExchangeKind::init) return join("the initial value of key ", keys);
  return join("key ", keys, " at step ", unit.step);
}

std::vector<int> Coordinator::absent(const Unit& unit) const {
  std::vector<int> workers;
  for (size_t i = 0; i < unit.offers.size(); ++i)
    if (unit.offers[i].empty()) workers.push_back(static_cast<int>(i));
  return workers;
}

const Coordinator::Offer* Coordinator::first_offer(const Unit& unit, int* worker) const {
  for (size_t i = 0; i < unit.offers.size(); ++i)
    if (!unit.offers[i].empty()) {
      if (worker) *worker = static_cast<int>(i);
      return &unit.offers[i].front();
    }
  return nullptr;
}

const Coordinator::Unit* Coordinator::oldest_missing(int worker) const {
  const Unit* oldest = nullptr;
  for (const auto& [name, unit] : units_) {
    if (unit.workers_ready == 0 || !unit.offers[static_cast<size_t>(worker)].empty()) continue;
    if (!oldest || first_offer(unit)->order < first_offer(*oldest)->order) oldest = &unit;
  }
  return oldest;
}

std::optional<std::string> Coordinator::missed(int worker) const {
  const Unit* const unit = oldest_missing(worker);
  return unit ? std::optional(text_of(*unit)) : std::nullopt;
}

std::string Coordinator::disagreements() const {
  std::vector<std::string> all;
  for (size_t worker = 0; worker < hosts_.size(); ++worker)
    if (const Unit* const unit = oldest_missing(static_cast<int>(worker))) {
      int other = 0;
      first_offer(*unit, &other);
      all.push_back(join(worker_text(static_cast<int>(worker)), " has not come to ", text_of(*unit), ", for which ",
                         worker_text(other), " waits"));
    }
  std::string text;
  for (const std::string& each : all) text += (text.empty() ? "" : "; ") + each;
  return text;
}

std::string Coordinator::slow(std::chrono::seconds patience, Clock::time_point now) {
  const Unit* oldest = nullptr;
  for (auto& [name, unit] : units_) {
    const Offer* const first = first_offer(unit);
    if (!first || unit.warned || now - first->since < patience) continue;
    unit.warned = true;
    if (!oldest || first->order < first_offer(*oldest)->order) oldest = &unit;
  }
  if (!oldest) return "";
  int other = 0;
  first_offer(*oldest, &other);
  std::vector<std::string> workers;
  for (const int worker : absent(*oldest)) workers.push_back(worker_text(worker));
  return join(worker_text(other), " has waited for ", patience.count(), " s at ", text_of(*oldest), " for ",
              comma_separated(workers), ", alive but slow");
}

}  // namespace symbind
