#include "symbind/files/pickle.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <unordered_map>

#include "symbind/core/error.h"
#include "symbind/files/array_bytes.h"
#include "symbind/files/byte_reader.h"
#include "symbind/files/pickle_text.h"

namespace symbind {
namespace {

using Kind = PickleValue::Kind;

constexpr size_t most_values = size_t{1} << 22;

template <class T>
T swapped(T value) {
  char raw[sizeof(T)];
  std::memcpy(raw, &value, sizeof(T));
  std::reverse(raw, raw + sizeof(T));
  std::memcpy(&value, raw, sizeof(T));
  return value;
}

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

class Machine {
 public:
  Machine(std::string_view bytes, std::string_view source) : in_(bytes, source), bytes_(bytes) {}

  Pickle run() {
    while (!done_) {
      at_ = in_.offset();
      step(in_.read<uint8_t>("an instruction of a pickle"));
    }
    pickle_.length = in_.offset();
    return std::move(pickle_);
  }

 private:
  using Value = PickleValue*;
  static constexpr std::nullptr_t mark = nullptr;  // on the stack

  // ---- Values, in proportion to the pickle's length

  Value make(Kind kind) {
    if (pickle_.values.size() >= most_values)
      in_.fail_at(at_, join("at most ", most_values, " values in a pickle"), "more");
    PickleValue& value = pickle_.values.emplace_back();
    value.kind = kind;
    value.offset = at_;
    return &value;
  }
  // Copies of one text may be asked for again and again.
  void charge(uint64_t bytes) {
    if (!in_.may_unpack(bytes)) in_.fail_at(at_, "a pickle of a sane size", "one that grows beyond measure");
  }
  Value make_integer(int64_t number) {
    const Value value = make(Kind::integer);
    value->integer = number;
    return value;
  }
  Value make_boolean(bool truth) {
    const Value value = make(Kind::boolean);
    value->integer = truth;
    return value;
  }
  Value make_real(double number) {
    const Value value = make(Kind::real);
    value->real = number;
    return value;
  }
  Value make_text(Kind kind, std::string text) {
    charge(text.size());
    const Value value = make(kind);
    value->text = std::move(text);
    return value;
  }
  Value make_items(Kind kind, std::vector<const PickleValue*> items) {
    const Value value = make(kind);
    value->items = std::move(items);
    return value;
  }

  // ---- The stack

  void push(Value value) { stack_.push_back(value); }
  Value pop() {
    if (stack_.empty() || stack_.back() == mark) in_.fail_at(at_, "a value on the stack of a pickle", "none");
    const Value value = stack_.back();
    stack_.pop_back();
    return value;
  }
  Value pop(Kind kind, std::string_view what) {
    const Value value = pop();
    if (value->kind != kind) in_.fail_at(at_, what, name_of(value->kind));
    return value;
  }
  Value top(Kind kind, std::string_view what) {
    const Value value = pop(kind, what);
    stack_.push_back(value);
    return value;
  }
  std::vector<const PickleValue*> pop_to_mark() {
    const auto found = std::find(stack_.rbegin(), stack_.rend(), mark);
    if (found == stack_.rend()) in_.fail_at(at_, "a mark on the stack of a pickle", "none");
    std::vector<const PickleValue*> items(found.base(), stack_.end());
    stack_.erase(found.base() - 1, stack_.end());
    return items;
  }
  std::vector<const PickleValue*> pop_some(size_t count) {
    std::vector<const PickleValue*> items(count);
    for (size_t i = count; i-- > 0;) items[i] = pop();
    return items;
  }

  // ---- Arguments of instructions

  std::string read_text(uint64_t length, std::string_view what) {
    if (length > in_.remaining()) in_.fail_at(at_, join(what, " of ", length, " bytes"), in_.remaining(), " more");
    std::string text(length, '\0');
    in_.read(text.data(), length, what);
    return text;
  }
  std::string read_line() {
    const size_t begin = in_.offset(), end = bytes_.find('\n', begin);
    if (end == std::string_view::npos) in_.fail_at(at_, "a line of a pickle", "no end of it");
    std::string line = read_text(end - begin, "a line of a pickle");
    (void)in_.read<char>("the end of a line");
    if (line.ends_with('\r')) line.pop_back();
    return line;
  }
  int64_t read_decimal() {
    std::string line = read_line();
    if (line.ends_with('L')) line.pop_back();
    int64_t number = 0;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), number);
    if (error != std::errc() || end != line.data() + line.size()) in_.fail_at(at_, "a whole number of 64 bits", line);
    return number;
  }
  int64_t read_long(uint64_t length) {
    const std::string raw = read_text(length, "a whole number");
    if (raw.size() > 8) in_.fail_at(at_, "a whole number of 64 bits", "one of ", raw.size(), " bytes");
    uint64_t number = !raw.empty() && (raw.back() & 0x80) ? ~uint64_t{0} : 0;
    std::memcpy(&number, raw.data(), raw.size());
    return static_cast<int64_t>(number);
  }
  std::string read_escaped(std::optional<std::string> (*decode)(std::string_view), std::string_view what) {
    const std::string line = read_line();
    auto decoded = decode(line);
    if (!decoded) in_.fail_at(at_, what, line.substr(0, 100));
    return std::move(*decoded);
  }
  std::string latin1(const PickleValue& value) {
    auto bytes = latin1_bytes(value.text);
    if (!bytes) in_.fail_at(at_, "a text of Latin-1 characters that stands for bytes", "another character");
    return std::move(*bytes);
  }

  // ---- Instructions

  void step(uint8_t code) {
    if (!frame(code) && !remember(code) && !number(code) && !text(code) && !container(code) && !call(code))
      in_.fail_at(at_, "an instruction of a pickle of plain data", "the code ", int{code});
  }

  bool frame(uint8_t code) {
    if (code == 0x80) {
      const auto protocol = in_.read<uint8_t>("the protocol of a pickle");
      if (protocol > 5) in_.fail_at(at_, "a pickle of protocol 0 to 5", "protocol ", int{protocol});
    } else if (code == 0x95) {
      (void)in_.read<uint64_t>("the length of a frame");
    } else if (code == '.') {
      pickle_.root = pop();
      if (!stack_.empty()) in_.fail_at(at_, "a pickle that leaves one value", "more on its stack");
      done_ = true;
    } else {
      return false;
    }
    return true;
  }

  // The stack and the memo.
  bool remember(uint8_t code) {
    const auto place = [&](auto number) { return static_cast<uint64_t>(number); };
    const char* what = "a place in the memo";
    switch (code) {
      case '(':
        return stack_.push_back(mark), true;
      case '0':
        if (stack_.empty()) in_.fail_at(at_, "a value on the stack of a pickle", "none");
        return stack_.pop_back(), true;
      case '1':
        return (void)pop_to_mark(), true;
      case '2':
        return push(peek()), true;
      case 'p':
        return memo_[place(read_decimal())] = peek(), true;
      case 'q':
        return memo_[place(in_.read<uint8_t>(what))] = peek(), true;
      case 'r':
        return memo_[place(in_.read<uint32_t>(what))] = peek(), true;
      case 0x94:
        return memo_[memo_.size()] = peek(), true;
      case 'g':
        return push(recall(place(read_decimal()))), true;
      case 'h':
        return push(recall(place(in_.read<uint8_t>(what)))), true;
      case 'j':
        return push(recall(place(in_.read<uint32_t>(what)))), true;
      default:
        return false;
    }
  }

  bool number(uint8_t code) {
    const char *what = "a whole number", *length = "the length of a whole number";
    switch (code) {
      case 'N':
        return push(make(Kind::none)), true;
      case 0x88:
        return push(make_boolean(true)), true;
      case 0x89:
        return push(make_boolean(false)), true;
      case 'I':
        return push_line_integer(), true;
      case 'J':
        return push(make_integer(in_.read<int32_t>(what))), true;
      case 'K':
        return push(make_integer(in_.read<uint8_t>(what))), true;
      case 'M':
        return push(make_integer(in_.read<uint16_t>(what))), true;
      case 'L':
        return push(make_integer(read_decimal())), true;
      case 0x8a:
        return push(make_integer(read_long(in_.read<uint8_t>(length)))), true;
      case 0x8b:
        return push(make_integer(read_long(in_.read<uint32_t>(length)))), true;
      case 'F':
        return push_line_real(), true;
      case 'G':
        return push(make_real(std::bit_cast<double>(swapped(in_.read<uint64_t>("a number"))))), true;
      default:
        return false;
    }
  }

  bool text(uint8_t code) {
    const char* length = "the length of a text";
    switch (code) {
      case 'S':
        return push(make_text(Kind::text, read_escaped(unquoted, "a quoted text"))), true;
      case 'V':
        return push(make_text(Kind::text, read_escaped(unescaped, "a text with escapes"))), true;
      case 'T':
      case 'X':
        return push_text(Kind::text, in_.read<uint32_t>(length)), true;
      case 'U':
      case 0x8c:
        return push_text(Kind::text, in_.read<uint8_t>(length)), true;
      case 0x8d:
        return push_text(Kind::text, in_.read<uint64_t>(length)), true;
      case 'B':
        return push_text(Kind::bytes, in_.read<uint32_t>(length)), true;
      case 'C':
        return push_text(Kind::bytes, in_.read<uint8_t>(length)), true;
      case 0x8e:
      case 0x96:
        return push_text(Kind::bytes, in_.read<uint64_t>(length)), true;
      default:
        return false;
    }
  }

  bool container(uint8_t code) {
    switch (code) {
      case ']':
        return push(make(Kind::list)), true;
      case 'l':
        return push(make_items(Kind::list, pop_to_mark())), true;
      case ')':
        return push(make(Kind::tuple)), true;
      case 't':
        return push(make_items(Kind::tuple, pop_to_mark())), true;
      case 0x85:
      case 0x86:
      case 0x87:
        return push(make_items(Kind::tuple, pop_some(code - 0x84u))), true;
      case '}':
        return push(make(Kind::dict)), true;
      case 'd': {
        const auto items = pop_to_mark();
        push(make(Kind::dict));
        return set_items(items), true;
      }
      case 'a':
        return append(pop_some(1)), true;
      case 'e':
        return append(pop_to_mark()), true;
      case 's':
        return set_items(pop_some(2)), true;
      case 'u':
        return set_items(pop_to_mark()), true;
      default:
        return false;
    }
  }

  // Classes and calls.
  bool call(uint8_t code) {
    if (code == 'c') {
      const std::string module = read_line(), name = read_line();
      push(make_global(module, name));
    } else if (code == 0x93) {
      const Value name = pop(Kind::text, "the name of something to import");
      const Value module = pop(Kind::text, "the module of something to import");
      push(make_global(module->text, name->text));
    } else if (code == 'R') {
      reduce();
    } else if (code == 0x81 || code == 0x92) {
      new_object(code == 0x92);
    } else if (code == 'i') {
      const std::string module = read_line(), name = read_line();
      (void)pop_to_mark();
      push(instance_of(*make_global(module, name)));
    } else if (code == 'o') {
      const auto items = pop_to_mark();
      if (items.empty()) in_.fail_at(at_, "a class to make an object of", "none");
      push(instance_of(*items.front()));
    } else if (code == 'b') {
      build();
    } else {
      return false;
    }
    return true;
  }

  Value peek() {
    const Value value = pop();
    stack_.push_back(value);
    return value;
  }
  Value recall(uint64_t place) {
    const auto found = memo_.find(place);
    if (found == memo_.end()) in_.fail_at(at_, "a value that the pickle has remembered", "nothing at ", place);
    return found->second;
  }
  void push_text(Kind kind, uint64_t length) {
    push(make_text(kind, read_text(length, kind == Kind::text ? "a text" : "bytes")));
  }
  void push_line_integer() {
    const uint64_t begin = in_.offset();
    if (bytes_.substr(begin, 3) == "01\n" || bytes_.substr(begin, 3) == "00\n")
      push(make_boolean(read_line() == "01"));
    else
      push(make_integer(read_decimal()));
  }
  void push_line_real() {
    const std::string line = read_line();
    char* end = nullptr;
    const double number = std::strtod(line.c_str(), &end);
    if (line.empty() || end != line.c_str() + line.size()) in_.fail_at(at_, "a number", line);
    push(make_real(number));
  }
  void append(const std::vector<const PickleValue*>& items) {
    const Value list = top(Kind::list, "a list to append to");
    list->items.insert(list->items.end(), items.begin(), items.end());
  }
  void set_items(const std::vector<const PickleValue*>& items) {
    if (items.size() % 2 != 0) in_.fail_at(at_, "keys and values of a dictionary in pairs", items.size(), " of them");
    const Value dict = top(Kind::dict, "a dictionary to put items into");
    dict->items.insert(dict->items.end(), items.begin(), items.end());
  }

  Value make_global(const std::string& module, const std::string& name) {
    if (!is_array_class(module, name) && !is_helper(module, name) && !is_plain_data_class(module))
      in_.fail_at(at_, "nothing but arrays, numbers, texts, lists and dictionaries in states of an optimizer",
                  module.substr(0, 100), ".", name.substr(0, 100));
    const Value value = make(Kind::global);
    charge(module.size() + name.size());
    value->module = module;
    value->text = name;
    return value;
  }
  Value instance_of(const PickleValue& type) {
    if (type.kind == Kind::global && is_array_class(type.module, type.text)) return make(Kind::array);
    if (type.kind != Kind::global || !is_plain_data_class(type.module))
      in_.fail_at(at_, "a class of arrays or optimizers", describe(type));
    const Value object = make(Kind::object);
    charge(type.module.size() + type.text.size());
    object->module = type.module;
    object->text = type.text;
    return object;
  }
  static std::string describe(const PickleValue& value) {
    return value.kind == Kind::global ? join(value.module, ".", value.text) : std::string(name_of(value.kind));
  }

  void new_object(bool with_keywords) {
    if (with_keywords) (void)pop(Kind::dict, "the keyword arguments of a class");
    (void)pop(Kind::tuple, "the arguments of a class");
    push(instance_of(*pop(Kind::global, "a class to make an object of")));
  }

  void reduce() {
    const Value arguments = pop(Kind::tuple, "the arguments of a call");
    const Value callee = pop(Kind::global, "something to call");
    const auto& args = arguments->items;
    const std::string& name = callee->text;
    const auto argument = [&](size_t i, Kind kind) -> const PickleValue& {
      if (i >= args.size() || args[i]->kind != kind)
        in_.fail_at(at_, join(name_of(kind), " as argument ", i + 1, " of ", describe(*callee)),
                    i < args.size() ? name_of(args[i]->kind) : "none");
      return *args[i];
    };
    if (is_array_class(callee->module, name)) {
      push(make(Kind::array));
    } else if (is_plain_data_class(callee->module) || name == "object") {
      in_.fail_at(at_, "plain data", "a call of ", describe(*callee));
    } else if (name == "encode") {
      check_latin1(argument(1, Kind::text));
      push(make_text(Kind::bytes, latin1(argument(0, Kind::text))));
    } else if (name == "bytearray" || name == "bytes") {
      if (args.size() > 1) check_latin1(argument(1, Kind::text));
      if (args.empty())
        push(make(Kind::bytes));
      else if (args.size() > 1)
        push(make_text(Kind::bytes, latin1(argument(0, Kind::text))));
      else if (args[0]->kind == Kind::text)  // a text of Python 2 is bytes
        push(make_text(Kind::bytes, args[0]->text));
      else
        push(make_text(Kind::bytes, argument(0, Kind::bytes).text));
    } else if (name == "_reconstructor" || name == "__newobj__") {
      push(instance_of(argument(0, Kind::global)));
    } else if (name == "dtype") {
      push(make_dtype(argument(0, Kind::text).text));
    } else if (name == "_reconstruct") {
      (void)argument(0, Kind::global);
      push(make(Kind::array));
    } else if (name == "scalar") {
      const DType dtype = argument(0, Kind::dtype).element;
      if (args.size() < 2 || (args[1]->kind != Kind::bytes && args[1]->kind != Kind::text))
        in_.fail_at(at_, "the bytes of a NumPy number", "none");
      push(make_scalar(dtype, args[1]->text));
    } else {
      in_.fail_at(at_, "something that may be called", describe(*callee));
    }
  }
  void check_latin1(const PickleValue& encoding) {
    if (encoding.text != "latin1" && encoding.text != "latin-1")
      in_.fail_at(at_, "the encoding latin1", encoding.text.substr(0, 100));
  }

  // ---- NumPy

  Value make_dtype(std::string_view code) {
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
  Value make_scalar(DType dtype, const std::string& raw) {
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
  NDArray numpy_array(const PickleValue& state) {
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
    if (items[3]->integer != 0 && dims.size() > 1)
      in_.fail_at(at_, "a NumPy array in row-major order", "another order");
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

  void build() {
    const Value state = pop();
    const Value object = peek();
    switch (object->kind) {
      case Kind::object:
        object->state = state;
        return;
      case Kind::array:
        object->array =
            state->kind == Kind::tuple && state->items.size() == 5 ? numpy_array(*state) : pickled_array(*state);
        return;
      case Kind::dtype: {
        const bool big_endian = state->items.size() > 1 && state->items[1]->text == ">";
        if (big_endian && size_of(object->element) > 1)
          in_.fail_at(at_, "a little-endian NumPy type", "a big-endian one");
        return;
      }
      default:
        in_.fail_at(at_, "an object that takes a state", name_of(object->kind));
    }
  }
  // {'handle': the bytes of the array}; None before there are any.
  NDArray pickled_array(const PickleValue& state) {
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

  ByteReader in_;
  std::string_view bytes_;
  Pickle pickle_;
  std::vector<Value> stack_;
  std::unordered_map<uint64_t, Value> memo_;
  uint64_t at_ = 0;  // of the instruction being done
  bool done_ = false;
};

}  // namespace

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

Pickle read_pickle(std::string_view bytes, std::string_view source) { return Machine(bytes, source).run(); }

}  // namespace symbind
