// Options given as keyword arguments, for classes that have many of them.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "casters.h"

namespace symbind::python {

// Scripts pass 1, "True" and NumPy's numbers, too.
bool bool_from(nb::handle value);
int64_t int_from(nb::handle value);
double float_from(nb::handle value);
// A tuple or list; as text, "(3, 224, 224)"; or one number.
nb::object sequence_from(nb::handle value);

template <class Options>
class Keywords {
 public:
  explicit Keywords(std::string who) : who_(std::move(who)) {}

  template <class Value>
  Keywords& add(const char* name, Value Options::*member) {
    setters_[name] = [member](Options& options, nb::handle value) { set(options.*member, value); };
    return *this;
  }
  Keywords& add(const char* name, std::function<void(Options&, nb::handle)> setter) {
    setters_[name] = std::move(setter);
    return *this;
  }
  // Accepted without effect.
  Keywords& ignore(std::initializer_list<const char*> names) {
    for (const char* name : names) setters_[name] = [](Options&, nb::handle) {};
    return *this;
  }

  Options from(const nb::kwargs& given, Options options = {}) const {
    for (auto [key, value] : given) {
      const auto name = nb::cast<std::string>(key);
      const auto found = setters_.find(name);
      if (found == setters_.end()) throw TypeError(join(who_, " has no argument ", name, "; ", known()));
      try {
        found->second(options, value);
      } catch (nb::python_error&) {
        throw;
      } catch (const std::exception&) {
        throw TypeError(join(who_, ": the argument ", name, " cannot be ", nb::repr(nb::handle(value)).c_str()));
      }
    }
    return options;
  }

 private:
  std::string known() const {
    std::vector<std::string> names;
    for (const auto& [name, setter] : setters_) names.push_back(name);
    return join("there are ", comma_separated(names));
  }

  static void set(bool& to, nb::handle value) { to = bool_from(value); }
  static void set(int64_t& to, nb::handle value) { to = int_from(value); }
  static void set(float& to, nb::handle value) { to = static_cast<float>(float_from(value)); }
  static void set(Shape& to, nb::handle value) { to = Shape(dims_from(sequence_from(value))); }
  static void set(DType& to, nb::handle value) { to = dtype_from(value); }
  static void set(std::string& to, nb::handle value) {
    // Paths may be objects of pathlib.
    to = nb::cast<std::string>(nb::hasattr(value, "__fspath__") ? value.attr("__fspath__")() : nb::borrow(value));
  }
  template <class Value>
  static void set(std::optional<Value>& to, nb::handle value) {
    to.reset();
    if (!value.is_none()) set(to.emplace(), value);
  }
  template <class Value>
  static void set(std::vector<Value>& to, nb::handle value) {
    to.clear();
    const nb::object items = sequence_from(value);
    for (nb::handle item : items) set(to.emplace_back(), item);
  }

  std::string who_;
  std::map<std::string, std::function<void(Options&, nb::handle)>> setters_;
};

}  // namespace symbind::python
