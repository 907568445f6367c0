// A network bound to arrays on a device: forward, backward, and the arrays themselves.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "symbind/core/ndarray.h"
#include "symbind/exec/binding.h"
#include "symbind/exec/operator_cost.h"
#include "symbind/graph/symbol.h"
#include "symbind/passes/compile_options.h"
#include "symbind/passes/infer.h"

namespace SYMBIND_API symbind {

class Executor;
using ExecutorPtr = std::shared_ptr<Executor>;

struct ExecutorOptions {
  Arrays args_grad = {};
  GradReqs grad_req = "write";
  Arrays aux_states = {};
  std::map<std::string, Context> group2ctx = {};
  ExecutorPtr shared_exec = nullptr;  // shares its working memory
  CompileOptions options = {};
};

struct SimpleBindOptions {
  GradReqs grad_req = "write";
  NamedTypes type_dict = {};
  std::map<std::string, Context> group2ctx = {};
  std::vector<std::string> shared_arg_names = {};
  ExecutorPtr shared_exec = nullptr;
  // Shared buffers by name: arguments that are not in shared_arg_names are views of these, and a buffer that is too
  // small is replaced by a larger one that starts with the same values. shared_results: the same for the outputs
  // ("output0") and the gradients of these arguments ("grad:data"). Executors that share buffers overwrite each other's
  // values. follow() releases buffers that were replaced.
  NamedArrays* shared_buffer = nullptr;
  NamedArrays* shared_results = nullptr;
  std::vector<std::string> output_names = {};  // of the outputs, in their order; empty: those of the symbol
  CompileOptions options = {};
};

// bind(net, cpu(), args, options) binds to arrays of the caller. No entry in args_grad means no gradient. (An object
// and not a function, so that argument-dependent lookup of standard containers never finds std::bind instead.)
struct Bind {
  ExecutorPtr operator()(const Symbol& symbol, Context context, const Arrays& args,
                         const ExecutorOptions& options = {}) const;
};
inline constexpr Bind bind;

// Infers all shapes and types from those given, and allocates all arrays, filled with zeros.
ExecutorPtr simple_bind(const Symbol& symbol, Context context, const NamedShapes& shapes,
                        const SimpleBindOptions& options = {});

struct MemoryReport {
  size_t arena = 0;      // working memory: activations and scratch
  size_t arguments = 0;  // arguments and auxiliary states
  size_t gradients = 0;
  size_t outputs = 0;
  size_t cached = 0;       // data that inference derives from the parameters and caches: folded and reordered weights
  size_t unshared = 0;     // size of the arena if no memory were shared
  size_t lower_bound = 0;  // peak of the live bytes: no packing of the same plan needs less
};

struct ReshapeOptions {
  bool partial_shaping = false;  // may shapes of arrays that were not named change?
  bool allow_up_sizing = false;  // may arrays grow?
  // Shares the parameters only: the arguments in `shapes`, all gradients and the working memory are new. Such executors
  // may predict concurrently, each on a thread of its own.
  bool own_memory = false;
};

// An executor serves one thread at a time, and so does memory that executors share: a call that finds either in use by
// another thread fails. The accessors of arrays and names below, and reshape(), may be called from any thread at any
// time.

class Executor : public std::enable_shared_from_this<Executor> {
 public:
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // Inputs by name are copied into the argument arrays first. The outputs are the same arrays at every call,
  // overwritten by the next.
  const std::vector<NDArray>& forward(bool is_train = false, const NamedArrays& inputs = {});
  // out_grads: in the order of the outputs, or by output name; needed only for outputs that a requested gradient
  // depends on. After forward(false), or with is_train false, they are the gradients of the network in test mode:
  // forward runs again and stores what backward needs. It also runs again, with the same random numbers, when backward
  // is called more than once after a forward.
  void backward(const Arrays& out_grads = {}, bool is_train = true);
  // forward(true, inputs), then backward(). On a GPU both are one launch where the steps allow it: for networks whose
  // outputs are losses.
  const std::vector<NDArray>& forward_backward(const NamedArrays& inputs = {});

  const Symbol& symbol() const;
  Context context() const;
  const std::vector<std::string>& output_names() const;
  const std::vector<NDArray>& outputs() const;
  const std::vector<NDArray>& arg_arrays() const;
  const std::vector<NDArray>& grad_arrays() const;  // empty arrays where there is no gradient
  const std::vector<NDArray>& aux_arrays() const;
  const NamedArrays& arg_dict() const;
  const NamedArrays& grad_dict() const;  // only arguments that have a gradient
  const NamedArrays& aux_dict() const;
  const NamedArrays& output_dict() const;

  // Names that the network does not have fail, unless extra ones are allowed; nothing is copied then.
  void copy_params_from(const NamedArrays& arg_params, const NamedArrays& aux_params = {},
                        bool allow_extra_params = false);
  // An executor for other input shapes that shares the parameters and, unless own_memory is set, the working memory and
  // that of the outputs.
  ExecutorPtr reshape(const NamedShapes& shapes, const ReshapeOptions& options = {});

  // Arrays that simple_bind() took from shared buffers become views of the current buffers, and compiled plans continue
  // with these.
  void follow(const NamedArrays& shared_buffer, const NamedArrays& shared_results);

  // Releases the data that inference derives from the parameters (MemoryReport::cached); the next forward recomputes
  // it.
  void release_derived();

  // Called right after each node, forward and backward, with the name of each output (monitor_all: of each input too)
  // and its array. An empty function removes the monitor.
  using Monitor = std::function<void(const std::string& name, const NDArray& array)>;
  void set_monitor_callback(Monitor monitor, bool monitor_all = false);

  MemoryReport memory() const;
  std::string debug_str() const;  // the plans, as tables (exec/plan_table.h)
  // Of the plan that the last forward ran, the slowest operator first. Needs CompileOptions::profile.
  std::vector<OperatorCost> operator_costs() const;
  // The working memory over the steps of the plan that needs most of it, as SVG (exec/plan_picture.h).
  std::string memory_picture(const std::string& title = "") const;

  struct Impl;  // executor_impl.h

 private:
  friend class ExecutorBuilder;
  explicit Executor(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Computes a network's outputs for the given arguments, once.
std::vector<NDArray> eval(const Symbol& symbol, const NamedArrays& args, Context context = cpu());

}  // namespace symbind
