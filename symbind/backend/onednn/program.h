// A kernel made of oneDNN primitives. A family describes its arrays and primitives once, at build; a run only sets
// addresses and executes. Scratch of all kinds (oneDNN's own, reordered weights) comes from the arena.
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "symbind/backend/onednn/library.h"
#include "symbind/core/error.h"

namespace symbind::onednn {

// Below this many multiply-adds (or elements, where each costs little) waking a second thread costs more than it saves.
inline constexpr int64_t thread_products = 1 << 18;
inline constexpr int64_t thread_elements = 1 << 15;

// The number of threads a primitive is created for, and must be run with. oneDNN chooses a primitive, divides its work
// and sizes its scratch by the number of OpenMP's threads: primitives are described, made and run in a ThreadScope of
// this number.
int threads_for(int64_t work, int64_t worth_a_thread);

// The plain implementation's kernel of the node, for layouts that oneDNN does not support.
std::unique_ptr<Kernel> build_plain(const NodeView& node);

// Thrown by Program::execute() for a primitive for which oneDNN has only reference loops.
class ReferenceOnly : public Error {
 public:
  using Error::Error;
};

class Program final : public Kernel {
 public:
  Program(std::string where, int threads) : where_(std::move(where)), threads_(threads) {}
  // `assemble` describes the kernel; exceptions of oneDNN become an Error that names the node.
  static std::unique_ptr<Kernel> build(const NodeView& node, int threads,
                                       const std::function<void(Program&)>& assemble);
  // The reason why oneDNN cannot build it for so many threads (it has no implementation, or none but its reference
  // loops), or nothing.
  static std::string refuse(const NodeView& node, int threads, const std::function<void(Program&)>& assemble);

  // An array of the program, by number.
  struct Array {
    size_t number;
  };
  Array input(size_t index, const Desc& desc) { return add_array(From::input, index, desc); }
  Array output(size_t index, const Desc& desc) { return add_array(From::output, index, desc); }
  Array scratch(const Desc& desc);
  // Cached data that prepare() computes from these inputs: `steps` (which may use scratch) run then, not in run().
  Array cached(const Desc& desc);
  void in_preparation(std::vector<int> from, const std::function<void()>& steps);
  // An input as `wanted` describes it: itself, or a cached copy in that order.
  Array prepared(size_t index, const Desc& given, const Desc& wanted);
  // `given` as `wanted` describes it: itself, or a copy in scratch that this step reorders it to.
  Array reordered(Array given, const Desc& wanted);
  // An array described as `wanted` to be written by the next step; finish(result, given) then reorders it to `given`.
  Array writable(Array given, const Desc& wanted);
  void finish(Array written, Array given);

  // One primitive; its scratchpad is allocated here.
  void execute(const dnnl::primitive& primitive, const dnnl::primitive_desc_base& descriptor,
               std::initializer_list<std::pair<int, Array>> arrays);
  void execute(const dnnl::primitive& primitive, const dnnl::primitive_desc_base& descriptor,
               const std::vector<std::pair<int, Array>>& arrays);
  void activate(Array array, const Eltwise& activation);  // in place
  void add(Array array, Array more);                      // array += more
  // A custom step. The address of an array of this program: float_data().
  void call(std::function<void(const Args&)> step);
  float* float_data(Array array, const Args& args) const {
    return static_cast<float*>(address(arrays_[array.number], args));
  }

  // The kernel to run if oneDNN fails, most likely for lack of memory: some of its kernels never work again in a
  // process after their first use failed. For arrays in plain layouts only.
  void set_fallback(std::unique_ptr<Kernel> plain);

  void prepare(const Args& args) override { run_steps(preparation_, args); }
  void run(const Args& args) override;

 private:
  enum class From { input, output, scratch, cached };
  struct Binding {
    From from;
    size_t index;  // of an input or output, or byte offset in scratch or cached data
    dnnl::memory memory;
  };
  struct Step {
    dnnl::primitive primitive;
    std::vector<dnnl_exec_arg_t> arguments;
    std::function<void(const Args&)> call;  // instead of a primitive
  };

  Array add_array(From from, size_t index, const Desc& desc);
  void copy(Array from, Array to);
  void run_steps(const std::vector<Step>& steps, const Args& args);
  dnnl_status_t try_steps(const std::vector<Step>& steps, const Args& args);
  void* address(const Binding& binding, const Args& args) const;

  std::string where_;
  int threads_;
  std::vector<Binding> arrays_;
  std::vector<Step> steps_, preparation_;
  bool preparing_ = false;
  std::unique_ptr<Kernel> fallback_;
  std::mutex running_;  // a run sets the addresses in arrays_
};

}  // namespace symbind::onednn
