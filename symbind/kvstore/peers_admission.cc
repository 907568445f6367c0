// How new workers join an elastic job.
#include <algorithm>

#include "symbind/core/log.h"
#include "symbind/kvstore/peers.h"

namespace symbind {

void Peers::Member::send_state(const std::vector<int>&) {}

// ---- what programs call ---------------------------------------------------------------------------------------------

bool Peers::needs_workers() const {
  const auto guard = lock();
  return size_ > workers_ || (may_replace_ && size_ < workers_at_start_);
}

bool Peers::await_replacements() {
  {
    const auto guard = lock();
    replacing_ = true;
  }
  post([this] {
    awaiting_replacements_ = true;
    if (size_ > workers_) return;  // those of an earlier time
    int missing = 0;
    {
      const auto guard = lock();
      if (may_replace_) missing = workers_at_start_ - size_;
    }
    if (missing <= 0) return;
    try {
      transport_->start_replacements(missing);
      replacements_due_ = Clock::now() + options_.start_within;
    } catch (const Error& error) {
      end_replacing(error.what());
    }
  });
  wait(Needs::threads, [&] { return !replacing_; });
  return size_ > workers_;
}

void Peers::ask_to_join(int store) {
  {
    const auto guard = lock();
    asks_to_join_ = true;
    store_to_join_ = store;
  }
  post([this] {
    if (in_step_) send_request_to_join();
  });
  wait(Needs::threads, [&] { return !joining_; });
}

void Peers::finish_stores() {
  wait(Needs::workers, [&] {
    return std::all_of(members_.begin(), members_.end(), [](const auto& member) { return member->awaited().empty(); });
  });
}

void Peers::begin_epoch() {
  const auto guard = lock();
  new_ = size_ - workers_;
}

// ---- worker 0 -------------------------------------------------------------------------------------------------------

std::vector<int> Peers::joining_processes() const {
  std::vector<int> processes;
  for (size_t i = 0; i < statuses_.size(); ++i)
    if (statuses_[i].joining) processes.push_back(static_cast<int>(i));
  return processes;
}

bool Peers::all_ask_to_join() const {
  const std::vector<int> processes = joining_processes();
  return !processes.empty() && std::all_of(processes.begin(), processes.end(),
                                           [&](int process) { return statuses_[static_cast<size_t>(process)].asks; });
}

void Peers::look_for_replacements() {
  if (!awaiting_replacements_ || !in_step_) return;
  if (replacements_due_) {
    try {
      const auto state = transport_->replacements();
      require(state != Transport::Replacements::none, "they ended before they could join");
      require(Clock::now() < *replacements_due_, "they have created no distributed store within ",
              std::chrono::duration_cast<std::chrono::seconds>(options_.start_within).count(), " s");
      if (state == Transport::Replacements::starting) return;
    } catch (const Error& error) {
      return end_replacing(error.what());
    }
    regroup(PeerLost::unknown, true);
    replacements_due_.reset();
    return;
  }
  if (joining_processes().empty() || all_ask_to_join()) end_replacing("");
}

void Peers::end_replacing(const std::string& problem) {
  awaiting_replacements_ = false;
  replacements_due_.reset();
  if (!problem.empty()) {
    transport_->drop_replacements();
    log_later(symbind::join("[kvstore] lost workers cannot be replaced: ", problem, "; the job goes on with ",
                            workers_.load(), workers_ == 1 ? " worker" : " workers"));
  }
  {
    const auto guard = lock();
    if (!problem.empty()) may_replace_ = false;
    replacing_ = false;
  }
  changed_.notify_all();
}

void Peers::take_request_to_join(int process, MessageReader& text) {
  Status& status = statuses_[static_cast<size_t>(process)];
  status.asks = true;
  status.store = text.number<int>();
  status.stores = text.number<uint64_t>();
}

// A program that has created other stores than the workers cannot be admitted now.
bool Peers::may_begin_admission(const Exchange& exchange) {
  if (!may_admit_.exchange(false) || !all_ask_to_join()) return false;
  bool all_fit = true;
  for (const int process : joining_processes()) {
    const Status& status = statuses_[static_cast<size_t>(process)];
    if (status.store == exchange.store) continue;
    all_fit = false;
    MessageWriter text;
    text << MessageType::failure
         << symbind::join("[kvstore] this worker cannot join the job: its program trains by store ", status.store,
                          ", in the order of their creation, and the others by store ", exchange.store);
    send_message(process, text.take());
  }
  return all_fit;
}

void Peers::welcome(const std::vector<int>& processes) {
  const std::vector<std::shared_ptr<Member>> members = all_members();
  size_t common = members.size();
  for (const int process : processes) common = std::min(common, statuses_[static_cast<size_t>(process)].stores);
  for (const int process : processes) {
    MessageWriter text;
    const auto guard = lock();
    text << MessageType::welcome << static_cast<uint64_t>(common) << workers_at_start_ << new_ << may_replace_;
    send_message(process, text.take());
  }
  for (size_t store = 0; store < common; ++store) members[store]->send_state(processes);
}

// ---- all workers ----------------------------------------------------------------------------------------------------

// A replacement that is lost in its first epoch would be lost again and again.
void Peers::count_new(int former_size, const std::vector<int>& left) {
  const auto guard = lock();
  const auto is_new = [&](int rank) { return rank >= former_size - new_; };
  const auto new_left = static_cast<int>(std::count_if(left.begin(), left.end(), is_new));
  if (new_left < new_) may_replace_ = false;
  new_ = new_left + size_ - static_cast<int>(left.size());
}

void Peers::admit(const Exchange& exchange) {
  if (joining_) {
    admission_ = exchange;
    return;
  }
  const std::vector<int> processes = joining_processes();  // known to worker 0
  std::vector<std::string> names;
  for (int worker = workers_; worker < size_; ++worker)
    names.push_back(symbind::join("worker ", worker, " on host ", host(worker)));
  work([text = symbind::join("[kvstore] ", comma_separated(names), names.size() == 1 ? " joins" : " join",
                             "; the job goes on with ", size_.load(), " workers, of which this is number ",
                             rank_.load())] { log_info(text); },
       nullptr);
  workers_ = size_.load();
  {
    const auto guard = lock();
    lost_ = std::max(0, lost_ - static_cast<int>(names.size()));
  }
  for (Status& each : statuses_) each.joining = false;
  for (const auto& member : all_members()) member->admitted();
  if (!coordinator_) return;
  coordinator_->admit(hosts_);
  welcome(processes);
}

// ---- a new worker ---------------------------------------------------------------------------------------------------

void Peers::send_request_to_join() {
  MessageWriter text;
  {
    const auto guard = lock();
    if (!asks_to_join_ || !joining_) return;
    text << MessageType::join << store_to_join_ << static_cast<uint64_t>(members_.size());
  }
  send_message(0, text.take());
}

void Peers::take_welcome(MessageReader& text) {
  states_missing_ = text.number<uint64_t>();
  {
    const auto guard = lock();
    workers_at_start_ = text.number<int>();
    new_ = text.number<int>();
    may_replace_ = text.number<bool>();
  }
  if (states_missing_ == 0) become_worker();
}

void Peers::state_arrived() {
  if (--states_missing_.value() == 0) become_worker();
}

void Peers::become_worker() {
  workers_ = size_.load();
  const std::vector<std::shared_ptr<Member>> members = all_members();
  for (const auto& member : members) member->admitted();
  members.at(static_cast<size_t>(admission_->store))->exchange(*admission_);
  admission_.reset();
  joining_ = false;
  changed_.notify_all();
}

}  // namespace symbind
