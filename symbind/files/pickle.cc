#include "symbind/files/pickle.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <unordered_map>

#include "symbind/core/error.h"
#include "symbind/files/byte_reader.h"
#include "symbind/files/pickle_objects.h"
#include "symbind/files/pickle_text.h"

namespace symbind {
namespace {

using Kind = PickleValue::Kind;

template <class T>
T swapped(T value) {
  char raw[sizeof(T)];
  std::memcpy(raw, &value, sizeof(T));
  std::reverse(raw, raw + sizeof(T));
  std::memcpy(&value, raw, sizeof(T));
  return value;
}

class Machine {
 public:
  Machine(std::string_view bytes, std::string_view source) : in_(bytes, source), bytes_(bytes), objects_(in_) {}

  Pickle run() {
    while (!done_) {
      at_ = in_.offset();
      objects_.begin_at(at_);
      step(in_.read<uint8_t>("an instruction of a pickle"));
    }
    Pickle pickle = objects_.take();
    pickle.root = root_;
    pickle.length = in_.offset();
    return pickle;
  }

 private:
  using Value = PickleObjects::Value;
  static constexpr std::nullptr_t mark = nullptr;  // on the stack

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
      root_ = pop();
      if (!stack_.empty()) in_.fail_at(at_, "a pickle that leaves one value", "more on its stack");
      done_ = true;
    } else {
      return false;
    }
    return true;
  }

  // The stack and the memo.
  bool remember(uint8_t code) {
    const auto index = [&](auto number) { return static_cast<uint64_t>(number); };
    const char* what = "an index of the memo";
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
        return memo_[index(read_decimal())] = peek(), true;
      case 'q':
        return memo_[index(in_.read<uint8_t>(what))] = peek(), true;
      case 'r':
        return memo_[index(in_.read<uint32_t>(what))] = peek(), true;
      case 0x94:
        return memo_[memo_.size()] = peek(), true;
      case 'g':
        return push(recall(index(read_decimal()))), true;
      case 'h':
        return push(recall(index(in_.read<uint8_t>(what)))), true;
      case 'j':
        return push(recall(index(in_.read<uint32_t>(what)))), true;
      default:
        return false;
    }
  }

  bool number(uint8_t code) {
    const char *what = "a whole number", *length = "the length of a whole number";
    switch (code) {
      case 'N':
        return push(objects_.make(Kind::none)), true;
      case 0x88:
        return push(objects_.make_boolean(true)), true;
      case 0x89:
        return push(objects_.make_boolean(false)), true;
      case 'I':
        return push_line_integer(), true;
      case 'J':
        return push(objects_.make_integer(in_.read<int32_t>(what))), true;
      case 'K':
        return push(objects_.make_integer(in_.read<uint8_t>(what))), true;
      case 'M':
        return push(objects_.make_integer(in_.read<uint16_t>(what))), true;
      case 'L':
        return push(objects_.make_integer(read_decimal())), true;
      case 0x8a:
        return push(objects_.make_integer(read_long(in_.read<uint8_t>(length)))), true;
      case 0x8b:
        return push(objects_.make_integer(read_long(in_.read<uint32_t>(length)))), true;
      case 'F':
        return push_line_real(), true;
      case 'G':
        return push(objects_.make_real(std::bit_cast<double>(swapped(in_.read<uint64_t>("a number"))))), true;
      default:
        return false;
    }
  }

  bool text(uint8_t code) {
    const char* length = "the length of a text";
    switch (code) {
      case 'S':
        return push(objects_.make_text(Kind::text, read_escaped(unquoted, "a quoted text"))), true;
      case 'V':
        return push(objects_.make_text(Kind::text, read_escaped(unescaped, "a text with escapes"))), true;
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
        return push(objects_.make(Kind::list)), true;
      case 'l':
        return push(objects_.make_items(Kind::list, pop_to_mark())), true;
      case ')':
        return push(objects_.make(Kind::tuple)), true;
      case 't':
        return push(objects_.make_items(Kind::tuple, pop_to_mark())), true;
      case 0x85:
      case 0x86:
      case 0x87:
        return push(objects_.make_items(Kind::tuple, pop_some(code - 0x84u))), true;
      case '}':
        return push(objects_.make(Kind::dict)), true;
      case 'd': {
        const auto items = pop_to_mark();
        push(objects_.make(Kind::dict));
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
      push(objects_.make_global(module, name));
    } else if (code == 0x93) {
      const Value name = pop(Kind::text, "the name of something to import");
      const Value module = pop(Kind::text, "the module of something to import");
      push(objects_.make_global(module->text, name->text));
    } else if (code == 'R') {
      reduce();
    } else if (code == 0x81 || code == 0x92) {
      new_object(code == 0x92);
    } else if (code == 'i') {
      const std::string module = read_line(), name = read_line();
      (void)pop_to_mark();
      push(objects_.instance_of(*objects_.make_global(module, name)));
    } else if (code == 'o') {
      const auto items = pop_to_mark();
      if (items.empty()) in_.fail_at(at_, "a class to make an object of", "none");
      push(objects_.instance_of(*items.front()));
    } else if (code == 'b') {
      const Value state = pop();
      objects_.set_state(*peek(), *state);
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
  Value recall(uint64_t index) {
    const auto found = memo_.find(index);
    if (found == memo_.end()) in_.fail_at(at_, "a value that the pickle has remembered", "nothing at ", index);
    return found->second;
  }
  void push_text(Kind kind, uint64_t length) {
    push(objects_.make_text(kind, read_text(length, kind == Kind::text ? "a text" : "bytes")));
  }
  void push_line_integer() {
    const uint64_t begin = in_.offset();
    if (bytes_.substr(begin, 3) == "01\n" || bytes_.substr(begin, 3) == "00\n")
      push(objects_.make_boolean(read_line() == "01"));
    else
      push(objects_.make_integer(read_decimal()));
  }
  void push_line_real() {
    const std::string line = read_line();
    double number = 0;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), number);
    if (end != line.data() + line.size() || error != std::errc()) in_.fail_at(at_, "a number", line);
    push(objects_.make_real(number));
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

  void reduce() {
    const Value arguments = pop(Kind::tuple, "the arguments of a call");
    const Value callee = pop(Kind::global, "something to call");
    push(objects_.call(*callee, *arguments));
  }
  void new_object(bool with_keywords) {
    if (with_keywords) (void)pop(Kind::dict, "the keyword arguments of a class");
    (void)pop(Kind::tuple, "the arguments of a class");
    push(objects_.instance_of(*pop(Kind::global, "a class to make an object of")));
  }

  ByteReader in_;
  std::string_view bytes_;
  PickleObjects objects_;
  const PickleValue* root_ = nullptr;
  std::vector<Value> stack_;
  std::unordered_map<uint64_t, Value> memo_;
  uint64_t at_ = 0;  // of the instruction being done
  bool done_ = false;
};

}  // namespace

Pickle read_pickle(std::string_view bytes, std::string_view source) { return Machine(bytes, source).run(); }

}  // namespace symbind
