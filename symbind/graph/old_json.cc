#include "symbind/graph/old_json.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_map>

#include "symbind/core/error.h"
#include "symbind/graph/attributes.h"

namespace symbind {
namespace {

constexpr std::array<std::string_view, 5> steering{"ctx_group", "lr_mult", "wd_mult", "force_mirroring",
                                                   "mirror_stage"};

bool has_field(const OpDef& op, std::string_view key) {
  return std::any_of(op.fields.begin(), op.fields.end(), [&](const ParamField& field) { return field.name == key; });
}

}  // namespace

void OldJson::fix_attributes(NodeRecord& record, const OpDef* op) {
  for_inputs_.clear();
  if (version_ >= 10901) return;
  Attributes fixed;
  for (auto& attribute : record.attributes) {
    const std::string& key = attribute.first;
    std::string& value = attribute.second;
    if (op && has_field(*op, key)) {
      fixed[key] = std::move(value);
      continue;
    }
    const auto suffix = std::find_if(steering.begin(), steering.end(), [&](std::string_view s) {
      return key == s || (key.size() > s.size() + 1 && key.ends_with(s) && key[key.size() - s.size() - 1] == '_');
    });
    if (suffix == steering.end())
      fixed[op && record.own.count(key) > 0 ? hidden_key(key) : key] = std::move(value);
    else if (key == *suffix)
      fixed[hidden_key(key)] = std::move(value);
    else if (op)
      for_inputs_.push_back({key, key.substr(0, key.size() - suffix->size() - 1), hidden_key(*suffix), value});
    else
      fixed[key] = std::move(value);
  }
  if (version_ < 905 && (record.op == "argmax" || record.op == "argmin")) {
    const auto axis = fixed.find("axis");
    if (axis != fixed.end() && axis->second == "-1") fixed.erase(axis);
  }
  record.attributes = std::move(fixed);
}

void OldJson::complete(Node& node, std::string_view source) const {
  if (node.is_variable() || version_ >= 10901) return;
  const Names names = node.op->all_inputs(node.params.get());
  if (version_ < 900) {
    while (node.inputs.size() < names.size()) {
      auto variable = std::make_shared<Node>();
      variable->name = node.name + "_" + names[node.inputs.size()];
      variable->attributes = node.attributes;
      node.inputs.push_back({std::move(variable), 0});
    }
  }
  std::unordered_map<std::string_view, size_t> position;
  for (size_t i = 0; i < names.size(); ++i) position.emplace(names[i], i);
  const auto input_named = [&](const std::string& name) -> Node* {
    const auto found = position.find(name);
    return found != position.end() && found->second < node.inputs.size() ? node.inputs[found->second].node.get()
                                                                         : nullptr;
  };
  if (version_ < 904) {
    for (const auto& [name, init] : node.op->input_attributes) {
      Node* input = input_named(name);
      if (input && input->is_variable()) input->attributes.emplace("__init__", init);
    }
  }
  for (const ForInput& attribute : for_inputs_) {
    Node* input = input_named(attribute.input);
    require(input != nullptr, source, ": [", node.op->name, " ", node.name, "] has neither a parameter '",
            attribute.written, "' nor an input '", attribute.input, "'");
    if (input->is_variable()) input->attributes[attribute.key] = attribute.value;
  }
}

}  // namespace symbind
