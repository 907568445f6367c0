#include "symbind/exec/poison.h"

#include <algorithm>
#include <map>

#include "symbind/core/device.h"
#include "symbind/core/environment.h"
#include "symbind/core/error.h"
#include "symbind/passes/target.h"

namespace symbind {
namespace {

// How many tensors are alive in each byte of an arena, as a step function: a count holds from its offset to the next
// one.
class Coverage {
 public:
  void add(size_t begin, size_t end, int count) {
    if (begin >= end) return;
    const auto last = split(end), first = split(begin);
    for (auto step = first; step != last; ++step) step->second += count;
    drop_if_needless(last);
    drop_if_needless(first);
  }

  template <class Function>
  void each_free(size_t begin, size_t end, Function&& function) const {
    if (begin >= end) return;
    for (auto step = std::prev(steps_.upper_bound(begin)); step != steps_.end() && step->first < end; ++step) {
      const auto next = std::next(step);
      const size_t step_end = next == steps_.end() ? end : std::min(end, next->first);
      if (step->second == 0) function(std::max(begin, step->first), step_end);
    }
  }

 private:
  std::map<size_t, int>::iterator split(size_t at) {
    const auto after = steps_.upper_bound(at);
    const auto holds = std::prev(after);
    return holds->first == at ? holds : steps_.emplace_hint(after, at, holds->second);
  }

  // This bounds the number of steps by the number of live tensors.
  void drop_if_needless(std::map<size_t, int>::iterator step) {
    if (step != steps_.begin() && std::prev(step)->second == step->second) steps_.erase(step);
  }

  std::map<size_t, int> steps_{{0, 0}};
};

PerTensor<NodeId> last_uses(const Graph& graph) {
  PerTensor<NodeId> last = graph.producers;
  for (const GraphNode& node : graph.nodes) {
    const std::vector<bool> shape_only = shape_only_inputs(node);
    for (size_t k = 0; k < shape_only.size(); ++k)
      if (!shape_only[k]) last[node.inputs[k]] = node.id;
  }
  // The user may read an output at any time.
  for (const TensorId output : graph.outputs) last[output] = NodeId::none;
  return last;
}

}  // namespace

bool poison_everything() {
  static const bool wanted = environment::variable("SYMBIND_POISON").on();
  return wanted;
}

Poison::Poison(const Graph& graph, const MemoryPlan& memory) : before_(graph.nodes.size()), after_(graph.nodes.size()) {
  std::vector<Coverage> alive(memory.arena_bytes.size());
  const PerTensor<NodeId> last = last_uses(graph);
  const auto range = [&](const Location& location, size_t bytes, const GraphNode& node) {
    const size_t end = location.offset + bytes, capacity = memory.arena_bytes[static_cast<size_t>(location.index)];
    require(end <= capacity, "[", node.source->name, "] the memory plan reaches beyond its arena: to byte ", end,
            " of ", capacity);
    return ArenaRange{location.index, location.offset, end};
  };
  const auto range_of = [&](TensorId tensor) {
    return range(memory.tensors[tensor], graph.tensor(tensor).bytes(), graph.producer(tensor));
  };
  PerNode<std::vector<TensorId>> ending(graph.nodes.size());  // tensors in arenas by their last reader
  for (const GraphNode& node : graph.nodes)
    for (int k = 0; k < node.outputs; ++k) {
      const TensorId tensor = node.first_output + k;
      if (memory.tensors[tensor].kind == Location::Kind::arena && last[tensor] != NodeId::none)
        ending[last[tensor]].push_back(tensor);
    }

  // Tensors whose last reader has no step (a view) end after the next step.
  std::vector<ArenaRange> ended;
  for (const GraphNode& node : graph.nodes) {
    if (node.is_variable()) continue;
    for (int k = 0; k < node.outputs; ++k) {
      const TensorId tensor = node.first_output + k;
      if (memory.tensors[tensor].kind != Location::Kind::arena) continue;
      const ArenaRange written = range_of(tensor);
      alive[static_cast<size_t>(written.arena)].add(written.begin, written.end, 1);
    }
    for (const TensorId tensor : ending[node.id]) {
      ended.push_back(range_of(tensor));
      alive[static_cast<size_t>(ended.back().arena)].add(ended.back().begin, ended.back().end, -1);
    }
    if (memory.skip[node.id]) continue;
    if (const Location& scratch = memory.scratch[node.id]; scratch.kind == Location::Kind::arena) {
      before_[node.id].push_back(range(scratch, working_bytes(node), node));
      ended.push_back(before_[node.id].back());
    }
    for (const ArenaRange& dead : ended)
      alive[static_cast<size_t>(dead.arena)].each_free(dead.begin, dead.end, [&](size_t begin, size_t end) {
        after_[node.id].push_back({dead.arena, begin, end});
      });
    ended.clear();
  }
}

void fill_with_poison(Context context, void* data, size_t bytes) {
  if (bytes > 0) Device::get(context).fill(data, DType::uint8, static_cast<int64_t>(bytes), 0xFF);
}

}  // namespace symbind
