// The workers and servers of a job, seen from one of them. A communication thread makes every call of the transport: it
// delivers messages, transfers arrays, asks worker 0 (coordinator.h) which exchanges may start, and sends a heartbeat
// twice a second, whatever the process computes. A second thread updates values, so that a slow update does not look
// like a lost worker.
//
// When a worker is lost, or workers disagree, every worker records the failure: waiting calls throw it, and so does
// every later call. The only recovery from a failure is to restart the job.
//
// An elastic job continues without a lost worker, if the transport supports it (Transport::regroup). The remaining
// workers get new ranks without gaps and compare the progress of their stores (Progress); those that are behind are
// sent what they missed, and then all pending exchanges are offered again. No exchange starts until all have done so.
//
// New workers replace lost ones while all workers wait for them (await_replacements). A regrouping adds their processes
// as the last ranks, but they are not workers yet: nobody waits for them, and their stores exchange nothing, until
// their programs have created the same stores and ask to join. Then an exchange of the kind `admission` makes them
// workers, and worker 0 sends them the state of its stores.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "symbind/kvstore/coordinator.h"
#include "symbind/kvstore/gpu_exchange.h"
#include "symbind/kvstore/message.h"
#include "symbind/kvstore/progress.h"
#include "symbind/kvstore/transport.h"

namespace symbind {

class Peers {
 public:
  struct Options {
    std::chrono::milliseconds timeout{6000};  // without a heartbeat: lost
    std::chrono::milliseconds heartbeat{500};
    std::chrono::seconds patience{10};              // before a slow worker is reported
    std::chrono::milliseconds longest_exit{10000};  // that leave() waits once nothing is left to wait for
    std::chrono::milliseconds exit_delay{1000};  // after a failure, before the end of this process ends the whole job
    bool elastic = false;                        // continue without a lost worker
    std::chrono::milliseconds start_within{60000};       // a process that replaces a lost worker
    std::shared_ptr<const GpuConnector> gpus = nullptr;  // null: workers exchange arrays through the host
  };
  // Opens the transport on the communication thread.
  explicit Peers(std::function<std::unique_ptr<Transport>()> open, const Options& options);
  ~Peers();
  Peers(const Peers&) = delete;
  Peers& operator=(const Peers&) = delete;
  // The peers of this process, over MPI; created at the first call. The process leaves the job when it ends.
  static std::shared_ptr<Peers> of_process();
  static void leave_process();  // does nothing if they were not created

  int rank() const { return rank_; }
  int size() const { return size_; }
  // Processes [0, workers) train; the others are servers, which hold keys for them.
  int workers() const { return workers_; }
  int servers() const { return size_ - workers_; }
  std::string title(int rank) const;  // "worker 2" or "server 0"
  std::string host(int rank) const;
  bool elastic() const { return options_.elastic; }
  GpuExchange& gpus() { return gpus_; }

  // A store as the peers see it; called on the communication thread.
  class Member {
   public:
    virtual ~Member() = default;
    virtual void exchange(const Exchange& exchange) = 0;
    virtual void message(int from, MessageReader& text) = 0;
    virtual std::string awaited() const { return ""; }  // "key w at step 3"; empty: nothing

    // ---- for elastic jobs: what happens after a regrouping, in this order ----
    virtual bool can_regroup() const { return false; }
    virtual void regrouped() {}  // ranks have changed, and messages in flight are lost
    virtual Progress progress() const { return {}; }
    virtual void catch_up(const CatchUp& what, std::function<void()> done);
    virtual bool waits_for(const Ready& ready) const;  // must it be offered again?

    // ---- for elastic jobs: called when new workers are admitted, while nothing is exchanged ----
    virtual void admitted() {}                            // the number of workers has grown
    virtual void send_state(const std::vector<int>& to);  // by worker 0; the others call state_arrived() at the end
  };

  // ---- for any thread ----
  // Returns the store's number: the same as that of the corresponding stores of the other workers.
  int join(std::shared_ptr<Member> member);
  void ready(Ready what);
  void post(std::function<void()> task);  // on the communication thread
  // Calls `then` on the communication thread as soon as reached() is true there, which must not block. Until then the
  // worker counts as one that computes. Forgotten after a failure.
  void when(std::function<bool()> reached, std::function<void()> then);
  // On the thread that updates, one after the other; then `then` on the communication thread.
  void work(std::function<void()> job, std::function<void()> then);
  // Waits until done(), which is called under lock(), and throws the failure if there is one. `needs`: the other
  // workers must be ready for the same exchange, or only their communication threads are needed.
  enum class Needs { workers, threads };
  void wait(Needs needs, const std::function<bool()>& done);
  // Hold it to change what done() reads, then call changed().
  std::unique_lock<std::mutex> lock() const { return std::unique_lock(mutex_); }
  void changed() { changed_.notify_all(); }
  void check_failure() const;   // throws it
  std::string failure() const;  // empty: none
  int lost() const;             // workers

  // ---- new workers in elastic jobs: called between two epochs ----
  // Was this process started in place of a lost worker, and is not a worker yet?
  bool joining() const { return joining_; }
  // Are there workers to replace, or processes that may become workers? Known to worker 0.
  bool needs_workers() const;
  // Called by worker 0, while all others wait for the admission: starts processes in place of lost workers, and waits
  // until they ask to join. False: there are none.
  bool await_replacements();
  void admit_workers() { may_admit_ = true; }  // by worker 0, whose state is ready for them
  void ask_to_join(int store);                 // returns when this is a worker, with the state of the others
  void finish_stores();                        // waits until nothing is exchanged
  void begin_epoch();                          // workers that have joined so far are no longer new

  // ---- for the communication thread ----
  void announce(const Ready& what);                            // as ready(), also while this process leaves
  void state_arrived();                                        // that of a store, from worker 0
  void write(int to, int store, std::vector<std::byte> text);  // to Member::message
  void send(int to, int tag, std::span<const std::byte> data, std::function<void()> then);
  void receive(int from, int tag, std::span<std::byte> into, std::function<void()> then);
  void fail(const std::string& why);  // for all workers

  // For a server, before leave(): `make` creates a member that joins, whenever a message arrives for a store without
  // one here.
  void serve(std::function<void()> make);

  // Announces that this process leaves, serves the others until they leave, too, then closes the transport. After a
  // failure it returns soon without doing so. The calls above fail from now on.
  void leave();

 private:
  using Clock = std::chrono::steady_clock;
  enum class MessageType : uint8_t {
    alive,
    ready,
    exchange,
    failure,
    goodbye,
    end,
    store,
    progress,
    catch_up,
    in_step,
    dismiss,
    join,
    welcome
  };

  void communicate(const std::function<std::unique_ptr<Transport>()>& open, std::promise<void>* opened);
  bool step();  // did anything happen?
  std::function<void()> next_task();
  void rest(bool busy);
  void tick();
  void deliver(Transport::Message& message);
  void send_message(int to, std::vector<std::byte> text);
  bool run_postponed();
  void begin(const Exchange& exchange);
  void offer(const Ready& ready);
  void remember(const Ready& ready);
  void coordinate();
  void end_job();
  void take_ready(int worker, const Ready& ready);
  bool stalled() const;
  void look_for_disagreement();
  void look_for_missed();
  void lose(int worker, const std::string& reason);
  enum class Tell { nobody, worker_0, all };
  void take_failure(const std::string& why, Tell tell);
  std::string awaited() const;
  bool is_over();
  void run_jobs();

  // ---- elastic jobs: peers_elastic.cc ----
  bool can_continue() const;
  void continue_without(const PeerLost& lost);
  void regroup(int lost, bool let_in);
  void send_end(int process);
  void finish_jobs();
  void start_over();
  void send_progress();
  void take_progress(int worker, MessageReader& text);
  void catch_up(MessageReader& text);
  void be_in_step();
  void dismiss(int worker);
  std::vector<std::shared_ptr<Member>> all_members() const;

  // ---- elastic jobs: peers_admission.cc ----
  void look_for_replacements();
  void end_replacing(const std::string& problem);
  std::vector<int> joining_processes() const;
  bool all_ask_to_join() const;
  void send_request_to_join();
  void take_request_to_join(int process, MessageReader& text);
  bool may_begin_admission(const Exchange& exchange);
  void admit(const Exchange& exchange);
  void welcome(const std::vector<int>& processes);
  void take_welcome(MessageReader& text);
  void become_worker();
  void count_new(int former_size, const std::vector<int>& left);

  void check_process() const;
  void log_later(const std::string& warning);
  void count_workers();
  void deliver_early();
  std::shared_ptr<Member> member_of(size_t store) const;  // null: not created here yet

  const Options options_;
  const int process_;
  GpuExchange gpus_;
  std::atomic<int> rank_ = 0, size_ = 1, workers_ = 1;

  // ---- shared by the threads, under mutex_ ----
  mutable std::mutex mutex_;
  std::vector<std::string> hosts_;
  mutable std::condition_variable changed_;  // for waiting threads
  std::condition_variable posted_;           // for the communication thread
  std::deque<std::function<void()>> tasks_;
  std::vector<std::shared_ptr<Member>> members_;
  std::string failure_;
  const std::function<bool()>* waiting_for_ = nullptr;  // by a thread that calls wait()
  Needs waiting_needs_ = Needs::threads;
  bool leaving_ = false, closing_ = false, closed_ = false;
  int lost_ = 0;
  int workers_at_start_ = 1;
  int new_ = 0;                // the last so many processes have joined in this epoch, or are joining
  bool may_replace_ = true;    // not after a replacement was lost too soon
  bool replacing_ = false;     // worker 0's program waits for replacements
  bool asks_to_join_ = false;  // this process's program does, in
  int store_to_join_ = 0;

  std::mutex work_mutex_;
  std::condition_variable work_posted_, work_done_;
  struct Job {
    std::function<void()> job, then;
    uint64_t grouping;
  };
  std::deque<Job> jobs_;
  bool job_runs_ = false, work_over_ = false;
  std::atomic<int> working_{0};        // jobs that are not done
  std::atomic<uint64_t> grouping_{0};  // how often the workers have regrouped

  // ---- of the communication thread ----
  std::unique_ptr<Transport> transport_;
  std::map<Transport::Ticket, std::function<void()>> transfers_;
  std::deque<Transport::Message> early_;  // for stores that are not created here yet
  std::function<void()> make_member_;     // of a server
  uint64_t exchanges_ = 0;                // started here
  size_t messages_ = 0;                   // being sent
  struct Postponed {
    std::function<bool()> reached;
    std::function<void()> then;
  };
  std::deque<Postponed> postponed_;  // by when()
  Clock::time_point next_tick_, last_busy_;
  std::optional<Clock::time_point> failed_at_;
  std::vector<Clock::time_point> last_message_;
  bool announced_leaving_ = false, ended_ = false, dismissed_ = false;
  std::map<std::string, Ready> offered_;  // by store, kind and keys: the last ones, for an elastic job
  bool in_step_ = true;                   // false: regrouping in progress
  size_t members_behind_ = 0;             // that are catching up
  std::atomic<bool> joining_ = false;
  std::optional<Exchange> admission_;                  // of this process, begun
  std::optional<size_t> states_missing_;               // of stores, once it is known of how many
  std::optional<Clock::time_point> replacements_due_;  // being started, by worker 0
  bool awaiting_replacements_ = false;
  std::atomic<bool> may_admit_ = false;  // worker 0's program is ready for that

  // ---- of worker 0's ----
  std::optional<Coordinator> coordinator_;
  struct Status {
    bool stalled = false;  // its program waits, and nothing is in progress
    uint64_t exchanges = 0;
    bool gone = false;       // has left
    bool dismissed = false;  // told to exit
    bool in_step = true;     // has nothing to catch up
    bool joining = false;    // is no worker yet
    bool asks = false;       // to become one, in
    int store = 0;           // of
    size_t stores = 0;       // that it has
  };
  std::vector<Status> statuses_;
  std::map<int, std::vector<Progress>> progress_;  // by worker, of its stores

  std::thread updater_, communicator_;
};

}  // namespace symbind
