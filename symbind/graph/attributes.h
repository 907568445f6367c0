// Names and attributes of symbols that are created in a scope. The scopes nest, one stack per thread.
#pragma once

#include <initializer_list>
#include <map>
#include <string>
#include <string_view>

#include "symbind/graph/node.h"

namespace SYMBIND_API symbind {

// Attributes that control execution are stored with double underscores and found under both spellings.
std::string hidden_key(std::string_view key);  // "lr_mult" → "__lr_mult__"
bool is_steering(std::string_view key);        // one of those a user may write without underscores
const std::string* find_attribute(const Attributes& attributes, std::string_view key);

// While it lives, every symbol made on this thread gets these attributes (its own take precedence).
class AttrScope {
 public:
  explicit AttrScope(Attributes attributes);
  explicit AttrScope(std::initializer_list<Attributes::value_type> attributes) : AttrScope(Attributes(attributes)) {}
  ~AttrScope();
  AttrScope(const AttrScope&) = delete;
  AttrScope& operator=(const AttrScope&) = delete;

  static const Attributes& current();
  // The scope's attributes, overridden by `own`.
  static Attributes merged(const Attributes& own);

 private:
  Attributes attributes_;
  AttrScope* outer_;
};

// Automatic names of symbols: the operator's lower-case name and a counter.
class NameManager {
 public:
  NameManager();  // becomes the current one
  virtual ~NameManager();
  NameManager(const NameManager&) = delete;
  NameManager& operator=(const NameManager&) = delete;

  virtual std::string get(const std::string& given, const std::string& hint);
  static NameManager& current();

 private:
  std::map<std::string, int> counters_;
  NameManager* outer_;
};

// Adds a prefix to every name, given or automatic.
class Prefix : public NameManager {
 public:
  explicit Prefix(std::string prefix) : prefix_(std::move(prefix)) {}
  std::string get(const std::string& given, const std::string& hint) override {
    return prefix_ + NameManager::get(given, hint);
  }

 private:
  std::string prefix_;
};

}  // namespace symbind
