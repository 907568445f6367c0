// The variables of the environment that the library reads. Each is in the list below and nowhere else;
// docs/environment.md has the same list.
//
// A variable is a number from 0 to `most`, and a switch where that is 1. Not set or empty, it has its default. "0",
// "false", "off" and "no", in letters of either case, are 0; a number in the range is its value; any other text is 1.
// Some variables are strings, empty if not set.
#pragma once

#include <string>
#include <string_view>

namespace symbind::environment {

struct Variable {
  const char* name;
  int usual;  // the default
  int most;
  const char* doc;

  // The current value: the environment is read at each call.
  int value() const;
  bool on() const { return value() > 0; }
  // The value of a text by the rule above.
  int meaning(std::string_view text) const;
};

inline constexpr Variable variables[] = {
    {"MXNET_BACKWARD_DO_MIRROR", 0, 1,
     "recompute the outputs of cheap operators in backward instead of storing them; read when a plan is compiled"},
    {"MXNET_CUDNN_AUTOTUNE_DEFAULT", 1, 2,
     "how cuDNN's engine is chosen for convolutions without `cudnn_tune`: 0 without timing: a kernel of ours that "
     "suits, else the first guess of cuDNN; 1 by measured times within a limited workspace, 2 by measured times alone, "
     "and in float16 BatchNorm's statistics may differ in the last bits from run to run; read when a plan is compiled"},
    {"MXNET_UPDATE_ON_KVSTORE", 1, 1,
     "let the store of a `Module` update the weights where it can; read by `init_optimizer`"},
    {"OMPI_MCA_mpi_ft_enable", 0, 1,
     "set by `mpirun --with-ft ulfm` of Open MPI 5: it tells the others when a worker is lost; read when the first "
     "distributed store is created"},
    {"SYMBIND_CONCURRENT_STEPS", 1, 1,
     "let steps of a captured plan run at the same time where neither needs what the other writes; 0: one after the "
     "other; read when a plan is compiled and captured"},
    {"SYMBIND_ELASTIC", 0, 1,
     "let a distributed job continue without workers that are lost, where MPI tolerates faults: `distributed.md`; read "
     "when the first distributed store is created"},
    {"SYMBIND_EXPLAIN", 0, 2,
     "print every plan as a table to standard error when it is compiled; 2: also which implementations refused a node "
     "and why; read once"},
    {"SYMBIND_GPUS", 0, 1024,
     "the least number of GPU contexts: if a machine has fewer GPUs, several contexts use one, each with a queue and a "
     "memory pool of its own, which is meant for tests; read once"},
    {"SYMBIND_JOIN_RANK", 0, 1 << 30,
     "set by an elastic job for processes that it starts in place of lost workers: the rank of the first of them; read "
     "when the first distributed store is created"},
    {"SYMBIND_NCCL", 1, 1,
     "use NCCL where GPUs exchange arrays: the store `nccl`, and sums over workers; read when a store needs it"},
    {"SYMBIND_PEER_TIMEOUT", 6, 86400,
     "seconds without a heartbeat after which a worker of a distributed store counts as lost; read when the first "
     "such store is created"},
    {"SYMBIND_POISON", 0, 1,
     "fill working memory that holds nothing with NaN, to find kernels that read it; read once"},
    {"SYMBIND_PROFILE", 0, 1, "time every step of every plan; read once"},
    {"SYMBIND_TF32", 1, 1,
     "use TF32 for float32 matrix products and convolutions on a GPU; read when a kernel is built"},
    {"SYMBIND_WINOGRAD", 1, 1, "use Winograd's convolutions on a CPU; read once"},
};

struct TextVariable {
  const char* name;
  const char* doc;
  std::string value() const;  // the current value
};

inline constexpr TextVariable texts[] = {
    {"CUDA_HOME",
     "the folder of CUDA, whose lib64 is searched for its libraries and cuDNN after the folders of the system's "
     "loader; read when a GPU first needs them"},
    {"DMLC_ROLE",
     "`server` or `scheduler`: this process trains nothing; in a job of mpirun it holds the keys of `dist_async` "
     "stores, else it ends with code 0; read by `import symbind` and when a distributed store is created"},
    {"HOME", "the user's folder, for `SYMBIND_CACHE_DIR`"},
    {"NCCL_HOSTID",
     "NCCL's own: the name of this host; workers with different names may use one GPU, as if they were on different "
     "hosts, which is meant for tests; read when workers connect their GPUs"},
    {"ONEDNN_MAX_CPU_ISA",
     "oneDNN's own: the newest instruction set that it uses; read when it is first used. If it is not set, AMX is left "
     "out on machines that report it without the sizes of its tiles, where oneDNN would fail"},
    {"SYMBIND_CACHE_DIR",
     "the folder in which measured choices of cuDNN's engines are stored; `off`: nothing is stored; by default "
     "`symbind` in `XDG_CACHE_HOME`, or `~/.cache/symbind`; read when a GPU is first used for a convolution"},
    {"SYMBIND_LAUNCHER",
     "set by `symbind-launch` for elastic jobs: how a process in place of a lost worker finds it; read when a worker "
     "is replaced"},
    {"SYMBIND_LIBRARY_PATH",
     "folders, separated by colons, that are searched for optional libraries (those of CUDA, cuDNN, NCCL) after the "
     "folders of the system's loader; `import symbind` adds those of NVIDIA's Python packages; read when a library is "
     "first needed"},
    {"SYMBIND_SPAWN_COMMAND",
     "set by `symbind-launch` for elastic jobs: the command, a word per line, that starts a process in place of a lost "
     "worker; empty: that of the process itself; read when a worker is replaced"},
    {"XDG_CACHE_HOME", "the folder for caches of all programs, for `SYMBIND_CACHE_DIR`"},
};

// A variable by its name. A name that is not in the list is a compile error.
consteval const Variable& variable(std::string_view name) {
  for (const Variable& each : variables)
    if (each.name == name) return each;
  throw "not in the list of variables";
}

consteval const TextVariable& text(std::string_view name) {
  for (const TextVariable& each : texts)
    if (each.name == name) return each;
  throw "not in the list of variables";
}

}  // namespace symbind::environment
