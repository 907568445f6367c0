#include "symbind/kvstore/mpi/replacements.h"

#include <algorithm>
#include <condition_variable>
#include <fstream>
#include <iterator>
#include <mutex>
#include <string_view>
#include <thread>
#include <vector>

#include <unistd.h>

#include "symbind/core/environment.h"
#include "symbind/core/error.h"

namespace symbind::mpi {

std::string text_of(int code) {
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  Error_string(code, text.data(), &length);
  return std::string(text.data(), static_cast<size_t>(length));
}

void check(int code, const char* call) {
  require(code == MPI_SUCCESS, "[MPI] ", call, " failed: ", code == MPI_SUCCESS ? "" : text_of(code));
}

bool is_well_for_all(MPI_Comm comm, bool well) {
  int flag = well ? 1 : 0;
  return Comm_agree(comm, &flag) == MPI_SUCCESS && flag != 0;
}

// ---- limits ---------------------------------------------------------------------------------------------------------

namespace {

constexpr std::chrono::seconds longest_call(60);

}  // namespace

struct TimeLimit::State {
  std::mutex mutex;
  std::condition_variable changed;
  bool over = false;
};

TimeLimit::TimeLimit(const char* what) : state_(std::make_shared<State>()) {
  std::thread([state = state_, what] {
    std::unique_lock guard(state->mutex);
    if (state->changed.wait_for(guard, longest_call, [&] { return state->over; })) return;
    const std::string text = join("[kvstore] ", what, " took longer than ", longest_call.count(), " s\n");
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
    ::_exit(1);
  }).detach();
}

TimeLimit::~TimeLimit() {
  const std::lock_guard guard(state_->mutex);
  state_->over = true;
  state_->changed.notify_all();
}

// ---- process 0 ------------------------------------------------------------------------------------------------------

namespace {

constexpr int invitation_tag = 1;

// The launcher's command, else that of this process.
std::vector<std::string> program() {
  std::string text = environment::text("SYMBIND_SPAWN_COMMAND").value();
  const char end = text.empty() ? '\0' : '\n';
  if (text.empty()) {
    std::ifstream file("/proc/self/cmdline", std::ios::binary);
    text.assign(std::istreambuf_iterator<char>(file), {});
  }
  std::vector<std::string> words;
  for (size_t begin = 0; begin < text.size();) {
    const size_t next = std::min(text.find(end, begin), text.size());
    words.push_back(text.substr(begin, next - begin));
    begin = next + 1;
  }
  require(!words.empty(), "[kvstore] the command of this process is not known");
  return words;
}

// Open MPI gives a process that it spawns neither the environment of the one that asked nor what mpirun's -x gave.
bool is_passed_on(std::string_view variable) {
  constexpr std::array names = {
      "PATH=", "LD_LIBRARY_PATH=", "VIRTUAL_ENV=", "CUDA_VISIBLE_DEVICES=", "OMPI_MCA_mpi_yield_when_idle="};
  constexpr std::array groups = {"PYTHON", "MXNET_", "SYMBIND_", "OMP_", "GOMP_", "NCCL_", "DMLC_INTERFACE="};
  const auto begins = [&](const char* with) { return variable.starts_with(with); };
  return (std::ranges::any_of(names, begins) || std::ranges::any_of(groups, begins)) &&
         !variable.starts_with("SYMBIND_JOIN_RANK=") && !variable.starts_with("SYMBIND_LAUNCHER=");
}

std::vector<std::string> spawned_command(int first_rank) {
  std::vector<std::string> words{"env", join("SYMBIND_JOIN_RANK=", first_rank)};
  for (char** variable = environ; *variable; ++variable)
    if (is_passed_on(*variable)) words.emplace_back(*variable);
  for (std::string& word : program()) words.push_back(std::move(word));
  return words;
}

}  // namespace

struct SpawnedProcesses::State {
  int count = 0;
  std::vector<std::string> command;
  std::string folder;

  std::mutex mutex;
  bool done = false, unwanted = false;
  std::string problem;
  MPI_Comm processes = nullptr;

  void spawn();
  void tell(const Port& port);
  void dismiss() noexcept;
};

SpawnedProcesses::SpawnedProcesses(int count, int first_rank, const std::string& folder)
    : state_(std::make_shared<State>()) {
  state_->count = count;
  state_->command = spawned_command(first_rank);
  state_->folder = folder;
  std::thread([state = state_] { state->spawn(); }).detach();
}

void SpawnedProcesses::State::spawn() {
  std::vector<char*> arguments;
  for (size_t i = 1; i < command.size(); ++i) arguments.push_back(command[i].data());
  arguments.push_back(nullptr);
  MPI_Info info;
  MPI_Comm made = nullptr;
  std::string failed;
  try {
    check(Comm_set_errhandler(self(), errors_return()), "MPI_Comm_set_errhandler");
    check(Info_create(&info), "MPI_Info_create");
    check(Info_set(info, "wdir", folder.c_str()), "MPI_Info_set");
    // Not in the command, which all users of a host can see.
    if (const std::string contact = environment::text("SYMBIND_LAUNCHER").value(); !contact.empty())
      check(Info_set(info, "PMIX_ENVAR", join("SYMBIND_LAUNCHER=", contact).c_str()), "MPI_Info_set");
    check(Comm_spawn(command[0].data(), arguments.data(), count, info, 0, self(), &made, nullptr), "MPI_Comm_spawn");
    Info_free(&info);
    check(Comm_set_errhandler(made, errors_return()), "MPI_Comm_set_errhandler");
  } catch (const Error& error) {
    failed = error.what();
  }
  bool late = false;
  {
    const std::lock_guard guard(mutex);
    done = true;
    problem = failed;
    processes = made;
    late = unwanted && failed.empty();
  }
  if (late) dismiss();
}

void SpawnedProcesses::State::tell(const Port& port) {
  for (int each = 0; each < count; ++each)
    check(Send(port.data(), static_cast<int>(port.size()), byte(), each, invitation_tag, processes), "MPI_Send");
  if (port[0] == 0) Comm_disconnect(&processes);
}

void SpawnedProcesses::State::dismiss() noexcept {
  try {
    tell(Port{});
  } catch (const Error&) {  // they are gone
  }
}

bool SpawnedProcesses::are_waiting() const {
  const std::lock_guard guard(state_->mutex);
  require(state_->problem.empty(), state_->problem);
  return state_->done;
}

Port SpawnedProcesses::invite() {
  Port port{};
  check(Open_port(no_info(), port.data()), "MPI_Open_port");
  state_->tell(port);
  return port;
}

void SpawnedProcesses::let_in() {
  Comm_disconnect(&state_->processes);  // MPI_Finalize would wait for them
  state_ = nullptr;
}

SpawnedProcesses::~SpawnedProcesses() {
  if (!state_) return;
  bool waiting = false;
  {
    const std::lock_guard guard(state_->mutex);
    state_->unwanted = true;
    waiting = state_->done && state_->problem.empty();
  }
  if (waiting) state_->dismiss();
}

// ---- both sides -----------------------------------------------------------------------------------------------------

namespace {

MPI_Comm merged(MPI_Comm between, bool last) {
  MPI_Comm all = no_comm();
  if (Comm_set_errhandler(between, errors_return()) != MPI_SUCCESS) return no_comm();
  if (Intercomm_merge(between, last ? 1 : 0, &all) != MPI_SUCCESS) return no_comm();
  return Comm_set_errhandler(all, errors_return()) == MPI_SUCCESS ? all : no_comm();
}

}  // namespace

MPI_Comm connected(MPI_Comm comm, Port port) {
  const TimeLimit limit("letting in a new worker");
  MPI_Comm between = no_comm();
  const int code = Comm_accept(port.data(), no_info(), 0, comm, &between);
  if (!is_well_for_all(comm, code == MPI_SUCCESS)) return no_comm();
  const MPI_Comm all = merged(between, false);
  return is_well_for_all(comm, all != no_comm()) ? all : no_comm();
}

bool is_spawned() {
  if (!environment::variable("SYMBIND_JOIN_RANK").on()) return false;
  MPI_Comm parent = no_comm();
  check(Comm_get_parent(&parent), "MPI_Comm_get_parent");
  return parent != no_comm();
}

MPI_Comm join_job() {
  MPI_Comm parent, between = no_comm();
  check(Comm_get_parent(&parent), "MPI_Comm_get_parent");
  check(Comm_set_errhandler(parent, errors_return()), "MPI_Comm_set_errhandler");
  check(Comm_set_errhandler(world(), errors_return()), "MPI_Comm_set_errhandler");
  Port port{};
  check(Recv(port.data(), static_cast<int>(port.size()), byte(), 0, invitation_tag, parent, MPI_STATUS_IGNORE),
        "MPI_Recv");
  require(port[0] != 0, "[kvstore] the job does not wait for this worker any more");
  check(Comm_connect(port.data(), no_info(), 0, world(), &between), "MPI_Comm_connect");
  const MPI_Comm all = merged(between, true);
  require(all != no_comm(), "[kvstore] a worker was lost while this one joined the job");
  Comm_disconnect(&parent);
  return all;
}

}  // namespace symbind::mpi
