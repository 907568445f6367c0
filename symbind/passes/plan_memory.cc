// Tensors that may share addresses form a buffer: a view and its source, pieces and the whole array, an output and the
// input it overwrites. Every tensor has an offset in its buffer. A buffer is live from the node that first writes it to
// the last that reads it; two buffers may overlap in memory if their lifetimes do not (packing.h).
#include "symbind/passes/plan_memory.h"

#include <algorithm>
#include <bit>
#include <compare>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <tuple>

#include "symbind/core/error.h"
#include "symbind/passes/packing.h"
#include "symbind/passes/rewrite.h"
#include "symbind/passes/target.h"

namespace symbind {
namespace {

constexpr size_t alignment = 64;
size_t aligned(size_t bytes) { return (std::max<size_t>(bytes, 1) + alignment - 1) / alignment * alignment; }

// Bytes [begin, end) of a buffer.
struct Range {
  size_t begin, end;
  bool overlaps(const Range& other) const { return begin < other.end && other.begin < end; }
  bool operator==(const Range&) const = default;
};

// The tensors of a buffer, searchable by range. They are grouped by the power of two of their size: within a group only
// near neighbours of a range can overlap it.
class Members {
 public:
  void add(TensorId tensor, Range range) {
    if (range.begin == range.end) return;
    by_size_[std::bit_width(range.end - range.begin)].insert({position(range.begin), tensor, range.end - range.begin});
    ++count_;
  }

  // Takes over the members of another buffer, which starts at this byte offset in this one.
  void take(Members&& other, size_t begin) {
    other.shift_ += static_cast<int64_t>(begin);
    if (other.count_ > count_) std::swap(*this, other);
    for (const auto& [size, members] : other.by_size_)
      for (const Member& member : members) add(member.tensor, other.range(member));
    other = {};
  }

  // Visits those that overlap a range until `visit` returns false. Tensors whose lifetime is over are removed.
  template <class IsOver, class Visit>
  bool all_overlapping(Range wanted, IsOver is_over, Visit visit) {
    for (auto& [size, members] : by_size_) {
      const int64_t longest = int64_t{1} << std::min(size, 62);
      auto next = members.lower_bound({position(wanted.begin) - longest, TensorId{0}, 0});
      while (next != members.end() && next->begin < position(wanted.end)) {
        if (is_over(next->tensor)) {
          next = members.erase(next);
          --count_;
          continue;
        }
        if (range(*next).overlaps(wanted) && !visit(next->tensor, range(*next))) return false;
        ++next;
      }
    }
    return true;
  }

 private:
  struct Member {
    int64_t begin;  // without the shift
    TensorId tensor;
    size_t bytes;
    auto operator<=>(const Member&) const = default;
  };
  int64_t position(size_t begin) const { return static_cast<int64_t>(begin) - shift_; }
  Range range(const Member& member) const {
    const auto begin = static_cast<size_t>(member.begin + shift_);
    return {begin, begin + member.bytes};
  }

  std::map<int, std::set<Member>> by_size_;
  int64_t shift_ = 0;  // so that merging a large member list into a small one needs no copy
  size_t count_ = 0;
};

// The tensors in groups that share addresses.
class Buffers {
 public:
  explicit Buffers(const Graph& graph) : begin_(graph.tensors.size(), 0), members_(graph.tensors.size()) {
    for (const Tensor& tensor : graph.tensors) {
      parent_.push_back(TensorId{static_cast<int32_t>(parent_.size())});
      bytes_.push_back(tensor.bytes());
    }
    size_ = bytes_;
  }

  // The tensor that represents the buffer.
  TensorId of(TensorId tensor) {
    TensorId top = tensor;
    size_t begin = 0;  // offset of the tensor in the buffer
    for (; parent_[top] != top; top = parent_[top]) begin += begin_[top];
    while (tensor != top) {  // path compression
      const TensorId next = parent_[tensor];
      const size_t step = begin_[tensor];
      parent_[tensor] = top;
      begin_[tensor] = begin;
      begin -= step;
      tensor = next;
    }
    return top;
  }
  Range range(TensorId tensor) {
    of(tensor);
    return {begin_[tensor], begin_[tensor] + bytes_[tensor]};
  }
  size_t bytes(TensorId tensor) const { return bytes_[tensor]; }
  size_t size(TensorId buffer) const { return size_[buffer]; }
  // Does the tensor fill its buffer?
  bool is_whole(TensorId tensor) {
    const TensorId buffer = of(tensor);
    return range(tensor) == Range{0, size_[buffer]};
  }
  // Visits the tensors that overlap bytes of a buffer until `visit` returns false; returns whether it never did.
  template <class IsOver, class Visit>
  bool all_overlapping(TensorId buffer, Range wanted, IsOver is_over, Visit visit) {
    return members_of(buffer).all_overlapping(wanted, is_over, visit);
  }
  // The buffer `inner` becomes a part of `outer`, at byte offset `begin`.
  void put(TensorId inner, TensorId outer, size_t begin) {
    parent_[inner] = outer;
    begin_[inner] = begin;
    Members& all = members_of(outer);  // of the size it has had so far
    all.take(std::move(members_of(inner)), begin);
    members_[inner].reset();
    size_[outer] = std::max(size_[outer], begin + size_[inner]);
  }

 private:
  // Most tensors are alone in their buffer: the list is made when it is first needed.
  Members& members_of(TensorId buffer) {
    std::unique_ptr<Members>& members = members_[buffer];
    if (!members) {
      members = std::make_unique<Members>();
      members->add(buffer, {0, bytes_[buffer]});
    }
    return *members;
  }

  PerTensor<TensorId> parent_;
  PerTensor<size_t> begin_;  // in the parent
  PerTensor<size_t> bytes_;
  PerTensor<size_t> size_;                       // of each buffer, by the tensor that represents it
  PerTensor<std::unique_ptr<Members>> members_;  // of each buffer; none: not needed yet
};

class Planner {
 public:
  Planner(const Graph& graph, const PerTensor<int>& outside, bool share, bool pieces)
      : graph_(graph), outside_(outside), share_(share), pieces_(pieces), buffers_(graph) {
    const size_t tensors = graph.tensors.size();
    outside_of_buffer_ = outside;
    is_updated_.assign(tensors, false);
    plan_.tensors.resize(tensors);
    plan_.scratch.resize(graph.nodes.size());
    plan_.skip.assign(graph.nodes.size(), false);
    for (const GraphNode& node : graph.nodes) shape_only_.push_back(shape_only_inputs(node));
    find_last_uses();
    first_write_ = graph.producers;
    last_read_ = last_use_;
  }

  MemoryPlan run() {
    for (const GraphNode& node : graph_.nodes)
      if (!node.is_variable()) join_views(node);
    if (share_)
      for (const GraphNode& node : graph_.nodes)
        if (!node.is_variable() && !plan_.skip[node.id]) join_in_place(node);
    assign_locations();
    return std::move(plan_);
  }
  bool has_pieces() const { return has_pieces_; }

 private:
  Context context_of(TensorId tensor) const { return graph_.producer(tensor).context; }
  bool is_variable(TensorId tensor) const { return graph_.producer(tensor).is_variable(); }
  const Tensor& tensor(TensorId id) const { return graph_.tensor(id); }
  bool is_shape_only(NodeId node, size_t input) const { return shape_only_[node][input]; }

  void find_last_uses() {
    last_use_ = graph_.producers;
    for (const GraphNode& node : graph_.nodes) {
      if (node.is_variable()) continue;
      const std::vector<bool> updated = node.op().updated_inputs(node.source->params.get(), node.inputs.size());
      for (size_t k = 0; k < node.inputs.size(); ++k) {
        if (!is_shape_only(node.id, k)) last_use_[node.inputs[k]] = node.id;
        if (updated[k]) is_updated_[node.inputs[k]] = true;
      }
    }
  }

  // Merges two buffers; the result is live as long as either and keeps the outside array, if any.
  void put(TensorId inner, TensorId outer, size_t begin) {
    buffers_.put(inner, outer, begin);
    first_write_[outer] = std::min(first_write_[outer], first_write_[inner]);
    last_read_[outer] = std::max(last_read_[outer], last_read_[inner]);
    if (outside_of_buffer_[outer] < 0) outside_of_buffer_[outer] = outside_of_buffer_[inner];
  }

  // ---- Views and pieces ----

  void join_views(const GraphNode& node) {
    if (node.op().view)
      plan_.skip[node.id] = join_view(node.id, node.inputs[0], node.first_output);
    else if (pieces_ && node.op().pieces_of_input)
      plan_.skip[node.id] = split(node);
    else if (pieces_ && node.op().pieces_of_output)
      plan_.skip[node.id] = join_pieces(node);
  }

  bool join_view(NodeId node, TensorId in, TensorId out) {
    const Tensor &from = tensor(in), &to = tensor(out);
    if (from.bytes() != to.bytes() || !same_order(from.shape, from.layout, to.layout) ||
        context_of(in) != context_of(out))
      return false;
    if (is_updated_[in]) return false;
    // The source would have to be computed in the user's array.
    if (outside_[out] >= 0 && !(buffers_.is_whole(in) && may_live_outside(in, node))) return false;
    put(out, buffers_.of(in), buffers_.range(in).begin);
    return true;
  }

  // May the tensor be computed in a user's array that a node fills? Not when it has one already, and not in forward for
  // an array that backward writes.
  bool may_live_outside(TensorId tensor, NodeId filled_by) {
    const TensorId buffer = buffers_.of(tensor);
    const NodeId first = first_write_[buffer];
    return outside_of_buffer_[buffer] < 0 && !graph_.node(first).is_variable() &&
           graph_.is_backward(first) == graph_.is_backward(filled_by);
  }

  // The byte offsets of the pieces in the whole; empty if they are not contiguous in it.
  std::vector<size_t> begins_of(const GraphNode& node, const OpDef::Pieces& pieces, TensorId whole,
                                const std::vector<TensorId>& parts) const {
    const NodeShapes shapes = shapes_of(graph_, node);
    const std::vector<int64_t> elements = pieces(node.source->params.get(), shapes.inputs, shapes.outputs);
    std::vector<size_t> begins;
    for (size_t i = 0; i < std::min(parts.size(), elements.size()); ++i) {
      begins.push_back(static_cast<size_t>(elements[i]) * size_of(tensor(whole).dtype));
      if (begins.back() % alignment != 0 || !may_be_piece(tensor(parts[i]), tensor(whole), elements[i])) return {};
      if (context_of(parts[i]) != node.context) return {};
    }
    return begins.size() == parts.size() ? begins : std::vector<size_t>{};
  }

  // Given that the part is one contiguous piece of a plain array, is it also one in this layout? A part of the batch is
  // in every layout, and whole channel blocks of one image are in a blocked layout.
  static bool may_be_piece(const Tensor& part, const Tensor& whole, int64_t begin) {
    if (part.dtype != whole.dtype || part.layout != whole.layout || part.bytes() == 0) return false;
    if (whole.layout == Layout::plain) return true;
    const Shape &inner = part.shape, &outer = whole.shape;
    const int rank = outer.rank();
    if (inner.rank() != rank) return false;
    if (inner.slice(1, rank) == outer.slice(1, rank)) return true;
    const int64_t block = block_of(whole.layout);
    return block > 1 && outer[0] == 1 && inner[0] == 1 && inner.slice(2, rank) == outer.slice(2, rank) &&
           begin % (block * outer.size(2, rank)) == 0;
  }

  // The lifetime of a large buffer should not be extended for a small part of it.
  bool may_extend(TensorId buffer, size_t part_bytes, NodeId first, NodeId last) const {
    const bool longer = first < first_write_[buffer] || last > last_read_[buffer];
    return outside_of_buffer_[buffer] >= 0 || !longer || 2 * part_bytes >= buffers_.size(buffer);
  }

  // The outputs are views of pieces of the input.
  bool split(const GraphNode& node) {
    const TensorId in = node.inputs[0], buffer = buffers_.of(in);
    std::vector<TensorId> parts;
    for (int k = 0; k < node.outputs; ++k) parts.push_back(node.first_output + k);
    const std::vector<size_t> begins = begins_of(node, node.op().pieces_of_input, in, parts);
    if (begins.empty() || is_updated_[in] || context_of(in) != node.context) return false;
    size_t bytes = 0;
    NodeId last{0};
    for (const TensorId part : parts) {
      if (outside_[part] >= 0) return false;
      bytes += buffers_.bytes(part);
      last = std::max(last, last_use_[part]);
    }
    if (!may_extend(buffer, bytes, first_write_[buffer], last)) return false;
    const size_t begin = buffers_.range(in).begin;
    for (size_t i = 0; i < parts.size(); ++i) put(parts[i], buffer, begin + begins[i]);
    return has_pieces_ = true;
  }

  // The inputs are computed directly in the output. Each must be a separate buffer, free to be placed anywhere.
  bool join_pieces(const GraphNode& node) {
    const TensorId out = node.first_output;
    std::vector<TensorId> parts;
    for (size_t k = 0; k < node.inputs.size(); ++k)
      if (!is_shape_only(node.id, k)) parts.push_back(node.inputs[k]);
    const std::vector<size_t> begins = begins_of(node, node.op().pieces_of_output, out, parts);
    if (begins.empty()) return false;
    std::set<TensorId> seen;
    for (const TensorId part : parts) {
      const TensorId buffer = buffers_.of(part);
      if (!buffers_.is_whole(part) || outside_of_buffer_[buffer] >= 0 || is_variable(part) || is_updated_[part])
        return false;
      if (outside_[out] >= 0 && !may_live_outside(part, node.id)) return false;
      if (!seen.insert(buffer).second) return false;  // each at one offset only
    }
    for (size_t i = 0; i < parts.size(); ++i) put(buffers_.of(parts[i]), out, begins[i]);
    return has_pieces_ = true;
  }

  // ---- In place ----

  void join_in_place(const GraphNode& node) {
    // The oldest input is overwritten first: long-lived data then stays in one buffer, and short-lived buffers come and
    // go around it.
    std::vector<std::pair<int, int>> pairs = node.kernel->in_place;
    const auto begin = [&](const std::pair<int, int>& pair) {
      return first_write_[buffers_.of(node.inputs[static_cast<size_t>(pair.first)])];
    };
    std::stable_sort(pairs.begin(), pairs.end(), [&](const auto& a, const auto& b) { return begin(a) < begin(b); });
    if (pairs.empty()) return;
    const NodeReads reads(node);
    std::vector<bool> is_done(static_cast<size_t>(node.outputs), false);
    std::set<std::tuple<TensorId, size_t, size_t>> refused;  // buffer and first byte of an input, and the output
    for (const auto& pair : pairs) {
      const TensorId in = node.inputs[static_cast<size_t>(pair.first)], out = node.first_output + pair.second;
      const auto out_index = static_cast<size_t>(pair.second);
      if (is_done[out_index]) continue;
      const TensorId from = buffers_.of(in), to = buffers_.of(out);
      if (from == to || outside_of_buffer_[from] >= 0 || outside_of_buffer_[to] >= 0 || is_variable(in)) continue;
      if (buffers_.bytes(in) != buffers_.bytes(out) || context_of(in) != node.context) continue;
      if (!refused.insert({from, buffers_.range(in).begin, out_index}).second) continue;
      is_done[out_index] = is_free_after(node.id, in, pair.second, reads) && overwrite(in, out);
    }
  }

  // The inputs of a node by their tensors, and what the kernel may overwrite.
  struct NodeReads {
    explicit NodeReads(const GraphNode& node) : allowed(node.kernel->in_place) {
      for (size_t k = 0; k < node.inputs.size(); ++k) inputs.emplace_back(node.inputs[k], static_cast<int>(k));
      std::sort(inputs.begin(), inputs.end());
      std::sort(allowed.begin(), allowed.end());
    }
    // May the output overwrite every input that is this tensor?
    template <class IsRead>
    bool may_overwrite(TensorId tensor, int output, IsRead is_read) const {
      for (auto input = std::lower_bound(inputs.begin(), inputs.end(), std::pair(tensor, 0));
           input != inputs.end() && input->first == tensor; ++input)
        if (is_read(input->second) &&
            !std::binary_search(allowed.begin(), allowed.end(), std::pair(input->second, output)))
          return false;
      return true;
    }
    std::vector<std::pair<TensorId, int>> inputs;  // and index
    std::vector<std::pair<int, int>> allowed;
  };

  // One of the two must be free to move to the memory of the other.
  bool overwrite(TensorId in, TensorId out) {
    const TensorId from = buffers_.of(in), to = buffers_.of(out);
    const size_t bytes = buffers_.bytes(out);
    if (buffers_.is_whole(out)) {
      if (!may_extend(from, bytes, first_write_[to], last_read_[to])) return false;
      put(to, from, buffers_.range(in).begin);
      return true;
    }
    if (!buffers_.is_whole(in) || !may_extend(to, bytes, first_write_[from], last_read_[from])) return false;
    put(from, to, buffers_.range(out).begin);
    return true;
  }

  // Is nothing in the memory of the input read after the node? Inputs of the node itself in that memory must be at the
  // same address and may be overwritten by the same output; and no other output may use it.
  bool is_free_after(NodeId node, TensorId in, int out_index, const NodeReads& reads) {
    const Range input_range = buffers_.range(in);
    // Nodes are visited in order: a lifetime that is over stays over.
    const auto is_over = [&](TensorId member) { return last_use_[member] < node; };
    return buffers_.all_overlapping(buffers_.of(in), input_range, is_over, [&](TensorId member, Range range) {
      if (last_use_[member] > node || graph_.producer_id(member) >= node) return false;
      return range == input_range && reads.may_overwrite(member, out_index, [&](int input) {
        return !is_shape_only(node, static_cast<size_t>(input));
      });
    });
  }

  // ---- Locations ----

  struct Arena {
    std::vector<Lifetime> lifetimes;
    std::vector<Location*> locations;  // of each
  };

  void need(Context context, Location& location, NodeId first, NodeId last, size_t bytes) {
    size_t arena = 0;
    while (arena < arenas_.size() && !(plan_.arena_contexts[arena] == context)) ++arena;
    if (arena == arenas_.size()) {
      plan_.arena_contexts.push_back(context);
      arenas_.emplace_back();
    }
    location = {Location::Kind::arena, static_cast<int>(arena), 0};
    arenas_[arena].lifetimes.push_back({static_cast<int>(first), static_cast<int>(last), bytes});
    arenas_[arena].locations.push_back(&location);
    plan_.unshared_bytes += bytes;
  }

  void assign_locations() {
    PerTensor<Location> location(graph_.tensors.size());  // by buffer
    for (const GraphNode& node : graph_.nodes) {
      if (node.is_variable()) continue;  // a variable without an array is at most read for its shape
      for (int k = 0; k < node.outputs; ++k) {
        const TensorId buffer = buffers_.of(node.first_output + k);
        if (outside_of_buffer_[buffer] >= 0 || location[buffer].kind != Location::Kind::nowhere) continue;
        need(node.context, location[buffer], first_write_[buffer], last_read_[buffer], aligned(buffers_.size(buffer)));
      }
      if (const size_t bytes = plan_.skip[node.id] ? 0 : working_bytes(node); bytes > 0)
        need(node.context, plan_.scratch[node.id], node.id, node.id, bytes);
    }
    for (Arena& arena : arenas_) {
      plan_.arena_bytes.push_back(share_ ? pack(arena.lifetimes) : one_after_the_other(arena.lifetimes));
      plan_.lower_bound += share_ ? peak_live_bytes(arena.lifetimes) : plan_.arena_bytes.back();
      for (size_t i = 0; i < arena.locations.size(); ++i) arena.locations[i]->offset = arena.lifetimes[i].offset;
    }
    for (size_t t = 0; t < graph_.tensors.size(); ++t) {
      const TensorId id{static_cast<int32_t>(t)}, buffer = buffers_.of(id);
      Location& mine = plan_.tensors[id];
      mine = outside_of_buffer_[buffer] >= 0 ? Location{Location::Kind::outside, outside_of_buffer_[buffer], 0}
                                             : location[buffer];
      if (mine.kind != Location::Kind::nowhere) mine.offset += buffers_.range(id).begin;
    }
  }

  static size_t one_after_the_other(std::vector<Lifetime>& lifetimes) {
    size_t end = 0;
    for (Lifetime& life : lifetimes) {
      life.offset = end;
      end += life.bytes;
    }
    return end;
  }

  const Graph& graph_;
  const PerTensor<int>& outside_;
  const bool share_, pieces_;
  bool has_pieces_ = false;
  Buffers buffers_;
  PerNode<std::vector<bool>> shape_only_;      // by input
  PerTensor<NodeId> last_use_;                 // the last node that reads it
  PerTensor<bool> is_updated_;                 // does a node update it?
  PerTensor<NodeId> first_write_, last_read_;  // by buffer
  PerTensor<int> outside_of_buffer_;           // by buffer: the outside array it is in, or -1
  std::vector<Arena> arenas_;
  MemoryPlan plan_;
};

}  // namespace

size_t MemoryPlan::total_bytes() const { return std::accumulate(arena_bytes.begin(), arena_bytes.end(), size_t{0}); }

size_t cached_offset(const Kernel& kernel) { return kernel.scratch_bytes > 0 ? aligned(kernel.scratch_bytes) : 0; }

size_t working_bytes(const GraphNode& node) {
  if (!node.kernel) return 0;
  if (node.kernel->cached_bytes > 0 && !node.caches_derived)
    return cached_offset(*node.kernel) + aligned(node.kernel->cached_bytes);
  return node.kernel->scratch_bytes > 0 ? aligned(node.kernel->scratch_bytes) : 0;
}

MemoryPlan plan_memory(const Graph& graph, const PerTensor<int>& outside, bool share) {
  Planner planner(graph, outside, share, share);
  MemoryPlan plan = planner.run();
  if (!planner.has_pieces()) return plan;
  // The whole is allocated when its first piece is computed: usually that saves memory, but not always.
  MemoryPlan apart = Planner(graph, outside, share, false).run();
  return apart.total_bytes() < plan.total_bytes() ? apart : plan;
}

MemoryPlan plan_separate_memory(const Graph& graph, const PerTensor<int>& outside) {
  return Planner(graph, outside, /*share=*/false, /*pieces=*/true).run();
}

}  // namespace symbind
