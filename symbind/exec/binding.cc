#include "symbind/exec/binding.h"

#include <algorithm>

#include "symbind/core/error.h"

namespace symbind {

GradReqs::GradReqs(const std::vector<std::string>& in_order) {
  for (const std::string& req : in_order) in_order_.push_back(grad_req_from_name(req));
}

GradReqs::GradReqs(const std::map<std::string, std::string>& by_name) {
  for (const auto& [name, req] : by_name) by_name_[name] = grad_req_from_name(req);
}

namespace {

void require_known(const std::string& name, const std::vector<std::string>& names, std::string_view what) {
  if (std::find(names.begin(), names.end(), name) == names.end())
    fail("[bind] ", what, " names '", name, "', which the network does not have; it has ", comma_separated(names));
}

}  // namespace

std::vector<GradReq> GradReqs::resolve(const std::vector<std::string>& arguments) const {
  return all_ ? std::vector(arguments.size(), *all_) : resolve(arguments, std::vector(arguments.size(), GradReq::null));
}

std::vector<GradReq> GradReqs::resolve(const std::vector<std::string>& arguments, std::vector<GradReq> defaults) const {
  if (all_) {
    for (GradReq& request : defaults)
      if (request != GradReq::null) request = *all_;
    return defaults;
  }
  if (!in_order_.empty()) {
    require(in_order_.size() == arguments.size(), "[bind] grad_req lists ", in_order_.size(), " requests for ",
            arguments.size(), " arguments: ", comma_separated(arguments));
    return in_order_;
  }
  for (const auto& [name, req] : by_name_) {
    require_known(name, arguments, "grad_req");
    for (size_t i = 0; i < arguments.size(); ++i)
      if (arguments[i] == name) defaults[i] = req;
  }
  return defaults;
}

std::vector<NDArray> Arrays::resolve(const std::vector<std::string>& names, std::string_view what,
                                     bool allow_missing) const {
  std::vector<NDArray> arrays(names.size());
  if (in_order_) {
    require(in_order_->size() == names.size(), "[bind] ", what, " lists ", in_order_->size(), " arrays for ",
            names.size(), " names: ", comma_separated(names));
    arrays = *in_order_;
  } else if (by_name_) {
    for (const auto& [name, array] : *by_name_) require_known(name, names, what);
    for (size_t i = 0; i < names.size(); ++i) {
      const auto found = by_name_->find(names[i]);
      if (found != by_name_->end()) arrays[i] = found->second;
    }
  }
  if (!allow_missing)
    for (size_t i = 0; i < names.size(); ++i)
      require(bool(arrays[i]), "[bind] ", what, " has no array for '", names[i], "'");
  return arrays;
}

}  // namespace symbind
