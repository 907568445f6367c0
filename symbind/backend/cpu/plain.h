// Registers the plain implementations.
#pragma once

#include <utility>

#include "symbind/passes/target.h"

namespace symbind::cpu_backend {

// An implementation that accepts every node.
template <class Build>
void add_plain(ImplementationTable& table, const OpDef& op, Build build) {
  Implementation implementation;
  implementation.name = "plain";
  implementation.refuse = [](const NodeView&) { return std::string(); };
  implementation.build = std::move(build);
  table.add(op, std::move(implementation));
}
template <class P, class Build>
void add_plain(ImplementationTable& table, Build build) {
  add_plain(table, op_of<P>(), std::move(build));
}

}  // namespace symbind::cpu_backend
