#include "symbind/exec/plan.h"

#include <algorithm>
#include <chrono>
#include <unordered_set>

#include "symbind/core/error.h"
#include "symbind/core/parallel.h"
#include "symbind/exec/overlap.h"
#include "symbind/exec/profiling.h"
#include "symbind/exec/run_scope.h"
#include "symbind/ops/custom.h"
#include "symbind/passes/passes.h"

namespace symbind {
namespace {

// The type of a custom operator, of a node that runs it forwards or backwards; empty for any other.
std::string custom_type(const Graph& graph, const GraphNode& node) {
  const OpDef* const op = &node.op();
  if (op == &op_of<Custom>()) return static_cast<const Custom*>(node.source->params.get())->op_type;
  if (op != &op_of<CustomGrad>()) return "";
  const Node* const forward = static_cast<const CustomGrad*>(node.source->params.get())->forward;
  for (const GraphNode& each : graph.nodes)
    if (each.source.get() == forward) return custom_type(graph, each);
  return "";
}

// The profiler's description of a node: its operator; for a custom one its type, as in MXNet.
profiler::Event described(const Graph& graph, const GraphNode& node) {
  profiler::Event event{.name = node.op().name, .category = "operator", .node = node.source->name};
  if (const std::string type = custom_type(graph, node); !type.empty()) {
    event.name = (&node.op() == &op_of<Custom>() ? "" : "_backward_") + type;
    event.category = "Custom Operator";
  }
  return event;
}

// The largest array of an arena, in words.
std::string largest_array(const Graph& graph, const MemoryPlan& memory, size_t arena) {
  size_t most = 0;
  std::string found = "none";
  const auto look = [&](const GraphNode& node, const Location& location, size_t bytes, const auto& describe) {
    if (location.kind != Location::Kind::arena || static_cast<size_t>(location.index) != arena || bytes <= most) return;
    most = bytes;
    found = join("the ", describe(), " of [", node.op().name, " ", node.source->name, "] with ", bytes, " bytes");
  };
  for (const GraphNode& node : graph.nodes) {
    if (node.is_variable()) continue;
    for (int k = 0; k < node.outputs; ++k) {
      const TensorId tensor = node.first_output + k;
      look(node, memory.tensors[tensor], graph.tensor(tensor).bytes(),
           [&] { return join("output ", graph.tensor(tensor).shape); });
    }
    look(node, memory.scratch[node.id], working_bytes(node), [] { return "scratch memory"; });
  }
  return found;
}

}  // namespace

// ---- Workspace ------------------------------------------------------------------------------------------------------

size_t Workspace::reserve(Context context, size_t bytes) {
  auto found =
      std::find_if(arenas_.begin(), arenas_.end(), [&](const Arena& arena) { return arena.context == context; });
  if (found == arenas_.end()) found = arenas_.insert(arenas_.end(), {context, nullptr});
  if (!found->storage || found->storage->bytes() < bytes) {
    const size_t before = found->storage ? found->storage->bytes() : 0;
    found->storage.reset();  // release the old memory first: both may not fit
    stamp_ = 0;
    ++generation_;
    try {
      found->storage = std::make_shared<Storage>(Device::get(context), bytes);
    } catch (...) {
      found->storage = std::make_shared<Storage>(Device::get(context), before);  // for plans that already use the arena
      throw;
    }
  }
  return static_cast<size_t>(found - arenas_.begin());
}

size_t Workspace::bytes() const {
  size_t sum = 0;
  for (const Arena& arena : arenas_) sum += arena.storage ? arena.storage->bytes() : 0;
  return sum;
}

Workers& Workspace::workers(size_t contexts, int threads) {
  for (const auto& made : workers_)
    if (made->count() == contexts && made->threads_each() == threads) return *made;
  return *workers_.emplace_back(std::make_unique<Workers>(contexts, static_cast<int>(contexts) * threads));
}

uint64_t Workspace::new_stamp() {
  static std::atomic<uint64_t> runs{0};
  return stamp_ = ++runs;
}

// ---- Building -------------------------------------------------------------------------------------------------------

Plan::Plan(Graph graph, MemoryPlan memory, std::vector<NDArray> outside, std::shared_ptr<Workspace> workspace,
           const PlanOptions& options)
    : graph_(std::move(graph)),
      memory_(std::move(memory)),
      outside_(std::move(outside)),
      workspace_(std::move(workspace)),
      may_capture_(options.capture && !options.profile),
      policy_(options.policy) {
  for (size_t i = 0; i < memory_.arena_contexts.size(); ++i) {
    try {
      arenas_.push_back(workspace_->reserve(memory_.arena_contexts[i], memory_.arena_bytes[i]));
    } catch (const Error& error) {
      fail("[bind] working memory of the network, whose largest array is ", largest_array(graph_, memory_, i), ": ",
           error.what());
    }
  }
  count_outside_storages();
  make_steps();
  make_cached();
  take_addresses();
  if (options.concurrent_forward) make_queues(forward_);
  if (options.concurrent_backward) make_queues(backward_);
  if (options.profile) times_ = std::make_unique<StepTimes>(StepTimes{std::vector<double>(steps_.size()), 0, 0});
}

Plan::~Plan() = default;

void Plan::make_steps() {
  const Context* only = nullptr;
  size_t addresses = 0;
  for (const GraphNode& node : graph_.nodes) {
    if (node.is_variable()) continue;
    if (only && *only != node.context) one_context_ = false;
    only = &node.context;
    addresses += node.inputs.size() + static_cast<size_t>(node.outputs);
  }
  may_capture_ = may_capture_ && one_context_ && only && only->is_gpu();
  make_cursors();
  addresses_.resize(addresses);
  step_of_node_.assign(graph_.nodes.size(), -1);
  make_part(forward_, 0, graph_.forward_nodes);
  make_part(backward_, graph_.forward_nodes, graph_.nodes.size());
  join_parts();
}

// Every context with random operators has its own cursor; all take the same number of draws, and each operator has its
// slot among them.
void Plan::make_cursors() {
  for (const GraphNode& node : graph_.nodes) {
    if (node.random_slot < 0 || cursor_of(node.context)) continue;
    cursors_.push_back({node.context, std::make_shared<Storage>(Device::get(node.context), sizeof(RandomCursor))});
  }
}

const RandomCursor* Plan::cursor_of(Context context) const {
  for (const Cursor& cursor : cursors_)
    if (cursor.context == context) return static_cast<const RandomCursor*>(cursor.storage->data());
  return nullptr;
}

void Plan::make_part(Part& part, size_t first_node, size_t end_node) {
  part.begin = steps_.size();
  part.first_node = first_node;
  part.end_node = end_node;
  std::vector<bool> writes(outside_.size(), false);
  for (size_t i = first_node; i < end_node; ++i) {
    const GraphNode& node = graph_.nodes[i];
    if (node.is_variable() || memory_.skip[node.id]) continue;
    for (int k = 0; k < node.outputs; ++k) {
      const Location& location = memory_.tensors[node.first_output + k];
      if (location.kind == Location::Kind::outside) writes[static_cast<size_t>(location.index)] = true;
    }
    const std::vector<bool> updated = node.op().updated_inputs(node.source->params.get(), node.inputs.size());
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      if (!updated[k]) continue;
      const Location& location = memory_.tensors[node.inputs[k]];
      if (location.kind == Location::Kind::outside) writes[static_cast<size_t>(location.index)] = true;
    }
    step_of_node_[node.id] = static_cast<int>(steps_.size());
    const bool capturable = node.kernel->capturable;
    const bool prepares = node.kernel->cached_bytes > 0 && !node.caches_derived;
    if (part.stretches.empty() || part.stretches.back().capturable != capturable)
      part.stretches.push_back({steps_.size(), steps_.size(), capturable, 0, nullptr});
    steps_.push_back({node.kernel.get(), {}, node.id, prepares});
    part.stretches.back().end = steps_.size();
  }
  part.end = steps_.size();
  for (size_t i = 0; i < writes.size(); ++i)
    if (writes[i]) part.writes.push_back(i);
}

// ---- Several contexts concurrently ----------------------------------------------------------------------------------

void Plan::make_queues(Part& part) {
  std::vector<StepAccess> all;
  for (size_t i = part.begin; i < part.end; ++i) all.push_back(accesses(i));
  part.queues = std::make_unique<Queues>(all);
  part.workers = &workspace_->workers(part.queues->count(), policy_.threads);
}

// The byte ranges that a step reads and writes, according to plan_memory.
StepAccess Plan::accesses(size_t step) const {
  const GraphNode& node = graph_.node(steps_[step].node);
  StepAccess access{node.context, {}, {}};
  const std::vector<bool> updated = node.op().updated_inputs(node.source->params.get(), node.inputs.size());
  const std::vector<bool> shape_only = shape_only_inputs(node);
  for (size_t k = 0; k < node.inputs.size(); ++k) {
    if (shape_only[k]) continue;
    (updated[k] ? access.writes : access.reads).push_back(range_of(node.inputs[k]));
  }
  for (int k = 0; k < node.outputs; ++k) access.writes.push_back(range_of(node.first_output + k));
  const Location& scratch = memory_.scratch[node.id];
  if (scratch.kind == Location::Kind::arena)
    access.writes.push_back({scratch.index, scratch.offset, scratch.offset + working_bytes(node)});
  // A user's kernels may share memory with each other.
  access.alone = node.op().own || node.op().keeps_state || node.op().synchronized;
  return access;
}

ByteRange Plan::range_of(TensorId tensor) const {
  const Location& location = memory_.tensors[tensor];
  const size_t bytes = graph_.tensor(tensor).bytes();
  switch (location.kind) {
    case Location::Kind::nowhere:
      return {};
    case Location::Kind::arena:
      return {location.index, location.offset, location.offset + bytes};
    case Location::Kind::outside: {
      const auto begin =
          reinterpret_cast<uintptr_t>(outside_[static_cast<size_t>(location.index)].data()) + location.offset;
      return {ByteRange::outside, begin, begin + bytes};
    }
  }
  return {};
}

void Plan::run_queues(Part& part) {
  const auto run = [&](size_t step) { run_step(steps_[part.begin + step]); };
  if (part.workers->concurrent()) return part.queues->run(*part.workers, run);
  const ThreadScope scope(policy_);
  for (size_t i = part.begin; i < part.end; ++i) run_step(steps_[i]);
}

// ---- Data cached from parameters ------------------------------------------------------------------------------------

// Allocates memory for kernels that cache derived data; the first run fills it.
void Plan::make_cached() {
  for (size_t i = 0; i < steps_.size(); ++i) {
    const Step& step = steps_[i];
    if (step.kernel->cached_bytes == 0 || step.prepare_each_run) continue;
    Cached cached{i, cached_storage(step), {}};
    find_sources(cached);
    cached_.push_back(std::move(cached));
  }
}

std::shared_ptr<Storage> Plan::cached_storage(const Step& step) const {
  return std::make_shared<Storage>(Device::get(graph_.node(step.node).context), step.kernel->cached_bytes);
}

void Plan::release_kept() {
  for (Cached& cached : cached_) {
    cached.storage.reset();
    for (auto& [storage, version] : cached.sources) version = 0;
  }
}

void Plan::find_sources(Cached& cached) const {
  const Step& step = steps_[cached.step];
  cached.sources.clear();
  for (const int index : step.kernel->cached_from) {
    const Location& location = memory_.tensors[graph_.node(step.node).inputs[static_cast<size_t>(index)]];
    cached.sources.emplace_back(&outside_[static_cast<size_t>(location.index)].storage(), 0);
  }
}

// Recomputes cached data whose source arrays have been written since.
void Plan::prepare_cached() {
  const ThreadScope scope(forward_.queues ? policy_ : thread_policy());  // as the kernels were built
  if (std::any_of(cached_.begin(), cached_.end(), [](const Cached& cached) { return !cached.storage; })) {
    for (Cached& cached : cached_) cached.storage = cached_storage(steps_[cached.step]);
    take_addresses();
  }
  for (Cached& cached : cached_) {
    bool stale = false;
    for (auto& [storage, version] : cached.sources) {
      const uint64_t now = storage->version();
      stale |= version != now || storage->exported();
      version = now;
    }
    if (!stale) continue;
    const Step& step = steps_[cached.step];
    try {
      step.kernel->prepare(step.args);
    } catch (...) {
      cached.sources.front().second = 0;
      throw;
    }
  }
}

void* Plan::address(const Location& location) const {
  switch (location.kind) {
    case Location::Kind::nowhere:
      return nullptr;
    case Location::Kind::arena: {
      const Storage& storage = *workspace_->storage(arenas_[static_cast<size_t>(location.index)]);
      return const_cast<std::byte*>(static_cast<const std::byte*>(storage.data())) + location.offset;
    }
    case Location::Kind::outside: {
      const NDArray& array = outside_[static_cast<size_t>(location.index)];
      return array ? static_cast<std::byte*>(const_cast<void*>(array.data())) + location.offset : nullptr;
    }
  }
  return nullptr;
}

void Plan::replace_outside(size_t index, NDArray array) {
  if (outside_uses_.empty()) find_outside_uses();
  NDArray& place = outside_[index];
  if (place && --outside_storages_[&place.storage()] == 0) outside_storages_.erase(&place.storage());
  if (array) ++outside_storages_[&array.storage()];
  place = std::move(array);
  for (const auto& [position, location] : outside_uses_[index]) addresses_[position] = address(*location);
}

void Plan::find_outside_uses() {
  outside_uses_.resize(outside_.size());
  size_t next = 0;
  for (const Step& step : steps_) {
    const GraphNode& node = graph_.node(step.node);
    const auto look = [&](TensorId tensor) {
      const Location& location = memory_.tensors[tensor];
      if (location.kind == Location::Kind::outside)
        outside_uses_[static_cast<size_t>(location.index)].emplace_back(next, &location);
      ++next;
    };
    for (const TensorId input : node.inputs) look(input);
    for (int i = 0; i < node.outputs; ++i) look(node.first_output + i);
  }
}

void Plan::count_outside_storages() {
  outside_storages_.clear();
  for (const NDArray& array : outside_)
    if (array) ++outside_storages_[&array.storage()];
}

bool Plan::shares_outside(const NDArray& array) const { return outside_storages_.contains(&array.storage()); }

void Plan::take_addresses() {
  size_t next = 0;
  for (Step& step : steps_) {
    const GraphNode& node = graph_.node(step.node);
    step.args.inputs = addresses_.data() + next;
    for (const TensorId input : node.inputs) addresses_[next++] = address(memory_.tensors[input]);
    step.args.outputs = addresses_.data() + next;
    for (int i = 0; i < node.outputs; ++i) addresses_[next++] = address(memory_.tensors[node.first_output + i]);
    step.args.scratch = address(memory_.scratch[step.node]);
    if (step.prepare_each_run)  // after the scratch, where plan_memory reserved space
      step.args.cached = static_cast<std::byte*>(step.args.scratch) + cached_offset(*step.kernel);
    step.args.random = cursor_of(node.context);
    step.args.stream = Target::get(node.context).stream(Device::get(node.context));
  }
  for (const Cached& cached : cached_)
    steps_[cached.step].args.cached = cached.storage ? cached.storage->mutable_data() : nullptr;
  for (Part* part : {&forward_, &backward_}) forget_captured(*part, 0);
  generation_ = workspace_->generation();
}

void Plan::move_outside(std::span<const std::pair<NDArray, NDArray>> moves) {
  for (NDArray& array : outside_)
    for (const auto& [from, to] : moves)
      if (array.same_memory(from) && array.shape() == from.shape()) {
        array = to;
        break;
      }
  count_outside_storages();
  for (Cached& cached : cached_) find_sources(cached);
  take_addresses();
  for (Part* part : {&forward_, &backward_})
    if (part->queues) make_queues(*part);
}

// ---- Milestones -----------------------------------------------------------------------------------------------------

std::vector<size_t> Plan::steps_until_final(std::span<const NDArray> arrays) const {
  std::unordered_map<const Storage*, std::vector<size_t>> in_storage;
  for (size_t i = 0; i < arrays.size(); ++i)
    if (arrays[i]) in_storage[&arrays[i].storage()].push_back(i);
  std::vector<size_t> steps(arrays.size(), 0);
  size_t done = backward_.begin;
  const auto writes = [&](TensorId tensor) {
    if (memory_.tensors[tensor].kind != Location::Kind::outside) return;
    const NDArray written = array_of(tensor);
    const auto found = in_storage.find(&written.storage());
    if (found == in_storage.end()) return;
    for (const size_t i : found->second)
      if (overlap(written, arrays[i])) steps[i] = done;
  };
  for (size_t i = backward_.first_node; i < backward_.end_node; ++i) {
    const GraphNode& node = graph_.nodes[i];
    if (node.is_variable()) continue;
    // A node without a step has its results from steps before it.
    if (const int step = step_of_node_[node.id]; step >= 0) done = static_cast<size_t>(step) + 1;
    for (int k = 0; k < node.outputs; ++k) writes(node.first_output + k);
    const std::vector<bool> updated = node.op().updated_inputs(node.source->params.get(), node.inputs.size());
    for (size_t k = 0; k < node.inputs.size(); ++k)
      if (updated[k]) writes(node.inputs[k]);
  }
  return steps;
}

void Plan::set_milestones(const std::vector<size_t>& steps) {
  forget_captured(backward_, 1);
  backward_.milestones.clear();
  if (backward_.begin == backward_.end) return;
  const Context context = graph_.node(steps_[backward_.begin].node).context;
  for (const size_t count : steps) {
    const size_t inside = std::max(count, backward_.begin + 1);  // a run with no step before it reports after its first
    backward_.milestones.push_back({inside, context.is_gpu() ? make_event(Device::get(context)) : nullptr});
  }
}

// ---- Running --------------------------------------------------------------------------------------------------------

void Plan::start_random() const {
  for (const Cursor& cursor : cursors_)
    Target::get(cursor.context)
        .start_random(cursor.storage->device(), static_cast<RandomCursor*>(cursor.storage->mutable_data()),
                      static_cast<uint64_t>(graph_.random_slots));
}

void Plan::run_forward(const NodeCallback* callback) {
  start_random();
  run(forward_, {.node = callback});
}

void Plan::run_backward(const NodeCallback* callback) { run(backward_, {.node = callback}); }
void Plan::run_backward(const MilestoneCallback& reached) { run(backward_, {.milestone = &reached}); }

template <class Work>
void Plan::run_and_mark(std::span<const Part* const> parts, const Work& work) const {
  const auto mark_written = [&] {
    for (const Part* part : parts)
      for (const size_t index : part->writes) outside_[index].storage().bump();
  };
  try {
    work();
  } catch (...) {  // earlier steps have already written
    mark_written();
    throw;
  }
  mark_written();
}

void Plan::run_forward_backward(const MilestoneCallback* reached, FollowedBy* following) {
  if (!joined_ || poison_ || profiler::records_plans()) {  // the latter two work between the parts, or the steps
    run_forward();
    return run(backward_, {.milestone = reached});
  }
  start_random();
  if (generation_ != workspace_->generation()) take_addresses();
  const RunScope scope;
  prepare_cached();
  const Part* const both[] = {&forward_, &backward_};
  run_and_mark(both, [&] {
    for (size_t i = 0; i + 1 < forward_.stretches.size(); ++i) run_stretch(forward_, forward_.stretches[i], nullptr);
    run_joined(reached, following);
    if (joined_->runs > 1 && !joined_->captured) joined_.reset();  // the parts may be captured one by one
    for (size_t i = 1; i < backward_.stretches.size(); ++i) run_stretch(backward_, backward_.stretches[i], reached);
  });
}

void Plan::run(Part& part, const Callbacks& callbacks) {
  if (generation_ != workspace_->generation()) take_addresses();
  const RunScope scope;
  if (poison_ && &part == &forward_) poison_arenas();
  if (poison_) poison_results(part);
  if (&part == &forward_) prepare_cached();
  if (&part == &backward_) followed_.release();  // nothing follows a backward that runs by itself
  const Part* const only[] = {&part};
  run_and_mark(only, [&] { run_part(part, callbacks); });
}

void Plan::run_part(Part& part, const Callbacks& callbacks) {
  if (callbacks.node) {
    run_with_callback(part, *callbacks.node);
  } else if (times_) {
    run_timed(part);
  } else if (profiler::records_plans()) {
    run_profiled(part);
  } else if (part.queues) {
    run_queues(part);
  } else {
    for (Stretch& stretch : part.stretches) run_stretch(part, stretch, callbacks.milestone);
  }
}

void Plan::run_step(const Step& step) const {
  if (poison_) poison_ranges(step, poison_->before(step.node));
  if (step.prepare_each_run) step.kernel->prepare(step.args);
  step.kernel->run(step.args);
}

NDArray Plan::array_of(TensorId tensor) const {
  const Location& location = memory_.tensors[tensor];
  const Tensor& described = graph_.tensor(tensor);
  switch (location.kind) {
    case Location::Kind::nowhere:
      return {};
    case Location::Kind::arena:
      return {workspace_->storage(arenas_[static_cast<size_t>(location.index)]), location.offset, described.shape,
              described.dtype};
    case Location::Kind::outside: {
      const NDArray& array = outside_[static_cast<size_t>(location.index)];
      return {array.storage_ptr(), array.byte_offset() + location.offset, described.shape, described.dtype};
    }
  }
  return {};
}

void Plan::run_with_callback(const Part& part, const NodeCallback& callback) {
  std::vector<NDArray> inputs, outputs;
  for (size_t i = part.first_node; i < part.end_node; ++i) {
    const GraphNode& node = graph_.nodes[i];
    if (node.is_variable()) continue;
    if (const int step = step_of_node_[node.id]; step >= 0) run_step(steps_[static_cast<size_t>(step)]);
    inputs.clear();
    outputs.clear();
    for (const TensorId input : node.inputs) inputs.push_back(array_of(input));
    for (int k = 0; k < node.outputs; ++k) outputs.push_back(array_of(node.first_output + k));
    callback(node, inputs, outputs);
  }
}

// The device is synchronized before and after each step, so that every step is timed alone.
void Plan::run_timed(Part& part) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> taken;  // of this run: a failed run is not counted
  for (size_t i = part.begin; i < part.end; ++i) {
    Device& device = Device::get(graph_.node(steps_[i].node).context);
    if (!device.is_host()) device.synchronize();
    const auto begin = Clock::now();
    run_step(steps_[i]);
    if (!device.is_host()) device.synchronize();
    taken.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
  }
  uint64_t& runs = &part == &forward_ ? times_->forward_runs : times_->backward_runs;
  const bool first = part.timed_runs++ == 1;
  runs = first ? 1 : runs + 1;
  for (size_t i = 0; i < taken.size(); ++i) {
    double& seconds = times_->seconds[part.begin + i];
    seconds = first ? taken[i] : seconds + taken[i];
  }
}

// Runs the steps one after the other, as in run_timed; later runs use captured graphs or queues again.
void Plan::run_profiled(const Part& part) {
  std::vector<Context> contexts;
  for (size_t i = part.begin; i < part.end; ++i) {
    const GraphNode& node = graph_.node(steps_[i].node);
    profiler::timed(
        node.context, [&] { run_step(steps_[i]); }, [&] { return described(graph_, node); });
    if (std::find(contexts.begin(), contexts.end(), node.context) == contexts.end()) contexts.push_back(node.context);
  }
  for (const Context context : contexts) profiler::sample_memory(context);
}

// ---- Poison ---------------------------------------------------------------------------------------------------------

// No value in the arenas survives from one forward to the next.
void Plan::poison_arenas() const {
  for (const size_t arena : arenas_) {
    Storage& storage = *workspace_->storage(arena);
    fill_with_poison(storage.device().context(), storage.mutable_data(), storage.bytes());
  }
}

// Results are assigned, so the old values are not read, unless the array also holds a variable (a gradient that is
// added to).
void Plan::poison_results(const Part& part) const {
  std::unordered_set<const Storage*> read;
  for (const GraphNode& node : graph_.nodes) {
    if (!node.is_variable()) continue;
    const Location& location = memory_.tensors[node.first_output];
    if (location.kind == Location::Kind::outside)
      read.insert(outside_[static_cast<size_t>(location.index)].storage_ptr().get());
  }
  for (const size_t index : part.writes)
    if (const NDArray& array = outside_[index]; !read.contains(array.storage_ptr().get()))
      fill_with_poison(array.context(), array.mutable_data(), array.bytes());
}

void Plan::poison_ranges(const Step& step, const std::vector<ArenaRange>& ranges) const {
  for (const ArenaRange& range : ranges) {
    const Context context = memory_.arena_contexts[static_cast<size_t>(range.arena)],
                  reader = graph_.node(step.node).context;
    if (context != reader) Device::get(reader).synchronize();
    fill_with_poison(context, address({Location::Kind::arena, range.arena, range.begin}), range.end - range.begin);
  }
}

// ---- Reporting ------------------------------------------------------------------------------------------------------

size_t Plan::arena_bytes() const { return memory_.total_bytes(); }

size_t Plan::cached_bytes() const {
  size_t sum = 0;
  for (const Cached& cached : cached_) sum += cached.storage ? cached.storage->bytes() : 0;
  return sum;
}

std::string Plan::str() const { return plan_table(graph_, memory_, times_.get()); }

}  // namespace symbind
