// Functions that create objects by name, for the kinds that users may extend. Any thread may call it.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "symbind/core/error.h"

namespace symbind {

template <class Factory>
class NamedFactories {
 public:
  // The kind, such as "optimizer", is for errors; fill(*this) adds the built-in factories.
  explicit NamedFactories(std::string kind) : kind_(std::move(kind)) {}
  template <class Fill>
  NamedFactories(std::string kind, const Fill& fill) : kind_(std::move(kind)) {
    fill(*this);
  }

  // Replaces a factory of that name; returns whether there was none.
  bool add(const std::string& name, Factory factory) {
    const std::lock_guard lock(mutex_);
    return factories_.insert_or_assign(name, std::move(factory)).second;
  }
  // Fails on an unknown name, listing the known ones.
  Factory find(const std::string& name) const {
    const std::lock_guard lock(mutex_);
    const auto found = factories_.find(name);
    if (found != factories_.end()) return found->second;
    fail("unknown ", kind_, " '", name, "'; ",
         factories_.empty() ? "none is registered" : join("there are ", comma_separated(sorted())));
  }
  std::vector<std::string> names() const {
    const std::lock_guard lock(mutex_);
    return sorted();
  }

 private:
  std::vector<std::string> sorted() const {
    std::vector<std::string> names;
    for (const auto& [name, factory] : factories_) names.push_back(name);
    return names;
  }

  std::string kind_;
  mutable std::mutex mutex_;
  std::map<std::string, Factory> factories_;
};

}  // namespace symbind
