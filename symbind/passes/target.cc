#include "symbind/passes/target.h"

#include <algorithm>

#include "symbind/core/error.h"

namespace symbind {

std::string NodeView::where() const { return join("[", op.name, name.empty() ? "" : " ", name, "]"); }

void ImplementationTable::add(const OpDef& op, Implementation implementation) {
  std::vector<Implementation>& list = lists_[&op];
  const auto is_earlier = [](Tier tier, const Implementation& other) { return tier < other.tier; };
  list.insert(std::upper_bound(list.begin(), list.end(), implementation.tier, is_earlier), std::move(implementation));
}

const std::vector<Implementation>& ImplementationTable::of(const OpDef& op) const {
  static const std::vector<Implementation> none;
  const auto found = lists_.find(&op);
  return found == lists_.end() ? none : found->second;
}

Target& Target::get(Context context) {
  // Never destroyed, like the devices they serve.
  if (context.is_gpu()) {
    static Target& gpu_target = *make_gpu_target().release();
    return gpu_target;
  }
  static Target& cpu_target = *make_cpu_target().release();
  return cpu_target;
}

const std::vector<Implementation>& Target::implementations(const OpDef& op) {
  if (const auto& list = listed(op); !list.empty()) return list;
  const std::lock_guard lock(own_mutex_);
  auto& list = own_[&op];
  if (list.empty()) list = own(op);
  require(!list.empty(), "[", op.name, "] has no kernel for CPUs: register one with register_kernel()");
  return list;
}

const Implementation& choose(const NodeView& node, const RefusalListener& refused) {
  for (const Implementation& implementation : Target::get(node.context).implementations(node.op)) {
    const std::string reason = implementation.refuse ? implementation.refuse(node) : "";
    if (reason.empty()) return implementation;
    if (refused) refused(implementation, reason);
  }
  fail(node.where(), " cannot run on ", node.context);
}

const Implementation& last_resort(const OpDef& op, Context context) {
  return Target::get(context).implementations(op).back();
}

bool runs_on_device(const OpDef& op, Context context) {
  return Target::get(context).implementations(op).front().tier != Tier::host;
}

}  // namespace symbind
