#include "symbind/graph/attributes.h"

#include <algorithm>
#include <array>

namespace symbind {
namespace {

thread_local AttrScope* current_scope = nullptr;
thread_local NameManager* current_names = nullptr;

constexpr std::array<std::string_view, 6> steering{"ctx_group",       "lr_mult",      "wd_mult",
                                                   "force_mirroring", "weight_decay", "mirror_stage"};

bool is_hidden(std::string_view key) { return key.size() > 4 && key.starts_with("__") && key.ends_with("__"); }

}  // namespace

std::string hidden_key(std::string_view key) {
  return is_hidden(key) ? std::string(key) : "__" + std::string(key) + "__";
}

bool is_steering(std::string_view key) { return std::find(steering.begin(), steering.end(), key) != steering.end(); }

const std::string* find_attribute(const Attributes& attributes, std::string_view key) {
  auto found = attributes.find(std::string(key));
  if (found == attributes.end()) found = attributes.find(hidden_key(key));
  return found == attributes.end() ? nullptr : &found->second;
}

AttrScope::AttrScope(Attributes attributes) : outer_(current_scope) {
  attributes_ = outer_ ? outer_->attributes_ : Attributes{};
  for (auto& [key, value] : attributes) attributes_[hidden_key(key)] = std::move(value);
  current_scope = this;
}

AttrScope::~AttrScope() { current_scope = outer_; }

const Attributes& AttrScope::current() {
  static const Attributes none;
  return current_scope ? current_scope->attributes_ : none;
}

Attributes AttrScope::merged(const Attributes& own) {
  Attributes all = own;
  all.insert(current().begin(), current().end());
  return all;
}

NameManager::NameManager() : outer_(current_names) { current_names = this; }
NameManager::~NameManager() { current_names = outer_; }

NameManager& NameManager::current() {
  if (current_names) return *current_names;
  thread_local NameManager root;  // becomes current itself
  return *current_names;
}

std::string NameManager::get(const std::string& given, const std::string& hint) {
  return given.empty() ? hint + std::to_string(counters_[hint]++) : given;
}

}  // namespace symbind
