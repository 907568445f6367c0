// Inspects a network while it runs: every `interval` batches, a statistic of each array that is computed.
//   Monitor monitor(10);
//   monitor.install(*executor);
//   for each batch: monitor.tic(); executor->forward(true); executor->backward(); monitor.toc_print();
// A subclass may override what a module and fit call: install, tic, toc and toc_print.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "symbind/core/ndarray.h"
#include "symbind/exec/executor.h"

namespace SYMBIND_API symbind {

// The result of a statistic: a number, an array, or several arrays.
struct Statistic {
  std::vector<NDArray> values;
  Statistic(double value);
  Statistic(NDArray value) : values{std::move(value)} {}
  Statistic(std::vector<NDArray> several) : values(std::move(several)) {}
};
using StatFunc = std::function<Statistic(const NDArray& array)>;

struct MonitorOptions {
  StatFunc stat_func = {};     // none: the root of the mean square
  std::string pattern = ".*";  // names that begin with a match of this regular expression
  bool sort = false;           // by name
  bool monitor_all = false;    // inputs of nodes, too
};

class Monitor {
 public:
  explicit Monitor(int64_t interval, const MonitorOptions& options = {});
  virtual ~Monitor();
  Monitor(const Monitor&) = delete;
  Monitor& operator=(const Monitor&) = delete;

  // May be called for several executors, which may then run concurrently. Monitor and executors may be destroyed in any
  // order.
  virtual void install(Executor& executor);
  // The same as a function, for code that creates more executors later: it does nothing once the monitor is destroyed.
  virtual std::function<void(Executor&)> installer() const;
  std::vector<ExecutorPtr> executors() const;  // those it is installed in

  int64_t interval() const;
  void set_interval(int64_t interval);
  int64_t step() const;    // batches started so far
  bool activated() const;  // is it recording?
  // For classes with a toc() of their own. What was recorded is dropped when recording ends.
  void set_step(int64_t step);
  void set_activated(bool activated);

  // Call before a batch: starts recording if this batch is to be recorded.
  virtual void tic();
  // Call after it: the statistics since tic(), and those of the arguments and auxiliary states of the executors that
  // ran; empty if this batch was not recorded.
  struct Entry {
    int64_t step;       // batches started so far
    std::string name;   // of the array
    std::string value;  // of the statistic, each part with a tab after it
  };
  virtual std::vector<Entry> toc();
  virtual void toc_print();                              // prints what toc() returns
  static void print(const std::vector<Entry>& entries);  // "Batch:       1 fc1_output                     0.5"

 private:
  struct Installed;
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace symbind
