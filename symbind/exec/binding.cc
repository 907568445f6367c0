#include "symbind/exec/binding.h"

#include <string_view>
#include <unordered_set>

#include "symbind/core/error.h"
#include "symbind/core/log.h"

namespace symbind {

GradReqs::GradReqs(const std::string& all) : parameters_only_(all == "parameters") {
  all_ = parameters_only_ ? GradReq::write : grad_req_from_name(all);
}

GradReqs::GradReqs(const std::vector<std::string>& in_order) {
  for (const std::string& req : in_order) in_order_.push_back(grad_req_from_name(req));
}

GradReqs::GradReqs(const std::map<std::string, std::string>& by_name) {
  for (const auto& [name, req] : by_name) by_name_[name] = grad_req_from_name(req);
}

namespace {

// Warns about names that the network does not have.
template <class ByName>
void check_known(const ByName& given, const std::vector<std::string>& names, std::string_view what, bool strict) {
  const std::unordered_set<std::string_view> known(names.begin(), names.end());
  for (const auto& [name, value] : given) {
    if (known.contains(name)) continue;
    const std::string message =
        join("[bind] ", what, " names '", name, "', which the network does not have; it has ", comma_separated(names));
    if (strict) fail(message);
    log_warning(message);
  }
}

}  // namespace

std::vector<GradReq> GradReqs::resolve(const std::vector<std::string>& arguments,
                                       const std::set<std::string>& inputs) const {
  if (!all_) return resolve(arguments, std::vector(arguments.size(), GradReq::null));
  std::vector<GradReq> requests(arguments.size(), *all_);
  for (size_t i = 0; parameters_only_ && i < arguments.size(); ++i)
    if (arguments[i] == "data" || arguments[i].ends_with("label") || inputs.contains(arguments[i]))
      requests[i] = GradReq::null;
  return requests;
}

std::vector<GradReq> GradReqs::resolve(const std::vector<std::string>& arguments, std::vector<GradReq> defaults) const {
  if (all_) {
    for (GradReq& request : defaults)
      if (request != GradReq::null) request = *all_;
    return defaults;
  }
  if (!in_order_.empty()) {
    if (in_order_.size() != arguments.size())
      fail("[bind] grad_req lists ", in_order_.size(), " requests for ", arguments.size(),
           " arguments: ", comma_separated(arguments));
    return in_order_;
  }
  check_known(by_name_, arguments, "grad_req", false);
  for (size_t i = 0; i < arguments.size(); ++i)
    if (const auto found = by_name_.find(arguments[i]); found != by_name_.end()) defaults[i] = found->second;
  return defaults;
}

std::vector<NDArray> Arrays::resolve(const std::vector<std::string>& names, std::string_view what,
                                     bool allow_missing) const {
  std::vector<NDArray> arrays(names.size());
  if (in_order_) {
    if (in_order_->size() != names.size())
      fail("[bind] ", what, " lists ", in_order_->size(), " arrays for ", names.size(),
           " names: ", comma_separated(names));
    arrays = *in_order_;
  } else if (by_name_) {
    check_known(*by_name_, names, what, !allow_missing);
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

std::vector<NDArray> Arrays::resolve_out_grads(const std::vector<std::string>& outputs) const {
  std::vector<NDArray> arrays = in_order_.value_or(std::vector<NDArray>{});
  arrays.resize(outputs.size());
  if (by_name_) check_known(*by_name_, outputs, "out_grads", true);
  for (size_t i = 0; by_name_ && i < outputs.size(); ++i)
    if (const auto found = by_name_->find(outputs[i]); found != by_name_->end()) arrays[i] = found->second;
  return arrays;
}

}  // namespace symbind
