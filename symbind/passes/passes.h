// The passes between gradient and plan_memory that change a graph; each has its own file.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>

#include "symbind/passes/graph.h"

namespace symbind {

// place: the context of every node, from its ctx_group; inserts a copy where a tensor is used on another context.
void place(Graph& graph, Context default_context, const std::map<std::string, Context>& group2ctx);
// Its two halves.
void assign_contexts(Graph& graph, Context default_context, const std::map<std::string, Context>& group2ctx);
void copy_across_contexts(Graph& graph);

// drop_identities: casts that change no type, and nodes that only scale a gradient, are removed.
void drop_identities(Graph& graph);

// fuse: several operators become one, by the rules of passes/fuse.h. Moderate: not where that may need a little more
// memory; full: not where it may need more.
enum class Frugality : uint8_t { none, moderate, full };
void fuse(Graph& graph, Frugality frugality = Frugality::none);

// select: the first implementation that accepts each node. At explain level 2 choices and refusals are written to the
// log.
void select(Graph& graph);
// The same for one node.
void select(Graph& graph, GraphNode& node);

// The value of SYMBIND_EXPLAIN, read once: 0 nothing, 1 a table of every plan that is compiled, 2 also which
// implementation each node got and why others refused.
int explain_level();

struct PreferredLayouts;
// The layouts that the node's implementation prefers, given the current layouts of its inputs (none given: plain).
std::optional<PreferredLayouts> preferred_layouts(const Graph& graph, const GraphNode& node,
                                                  std::span<const Layout> inputs);

// layout: propagates preferred layouts through the operators that accept them, with reorders at the boundaries. Offer
// parameters: implementations may get weights reordered, which merge_reorders then merges.
void layout(Graph& graph, bool offer_parameters = false);

// merge_reorders: the reorders of parameters become one operator with their conversions to another type, and so do
// those of gradients, on devices with a kernel for many arrays.
void merge_reorders(Graph& graph);

// Every network output and gradient is a separate tensor, computed by an operator: inserts copies where one is a
// variable, or the same tensor is requested twice.
void separate_outputs(Graph& graph);

// Builds the kernel of every node, or of the nodes [first, end); from here on scratch and in-place pairs are known.
void build_kernels(Graph& graph);
void build_kernels(Graph& graph, size_t first, size_t end);

}  // namespace symbind
