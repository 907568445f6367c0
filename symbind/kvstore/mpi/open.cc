#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <numeric>

#include "symbind/core/environment.h"
#include "symbind/core/error.h"
#include "symbind/kvstore/mpi/functions.h"
#include "symbind/kvstore/mpi/replacements.h"
#include "symbind/kvstore/server.h"
#include "symbind/kvstore/transport.h"

namespace symbind {
namespace {

// MPI counts in ints.
constexpr size_t most_bytes = size_t{1} << 30;

using mpi::check;
using mpi::text_of;

bool tolerates_faults() {
  if (!environment::variable("OMPI_MCA_mpi_ft_enable").on()) return false;
  try {
    return mpi::library.address("MPIX_Comm_shrink") != nullptr;
  } catch (const Error&) {
    return false;
  }
}

class MpiTransport final : public Transport {
 public:
  MpiTransport() {
    std::optional<mpi::TimeLimit> limit;
    if (environment::variable("SYMBIND_JOIN_RANK").on()) limit.emplace("joining the job");
    int initialized = 0, provided = 0;
    check(mpi::Initialized(&initialized), "MPI_Initialized");
    if (initialized) {
      // The program also calls MPI, on its own threads.
      check(mpi::Query_thread(&provided), "MPI_Query_thread");
    } else {
      check(mpi::Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided), "MPI_Init_thread");
      initialized_here_ = true;
    }
    any_thread_ = provided == MPI_THREAD_MULTIPLE;
    require(any_thread_ || (initialized_here_ && provided >= MPI_THREAD_FUNNELED),
            "[kvstore] the program initialised MPI without MPI_THREAD_MULTIPLE, but distributed stores call it from a ",
            "separate thread: use MPI_Init_thread with that level, or create the store first");
    is_replacement_ = fault_tolerant_ && mpi::is_spawned();
    if (is_replacement_)
      comm_ = mpi::join_job();
    else
      check(mpi::Comm_dup(mpi::world(), &comm_), "MPI_Comm_dup");
    check(mpi::Comm_set_errhandler(comm_, mpi::errors_return()), "MPI_Comm_set_errhandler");
    meet();
    origins_ = all_ranks();
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string host(int rank) const override { return hosts_.at(static_cast<size_t>(rank)); }
  bool is_server(int rank) const override { return servers_.at(static_cast<size_t>(rank)) != 0; }

  Ticket send(int to, int tag, std::span<const std::byte> data) override {
    return start(to, data.size(), [&](size_t begin, int count, MPI_Request* request) {
      return mpi::Isend(data.data() + begin, count, byte_, to, tag, comm_, request);
    });
  }
  Ticket receive(int from, int tag, std::span<std::byte> into) override {
    return start(from, into.size(), [&](size_t begin, int count, MPI_Request* request) {
      return mpi::Irecv(into.data() + begin, count, byte_, from, tag, comm_, request);
    });
  }

  std::vector<Ticket> completed() override {
    std::vector<Ticket> done;
    if (requests_.empty()) return done;
    finished_.resize(requests_.size());
    statuses_.resize(requests_.size());
    int count = 0;
    const int code =
        mpi::Testsome(static_cast<int>(requests_.size()), requests_.data(), &count, finished_.data(), statuses_.data());
    if (count == MPI_UNDEFINED) count = 0;
    for (int i = 0; i < count; ++i) {
      const auto index = static_cast<size_t>(finished_[static_cast<size_t>(i)]);
      const Part& part = parts_[index];
      const int problem = statuses_[static_cast<size_t>(i)].MPI_ERROR;
      if (code == MPI_ERR_IN_STATUS && problem != MPI_SUCCESS) throw_lost(part.peer, problem);
      if (--left_.at(part.ticket) == 0) {
        left_.erase(part.ticket);
        done.push_back(part.ticket);
      }
    }
    check_processes(code);
    require(code == MPI_SUCCESS || code == MPI_ERR_IN_STATUS, "[MPI] MPI_Testsome failed: ", text_of(code));
    if (count > 0) forget_finished(static_cast<size_t>(count));
    return done;
  }

  std::optional<Message> next_message() override {
    int arrived = 0, count = 0;
    MPI_Message handle;
    MPI_Status status;
    const int code = mpi::Improbe(MPI_ANY_SOURCE, message_tag, comm_, &arrived, &handle, &status);
    check_processes(code);
    check(code, "MPI_Improbe");
    if (!arrived) return std::nullopt;
    check(mpi::Get_count(&status, byte_, &count), "MPI_Get_count");
    Message message{status.MPI_SOURCE, std::vector<std::byte>(static_cast<size_t>(count))};
    check(mpi::Mrecv(message.text.data(), count, byte_, &handle, MPI_STATUS_IGNORE), "MPI_Mrecv");
    return message;
  }

  bool can_regroup() const override { return fault_tolerant_; }

  std::vector<int> regroup(bool let_in) override {
    mpi::Comm_revoke(comm_);  // so that all notice, and every transfer ends
    int count = 0;
    while (!requests_.empty() && count != MPI_UNDEFINED) {
      finished_.resize(requests_.size());
      statuses_.resize(requests_.size());
      mpi::Testsome(static_cast<int>(requests_.size()), requests_.data(), &count, finished_.data(), statuses_.data());
    }
    requests_.clear();
    parts_.clear();
    left_.clear();
    MPI_Comm smaller;
    check(mpi::Comm_shrink(comm_, &smaller), "MPIX_Comm_shrink");
    std::vector<int> origins;
    for (const int rank : ranks_of(smaller)) origins.push_back(origins_.at(static_cast<size_t>(rank)));
    origins_ = std::move(origins);
    comm_ = smaller;  // the former communicator is not freed: that would need the lost processes
    check(mpi::Comm_set_errhandler(comm_, mpi::errors_return()), "MPI_Comm_set_errhandler");
    check(mpi::Comm_rank(comm_, &rank_), "MPI_Comm_rank");
    add_replacements(let_in);
    meet();
    std::vector<int> former = std::move(origins_);
    std::erase(former, new_process);
    origins_ = all_ranks();
    return former;
  }

  void start_replacements(int count) override {
    require(any_thread_, "[kvstore] MPI was initialised without MPI_THREAD_MULTIPLE");
    replacements_ = std::make_unique<mpi::SpawnedProcesses>(count, size_, folder_);
  }
  Replacements replacements() override {
    if (!replacements_) return Replacements::none;
    return replacements_->are_waiting() ? Replacements::waiting : Replacements::starting;
  }
  void drop_replacements() override { replacements_ = nullptr; }
  bool is_replacement() const override { return is_replacement_; }

  void close() override {
    int finalized = 0;
    check(mpi::Finalized(&finalized), "MPI_Finalized");
    if (initialized_here_ && !finalized) check(mpi::Finalize(), "MPI_Finalize");
  }

 private:
  // A piece of a transfer.
  struct Part {
    Ticket ticket;
    int peer;
  };

  static constexpr int new_process = -1;  // among origins

  std::vector<int> all_ranks() const {
    std::vector<int> ranks(static_cast<size_t>(size_));
    std::iota(ranks.begin(), ranks.end(), 0);
    return ranks;
  }

  // In an elastic job others may be lost meanwhile.
  void check_all(int code, const char* call) const {
    if (fault_tolerant_ && code != MPI_SUCCESS) throw_lost(PeerLost::unknown, code);
    check(code, call);
  }

  // Process 0 decides.
  void add_replacements(bool let_in) {
    mpi::Port port{};
    try {
      if (let_in && rank_ == 0 && replacements_) port = replacements_->invite();
    } catch (const Error&) {  // they are gone
      replacements_ = nullptr;
    }
    const int code = mpi::Bcast(port.data(), static_cast<int>(port.size()), byte_, 0, comm_);
    if (!mpi::is_well_for_all(comm_, code == MPI_SUCCESS)) throw_lost(PeerLost::unknown, mpi::error_process_failed);
    if (port[0] == 0) return;
    const MPI_Comm larger = mpi::connected(comm_, port);
    if (larger == mpi::no_comm()) {
      replacements_ = nullptr;
      throw_lost(PeerLost::unknown, mpi::error_process_failed);
    }
    comm_ = larger;
    if (replacements_) replacements_->let_in();
    replacements_ = nullptr;
    int count = 0;
    check(mpi::Comm_size(comm_, &count), "MPI_Comm_size");
    origins_.resize(static_cast<size_t>(count), new_process);
  }

  // Who is there, and where.
  void meet() {
    check(mpi::Comm_rank(comm_, &rank_), "MPI_Comm_rank");
    check(mpi::Comm_size(comm_, &size_), "MPI_Comm_size");
    gather_hosts();
    gather_servers();
  }

  void gather_hosts() {
    using Name = std::array<char, MPI_MAX_PROCESSOR_NAME>;
    Name own{};
    int length = 0;
    check(mpi::Get_processor_name(own.data(), &length), "MPI_Get_processor_name");
    std::vector<Name> all(static_cast<size_t>(size_));
    check_all(mpi::Allgather(own.data(), static_cast<int>(own.size()), byte_, all.data(), static_cast<int>(own.size()),
                             byte_, comm_),
              "MPI_Allgather");
    hosts_.clear();
    for (const Name& name : all) hosts_.emplace_back(name.data());
  }

  void gather_servers() {
    const char own = is_server_process() ? 1 : 0;
    servers_.resize(static_cast<size_t>(size_));
    check_all(mpi::Allgather(&own, 1, byte_, servers_.data(), 1, byte_, comm_), "MPI_Allgather");
  }

  [[noreturn]] static void throw_lost(int peer, int code) {
    throw PeerLost(code == mpi::error_revoked ? PeerLost::unknown : peer, text_of(code));
  }

  // Throws PeerLost where a call that concerns all processes failed because of one.
  void check_processes(int code) const {
    if (!fault_tolerant_) return;
    if (code == mpi::error_revoked) throw_lost(PeerLost::unknown, code);
    if (code != mpi::error_process_failed && code != mpi::error_process_failed_pending) return;
    MPI_Group lost;
    check(mpi::Comm_failure_ack(comm_), "MPIX_Comm_failure_ack");
    check(mpi::Comm_failure_get_acked(comm_, &lost), "MPIX_Comm_failure_get_acked");
    const std::vector<int> ranks = ranks_of(lost);
    throw_lost(ranks.empty() ? PeerLost::unknown : ranks.back(), code);
  }

  // The ranks that processes of another communicator or group have in this one. A group is freed.
  std::vector<int> ranks_of(MPI_Comm other) const {
    MPI_Group group;
    check(mpi::Comm_group(other, &group), "MPI_Comm_group");
    return ranks_of(group);
  }
  std::vector<int> ranks_of(MPI_Group group) const {
    int count = 0;
    MPI_Group all;
    check(mpi::Comm_group(comm_, &all), "MPI_Comm_group");
    check(mpi::Group_size(group, &count), "MPI_Group_size");
    std::vector<int> theirs(static_cast<size_t>(count)), ours(static_cast<size_t>(count));
    std::iota(theirs.begin(), theirs.end(), 0);
    check(mpi::Group_translate_ranks(group, count, theirs.data(), all, ours.data()), "MPI_Group_translate_ranks");
    mpi::Group_free(&group);
    mpi::Group_free(&all);
    return ours;
  }

  template <class Start>
  Ticket start(int peer, size_t bytes, const Start& start_part) {
    const Ticket ticket = next_ticket_++;
    size_t begin = 0;
    do {
      const size_t count = std::min(most_bytes, bytes - begin);
      MPI_Request request;
      if (const int code = start_part(begin, static_cast<int>(count), &request); code != MPI_SUCCESS)
        throw_lost(peer, code);
      requests_.push_back(request);
      parts_.push_back({ticket, peer});
      ++left_[ticket];
      begin += count;
    } while (begin < bytes);
    return ticket;
  }

  // Order does not matter: entries from the end replace the finished ones.
  void forget_finished(size_t count) {
    std::sort(finished_.begin(), finished_.begin() + static_cast<std::ptrdiff_t>(count), std::greater<>());
    for (size_t i = 0; i < count; ++i) {
      const auto index = static_cast<size_t>(finished_[i]);
      requests_[index] = requests_.back();
      parts_[index] = parts_.back();
      requests_.pop_back();
      parts_.pop_back();
    }
  }

  const MPI_Datatype byte_ = mpi::byte();
  const bool fault_tolerant_ = tolerates_faults();
  MPI_Comm comm_;
  int rank_ = 0, size_ = 1;
  bool initialized_here_ = false, any_thread_ = false, is_replacement_ = false;
  const std::string folder_ = std::filesystem::current_path();  // relative names in the command are relative to this
  std::unique_ptr<mpi::SpawnedProcesses> replacements_;
  std::vector<int> origins_;  // by rank: the rank after the last regrouping that succeeded, or new_process
  std::vector<std::string> hosts_;
  std::vector<char> servers_;  // by rank: is it one?
  Ticket next_ticket_ = 1;
  std::vector<MPI_Request> requests_;
  std::vector<Part> parts_;     // of the requests
  std::map<Ticket, int> left_;  // parts that are not done
  std::vector<int> finished_;   // buffers of completed()
  std::vector<MPI_Status> statuses_;
};

}  // namespace

std::string mpi_problem() { return mpi::library.problem(); }

std::unique_ptr<Transport> open_mpi() { return std::make_unique<MpiTransport>(); }

}  // namespace symbind
