// Tensors that may share an address form a buffer: a view and what it shows, an output and the input it overwrites. A
// buffer lives from the node that first writes it to the last that reads it; two buffers may overlap in memory when
// their lives do not. Offsets are given in the order of time, each buffer taking the smallest gap it fits in.
#include "symbind/passes/plan_memory.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "symbind/core/error.h"
#include "symbind/passes/target.h"

namespace symbind {
namespace {

constexpr size_t alignment = 64;
size_t aligned(size_t bytes) { return (std::max<size_t>(bytes, 1) + alignment - 1) / alignment * alignment; }

// Free and used space of one arena.
class Space {
 public:
  size_t take(size_t bytes) {
    const auto gap = by_size_.lower_bound({bytes, 0});
    if (gap == by_size_.end()) return extend(bytes);
    const auto [size, offset] = *gap;
    remove(offset, size);
    if (size > bytes) insert(offset + bytes, size - bytes);
    return offset;
  }

  void give(size_t offset, size_t bytes) {
    // Grow together with the gaps on both sides.
    const auto after = by_offset_.find(offset + bytes);
    if (after != by_offset_.end()) {
      const size_t size = after->second;
      remove(offset + bytes, size);
      bytes += size;
    }
    const auto next = by_offset_.lower_bound(offset);
    if (next != by_offset_.begin()) {
      const auto [begin, size] = *std::prev(next);
      if (begin + size == offset) {
        remove(begin, size);
        offset = begin;
        bytes += size;
      }
    }
    insert(offset, bytes);
  }

  size_t size() const { return end_; }

 private:
  // A gap at the very end is stretched before new space is added behind it.
  size_t extend(size_t bytes) {
    size_t offset = end_;
    if (!by_offset_.empty()) {
      const auto [begin, size] = *by_offset_.rbegin();
      if (begin + size == end_) {
        remove(begin, size);
        offset = begin;
      }
    }
    end_ = offset + bytes;
    return offset;
  }
  void insert(size_t offset, size_t bytes) {
    by_offset_[offset] = bytes;
    by_size_.insert({bytes, offset});
  }
  void remove(size_t offset, size_t bytes) {
    by_offset_.erase(offset);
    by_size_.erase({bytes, offset});
  }

  std::map<size_t, size_t> by_offset_;
  std::set<std::pair<size_t, size_t>> by_size_;
  size_t end_ = 0;
};

class Planner {
 public:
  Planner(const Graph& graph, const std::vector<int>& outside, bool share)
      : graph_(graph),
        outside_(outside),
        share_(share),
        parent_(graph.tensors.size()),
        last_use_(graph.tensors.size()) {
    std::iota(parent_.begin(), parent_.end(), 0);
    home_ = outside;
    plan_.tensors.resize(graph.tensors.size());
    plan_.scratch.resize(graph.nodes.size());
    plan_.skip.assign(graph.nodes.size(), false);
  }

  MemoryPlan run() {
    find_last_uses();
    for (size_t i = 0; i < graph_.nodes.size(); ++i)
      if (!graph_.nodes[i].is_variable()) join_views(static_cast<int>(i));
    if (share_)
      for (size_t i = 0; i < graph_.nodes.size(); ++i)
        if (!graph_.nodes[i].is_variable() && !plan_.skip[i]) join_in_place(static_cast<int>(i));
    place_all();
    return std::move(plan_);
  }

 private:
  size_t at(int index) const { return static_cast<size_t>(index); }
  int root(int tensor) {
    while (parent_[at(tensor)] != tensor) tensor = parent_[at(tensor)] = parent_[at(parent_[at(tensor)])];
    return tensor;
  }
  Context context_of(int tensor) const { return graph_.nodes[at(graph_.producer[at(tensor)])].context; }

  void find_last_uses() {
    for (size_t t = 0; t < last_use_.size(); ++t) last_use_[t] = graph_.producer[t];
    for (size_t i = 0; i < graph_.nodes.size(); ++i)
      for (size_t k = 0; k < graph_.nodes[i].inputs.size(); ++k)
        if (!Graph::is_shape_only(graph_.nodes[i], k)) last_use_[at(graph_.nodes[i].inputs[k])] = static_cast<int>(i);
  }

  // One buffer from two; the last use is the later one, an outside home is kept.
  void unite(int into, int tensor) {
    const int a = root(into), b = root(tensor);
    if (a == b) return;
    parent_[at(b)] = a;
    last_use_[at(a)] = std::max(last_use_[at(a)], last_use_[at(b)]);
    if (home_[at(a)] < 0) home_[at(a)] = home_[at(b)];
  }

  void join_views(int number) {
    const GraphNode& node = graph_.nodes[at(number)];
    if (!node.op().view) return;
    const int in = node.inputs[0], out = node.first_output;
    const Tensor &from = graph_.tensors[at(in)], &to = graph_.tensors[at(out)];
    if (from.bytes() != to.bytes() || !same_order(from.shape, from.layout, to.layout) ||
        context_of(in) != context_of(out))
      return;
    const int in_home = home_[at(root(in))], out_home = outside_[at(out)];
    if (out_home >= 0) {
      // What it shows would have to be computed in the user's array: not when that is a variable's or another output's
      // own, and not in forward for an array that backward writes.
      const int first = first_write(in);
      if (in_home >= 0 || graph_.nodes[at(first)].is_variable() ||
          graph_.is_backward(first) != graph_.is_backward(number))
        return;
    }
    unite(in, out);
    plan_.skip[at(number)] = true;
  }

  int first_write(int tensor) { return graph_.producer[at(root(tensor))]; }

  void join_in_place(int number) {
    const GraphNode& node = graph_.nodes[at(number)];
    for (const auto& [in_index, out_index] : node.kernel->in_place) {
      const int in = root(node.inputs[at(in_index)]), out = node.first_output + out_index;
      if (root(out) != out || home_[at(in)] >= 0 || home_[at(out)] >= 0) continue;
      if (graph_.nodes[at(graph_.producer[at(in)])].is_variable()) continue;
      if (last_use_[at(in)] != number || context_of(in) != node.context) continue;
      if (graph_.tensors[at(node.inputs[at(in_index)])].bytes() != graph_.tensors[at(out)].bytes()) continue;
      if (!others_allow(node, in, out_index)) continue;
      unite(in, out);
    }
  }

  // Everything else of this node that reads the buffer may be overwritten by the same output, and no other output of
  // the node has the buffer already.
  bool others_allow(const GraphNode& node, int buffer, int out_index) {
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      if (root(node.inputs[k]) != buffer || Graph::is_shape_only(node, k)) continue;
      const std::pair pair(static_cast<int>(k), out_index);
      const auto& allowed = node.kernel->in_place;
      if (std::find(allowed.begin(), allowed.end(), pair) == allowed.end()) return false;
    }
    for (int i = 0; i < node.outputs; ++i)
      if (i != out_index && root(node.first_output + i) == buffer) return false;
    return true;
  }

  // What a kernel needs besides its arrays: scratch, and behind it what it derives anew in every run.
  size_t working_bytes(const GraphNode& node) const {
    if (!node.kernel) return 0;
    if (node.kernel->kept_bytes > 0 && !may_keep(graph_, node))
      return kept_offset(*node.kernel) + aligned(node.kernel->kept_bytes);
    return node.kernel->scratch_bytes > 0 ? aligned(node.kernel->scratch_bytes) : 0;
  }

  int arena_of(Context context) {
    for (size_t i = 0; i < plan_.arena_contexts.size(); ++i)
      if (plan_.arena_contexts[i] == context) return static_cast<int>(i);
    plan_.arena_contexts.push_back(context);
    spaces_.emplace_back();
    return static_cast<int>(spaces_.size()) - 1;
  }

  Place take(Context context, size_t bytes) {
    const int arena = arena_of(context);
    plan_.unshared_bytes += bytes;
    return {Place::Kind::arena, arena, spaces_[at(arena)].take(bytes)};
  }

  void place_all() {
    std::vector<size_t> bytes(parent_.size(), 0);
    for (size_t t = 0; t < parent_.size(); ++t) {
      size_t& size = bytes[at(root(static_cast<int>(t)))];
      size = std::max(size, aligned(graph_.tensors[t].bytes()));
    }
    std::vector<std::vector<int>> ending(graph_.nodes.size());  // buffers by the node that reads them last
    std::vector<Place> place(parent_.size());
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const GraphNode& node = graph_.nodes[i];
      for (int k = 0; k < node.outputs; ++k) {
        const int tensor = node.first_output + k, buffer = root(tensor);
        if (home_[at(buffer)] >= 0 || place[at(buffer)].kind != Place::Kind::nowhere) continue;
        if (node.is_variable()) continue;  // a variable nobody gave an array: read for its shape at most
        place[at(buffer)] = take(node.context, bytes[at(buffer)]);
        ending[at(last_use_[at(buffer)])].push_back(buffer);
      }
      if (const size_t size = plan_.skip[i] ? 0 : working_bytes(node); size > 0) {
        plan_.scratch[i] = take(node.context, size);
        if (share_) spaces_[at(plan_.scratch[i].index)].give(plan_.scratch[i].offset, size);
      }
      if (share_)
        for (const int buffer : ending[i])
          spaces_[at(place[at(buffer)].index)].give(place[at(buffer)].offset, bytes[at(buffer)]);
    }
    for (size_t t = 0; t < parent_.size(); ++t) {
      const int buffer = root(static_cast<int>(t));
      plan_.tensors[t] = home_[at(buffer)] >= 0 ? Place{Place::Kind::outside, home_[at(buffer)], 0} : place[at(buffer)];
    }
    for (const Space& space : spaces_) plan_.arena_bytes.push_back(space.size());
    if (!share_) plan_.unshared_bytes = std::accumulate(plan_.arena_bytes.begin(), plan_.arena_bytes.end(), size_t{0});
  }

  const Graph& graph_;
  const std::vector<int>& outside_;
  const bool share_;
  std::vector<int> parent_;    // union-find over tensors; the root is the one written first
  std::vector<int> last_use_;  // by tensor; of a root: of the whole buffer
  std::vector<int> home_;      // by root: the outside array the buffer lives in, or -1
  std::vector<Space> spaces_;
  MemoryPlan plan_;
};

}  // namespace

bool may_keep(const Graph& graph, const GraphNode& node) {
  if (graph.is_train || graph.forward_nodes != graph.nodes.size()) return false;
  return std::all_of(node.kernel->kept_from.begin(), node.kernel->kept_from.end(), [&](int index) {
    const int tensor = node.inputs[static_cast<size_t>(index)];
    return graph.nodes[static_cast<size_t>(graph.producer[static_cast<size_t>(tensor)])].is_variable();
  });
}

size_t kept_offset(const Kernel& kernel) { return kernel.scratch_bytes > 0 ? aligned(kernel.scratch_bytes) : 0; }

MemoryPlan plan_memory(const Graph& graph, const std::vector<int>& outside, bool share) {
  return Planner(graph, outside, share).run();
}

}  // namespace symbind
