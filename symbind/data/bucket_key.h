// The key that selects a batch's network in a module with several (train/bucketing.h): a number, several numbers, a
// string, or a value of another language that can be compared and hashed.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "symbind/core/api.h"

namespace SYMBIND_API symbind {

class BucketKey {
 public:
  using Numbers = std::vector<int64_t>;
  // A key of another language. Equal values have equal hashes; both may be called from any thread.
  class Value {
   public:
    virtual ~Value() = default;
    virtual bool equals(const Value& other) const = 0;
    virtual size_t hash() const = 0;
    virtual std::string str() const = 0;
  };
  using Kind = std::variant<std::monostate, int64_t, Numbers, std::string, std::shared_ptr<const Value>>;

  BucketKey() = default;  // none
  template <std::integral Number>
  BucketKey(Number number) : value_(static_cast<int64_t>(number)) {}
  template <std::integral First, std::integral Second, std::integral... More>
  BucketKey(First first, Second second, More... more)
      : value_(Numbers{static_cast<int64_t>(first), static_cast<int64_t>(second), static_cast<int64_t>(more)...}) {}
  BucketKey(Numbers numbers) : value_(std::move(numbers)) {}
  BucketKey(std::string text) : value_(std::move(text)) {}
  BucketKey(const char* text) : value_(std::string(text ? text : "")) {}
  BucketKey(std::shared_ptr<const Value> value);

  bool empty() const { return std::holds_alternative<std::monostate>(value_); }
  // The value of the key; fails for a key of another kind.
  int64_t number() const;
  const Numbers& numbers() const;
  const std::string& text() const;
  const Kind& value() const { return value_; }

  std::string str() const;  // "20", "(10, 20)", "short", "none": for messages and file names
  size_t hash() const;
  friend bool operator==(const BucketKey& a, const BucketKey& b) { return a.equals(b); }
  friend std::ostream& operator<<(std::ostream& out, const BucketKey& key) { return out << key.str(); }

 private:
  bool equals(const BucketKey& other) const;
  Kind value_;
};

}  // namespace symbind

template <>
struct std::hash<symbind::BucketKey> {
  size_t operator()(const symbind::BucketKey& key) const { return key.hash(); }
};
