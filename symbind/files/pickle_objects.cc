#include "symbind/files/pickle_objects.h"

#include <cstring>

#include "symbind/core/error.h"
#include "symbind/files/array_bytes.h"
#include "symbind/files/pickle_text.h"

namespace symbind {

using Kind = PickleValue::Kind;
using Value = PickleObjects::Value;

namespace {

constexpr size_t most_values = size_t{1} << 22;

bool is_plain_data_class(std::string_view module) {
  return module == "mxnet.optimizer" || module.starts_with("mxnet.optimizer.") || module == "mxnet.lr_scheduler";
}

bool is_array_class(std::string_view module, std::string_view name) {
  if (name == "NDArray") return module == "mxnet.ndarray.ndarray" || module == "mxnet.ndarray";
  return module == "mxnet.ndarray.sparse" && (name == "RowSparseNDArray" || name == "CSRNDArray");
}

// Functions and classes that pickles of plain data call, under Python 2's and Python 3's names.
bool is_helper(std::string_view module, std::string_view name) {
  if (module == "__builtin__" || module == "builtins")
    return name == "bytearray" || name == "bytes" || name == "object";
  if (module == "_codecs") return name == "encode";
  if (module == "copy_reg" || module == "copyreg") return name == "_reconstructor" || name == "__newobj__";
  if (module == "numpy.core.multiarray" || module == "numpy._core.multiarray")
    return name == "scalar" || name == "_reconstruct";
  if (module == "numpy") return name == "ndarray" || name == "dtype";
  return false;
}

std::string describe(const PickleValue& value) {
  return value.kind == Kind::global ? join(value.module, ".", value.text) : std::string(name_of(value.kind));
}

}  // namespace

// ---- Values, in proportion to the pickle's length

Value PickleObjects::make(Kind kind) {
  if (pickle_.values.size() >= most_values)
    in_.fail_at(at_, join("at most ", most_values, " values in a pickle"), "more");
  PickleValue& value = pickle_.values.emplace_back();
  value.kind = kind;
  value.offset = at_;
  return &value;
}

// A pickle may request copies of one text repeatedly.
void PickleObjects::charge(uint64_t bytes) {
  if (!in_.may_unpack(bytes)) in_.fail_at(at_, "a pickle of a sane size", "one that expands too much");
}

Value PickleObjects::make_integer(int64_t number) {
  const Value value = make(Kind::integer);
  value->integer = number;
  return value;
}

Value PickleObjects::make_boolean(bool truth) {
  const Value value = make(Kind::boolean);
  value->integer = truth;
  return value;
}

Value PickleObjects::make_real(double number) {
  const Value value = make(Kind::real);
  value->real = number;
  return value;
}

Value PickleObjects::make_text(Kind kind, std::string text) {
  charge(text.size());
  const Value value = make(kind);
  value->text = std::move(text);
  return value;
}

Value PickleObjects::make_items(Kind kind, std::vector<const PickleValue*> items) {
  const Value value = make(kind);
  value->items = std::move(items);
  return value;
}

std::string PickleObjects::latin1(const PickleValue& value) {
  auto bytes = latin1_bytes(value.text);
  if (!bytes) in_.fail_at(at_, "a text of Latin-1 characters that encodes bytes", "another character");
  return std::move(*bytes);
}

Value PickleObjects::make_global(const std::string& module, const std::string& name) {
  if (!is_array_class(module, name) && !is_helper(module, name) && !is_plain_data_class(module))
    in_.fail_at(at_, "nothing but arrays, numbers, texts, lists and dictionaries in states of an optimizer",
                module.substr(0, 100), ".", name.substr(0, 100));
  const Value value = make(Kind::global);
  charge(module.size() + name.size());
  value->module = module;
  value->text = name;
  return value;
}

Value PickleObjects::instance_of(const PickleValue& type) {
  if (type.kind == Kind::global && is_array_class(type.module, type.text)) return make(Kind::array);
  if (type.kind != Kind::global || !is_plain_data_class(type.module))
    in_.fail_at(at_, "a class of arrays or optimizers", describe(type));
  const Value object = make(Kind::object);
  charge(type.module.size() + type.text.size());
  object->module = type.module;
  object->text = type.text;
  return object;
}

Value PickleObjects::call(const PickleValue& callee, const PickleValue& arguments) {
  const auto& args = arguments.items;
  const std::string& name = callee.text;
  const auto argument = [&](size_t i, Kind kind) -> const PickleValue& {
    if (i >= args.size() || args[i]->kind != kind)
      in_.fail_at(at_, join(name_of(kind), " as argument ", i + 1, " of ", describe(callee)),
                  i < args.size() ? name_of(args[i]->kind) : "none");
    return *args[i];
  };
  if (is_array_class(callee.module, name)) return make(Kind::array);
  if (is_plain_data_class(callee.module) || name == "object")
    in_.fail_at(at_, "plain data", "a call of ", describe(callee));
  if (name == "encode") {
    check_latin1(argument(1, Kind::text));
    return make_text(Kind::bytes, latin1(argument(0, Kind::text)));
  }
  if (name == "bytearray" || name == "bytes") {
    if (args.empty()) return make(Kind::bytes);
    if (args.size() > 1) {
      check_latin1(argument(1, Kind::text));
      return make_text(Kind::bytes, latin1(argument(0, Kind::text)));
    }
    if (args[0]->kind == Kind::text) return make_text(Kind::bytes, args[0]->text);  // a Python 2 str is bytes
    return make_text(Kind::bytes, argument(0, Kind::bytes).text);
  }
  if (name == "_reconstructor" || name == "__newobj__") return instance_of(argument(0, Kind::global));
  if (name == "dtype") return make_dtype(argument(0, Kind::text).text);
  if (name == "_reconstruct") {
    (void)argument(0, Kind::global);
    return make(Kind::array);
  }
  if (name == "scalar") {
    const DType dtype = argument(0, Kind::dtype).element;
    if (args.size() < 2 || (args[1]->kind != Kind::bytes && args[1]->kind != Kind::text))
      in_.fail_at(at_, "the bytes of a NumPy number", "none");
    return make_scalar(dtype, args[1]->text);
  }
  in_.fail_at(at_, "something that may be called", describe(callee));
}

void PickleObjects::check_latin1(const PickleValue& encoding) {
  if (encoding.text != "latin1" && encoding.text != "latin-1")
    in_.fail_at(at_, "the encoding latin1", encoding.text.substr(0, 100));
}

// ---- NumPy

Value PickleObjects::make_dtype(std::string_view code) {
  constexpr std::pair<std::string_view, DType> known[] = {
      {"f4", DType::float32}, {"f8", DType::float64}, {"f2", DType::float16}, {"u1", DType::uint8},
      {"i1", DType::int8},    {"i4", DType::int32},   {"i8", DType::int64},   {"b1", DType::boolean}};
  const std::string_view plain =
      !code.empty() && (code[0] == '<' || code[0] == '|' || code[0] == '=') ? code.substr(1) : code;
  for (const auto& [text, dtype] : known) {
    if (text != plain) continue;
    const Value value = make(Kind::dtype);
    value->element = dtype;
    return value;
  }
  in_.fail_at(at_, "a NumPy type of numbers", code.substr(0, 100));
}

Value PickleObjects::make_scalar(DType dtype, const std::string& raw) {
  if (raw.size() != size_of(dtype)) in_.fail_at(at_, join("the bytes of one ", dtype), raw.size(), " bytes");
  return visit_dtype(dtype, [&]<class T>(std::type_identity<T>) -> Value {
    if constexpr (std::is_same_v<T, bool>) {
      return make_boolean(raw[0] != 0);
    } else {
      T number;
      std::memcpy(&number, raw.data(), sizeof number);
      if constexpr (std::is_integral_v<T>)
        return make_integer(static_cast<int64_t>(number));
      else
        return make_real(static_cast<double>(number));
    }
  });
}

// (version, shape, type, whether column-major, bytes)
NDArray PickleObjects::numpy_array(const PickleValue& state) {
  const auto& items = state.items;
  if (items.size() != 5 || items[1]->kind != Kind::tuple || items[2]->kind != Kind::dtype ||
      (items[4]->kind != Kind::bytes && items[4]->kind != Kind::text))
    in_.fail_at(at_, "version, shape, type, order and bytes of a NumPy array", "something else");
  const auto& dims = items[1]->items;
  if (dims.size() > static_cast<size_t>(Shape::max_rank))
    in_.fail_at(at_, join("a NumPy array of at most ", Shape::max_rank, " axes"), dims.size());
  Shape shape = Shape::of_rank(static_cast<int>(dims.size()));
  uint64_t count = 1;
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    shape[static_cast<int>(axis)] = dims[axis]->integer;
    if (dims[axis]->kind != Kind::integer || dims[axis]->integer < 0 ||
        __builtin_mul_overflow(count, static_cast<uint64_t>(dims[axis]->integer), &count))
      in_.fail_at(at_, "dimensions of a NumPy array", "something else");
  }
  const DType dtype = items[2]->element;
  const std::string& raw = items[4]->text;
  if (items[3]->integer != 0 && dims.size() > 1) in_.fail_at(at_, "a NumPy array in row-major order", "another order");
  if (count != raw.size() / size_of(dtype) || raw.size() % size_of(dtype) != 0)
    in_.fail_at(at_, join("the bytes of a NumPy array ", shape, " of ", dtype), raw.size(), " bytes");
  charge(raw.size());
  NDArray array(shape, cpu(), dtype);
  std::memcpy(array.mutable_data(), raw.data(), raw.size());
  if (dtype == DType::boolean)
    for (size_t i = 0; i < raw.size(); ++i) static_cast<uint8_t*>(array.mutable_data())[i] = raw[i] != 0;
  return array;
}

// ---- The state of an object

void PickleObjects::set_state(PickleValue& object, const PickleValue& state) {
  switch (object.kind) {
    case Kind::object:
      object.state = &state;
      return;
    case Kind::array:
      object.array = state.kind == Kind::tuple && state.items.size() == 5 ? numpy_array(state) : pickled_array(state);
      return;
    case Kind::dtype: {
      const bool big_endian = state.items.size() > 1 && state.items[1]->text == ">";
      if (big_endian && size_of(object.element) > 1) in_.fail_at(at_, "a little-endian NumPy type", "a big-endian one");
      return;
    }
    default:
      in_.fail_at(at_, "an object that takes a state", name_of(object.kind));
  }
}

// {'handle': the bytes of the array}; None before there are any.
NDArray PickleObjects::pickled_array(const PickleValue& state) {
  if (state.kind != Kind::dict) in_.fail_at(at_, "the state of an array as a dictionary", name_of(state.kind));
  for (size_t i = 0; i + 1 < state.items.size(); i += 2) {
    const PickleValue &key = *state.items[i], &value = *state.items[i + 1];
    if (key.kind != Kind::text || key.text != "handle") continue;
    if (value.kind == Kind::none) return NDArray();
    if (value.kind != Kind::bytes && value.kind != Kind::text)
      in_.fail_at(at_, "the bytes of an array", name_of(value.kind));
    charge(value.text.size());
    ByteReader in(value.text, in_.source(), value.offset);
    NDArray array = read_array(in);
    if (in.remaining() != 0) in.fail_at(in.offset(), "the end of a pickled array", in.remaining(), " more bytes");
    if (array) charge(array.bytes());
    return array;
  }
  in_.fail_at(at_, "a 'handle' in the state of an array", "none");
}

std::string_view name_of(PickleValue::Kind kind) {
  switch (kind) {
    case Kind::none:
      return "None";
    case Kind::boolean:
      return "a truth";
    case Kind::integer:
      return "a whole number";
    case Kind::real:
      return "a number";
    case Kind::text:
      return "a text";
    case Kind::bytes:
      return "bytes";
    case Kind::list:
      return "a list";
    case Kind::tuple:
      return "a tuple";
    case Kind::dict:
      return "a dictionary";
    case Kind::array:
      return "an array";
    case Kind::object:
      return "an object";
    case Kind::global:
      return "a class";
    case Kind::dtype:
      return "a NumPy type";
  }
  return "something unknown";
}

}  // namespace symbind
