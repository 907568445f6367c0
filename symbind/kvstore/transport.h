// Messages between the processes of a job, the little that stores over several workers ask of MPI. What the messages
// mean is in peers.h and dist.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace symbind {

// Another process cannot be reached.
class PeerLost : public std::runtime_error {
 public:
  static constexpr int unknown = -1;  // another process noticed it
  PeerLost(int lost, const std::string& reason) : std::runtime_error(reason), rank(lost) {}
  const int rank;
};

// Every call is made by one thread, the one that opened it. None of them waits. Messages from one process to another
// with one tag arrive in the order they were sent; a message that is received has the size that is expected.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual std::string host(int rank) const = 0;  // where a process runs
  // Does a process hold keys for the others, and train nothing? Workers come first, then servers.
  virtual bool is_server(int /*rank*/) const { return false; }

  // A transfer that is not complete yet. The memory stays as it is until then.
  using Ticket = uint64_t;
  virtual Ticket send(int to, int tag, std::span<const std::byte> data) = 0;
  virtual Ticket receive(int from, int tag, std::span<std::byte> into) = 0;
  // The transfers that were completed since the last call. Makes progress. Throws PeerLost where the library notices
  // that a process is gone.
  virtual std::vector<Ticket> completed() = 0;

  // A message of any size with the tag 0, which receive() never takes.
  struct Message {
    int from;
    std::vector<std::byte> text;
  };
  virtual std::optional<Message> next_message() = 0;

  // ---- elastic jobs ----
  // Can those that are left go on after PeerLost? Only where MPI tolerates faults.
  virtual bool can_regroup() const { return false; }
  // Called by all that are left after PeerLost, or by one that wants it, whereupon the others get PeerLost; waits for
  // them. Transfers and messages that are not complete are dropped, and their memory is free. From then on rank(),
  // size() and host() count those that are left, in their former order, and behind them the processes that were
  // started in place of lost ones, if process 0 says that they are to be let in. Returns the former ranks of those that
  // are left.
  virtual std::vector<int> regroup(bool /*let_in*/) { throw std::logic_error("this transport cannot regroup"); }

  // Process 0 starts others of the same program, which wait in their transport's constructor to be let in.
  enum class Replacements { none, starting, waiting };
  virtual void start_replacements(int /*count*/) { throw std::logic_error("this transport starts no processes"); }
  virtual Replacements replacements() { return Replacements::none; }  // throws Error where they could not be started
  virtual void drop_replacements() {}                                 // they are not wanted any more
  // Was this process started so?
  virtual bool is_replacement() const { return false; }

  // The end of an orderly job, called by all processes; may wait for them. Not called after a failure.
  virtual void close() = 0;
};

inline constexpr int message_tag = 0;
inline constexpr int largest_tag = 32000;  // every MPI has this many

// By MPI: the processes that mpirun started, or this one alone. Fails where there is no MPI, saying how to get it. It
// is opened once in a process.
std::unique_ptr<Transport> open_mpi();
// Why open_mpi() would fail; empty where it would not, as far as that is known beforehand.
std::string mpi_problem();

}  // namespace symbind
