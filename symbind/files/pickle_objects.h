// The objects that a pickle can create: plain values, whose number and size are bounded in proportion to the pickle's
// length, and the few classes and functions that optimizer states need (listed in pickle.h). pickle.cc decodes the
// instructions that create them.
#pragma once

#include "symbind/files/byte_reader.h"
#include "symbind/files/pickle.h"

namespace symbind {

class PickleObjects {
 public:
  using Kind = PickleValue::Kind;
  using Value = PickleValue*;  // lives as long as the pickle

  // Errors name the source of `in`, and the offset of the instruction being executed.
  explicit PickleObjects(ByteReader& in) : in_(in) {}
  void begin_at(uint64_t offset) { at_ = offset; }

  Value make(Kind kind);
  Value make_integer(int64_t number);
  Value make_boolean(bool truth);
  Value make_real(double number);
  Value make_text(Kind kind, std::string text);
  Value make_items(Kind kind, std::vector<const PickleValue*> items);
  // A class or a function by its name; one that is not known fails.
  Value make_global(const std::string& module, const std::string& name);
  Value instance_of(const PickleValue& type);
  // The result of the call, if it is a known one.
  Value call(const PickleValue& callee, const PickleValue& arguments);
  void set_state(PickleValue& object, const PickleValue& state);

  Pickle take() { return std::move(pickle_); }

 private:
  void charge(uint64_t bytes);
  std::string latin1(const PickleValue& value);
  void check_latin1(const PickleValue& encoding);
  Value make_dtype(std::string_view code);
  Value make_scalar(DType dtype, const std::string& raw);
  NDArray numpy_array(const PickleValue& state);
  NDArray pickled_array(const PickleValue& state);

  ByteReader& in_;
  Pickle pickle_;
  uint64_t at_ = 0;
};

}  // namespace symbind
