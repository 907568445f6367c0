// Python's pickles, read without Python. A pickle is a program for a machine with a stack; this one supports the
// instructions that build plain data (protocols 0 to 5), and of everything that a pickle could import only the types of
// optimizer states:
//
//   mxnet.ndarray.ndarray.NDArray, mxnet.ndarray.NDArray and the sparse arrays     → an array
//   bytes, bytearray, _codecs.encode, copyreg's two helpers, NumPy scalars and arrays
//   classes of mxnet.optimizer and mxnet.lr_scheduler                              → their fields, as data
//
// Nothing is executed. Anything else fails with its name and offset, and so does a pickle that would grow out of
// proportion to its length.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "symbind/core/ndarray.h"

namespace symbind {

struct PickleValue {
  enum class Kind { none, boolean, integer, real, text, bytes, list, tuple, dict, array, object, global, dtype };
  Kind kind = Kind::none;
  int64_t integer = 0;  // boolean, integer
  double real = 0;
  std::string text;                       // text, bytes; the name of a global or of an object's class
  std::string module;                     // of a global or of an object's class
  std::vector<const PickleValue*> items;  // of a list or tuple; keys and values of a dict in turn
  const PickleValue* state = nullptr;     // of an object, where it has any
  NDArray array;                          // empty if the array was saved before it was initialized
  DType element = DType::none;            // dtype
  uint64_t offset = 0;                    // where the pickle makes it
};
std::string_view name_of(PickleValue::Kind kind);

// What a pickle holds. Values may be shared and may even contain themselves: code that walks them must guard against
// cycles.
struct Pickle {
  std::deque<PickleValue> values;
  const PickleValue* root = nullptr;
  size_t length = 0;  // in bytes, up to and with the end mark
};
// Bytes after the pickle's end mark are ignored. `source` is named in errors.
Pickle read_pickle(std::string_view bytes, std::string_view source);

}  // namespace symbind
