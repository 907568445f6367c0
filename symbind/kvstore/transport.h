// Messages between the processes of a job, the small part of MPI that distributed stores use. What the messages mean is
// in peers.h and dist.h.
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
// with one tag arrive in the order they were sent; a received message has the expected size.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual std::string host(int rank) const = 0;  // where a process runs
  // Does a process hold keys for the others, and train nothing? Workers come first, then servers.
  virtual bool is_server(int /*rank*/) const { return false; }

  // A transfer that is not complete yet. The memory must not change until it is.
  using Ticket = uint64_t;
  virtual Ticket send(int to, int tag, std::span<const std::byte> data) = 0;
  virtual Ticket receive(int from, int tag, std::span<std::byte> into) = 0;
  // The transfers that were completed since the last call. Makes progress. Throws PeerLost where the library notices
  // that a process is lost.
  virtual std::vector<Ticket> completed() = 0;

  // A message of any size with the tag 0, which receive() never takes.
  struct Message {
    int from;
    std::vector<std::byte> text;
  };
  virtual std::optional<Message> next_message() = 0;

  // ---- elastic jobs ----
  // Can the remaining processes continue after PeerLost? Only where MPI tolerates faults.
  virtual bool can_regroup() const { return false; }
  // Called by all remaining processes after PeerLost, or by one that requests it, which makes the others throw
  // PeerLost; waits for them. Incomplete transfers and messages are dropped, and their memory may be reused. From then
  // on rank(), size() and host() refer to the remaining processes, in their former order, followed by the replacement
  // processes if process 0 passes let_in. Returns the former ranks of the remaining processes.
  virtual std::vector<int> regroup(bool /*let_in*/) { throw std::logic_error("this transport cannot regroup"); }

  // Process 0 starts more processes of the same program; they wait in their transport's constructor to be admitted.
  enum class Replacements { none, starting, waiting };
  virtual void start_replacements(int /*count*/) { throw std::logic_error("this transport starts no processes"); }
  virtual Replacements replacements() { return Replacements::none; }  // throws Error if they could not be started
  virtual void drop_replacements() {}                                 // they are no longer needed
  virtual bool is_replacement() const { return false; }               // was this process started to replace another?

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
