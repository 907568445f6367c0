// Processes that an elastic job starts in place of lost ones.
//
// MPI_Comm_spawn blocks until the new program has called MPI_Init, and sends no heartbeats meanwhile: called by the
// whole job, it would make the others consider process 0 lost. So process 0 spawns alone, on a separate thread, while
// its communication continues. When they have started, all processes connect to them, which takes milliseconds.
#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <string>

#include "symbind/kvstore/mpi/functions.h"

namespace symbind::mpi {

// Where processes connect to each other; empty: nowhere.
using Port = std::array<char, MPI_MAX_PORT_NAME>;

// Some calls of MPI wait forever when the process at the other end is lost at the wrong moment. The process ends if
// such a call takes longer than the limit: the others consider it lost already.
class TimeLimit {
 public:
  explicit TimeLimit(const char* what);
  ~TimeLimit();
  TimeLimit(const TimeLimit&) = delete;
  TimeLimit& operator=(const TimeLimit&) = delete;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// On process 0.
class SpawnedProcesses {
 public:
  // They run this process's program in this folder. The first has this rank.
  SpawnedProcesses(int count, int first_rank, const std::string& folder);
  ~SpawnedProcesses();  // ends those that have not been admitted
  SpawnedProcesses(const SpawnedProcesses&) = delete;
  SpawnedProcesses& operator=(const SpawnedProcesses&) = delete;

  bool are_waiting() const;  // throws Error where they could not be started
  Port invite();             // tells them where to connect
  void let_in();             // they have connected

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// Was this process spawned in place of a lost one?
bool is_spawned();
// Waits for the invitation. Returns the communicator of the job, to which this process belongs from now on.
MPI_Comm join_job();
// Called by all processes of a job: the communicator with those at the port added. If that fails, it is the null
// communicator on all of them.
MPI_Comm connected(MPI_Comm comm, Port port);
// Did all processes of a communicator pass true? The result is the same on all of them, even if some are lost.
bool is_well_for_all(MPI_Comm comm, bool well);

std::string text_of(int code);
void check(int code, const char* call);

}  // namespace symbind::mpi
