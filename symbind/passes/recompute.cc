// A forward node is either stored, and its outputs that backward reads stay in memory, or recomputed, and then backward
// reads a copy of the node placed right before its first reader there. Cheap nodes that read stored tensors are
// recomputed first. If that is not enough the network is cut into segments: tensors that cross a cut are stored, and
// the rest of a segment is recomputed when backward reaches it. Cheap nodes inside such a segment are recomputed twice:
// once to recompute the segment, and once where backward reads them.
#include "symbind/passes/recompute.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "symbind/core/environment.h"
#include "symbind/graph/attributes.h"
#include "symbind/passes/recompute_planner.h"

namespace symbind {
namespace {

bool is_mirrored(const Node& node) {
  const std::string* value = find_attribute(node.attributes, "__force_mirroring__");
  return value && (*value == "True" || *value == "true" || *value == "1");
}

bool mirrors_cheap_nodes() { return environment::variable("MXNET_BACKWARD_DO_MIRROR").on(); }

}  // namespace

struct Recompute::Impl : RecomputePlanner {
  explicit Impl(const Graph& given) : RecomputePlanner(given) {
    for (const GraphNode& node : graph.forward_part())
      mirrored.push_back(recomputable[node.id] && is_mirrored(*node.source));
  }

  RecomputeChoice requested() const;
  RecomputeChoice cheap(size_t count) const;
  RecomputeChoice within(size_t wanted) const;
  RecomputeChoice within_cheaply(size_t wanted) const;
  Result result(const RecomputeChoice& choice) const {
    const RecomputeSchedule planned = schedule(choice);
    return {make(planned), bytes_of(planned), planned.recomputed};
  }

 private:
  PerNode<bool> mirrored;  // of the forward part
  size_t bytes_with(const RecomputeChoice& choice) const { return bytes_of(schedule(choice)); }
  std::vector<NodeId> cuts_for(size_t wanted) const;
  RecomputeChoice segmented(const std::vector<NodeId>& cuts, const std::vector<bool>& active) const;
  std::vector<size_t> most_worthwhile(const std::vector<NodeId>& cuts) const;
  RecomputeChoice fewest_segments(const std::vector<NodeId>& cuts, size_t wanted) const;
};

// The choice that the network's attributes request.
RecomputeChoice Recompute::Impl::requested() const {
  if (mirrors_cheap_nodes()) return cheap(short_lived_saved.size());
  return cheap(0);
}

// The requested choice, plus the largest `count` of the nodes that are cheap to recompute.
RecomputeChoice Recompute::Impl::cheap(size_t count) const {
  RecomputeChoice choice{PerNode<bool>(graph.forward_nodes, false), PerNode<bool>(graph.forward_nodes, false)};
  const auto recompute_short_lived = [&](NodeId node) {
    if (!choice.recomputed[node]) choice.recomputed[node] = choice.short_lived[node] = true;
  };
  for (const GraphNode& node : graph.forward_part()) {
    choice.recomputed[node.id] = mirrored[node.id];
    if (count > 0 && short_lived[node.id] && saved_bytes[node.id] == 0) recompute_short_lived(node.id);
  }
  for (size_t i = 0; i < std::min(count, short_lived_saved.size()); ++i) recompute_short_lived(short_lived_saved[i]);
  return choice;
}

// Cuts after nodes such that recomputing each segment saves about `wanted` bytes; of the possible cuts, the one that
// the fewest bytes cross.
std::vector<NodeId> Recompute::Impl::cuts_for(size_t wanted) const {
  std::vector<NodeId> cuts;
  size_t sum = 0;
  NodeId best = NodeId::none;
  for (size_t i = 0; i < graph.forward_nodes; ++i) {
    const NodeId node = graph.nodes[i].id;
    if (!short_lived[node]) sum += saved_bytes[node];
    if (2 * sum >= wanted && (best == NodeId::none || crossing[node] <= crossing[best])) best = node;
    if (sum < wanted || best == NodeId::none) continue;
    cuts.push_back(best);
    i = index_of(best);
    sum = 0;
    best = NodeId::none;
  }
  return cuts;
}

// Nothing inside an active segment is stored; tensors that cross a cut are. The part after the last cut is not a
// segment: backward starts there.
RecomputeChoice Recompute::Impl::segmented(const std::vector<NodeId>& cuts, const std::vector<bool>& active) const {
  RecomputeChoice choice = cheap(short_lived_saved.size());
  for (const GraphNode& node : graph.forward_part()) {
    const auto segment = static_cast<size_t>(std::lower_bound(cuts.begin(), cuts.end(), node.id) - cuts.begin());
    if (segment < cuts.size() && active[segment] && recomputable[node.id]) choice.recomputed[node.id] = true;
  }
  for (const GraphNode& node : graph.forward_part())
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      const NodeId maker = graph.producer_id(node.inputs[k]);
      if (shape_only[node.id][k]) continue;
      const auto cut = std::lower_bound(cuts.begin(), cuts.end(), maker);
      if (cut != cuts.end() && *cut < node.id) choice.recomputed[maker] = choice.short_lived[maker] = false;
    }
  return choice;
}

// The segments in the order of the bytes they save for their cost.
std::vector<size_t> Recompute::Impl::most_worthwhile(const std::vector<NodeId>& cuts) const {
  std::vector<double> worth(cuts.size(), 0);
  NodeId node{0};
  for (size_t segment = 0; segment < cuts.size(); ++segment) {
    double saved = 0, spent = 1;
    for (; node <= cuts[segment]; node = node + 1) {
      if (short_lived[node]) continue;
      saved += static_cast<double>(saved_bytes[node]);
      spent += recomputable[node] ? cost[node] : 0;
    }
    worth[segment] = saved / spent;
  }
  std::vector<size_t> order(cuts.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return worth[a] > worth[b]; });
  return order;
}

// The smallest number up to `all` that is enough, if all are.
template <class IsEnough>
size_t fewest(size_t all, IsEnough is_enough) {
  size_t enough = all;
  for (size_t too_few = 0; enough - too_few > 1;) {
    const size_t middle = (enough + too_few) / 2;
    (is_enough(middle) ? enough : too_few) = middle;
  }
  return enough;
}

RecomputeChoice Recompute::Impl::fewest_segments(const std::vector<NodeId>& cuts, size_t wanted) const {
  const std::vector<size_t> order = most_worthwhile(cuts);
  const auto first = [&](size_t count) {
    std::vector<bool> active(cuts.size(), false);
    for (size_t k = 0; k < count; ++k) active[order[k]] = true;
    return segmented(cuts, active);
  };
  return first(fewest(cuts.size(), [&](size_t count) { return bytes_with(first(count)) <= wanted; }));
}

// Cheap nodes, as few as necessary.
RecomputeChoice Recompute::Impl::within_cheaply(size_t wanted) const {
  RecomputeChoice none = requested(), all = cheap(short_lived_saved.size());
  const size_t bytes_with_none = bytes_with(none), bytes_with_all = bytes_with(all);
  if (bytes_with_none <= wanted) return none;
  if (bytes_with_all > wanted) return bytes_with_all < bytes_with_none ? all : none;
  return cheap(fewest(short_lived_saved.size(), [&](size_t count) { return bytes_with(cheap(count)) <= wanted; }));
}

RecomputeChoice Recompute::Impl::within(size_t wanted) const {
  RecomputeChoice best = within_cheaply(wanted);
  size_t best_bytes = bytes_with(best);
  if (best_bytes <= wanted) return best;

  // Segments of many lengths.
  double all_saved = 0, nodes = 0;
  for (const GraphNode& node : graph.forward_part())
    if (!short_lived[node.id]) all_saved += static_cast<double>(saved_bytes[node.id]), ++nodes;
  std::vector<std::pair<double, std::vector<NodeId>>> enough;  // cost and cuts
  size_t last_count = 0;
  for (double segments = 2; segments < 4 * std::sqrt(nodes) + 4; segments *= 1.3) {
    const std::vector<NodeId> cuts = cuts_for(static_cast<size_t>(all_saved / segments) + 1);
    if (cuts.empty() || cuts.size() == last_count) continue;
    last_count = cuts.size();
    RecomputeChoice choice = segmented(cuts, std::vector<bool>(cuts.size(), true));
    const RecomputeSchedule planned = schedule(choice);
    const size_t needed = bytes_of(planned);
    if (needed <= wanted) enough.emplace_back(planned.cost, cuts);
    if (needed < best_bytes) best = std::move(choice), best_bytes = needed;
  }

  // Of the segmentations that suffice, with only as many active segments as necessary.
  std::sort(enough.begin(), enough.end());
  double best_cost = 0;
  for (size_t i = 0; i < std::min<size_t>(enough.size(), 5); ++i) {
    RecomputeChoice choice = fewest_segments(enough[i].second, wanted);
    const double needed = schedule(choice).cost;
    if (i == 0 || needed < best_cost) best = std::move(choice), best_cost = needed;
  }
  return best;
}

// ---------------------------------------------------------------------------------------------------------------------

Recompute::Recompute(const Graph& graph) : impl_(std::make_unique<Impl>(graph)) {}
Recompute::~Recompute() = default;

Recompute::Result Recompute::as_requested() const { return impl_->result(impl_->requested()); }
Recompute::Result Recompute::within(size_t bytes) const { return impl_->result(impl_->within(bytes)); }
Recompute::Result Recompute::within_cheaply(size_t bytes) const { return impl_->result(impl_->within_cheaply(bytes)); }

}  // namespace symbind
