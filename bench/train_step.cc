// The time of a whole training step (forward, backward, SGD with momentum; by an executor and operators, or through
// Module), or of a prediction. Prints one JSON row.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include <sys/resource.h>
#include <unistd.h>

#include "symbind/symbind.h"

#include "bench/support/cases.h"
#include "bench/support/cost_table.h"
#include "bench/support/steps.h"
#include "examples/support/options.h"

using namespace symbind;
using namespace bench;

namespace {

struct Options {
  std::string name = "lenet-train", through = "executor", threads, device = "cpu", dtype = "float32", table;
  double seconds = 3, budget_mib = 0;
  int64_t batch = 0;
  bool profile = false;

  static Options parse(int argc, char** argv) {
    Options options;
    examples::Options line("train_step", "Times a training step or a prediction. Cases: " + case_names());
    line.add("--case", options.name, "what is timed", "CASE")
        .add_choice("--through", options.through, {"executor", "module"}, "what runs a training step")
        .add("--threads", options.threads, "CPU threads", "N")
        .add_choice("--device", options.device, {"cpu", "gpu"}, "where it runs")
        .add_choice("--dtype", options.dtype, {"float32", "float16", "bfloat16"}, "16 bits: mixed precision")
        .add("--batch", options.batch, "samples in a batch; 0: the case's own number", 0)
        .add("--seconds", options.seconds, "how long it is timed")
        .add("--budget", options.budget_mib, "MiB of working memory for a training plan; 0: no limit")
        .add("--table", options.table, "a file for the plans as tables, with times if --profile is given", "FILE")
        .add_flag("--profile", options.profile, "print milliseconds and bytes by class of kernel after the row");
    line.parse(argc, argv);
    require(!options.profile || options.through == "executor", "--profile needs --through executor");
    return options;
  }
  StepOptions step_options() const {
    return {.context = device == "gpu" ? gpu() : cpu(),
            .dtype = dtype_from_name(dtype),
            .compile = {.memory_budget = static_cast<size_t>(budget_mib * (1 << 20))}};
  }
};

// Of groups of steps: on a GPU the next step is queued while one runs, as in any training loop.
template <class Step>
double median_ms(Step& timed, double seconds, int group) {
  using Clock = std::chrono::steady_clock;
  const auto since = [](Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
  };
  const auto begin_warm_up = Clock::now();
  for (int i = 0; i < 10 && (i < 2 || since(begin_warm_up) < seconds); ++i) timed.step();
  waitall();
  std::vector<double> times;
  for (const auto begin = Clock::now(); since(begin) < seconds || times.size() < 3;) {
    const auto group_begin = Clock::now();
    for (int i = 0; i < group; ++i) timed.step();
    waitall();
    times.push_back(since(group_begin) * 1e3 / group);
  }
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

// OpenMP reads its variables before main() begins: set, they count for a program started anew.
void start_again_with_threads(const std::string& threads, char** argv) {
  const char* now = std::getenv("OMP_NUM_THREADS");
  if (threads.empty() || (now && threads == now)) return;
  ::setenv("OMP_NUM_THREADS", threads.c_str(), 1);
  ::execv("/proc/self/exe", argv);
  fail("cannot start again with ", threads, " threads");
}

void print_row(const Options& options, int64_t batch, double ms, const Executor& executor) {
  rusage usage_of_process{};
  ::getrusage(RUSAGE_SELF, &usage_of_process);
  const auto mb = [](auto bytes) { return static_cast<double>(bytes) / (1 << 20); };
  const MemoryReport report = executor.memory();
  // All arrays ever alive at the same time, the arena with the kernels' workspaces among them, and what the pool holds
  // beyond those now.
  const MemoryStats memory = Device::get(executor.context()).memory();
  std::cout << "{\"case\": \"" << options.name << "\", \"dtype\": \"" << options.dtype << "\", \"batch\": " << batch
            << ", \"ms\": " << ms << ", \"per_s\": " << static_cast<double>(batch) / ms * 1e3
            << ", \"rss_mb\": " << usage_of_process.ru_maxrss / 1024 << ", \"arena_mb\": " << mb(report.arena)
            << ", \"cached_mb\": " << mb(report.cached) << ", \"device_peak_mb\": " << mb(memory.peak)
            << ", \"device_pooled_mb\": " << mb(memory.pooled) << "}" << std::endl;
}

template <class Step>
void run(const Options& options) {
  const Case network = make_case(options.name, options.batch);
  StepOptions step_options = options.step_options();
  const auto write_table = [&](const Step& timed) {
    if (!options.table.empty()) std::ofstream(options.table) << timed.executor().debug_str();
  };
  {
    Step timed(network, step_options);
    const double ms = median_ms(timed, options.seconds, step_options.context.is_gpu() ? 10 : 1);
    print_row(options, network.data[0], ms, timed.executor());
    if (!options.profile) return write_table(timed);
  }
  step_options.compile.profile = true;
  Step timed(network, step_options);
  print_cost_table(std::cout, measured_costs(timed, /*steps=*/5), rates_of(step_options.context, step_options.dtype));
  write_table(timed);
}

}  // namespace

int main(int argc, char** argv) {
  return examples::run_program("train_step", [&] {
    const Options options = Options::parse(argc, argv);
    start_again_with_threads(options.threads, argv);
    if (is_inference(options.name))
      run<Prediction>(options);
    else
      options.through == "module" ? run<ModuleTraining>(options) : run<Training>(options);
  });
}
