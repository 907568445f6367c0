#include "tests/fuzz/driver.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <vector>

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "symbind/core/error.h"

namespace symbind::fuzz {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int exit_found = 3;              // of a child: an exception that is no Error
constexpr uint64_t cases_per_child = 500;  // so that no process grows old
constexpr rlim_t most_memory = rlim_t{4} << 30;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool sanitized = true;  // they map their shadow of all memory, and have limits of their own
#else
constexpr bool sanitized = false;
#endif

// What a child says of itself, in memory that it shares with its parent.
struct Progress {
  int64_t deadline;  // when it begins no further case: ticks of the steady clock, which all processes share
  uint64_t number;   // the case it works on, or the next one when it is done
  uint64_t finished, refused;
  bool done;
  char description[1 << 14];
  char what[1 << 10];  // the exception that is no Error
};

Progress* shared_progress(int file) {
  void* shared = ::mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  require(shared != MAP_FAILED, "no shared memory: ", std::strerror(errno));
  return static_cast<Progress*>(shared);
}

void put(char* to, size_t room, const std::string& text) {
  std::strncpy(to, text.c_str(), room - 1);
  to[room - 1] = 0;
}

// Processor time after which a case counts as one without an end.
void set_timer(int seconds) {
  itimerval timer{};
  timer.it_value.tv_sec = seconds;
  ::setitimer(ITIMER_PROF, &timer, nullptr);
}

// A buffer that shows up in the shared memory as it is written, so that it is there after a crash.
class SharedText : public std::stringbuf {
 public:
  explicit SharedText(Progress& progress) : progress_(progress) {}
  int sync() override {
    put(progress_.description, sizeof progress_.description, str());
    return 0;
  }

 private:
  Progress& progress_;
};

int run_child(const Fuzzer& fuzzer, Progress& progress, uint64_t first, uint64_t end) {
  if (!sanitized) {  // of memory that is written, not of addresses: CUDA reserves far more of them than it uses
    const rlimit memory{most_memory, most_memory};
    ::setrlimit(RLIMIT_DATA, &memory);
  }
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  progress.number = first;
  for (; progress.number < end && Clock::now().time_since_epoch().count() < progress.deadline; ++progress.number) {
    progress.description[0] = progress.what[0] = 0;
    SharedText buffer(progress);
    std::ostream description(&buffer);
    set_timer(fuzzer.seconds_per_case);
    try {
      const Outcome outcome = fuzzer.run(progress.number, description);
      ++(outcome == Outcome::finished ? progress.finished : progress.refused);
    } catch (const std::exception& error) {
      put(progress.what, sizeof progress.what, error.what());
      return exit_found;
    }
    set_timer(0);
  }
  progress.done = true;
  return 0;
}

struct Options {
  double minutes = 1;
  uint64_t first = 0;
  std::optional<uint64_t> count, seed;
  std::string out;
};

Options read_options(int argc, char** argv, const std::string& name) {
  Options options;
  options.first = static_cast<uint64_t>(std::chrono::system_clock::now().time_since_epoch().count());
  options.out = name + "_found";
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view key = argv[i];
    const char* value = argv[i + 1];
    if (key == "--minutes")
      options.minutes = std::atof(value);
    else if (key == "--first")
      options.first = std::strtoull(value, nullptr, 10);
    else if (key == "--count")
      options.count = std::strtoull(value, nullptr, 10);
    else if (key == "--seed")
      options.seed = std::strtoull(value, nullptr, 10);
    else if (key == "--out")
      options.out = value;
    else
      fail("unknown option ", key, "; there are --minutes, --first, --count, --seed and --out");
  }
  return options;
}

// How a child ended, in words; nothing when all is well.
std::string finding_of(int status, const Progress& progress) {
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0 && progress.done) return "";
  if (WIFEXITED(status) && WEXITSTATUS(status) == exit_found) return join("threw ", progress.what);
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGPROF) return "did not end";
  if (WIFSIGNALED(status))
    return join("was killed by signal ", WTERMSIG(status), " (", ::strsignal(WTERMSIG(status)), ")");
  return join("ended with status ", WEXITSTATUS(status));
}

class Session {
 public:
  Session(const Fuzzer& fuzzer, Options options, std::string program)
      : fuzzer_(fuzzer), options_(std::move(options)), program_(std::move(program)) {
    file_ = ::memfd_create(fuzzer.name.c_str(), 0);
    require(file_ >= 0 && ::ftruncate(file_, sizeof(Progress)) == 0, "no shared memory: ", std::strerror(errno));
    progress_ = shared_progress(file_);
  }

  int run() {
    const auto begin = Clock::now();
    const auto minutes = [&] { return std::chrono::duration<double>(Clock::now() - begin).count() / 60; };
    uint64_t next = options_.first;
    const uint64_t end = options_.count ? options_.first + *options_.count : UINT64_MAX;
    const auto time = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options_.minutes * 60));
    progress_->deadline = options_.count ? INT64_MAX : (begin + time).time_since_epoch().count();
    double printed = 0;
    while (next < end && (options_.count || minutes() < options_.minutes)) {
      next = run_cases(next, std::min(end, next + cases_per_child));
      if (minutes() - printed < 0.5 && next < end) continue;
      printed = minutes();
      print(next - options_.first, minutes());
    }
    print(next - options_.first, minutes());
    return found_.empty() ? 0 : 1;
  }

 private:
  // Until one is found or all are done; returns the next number.
  uint64_t run_cases(uint64_t first, uint64_t end) {
    progress_->done = false;
    progress_->number = first;
    const pid_t child = ::fork();
    require(child >= 0, "no process: ", std::strerror(errno));
    if (child == 0) {  // a new program: one that was only forked would compute on a single thread
      const std::string file = std::to_string(file_), from = std::to_string(first), to = std::to_string(end);
      ::execl("/proc/self/exe", program_.c_str(), "--child", file.c_str(), from.c_str(), to.c_str(), nullptr);
      ::_exit(1);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    const std::string finding = finding_of(status, *progress_);
    if (finding.empty()) return progress_->number;
    write_down(finding);
    return progress_->number + 1;
  }

  void write_down(const std::string& finding) {
    const std::string what = progress_->description, command = join(program_, " --seed ", progress_->number);
    // Cases that begin alike and end alike are most often one mistake.
    const std::string kind = what.substr(0, what.find_first_of(" \n")) + ": " + finding;
    const int before = found_[kind]++;
    if (before >= 3) return;
    std::filesystem::create_directories(options_.out);
    const std::string file = join(options_.out, "/", fuzzer_.name, "_", progress_->number, ".txt");
    std::ofstream(file) << finding << "\n" << command << "\n" << what << "\n";
    std::cout << fuzzer_.name << ": FOUND " << finding << "\n  " << what.substr(0, 600) << "\n  repeat it: " << command
              << "\n  written to " << file << std::endl;
  }

  void print(uint64_t cases, double minutes) const {
    size_t found = 0;
    for (const auto& [kind, count] : found_) found += static_cast<size_t>(count);
    std::cout << fuzzer_.name << ": " << cases << " cases in " << minutes << " minutes: " << progress_->finished
              << " finished, " << progress_->refused << " refused, " << found << " found of " << found_.size()
              << " kinds" << std::endl;
  }

  const Fuzzer& fuzzer_;
  const Options options_;
  const std::string program_;
  int file_;
  Progress* progress_;
  std::map<std::string, int> found_;  // by kind
};

}  // namespace

int main_of(const Fuzzer& fuzzer, int argc, char** argv) {
  try {
    if (argc == 5 && std::string_view(argv[1]) == "--child")
      return run_child(fuzzer, *shared_progress(std::atoi(argv[2])), std::strtoull(argv[3], nullptr, 10),
                       std::strtoull(argv[4], nullptr, 10));
    const Options options = read_options(argc, argv, fuzzer.name);
    if (!options.seed) return Session(fuzzer, options, argv[0]).run();
    std::ostringstream description;
    try {
      const Outcome outcome = fuzzer.run(*options.seed, description);
      std::cout << description.str() << (outcome == Outcome::finished ? "finished" : "refused") << std::endl;
    } catch (...) {
      std::cout << description.str() << std::endl;
      throw;
    }
    return 0;
  } catch (const std::exception& error) {
    std::cerr << fuzzer.name << ": " << error.what() << "\n";
    return 1;
  }
}

}  // namespace symbind::fuzz
