// A lane holds the resources of one call: working memory, and an executor per shape that uses it. A call takes a lane
// exclusively and returns it; there are never more lanes than calls may compute concurrently.
#include "symbind/train/predictor.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <list>
#include <mutex>

#include <unistd.h>

#include "symbind/core/error.h"
#include "symbind/core/parallel.h"
#include "symbind/files/checkpoint.h"
#include "symbind/graph/gradient_probe.h"
#include "symbind/graph/op.h"
#include "symbind/graph/rewriting.h"
#include "symbind/passes/infer_graph.h"
#include "symbind/train/mixed_precision.h"
#include "symbind/train/names.h"

namespace symbind {
namespace {

using Clock = std::chrono::steady_clock;

// A call that takes less on one core is not worth a second one: waking a thread for every layer costs as much.
constexpr auto worth_threads = std::chrono::milliseconds(1);

// The network without what computes labels from other labels, such as a reshape: only the gradient of a loss reads its
// labels, and their shapes follow from those of the predictions.
Symbol without_labels(const Symbol& symbol) {
  Rewriting rewriting(symbol);
  for (const NodePtr& node : rewriting.nodes()) {
    std::vector<Entry> inputs = rewriting.inputs_of(*node);
    if (!node->is_variable() && !node->op->shape_only.empty() && is_loss(*node)) {
      const Names names = node->op->inputs(node->params.get());
      for (size_t i = 0; i < names.size(); ++i)
        if (contains(node->op->shape_only, names[i]) && !inputs[i].node->is_variable())
          inputs[i] = Symbol::variable(join(node->name, "_unread_", names[i])).entries()[0];
    }
    rewriting.put(node, Rewriting::with_inputs(*node, std::move(inputs)));
  }
  return Symbol(rewriting.outputs());
}

// The variables whose elements a prediction reads, in the network's order.
std::vector<std::string> read_variables(const Symbol& symbol) {
  const Graph graph = Graph::from(symbol);
  std::vector<bool> read(graph.tensors.size(), false);
  for (const TensorId output : graph.outputs) read[static_cast<size_t>(output)] = true;
  for (const GraphNode& node : graph.nodes) {
    if (node.is_variable()) continue;
    const std::vector<bool> shape_only = shape_only_inputs(node);
    for (size_t i = 0; i < node.inputs.size(); ++i)
      if (!shape_only[i]) read[static_cast<size_t>(node.inputs[i])] = true;
  }
  std::vector<std::string> names;
  for (const GraphNode& node : graph.nodes)
    if (node.is_variable() && read[static_cast<size_t>(node.first_output)]) names.push_back(node.source->name);
  return names;
}

NamedArrays chosen(const NamedArrays& given, const std::vector<std::string>& names, Context context) {
  NamedArrays result;
  for (const auto& [name, array] : given)
    if (contains(names, name)) result.emplace(name, array.as_in_context(context));
  return result;
}

}  // namespace

struct Predictor::Impl {
  // The key of an executor: the shapes of the inputs that must be given, and the cores they were built for.
  struct Key {
    std::vector<Shape> shapes;
    int threads = 1;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct Bound {
    // Are the times known? The first run compiles, and a run may be delayed by others.
    bool is_timed() const { return runs >= 4; }

    Key key;
    ExecutorPtr executor;
    std::vector<NDArray> inputs;  // where the executor reads them
    int runs = 0;
    Clock::duration least = Clock::duration::max();  // shortest time of a run, without the first
  };
  struct Lane {
    std::list<Bound> bound;  // the one used last comes first
    bool taken = false;
  };
  // The lanes of one process.
  struct Pool {
    const pid_t process = getpid();
    int cores = available_threads();
    std::mutex mutex = {};
    std::condition_variable free_lane = {};
    std::list<Lane> lanes = {};
    int running = 0;
    std::atomic<size_t> executors = 0;
  };
  // A forked child has a pool of its own. That of its parent is leaked there: the threads that hold its lanes, and
  // perhaps its mutex, are not in the child.
  class PoolOfThisProcess {
   public:
    PoolOfThisProcess() = default;
    ~PoolOfThisProcess() {
      if (Pool* const last = current_; last->process == getpid()) delete last;
    }
    PoolOfThisProcess(const PoolOfThisProcess&) = delete;
    PoolOfThisProcess& operator=(const PoolOfThisProcess&) = delete;
    Pool& get() {
      Pool* current = current_;
      if (current->process == getpid()) return *current;
      auto fresh = std::make_unique<Pool>();
      return current_.compare_exchange_strong(current, fresh.get()) ? *fresh.release() : *current;
    }

   private:
    std::atomic<Pool*> current_ = std::make_unique<Pool>().release();
  };
  // Holds a lane for the duration of a call.
  class Turn {
   public:
    Turn(Impl& all, const std::vector<Shape>& shapes) : pool_(all.pool()), lane_(all.take(pool_, shapes, threads_)) {}
    ~Turn() { put_back(pool_, lane_); }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    Pool& pool() const { return pool_; }
    Lane& lane() const { return lane_; }
    int threads() const { return threads_; }

   private:
    Pool& pool_;
    int threads_ = 1;
    Lane& lane_;
  };

  Symbol symbol, computed;  // what the user gave, and what is bound
  PredictorOptions options;
  NamedArrays args, aux;
  std::vector<std::string> arguments, inputs, outputs;  // `inputs`: those that must be given
  PoolOfThisProcess pools;
  Pool& pool() { return pools.get(); }

  Impl(const Symbol& net, const NamedArrays& arg_params, const NamedArrays& aux_params, const PredictorOptions& wanted)
      : symbol(net),
        computed(without_labels(net)),
        options(wanted),
        arguments(net.list_arguments()),
        outputs(net.list_outputs()) {
    const bool in_16_bits = computes_in_16_bits(options.compute_dtype);
    if (in_16_bits) computed = computed_in(computed, options.compute_dtype);
    require(options.max_shapes >= 1, "[Predictor] max_shapes must be at least 1");
    require(options.max_concurrent >= 0 && options.threads >= 0,
            "[Predictor] max_concurrent and threads must be at least 0 (0: automatic): ", options.max_concurrent, ", ",
            options.threads);
    Device::get(options.context);  // fails here when there is no such device
    if (options.max_concurrent == 0) options.max_concurrent = options.context.is_gpu() ? 2 : pool().cores;
    args = chosen(arg_params, computed.list_arguments(), options.context);
    if (in_16_bits) {
      NamedTypes types;
      for (const auto& [name, array] : args) types[name] = array.dtype();
      require_float32(symbol, options.compute_dtype, types);
    }
    const std::vector<std::string> states = computed.list_auxiliary_states();
    aux = chosen(aux_params, states, options.context);
    std::vector<std::string> missing;
    for (const std::string& name : states)
      if (!aux.count(name)) missing.push_back(name);
    require(missing.empty(), "[Predictor] the parameters lack the auxiliary states ", comma_separated(missing));
    for (const std::string& name : read_variables(computed))
      if (!args.count(name) && contains(arguments, name)) inputs.push_back(name);
  }

  // A free lane that has an executor for the shapes, else any free one, else a new one if more are allowed.
  Lane& take(Pool& pool, const std::vector<Shape>& shapes, int& threads) const {
    std::unique_lock lock(pool.mutex);
    Lane* found = nullptr;
    pool.free_lane.wait(lock, [&] {
      for (Lane& lane : pool.lanes) {
        if (lane.taken) continue;
        const bool knows = std::any_of(lane.bound.begin(), lane.bound.end(),
                                       [&](const Bound& bound) { return bound.key.shapes == shapes; });
        if (knows || !found) found = &lane;
        if (knows) return true;
      }
      if (!found && static_cast<int>(pool.lanes.size()) < options.max_concurrent) found = &pool.lanes.emplace_back();
      return found != nullptr;
    });
    found->taken = true;
    ++pool.running;
    const int cores = options.context.is_gpu() ? 1 : pool.cores;
    threads = options.threads > 0 ? options.threads : std::max(1, cores / pool.running);
    return *found;
  }

  static void put_back(Pool& pool, Lane& lane) {
    {
      const std::lock_guard lock(pool.mutex);
      lane.taken = false;
      --pool.running;
    }
    pool.free_lane.notify_one();
  }

  // One core until timing shows that the call is slow, and more only as long as they help.
  Bound& bound_for(Pool& pool, Lane& lane, const std::vector<Shape>& shapes, int share) const {
    const auto find = [&](int threads) {
      return std::find_if(lane.bound.begin(), lane.bound.end(), [&](const Bound& bound) {
        return bound.key.threads == threads && bound.key.shapes == shapes;
      });
    };
    int threads = options.threads > 0 ? options.threads : 1;
    auto found = find(threads);
    const bool is_long = found != lane.bound.end() && found->is_timed() && found->least >= worth_threads;
    if (options.threads == 0 && share > 1 && is_long) {
      const auto wide = find(share);
      if (wide == lane.bound.end() || !wide->is_timed() || wide->least < found->least) {
        threads = share;
        found = wide;
      }
    }
    if (found == lane.bound.end()) {
      Bound made = bind_shapes(lane, {shapes, threads});
      lane.bound.push_front(std::move(made));
      ++pool.executors;
      if (lane.bound.size() > options.max_shapes) {
        lane.bound.pop_back();
        --pool.executors;
      }
    } else if (found != lane.bound.begin()) {
      lane.bound.splice(lane.bound.begin(), lane.bound, found);
    }
    return lane.bound.front();
  }

  Bound bind_shapes(const Lane& lane, const Key& key) const {
    NamedShapes shapes;
    NamedTypes types;
    for (size_t i = 0; i < inputs.size(); ++i) shapes[inputs[i]] = key.shapes[i];
    for (const auto& [name, array] : args) {
      shapes[name] = array.shape();
      types[name] = array.dtype();
    }
    Graph graph = Graph::from(computed);
    set_shapes(graph, shapes);
    set_types(graph, types);
    infer(graph);
    NamedArrays arrays = args;
    for (const GraphNode& node : graph.nodes) {
      if (!node.is_variable() || args.count(node.source->name) || aux.count(node.source->name)) continue;
      const Tensor& tensor = graph.tensor(node.first_output);
      arrays.emplace(node.source->name, zeros(tensor.shape, options.context, tensor.dtype));
    }
    ExecutorOptions bind_options;
    bind_options.grad_req = "null";
    bind_options.aux_states = aux;
    bind_options.options = options.compile_options;
    if (!lane.bound.empty()) bind_options.shared_exec = lane.bound.front().executor;
    Bound made{key, bind(computed, options.context, arrays, bind_options), {}};
    for (const std::string& name : inputs) made.inputs.push_back(arrays.at(name));
    return made;
  }

  std::vector<NDArray> run(const std::vector<const NDArray*>& given) {
    std::vector<Shape> shapes;
    shapes.reserve(given.size());
    for (const NDArray* array : given) shapes.push_back(array->shape());
    const Turn turn(*this, shapes);
    Bound& bound = bound_for(turn.pool(), turn.lane(), shapes, turn.threads());
    const ThreadScope share({.threads = bound.key.threads});
    const auto begin = Clock::now();
    for (size_t i = 0; i < given.size(); ++i) given[i]->copyto(bound.inputs[i]);
    const std::vector<NDArray>& results = bound.executor->forward(false);
    std::vector<NDArray> copies;
    copies.reserve(results.size());
    for (const NDArray& result : results) copies.push_back(result.copy());
    if (bound.runs++ > 0) bound.least = std::min(bound.least, Clock::now() - begin);
    return copies;
  }
};

Predictor::Predictor(const Symbol& symbol, const NamedArrays& arg_params, const NamedArrays& aux_params,
                     const PredictorOptions& options)
    : impl_(std::make_unique<Impl>(symbol, arg_params, aux_params, options)) {}

Predictor::Predictor(const std::string& prefix, int epoch, const PredictorOptions& options) {
  const Checkpoint checkpoint = load_checkpoint(prefix, epoch);
  impl_ = std::make_unique<Impl>(checkpoint.symbol, checkpoint.arg_params, checkpoint.aux_params, options);
}

Predictor::~Predictor() = default;

std::vector<NDArray> Predictor::operator()(const NDArray& input) const {
  require(impl_->inputs.size() == 1, "[Predictor] the network has ", impl_->inputs.size(), " inputs (",
          comma_separated(impl_->inputs), "): give them by name, or as parameters where they are some");
  require(bool(input), "[Predictor] the input is an empty array");
  return impl_->run({&input});
}

std::vector<NDArray> Predictor::operator()(const NamedArrays& inputs) const {
  std::vector<const NDArray*> given;
  for (const std::string& name : impl_->inputs) {
    const auto found = inputs.find(name);
    if (found == inputs.end()) {
      std::vector<std::string> names;
      for (const auto& [other, array] : inputs) names.push_back(other);
      fail("[Predictor] the input '", name, "' is missing; the network has the inputs ", comma_separated(impl_->inputs),
           "; given: ", comma_separated(names));
    }
    require(bool(found->second), "[Predictor] the input '", name, "' is an empty array");
    given.push_back(&found->second);
  }
  for (const auto& [name, array] : inputs)
    require(contains(impl_->inputs, name) || (contains(impl_->arguments, name) && !impl_->args.count(name)),
            "[Predictor] '", name, "' is not an input of the network; its inputs are ", comma_separated(impl_->inputs));
  return impl_->run(given);
}

const Symbol& Predictor::symbol() const { return impl_->symbol; }
const std::vector<std::string>& Predictor::input_names() const { return impl_->inputs; }
const std::vector<std::string>& Predictor::output_names() const { return impl_->outputs; }
const PredictorOptions& Predictor::options() const { return impl_->options; }

size_t Predictor::executors() const { return impl_->pool().executors; }

}  // namespace symbind
