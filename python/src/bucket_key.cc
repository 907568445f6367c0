// Numbers, tuples of numbers and strings become keys of C++, which are compared without the GIL. A key of any other
// type is held as the Python object, and Python compares it.
#include "bucket_key.h"

#include <memory>
#include <string>
#include <variant>

#include "convert.h"
#include "held.h"

namespace symbind::python {
namespace {

class PythonKey final : public BucketKey::Value {
 public:
  explicit PythonKey(nb::handle key) : key_(nb::borrow(key)), hash_(nb::hash(key)) {}
  nb::object get() const { return key_.get(); }
  bool equals(const Value& other) const override {
    AcquireGil acquire;
    const auto* key = dynamic_cast<const PythonKey*>(&other);
    return key && get().equal(key->get());
  }
  size_t hash() const override { return static_cast<size_t>(hash_); }
  std::string str() const override {
    AcquireGil acquire;
    return nb::str(get()).c_str();
  }

 private:
  Held key_;
  Py_hash_t hash_;
};

}  // namespace

BucketKey bucket_key_from(nb::handle value) {
  if (value.is_none()) return {};
  if (nb::isinstance<nb::str>(value)) return nb::cast<std::string>(value);
  if (const auto number = integer_from(value)) return *number;
  static_cast<void>(nb::hash(value));     // fails for a list
  if (PyTuple_CheckExact(value.ptr())) {  // not a named tuple, whose names a script reads
    BucketKey::Numbers numbers;
    for (nb::handle item : value)
      if (const auto number = integer_from(item)) numbers.push_back(*number);
    if (numbers.size() == nb::len(value)) return numbers;
  }
  return BucketKey(std::make_shared<PythonKey>(value));
}

nb::object bucket_key_to_python(const BucketKey& key) {
  if (key.empty()) return nb::none();
  if (const auto* number = std::get_if<int64_t>(&key.value())) return nb::int_(*number);
  if (const auto* text = std::get_if<std::string>(&key.value())) return nb::cast(*text);
  if (const auto* numbers = std::get_if<BucketKey::Numbers>(&key.value())) return nb::tuple(nb::cast(*numbers));
  const auto& value = std::get<std::shared_ptr<const BucketKey::Value>>(key.value());
  const auto* of_python = dynamic_cast<const PythonKey*>(value.get());
  return of_python ? of_python->get() : nb::cast(value->str());
}

}  // namespace symbind::python
