#include "symbind/optim/updater.h"

#include <algorithm>
#include <cmath>

#include "symbind/core/error.h"
#include "symbind/core/log.h"
#include "symbind/core/random_cursors.h"
#include "symbind/optim/clip_global_norm.h"

namespace symbind {
namespace {

// The optimizer that the states belong to, if recorded.
std::string optimizer_of(const SavedStates& saved) {
  if (saved.resume)
    for (const auto& [part, value] : saved.resume->numbers)
      if (part.starts_with(resumed_optimizer)) return part.substr(resumed_optimizer.size());
  if (!saved.optimizer) return "";
  const std::string name = lower_case(saved.optimizer->name);
  return name == "ccsgd" ? "sgd" : name;
}

// The optimizer's own numbers, if it was dumped with the states: in Symbind's trailer, or as a pickled MXNet object.
constexpr std::string_view dumped_argument = "argument:";

std::optional<double> number_in(const SavedStates& saved, const std::string& name) {
  if (saved.resume) {
    const auto found = saved.resume->numbers.find(join(dumped_argument, name));
    return found == saved.resume->numbers.end() ? std::nullopt : std::optional(found->second);
  }
  if (!saved.optimizer) return std::nullopt;
  const auto found = saved.optimizer->fields.find(name);
  if (found == saved.optimizer->fields.end()) return std::nullopt;
  if (const auto* real = std::get_if<double>(&found->second)) return *real;
  if (const auto* whole = std::get_if<int64_t>(&found->second)) return static_cast<double>(*whole);
  return std::nullopt;
}

// "(array, none)"
std::string form_of(const StateTree& tree) {
  if (!tree.is_tuple) return tree.array ? "array" : "none";
  std::vector<std::string> parts;
  for (const StateTree& part : tree.tuple) parts.push_back(form_of(part));
  return "(" + comma_separated(parts) + ")";
}

StateTree tree_in(const StateTree& tree, Context context) {
  if (!tree.is_tuple) return tree.array ? StateTree(tree.array.as_in_context(context)) : StateTree();
  std::vector<StateTree> parts;
  for (const StateTree& part : tree.tuple) parts.push_back(tree_in(part, context));
  StateTree moved = StateTree::of(std::move(parts));
  moved.is_list = tree.is_list;
  return moved;
}

bool is_in(const StateTree& tree, Context context) {
  if (!tree.is_tuple) return !tree.array || tree.array.context() == context;
  return std::all_of(tree.tuple.begin(), tree.tuple.end(), [&](const StateTree& part) { return is_in(part, context); });
}

// The forms a parameter's state may have with this optimizer: with a weight of 32 bits or more, and with one of 16.
std::vector<std::string> forms_of(Optimizer& optimizer) {
  std::vector<std::string> forms{form_of(optimizer.create_state(0, zeros({1, 1})))};
  if (optimizer.multi_precision)
    forms.push_back(form_of(optimizer.create_state_multi_precision(0, zeros({1, 1}, cpu(), DType::float16))));
  return forms;
}

}  // namespace

StateTree& Updater::state_of(const ParamKey& key, const NDArray& weight) {
  const auto found = states_.find(key);
  if (found == states_.end())
    return states_.emplace(key, optimizer_->create_state_multi_precision(key, weight)).first->second;
  // Loaded states may be on another context.
  if (!is_in(found->second, weight.context())) found->second = tree_in(found->second, weight.context());
  return found->second;
}

void Updater::operator()(const ParamKey& key, const NDArray& grad, const NDArray& weight) {
  const InUse use = in_use("update");
  const InUse optimizer_use = optimizer_->in_use("update");
  if (optimizer_->clip_global_norm) return (*this)({{key, grad, weight}});
  optimizer_->update_multi_precision({key, weight, grad, &state_of(key, weight)});
}

namespace {

// While it lives, the optimizer also scales gradients by `factor`, so that clipping does not write gradients.
class AlsoScaled {
 public:
  AlsoScaled(Optimizer& optimizer, double factor) : optimizer_(optimizer), before_(optimizer.rescale_grad) {
    if (factor != 1) optimizer.rescale_grad = before_ * factor;
  }
  ~AlsoScaled() { optimizer_.rescale_grad = before_; }
  AlsoScaled(const AlsoScaled&) = delete;
  AlsoScaled& operator=(const AlsoScaled&) = delete;

 private:
  Optimizer& optimizer_;
  double before_;
};

}  // namespace

// The factor that keeps the norm of a step's gradients within its bound.
double Updater::clipping(const std::vector<Item>& items) {
  if (!optimizer_->clip_global_norm || items.empty()) return 1;
  std::vector<NDArray> grads;
  for (const Item& item : items) grads.push_back(item.grad);
  const double norm = global_norm(grads) * std::abs(optimizer_->rescale_grad);
  if (!std::isfinite(norm)) {
    if (!warned_of_norm_)
      log_warning("[", optimizer_->name(), "] the norm of the gradients is ", norm,
                  ": there is nothing that clip_global_norm could scale them to");
    warned_of_norm_ = true;
    return 1;
  }
  return clip_factor(norm, *optimizer_->clip_global_norm);
}

std::vector<Update> Updater::updates_of(const std::vector<Item>& items) {
  std::vector<Update> updates;
  updates.reserve(items.size());
  for (const Item& item : items)  // map entries have stable addresses
    updates.push_back({item.key, item.weight, item.grad, &state_of(item.key, item.weight)});
  return updates;
}

void Updater::operator()(const std::vector<Item>& items) {
  const InUse use = in_use("update");
  const InUse optimizer_use = optimizer_->in_use("update");
  const std::vector<Update> updates = updates_of(items);
  const AlsoScaled scaled(*optimizer_, clipping(items));
  optimizer_->update_many(updates);
}

FollowingWorkPtr Updater::repeated(const std::vector<Item>& items, const FollowingWorkPtr& last,
                                   const NDArray& condition) {
  const InUse use = in_use("update");
  const InUse optimizer_use = optimizer_->in_use("update");
  return optimizer_->repeated_update(updates_of(items), last, condition);
}

std::string Updater::get_states(bool dump_optimizer) const {
  const InUse use = in_use("get_states");
  SavedStates saved;
  for (const auto& [key, state] : states_) saved.states.emplace_back(key, state);
  saved.resume = optimizer_->resume_state();
  saved.resume->random = random_cursors();
  if (dump_optimizer) {
    const auto dump = [&](std::string_view name, double value) {
      saved.resume->numbers[join(dumped_argument, name)] = value;
    };
    if (!optimizer_->lr_scheduler) dump("lr", optimizer_->learning_rate());
    dump("wd", optimizer_->wd);
    dump("rescale_grad", optimizer_->rescale_grad);
    if (optimizer_->clip_gradient) dump("clip_gradient", *optimizer_->clip_gradient);
    if (optimizer_->clip_global_norm) dump("clip_global_norm", *optimizer_->clip_global_norm);
  }
  return write_states(saved);
}

void Updater::set_states(std::string_view bytes, std::string_view source) {
  const SavedStates saved = read_states(bytes, source);
  try {
    set_states(saved);
  } catch (const Error& error) {
    fail(source, ": ", error.what());
  }
}

void Updater::set_states(const SavedStates& saved) {
  const InUse use = in_use("set_states");
  const std::string mine = optimizer_->name();
  if (const std::string other = optimizer_of(saved); !other.empty())
    require(other == mine, "these are the states of ", other, ", not of ", mine);
  const std::vector<std::string> forms = optimizer_->any_state() ? std::vector<std::string>() : forms_of(*optimizer_);
  std::map<ParamKey, StateTree> states;
  for (const auto& [key, state] : saved.states) {
    const std::string form = form_of(state);
    require(forms.empty() || std::ranges::find(forms, form) != forms.end(), "the state of ", optimizer_->name_of(key),
            " (", form, ") does not fit: ", mine, " with its present arguments stores ", comma_separated(forms),
            "; was it saved with other arguments, such as a momentum?");
    states.insert_or_assign(key, state);
  }
  if (saved.resume) {
    optimizer_->restore(*saved.resume);
    restore_random_cursors(saved.resume->random);
  } else if (const auto count = number_in(saved, "num_update")) {
    // MXNet's optimizer has only a total count; every parameter continues from it.
    const auto updates = static_cast<int64_t>(*count);
    optimizer_->restore({.num_update = updates, .begin_num_update = updates});
  }
  if (const auto lr = number_in(saved, "lr"); lr && !optimizer_->lr_scheduler) optimizer_->set_learning_rate(*lr);
  if (const auto wd = number_in(saved, "wd")) optimizer_->wd = *wd;
  if (const auto rescale = number_in(saved, "rescale_grad")) optimizer_->rescale_grad = *rescale;
  if (const auto clip = number_in(saved, "clip_gradient")) optimizer_->clip_gradient = *clip;
  if (const auto clip = number_in(saved, "clip_global_norm")) optimizer_->clip_global_norm = *clip;
  states_ = std::move(states);
}

}  // namespace symbind
