// How an elastic job continues after a worker is lost.
#include <algorithm>

#include "symbind/core/log.h"
#include "symbind/kvstore/peers.h"

namespace symbind {

void Peers::Member::catch_up(const CatchUp&, std::function<void()> done) { done(); }

bool Peers::Member::waits_for(const Ready&) const { return false; }

std::vector<std::shared_ptr<Peers::Member>> Peers::all_members() const {
  const auto guard = lock();
  return members_;
}

// Records this worker's last offer of each key, so that it can be repeated.
void Peers::remember(const Ready& ready) {
  const auto name_of = [&](const std::string& keys) {
    return symbind::join(ready.store, " ", static_cast<int>(ready.kind), " ", keys);
  };
  if (ready.together || ready.keys.empty()) {
    offered_[name_of(comma_separated(ready.keys))] = ready;
    return;
  }
  for (size_t i = 0; i < ready.keys.size(); ++i) {
    Ready one = ready;
    one.keys = {ready.keys[i]};
    one.bytes = {ready.bytes.at(i)};
    one.steps = {ready.steps.at(i)};
    if (!ready.details.empty()) one.details = {ready.details[std::min(i, ready.details.size() - 1)]};
    offered_[name_of(ready.keys[i])] = std::move(one);
  }
}

bool Peers::can_continue() const {
  if (!options_.elastic || failed_at_ || !transport_->can_regroup()) return false;
  const std::vector<std::shared_ptr<Member>> members = all_members();
  return std::all_of(members.begin(), members.end(), [](const auto& member) { return member->can_regroup(); });
}

// Regroups, or fails where that is impossible. Others may be lost meanwhile.
void Peers::continue_without(const PeerLost& lost) {
  if (!can_continue()) return lose(lost.rank, lost.what());
  try {
    regroup(lost.rank, false);
  } catch (const PeerLost& another) {
    continue_without(another);
  } catch (const std::exception& error) {
    fail(error.what());
  }
}

// Finishes updates that have started, so that none is half done.
void Peers::finish_jobs() {
  std::unique_lock guard(work_mutex_);
  work_done_.wait(guard, [&] { return jobs_.empty() && !job_runs_; });
}

// Resets to the state of a new job with the current workers of the transport.
void Peers::start_over() {
  std::vector<std::string> hosts;
  for (int i = 0; i < transport_->size(); ++i) hosts.push_back(transport_->host(i));
  rank_ = transport_->rank();
  size_ = transport_->size();
  count_workers();
  coordinator_.reset();
  if (rank_ == 0) coordinator_.emplace(std::vector(hosts.begin(), hosts.begin() + workers_));
  statuses_.assign(hosts.size(), {});
  last_message_.assign(hosts.size(), Clock::now());
  progress_.clear();
  exchanges_ = 0;
  last_busy_ = next_tick_ = Clock::now();
  announced_leaving_ = ended_ = false;
  const auto guard = lock();
  hosts_ = std::move(hosts);
}

void Peers::regroup(int lost, bool let_in) {
  finish_jobs();
  std::string missed;
  if (coordinator_ && lost != PeerLost::unknown && lost < workers_) missed = coordinator_->missed(lost).value_or("");
  if (missed.empty()) missed = awaited();
  const std::vector<std::string> former_hosts = hosts_;
  const int former_workers = workers_;
  const std::vector<int> left = transport_->regroup(let_in);
  ++grouping_;
  transfers_.clear();
  messages_ = 0;
  early_.clear();
  start_over();
  in_step_ = false;
  for (Status& each : statuses_) each.in_step = false;

  std::vector<std::string> names;
  int workers_lost = 0;
  for (int worker = 0; worker < static_cast<int>(former_hosts.size()); ++worker)
    if (std::find(left.begin(), left.end(), worker) == left.end()) {
      names.push_back(symbind::join("worker ", worker, " on host ", former_hosts[static_cast<size_t>(worker)]));
      if (worker < former_workers) ++workers_lost;
    }
  {
    const auto guard = lock();
    lost_ += workers_lost;
  }
  if (!names.empty())
    log_later(symbind::join("[kvstore] ", comma_separated(names), names.size() == 1 ? " is" : " are", " lost",
                            missed.empty() ? "" : symbind::join(", missed at ", missed), "; the job goes on with ",
                            size_.load(), size_ == 1 ? " worker" : " workers", ", of which this is number ",
                            rank_.load()));
  count_new(static_cast<int>(former_hosts.size()), left);
  for (const auto& member : all_members()) member->regrouped();
  require(!joining_ || (rank_ > 0 && !admission_), "[kvstore] a worker was lost while this one joined the job");
  send_progress();
}

void Peers::send_progress() {
  const std::vector<std::shared_ptr<Member>> members =
      joining_ ? std::vector<std::shared_ptr<Member>>() : all_members();
  MessageWriter text;
  text << joining_.load() << static_cast<uint64_t>(members.size());
  for (const auto& member : members) symbind::write(text, member->progress());
  const std::vector<std::byte> written = text.take();
  if (rank_ == 0) {
    MessageReader own(written);
    return take_progress(0, own);
  }
  MessageWriter message;
  message << MessageType::progress;
  message.bytes(written);
  send_message(0, message.take());
}

// A store that some worker has not created yet has exchanged nothing. Processes that are joining are behind the workers
// and have nothing to compare.
void Peers::take_progress(int worker, MessageReader& text) {
  statuses_[static_cast<size_t>(worker)].joining = text.number<bool>();
  std::vector<Progress>& stores = progress_[worker];
  stores.clear();
  for (auto count = text.number<uint64_t>(); count > 0; --count) stores.push_back(read_progress(text));
  if (progress_.size() < statuses_.size()) return;
  const int workers = size_ - static_cast<int>(joining_processes().size());
  for (const int process : joining_processes())
    if (process < workers) return send_end(process);  // one behind it has become a worker, and it was not told
  workers_ = workers;
  coordinator_.emplace(std::vector(hosts_.begin(), hosts_.begin() + workers));
  for (const int process : joining_processes()) progress_.erase(process);

  size_t common = progress_.at(0).size();
  for (const auto& [each, of_stores] : progress_) common = std::min(common, of_stores.size());
  MessageWriter plan;
  plan << workers << static_cast<uint64_t>(common);
  for (size_t store = 0; store < common; ++store) {
    std::vector<Progress> of_workers;
    for (const auto& [each, of_stores] : progress_) of_workers.push_back(of_stores[store]);
    symbind::write(plan, plan_catch_up(of_workers));
  }
  const std::vector<std::byte> written = plan.take();
  for (int other = 1; other < size_; ++other) {
    MessageWriter message;
    message << MessageType::catch_up;
    message.bytes(written);
    send_message(other, message.take());
  }
  MessageReader own(written);
  catch_up(own);
}

void Peers::catch_up(MessageReader& text) {
  const int workers = text.number<int>();
  const auto stores = text.number<uint64_t>();
  if (joining_) return be_in_step();
  workers_ = workers;
  members_behind_ = stores + 1;
  const auto done = [this, grouping = grouping_.load()] {
    if (grouping == grouping_ && --members_behind_ == 0) be_in_step();
  };
  const std::vector<std::shared_ptr<Member>> members = all_members();
  for (uint64_t store = 0; store < stores; ++store) members.at(store)->catch_up(read_catch_up(text), done);
  done();
}

void Peers::be_in_step() {
  in_step_ = true;
  for (auto each = offered_.begin(); each != offered_.end();) {
    std::shared_ptr<Member> member;
    {
      const auto guard = lock();
      member = members_.at(static_cast<size_t>(each->second.store));
    }
    if (member->waits_for(each->second)) {
      offer(each->second);
      ++each;
    } else {
      each = offered_.erase(each);
    }
  }
  statuses_[static_cast<size_t>(rank_)].in_step = true;
  send_request_to_join();
  if (rank_ == 0) return;
  MessageWriter text;
  text << MessageType::in_step;
  send_message(0, text.take());
}

// A worker whose program has ended serves the others until they end, too. When they need more than that, it exits; they
// learn of it from the transport.
void Peers::dismiss(int worker) {
  Status& status = statuses_[static_cast<size_t>(worker)];
  if (status.dismissed) return;
  status.dismissed = true;
  if (worker == rank_) {
    dismissed_ = true;
    return;
  }
  MessageWriter text;
  text << MessageType::dismiss;
  send_message(worker, text.take());
}

}  // namespace symbind
