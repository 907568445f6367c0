// The arguments of bind and simple_bind in their several forms.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "symbind/core/ndarray.h"
#include "symbind/graph/grad_req.h"

namespace SYMBIND_API symbind {

// Which gradients: "write", "add" or "null" for all; "parameters" to write those of all but data and labels (arguments
// whose shapes simple_bind is given, "data", and names that end in "label"); one per argument in order; or by name
// (arguments not named then have no gradient).
class GradReqs {
 public:
  GradReqs(const char* all) : GradReqs(std::string(all)) {}
  GradReqs(const std::string& all);
  GradReqs(const std::vector<std::string>& in_order);
  GradReqs(const std::map<std::string, std::string>& by_name);
  // One per argument; warns of an unknown name and fails on a list of another length. `inputs` name data and labels.
  std::vector<GradReq> resolve(const std::vector<std::string>& arguments, const std::set<std::string>& inputs) const;
  // As above, but names override `defaults`, and a single request applies where the default is not null.
  std::vector<GradReq> resolve(const std::vector<std::string>& arguments, std::vector<GradReq> defaults) const;

 private:
  std::optional<GradReq> all_;
  bool parameters_only_ = false;
  std::vector<GradReq> in_order_;
  std::map<std::string, GradReq> by_name_;
};

// Arrays by list, in the order of the symbol's own list, or by name.
class Arrays {
 public:
  Arrays() = default;
  Arrays(const NDArray& only) : in_order_(std::vector<NDArray>{only}) {}
  Arrays(std::vector<NDArray> in_order) : in_order_(std::move(in_order)) {}
  Arrays(std::initializer_list<std::pair<const std::string, NDArray>> by_name) : by_name_(NamedArrays(by_name)) {}
  Arrays(NamedArrays by_name) : by_name_(std::move(by_name)) {}

  bool given() const { return in_order_ || by_name_; }
  // One per name. Missing ones fail or, if allowed, are empty; a list of another length fails. An unlisted name is
  // reported by a warning, or fails where all names are required. `what` ("args", "args_grad") is named in errors.
  std::vector<NDArray> resolve(const std::vector<std::string>& names, std::string_view what, bool allow_missing) const;
  // The same for gradients of outputs: a list may be shorter or longer, and an unlisted name fails.
  std::vector<NDArray> resolve_out_grads(const std::vector<std::string>& outputs) const;

 private:
  std::optional<std::vector<NDArray>> in_order_;
  std::optional<NamedArrays> by_name_;
};

}  // namespace symbind
