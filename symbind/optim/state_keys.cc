#include "symbind/optim/state_keys.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "symbind/core/error.h"

namespace symbind {
namespace {

StateTree copy_of(const StateTree& tree) {
  if (!tree.is_tuple) return tree.array ? StateTree(tree.array.copy()) : StateTree();
  std::vector<StateTree> parts;
  for (const StateTree& part : tree.tuple) parts.push_back(copy_of(part));
  return StateTree::of(std::move(parts));
}

// A state is as long as its parameter along every axis, or 1 where it was summed. Beside one that has the parameter's
// shape, optimizers of users have others with another number of axes.
bool may_belong_to(const StateTree& tree, const Shape& shape) {
  if (tree.is_tuple) {
    const bool has_whole = std::ranges::any_of(
        tree.tuple, [&](const StateTree& part) { return part.array && part.array.shape() == shape; });
    return std::ranges::all_of(tree.tuple, [&](const StateTree& part) {
      return may_belong_to(part, shape) || (has_whole && part.array && part.array.rank() != shape.rank());
    });
  }
  if (!tree.array || tree.array.size() == 1) return true;
  if (tree.array.rank() != shape.rank()) return false;
  for (int axis = 0; axis < shape.rank(); ++axis)
    if (tree.array.shape()[axis] != shape[axis] && tree.array.shape()[axis] != 1) return false;
  return true;
}

using Numbered = std::map<int64_t, const StateTree*>;

// Can the numbers be those of this many devices? Every parameter must occur for all of them or for none.
bool fits(const Numbered& states, const StateKeys& keys, int64_t devices) {
  std::map<int64_t, int64_t> seen;  // devices of a parameter
  for (const auto& [number, tree] : states) {
    const int64_t parameter = number / devices;
    if (number < 0 || parameter >= static_cast<int64_t>(keys.parameters.size())) return false;
    if (!may_belong_to(*tree, keys.parameters[static_cast<size_t>(parameter)].shape)) return false;
    ++seen[parameter];
  }
  return std::all_of(seen.begin(), seen.end(), [&](const auto& each) { return each.second == devices; });
}

bool are_the_trained_ones(const Numbered& states, const StateKeys& keys, int64_t devices) {
  std::set<int64_t> present, trained;
  for (const auto& [number, tree] : states) present.insert(number / devices);
  for (size_t i = 0; i < keys.parameters.size(); ++i)
    if (keys.parameters[i].trained) trained.insert(static_cast<int64_t>(i));
  return present == trained;
}

// The number of devices that the keys are for. If several are possible: the one with exactly the trained parameters,
// then the current number of devices, then the smallest.
int64_t devices_of(const Numbered& states, const StateKeys& keys) {
  std::vector<int64_t> possible;
  for (int64_t devices = 1; devices <= static_cast<int64_t>(states.size()); ++devices)
    if (fits(states, keys, devices)) possible.push_back(devices);
  require(!possible.empty(), "the states are those of the numbers ", states.begin()->first, " to ",
          states.rbegin()->first, ", ", states.size(), " of them: no number of devices makes them states of the ",
          keys.parameters.size(), " parameters here");
  for (const int64_t devices : possible)
    if (are_the_trained_ones(states, keys, devices)) return devices;
  const auto own = static_cast<int64_t>(std::max<size_t>(1, keys.devices));
  return std::find(possible.begin(), possible.end(), own) != possible.end() ? own : possible.front();
}

// From the keys of a file to the wanted ones: each with the key whose state it takes.
using Origins = std::vector<std::pair<ParamKey, ParamKey>>;

Origins origins_by_number(const Numbered& states, const StateKeys& wanted) {
  const int64_t theirs = devices_of(states, wanted), ours = static_cast<int64_t>(wanted.devices);
  Origins origins;
  for (const auto& [number, tree] : states) {
    const int64_t parameter = number / theirs;
    if (number % theirs != 0) continue;
    if (ours == 0) origins.emplace_back(wanted.parameters[static_cast<size_t>(parameter)].name, number);
    for (int64_t device = 0; device < ours; ++device)
      origins.emplace_back(parameter * ours + device, ours == theirs ? number + device : number);
  }
  return origins;
}

Origins origins_by_name(const SavedStates& saved, const StateKeys& wanted) {
  Origins origins;
  for (const auto& [key, tree] : saved.states) {
    const auto found = std::ranges::find(wanted.parameters, key.name(), &StateKeys::Parameter::name);
    if (found == wanted.parameters.end()) {  // a store may serve more parameters than this network's
      if (wanted.devices == 0) origins.emplace_back(key, key);
      continue;
    }
    require(may_belong_to(tree, found->shape), "the state of ", key, " is not that of a parameter of shape ",
            found->shape);
    const auto parameter = static_cast<size_t>(found - wanted.parameters.begin());
    if (wanted.devices == 0) origins.emplace_back(key, key);
    for (size_t device = 0; device < wanted.devices; ++device)
      origins.emplace_back(parameter * wanted.devices + device, key);
  }
  return origins;
}

constexpr std::string_view by_number = ":number:", by_name = ":name:";

}  // namespace

std::string number_of_parameter(std::string_view what, const ParamKey& key) {
  return join(what, key.is_number() ? by_number : by_name, key.str());
}

SavedStates with_keys(const SavedStates& saved, const StateKeys& wanted) {
  Numbered numbered;
  for (const auto& [key, tree] : saved.states)
    if (key.is_number()) numbered[key.number()] = &tree;
  require(numbered.empty() || numbered.size() == saved.states.size(),
          "the states are known by number and by name: one or the other is expected");
  const Origins origins = saved.states.empty() ? Origins{}
                          : numbered.empty()   ? origins_by_name(saved, wanted)
                                               : origins_by_number(numbered, wanted);

  SavedStates rekeyed{.states = {}, .optimizer = saved.optimizer, .resume = saved.resume};
  std::map<ParamKey, const StateTree*> trees;
  for (const auto& [key, tree] : saved.states) trees[key] = &tree;
  std::set<ParamKey> taken;
  for (const auto& [key, origin] : origins)  // devices must not write into one another's states
    rekeyed.states.emplace_back(key, taken.insert(origin).second ? *trees.at(origin) : copy_of(*trees.at(origin)));
  if (!saved.resume) return rekeyed;

  auto& resume = *rekeyed.resume;
  resume.index_update_count.clear();
  std::erase_if(resume.numbers, [](const auto& number) {
    return number.first.find(by_number) != std::string::npos || number.first.find(by_name) != std::string::npos;
  });
  for (const auto& [key, origin] : origins) {
    const auto count = saved.resume->index_update_count.find(origin);
    if (count != saved.resume->index_update_count.end()) resume.index_update_count[key] = count->second;
    const std::string suffix = number_of_parameter("", origin);
    for (const auto& [name, value] : saved.resume->numbers)
      if (name.size() > suffix.size() && name.ends_with(suffix))
        resume.numbers[number_of_parameter(name.substr(0, name.size() - suffix.size()), key)] = value;
  }
  return rekeyed;
}

}  // namespace symbind
