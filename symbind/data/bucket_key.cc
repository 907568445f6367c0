#include "symbind/data/bucket_key.h"

#include "symbind/core/error.h"

namespace symbind {
namespace {

using ValuePtr = std::shared_ptr<const BucketKey::Value>;

template <class Kind>
const Kind& get(const BucketKey& key, const char* what) {
  const Kind* const found = std::get_if<Kind>(&key.value());
  require(found != nullptr, "[bucket key] ", key.str(), " is not ", what);
  return *found;
}

}  // namespace

BucketKey::BucketKey(ValuePtr value) {
  if (value) value_ = std::move(value);
}

int64_t BucketKey::number() const { return get<int64_t>(*this, "a number"); }
const BucketKey::Numbers& BucketKey::numbers() const { return get<Numbers>(*this, "a list of numbers"); }
const std::string& BucketKey::text() const { return get<std::string>(*this, "a text"); }

std::string BucketKey::str() const {
  if (const auto* number = std::get_if<int64_t>(&value_)) return std::to_string(*number);
  if (const auto* text = std::get_if<std::string>(&value_)) return *text;
  if (const auto* value = std::get_if<ValuePtr>(&value_)) return (*value)->str();
  const auto* numbers = std::get_if<Numbers>(&value_);
  if (!numbers) return "none";
  std::string result = "(";  // as Python writes a tuple
  for (size_t i = 0; i < numbers->size(); ++i) result += (i > 0 ? ", " : "") + std::to_string((*numbers)[i]);
  return result + (numbers->size() == 1 ? ",)" : ")");
}

size_t BucketKey::hash() const {
  if (const auto* number = std::get_if<int64_t>(&value_)) return std::hash<int64_t>()(*number);
  if (const auto* text = std::get_if<std::string>(&value_)) return std::hash<std::string>()(*text);
  if (const auto* value = std::get_if<ValuePtr>(&value_)) return (*value)->hash();
  size_t sum = 0;
  if (const auto* numbers = std::get_if<Numbers>(&value_))
    for (const int64_t number : *numbers) sum = sum * 31 + std::hash<int64_t>()(number);
  return sum;
}

bool BucketKey::equals(const BucketKey& other) const {
  const auto* value = std::get_if<ValuePtr>(&value_);
  const auto* other_value = std::get_if<ValuePtr>(&other.value_);
  if (value && other_value) return *value == *other_value || (*value)->equals(**other_value);
  return value_ == other.value_;
}

}  // namespace symbind
