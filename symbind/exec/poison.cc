#include "symbind/exec/poison.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string_view>

#include "symbind/core/device.h"
#include "symbind/core/error.h"
#include "symbind/passes/target.h"

namespace symbind {
namespace {

// How many tensors are alive in each byte of an arena, as steps: a count holds from its offset to the next one.
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

  // So there are never more steps than tensors alive.
  void drop_if_needless(std::map<size_t, int>::iterator step) {
    if (step != steps_.begin() && std::prev(step)->second == step->second) steps_.erase(step);
  }

  std::map<size_t, int> steps_{{0, 0}};
};

std::vector<int> last_uses(const Graph& graph) {
  std::vector<int> last = graph.producer;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const std::vector<bool> shape_only = shape_only_inputs(graph.nodes[i]);
    for (size_t k = 0; k < shape_only.size(); ++k)
      if (!shape_only[k]) last[static_cast<size_t>(graph.nodes[i].inputs[k])] = static_cast<int>(i);
  }
  // Whoever asked for an output may read it at any time.
  for (const int output : graph.outputs) last[static_cast<size_t>(output)] = static_cast<int>(graph.nodes.size());
  return last;
}

}  // namespace

bool poison_everything() {
  static const bool wanted = [] {
    const char* setting = std::getenv("SYMBIND_POISON");
    return setting && std::string_view(setting) != "0" && !std::string_view(setting).empty();
  }();
  return wanted;
}

Poison::Poison(const Graph& graph, const MemoryPlan& memory) : before_(graph.nodes.size()), after_(graph.nodes.size()) {
  std::vector<Coverage> alive(memory.arena_bytes.size());
  const std::vector<int> last = last_uses(graph);
  const auto range = [&](const Place& place, size_t bytes, int node) {
    const size_t end = place.offset + bytes, room = memory.arena_bytes[static_cast<size_t>(place.index)];
    require(end <= room, "[", graph.nodes[static_cast<size_t>(node)].source->name,
            "] the memory plan reaches beyond its arena: to byte ", end, " of ", room);
    return ArenaRange{place.index, place.offset, end};
  };
  const auto range_of = [&](size_t tensor) {
    return range(memory.tensors[tensor], graph.tensors[tensor].bytes(), graph.producer[tensor]);
  };
  std::vector<std::vector<size_t>> ending(graph.nodes.size() + 1);  // tensors in arenas by their last reader
  for (size_t t = 0; t < graph.tensors.size(); ++t)
    if (memory.tensors[t].kind == Place::Kind::arena) ending[static_cast<size_t>(last[t])].push_back(t);

  // What ends at a node without a step, a view, is let go after the next step.
  std::vector<ArenaRange> ended;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const GraphNode& node = graph.nodes[i];
    if (node.is_variable()) continue;
    for (int k = 0; k < node.outputs; ++k) {
      const auto tensor = static_cast<size_t>(node.first_output + k);
      if (memory.tensors[tensor].kind != Place::Kind::arena) continue;
      const ArenaRange written = range_of(tensor);
      alive[static_cast<size_t>(written.arena)].add(written.begin, written.end, 1);
    }
    for (const size_t tensor : ending[i]) {
      ended.push_back(range_of(tensor));
      alive[static_cast<size_t>(ended.back().arena)].add(ended.back().begin, ended.back().end, -1);
    }
    if (memory.skip[i]) continue;
    if (const Place& scratch = memory.scratch[i]; scratch.kind == Place::Kind::arena) {
      before_[i].push_back(range(scratch, working_bytes(node), static_cast<int>(i)));
      ended.push_back(before_[i].back());
    }
    for (const ArenaRange& dead : ended)
      alive[static_cast<size_t>(dead.arena)].each_free(dead.begin, dead.end, [&](size_t begin, size_t end) {
        after_[i].push_back({dead.arena, begin, end});
      });
    ended.clear();
  }
}

void fill_with_poison(Context context, void* data, size_t bytes) {
  if (bytes > 0) Device::get(context).fill(data, DType::uint8, static_cast<int64_t>(bytes), 0xFF);
}

}  // namespace symbind
