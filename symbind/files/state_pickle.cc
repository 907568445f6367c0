#include "symbind/files/state_pickle.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <set>

#include "symbind/files/array_bytes.h"

namespace symbind {
namespace {

using Kind = PickleValue::Kind;
using Fields = decltype(PickledObject::fields);

constexpr int deepest_state = 16;
constexpr size_t most_parts = size_t{1} << 20;  // of all states together, and of an optimizer
constexpr size_t most_name_bytes = size_t{1} << 26;

// ---- Writing the pickle: protocol 3, which every Python 3 reads; 4 where an array needs a longer length.

class PickleWriter {
 public:
  std::string write(const SavedStates& saved) {
    put("\x80\x03}");
    for (const auto& [key, state] : saved.states) {
      put_key(key);
      put_state(state);
      put("s");
    }
    if (saved.optimizer) {
      put_optimizer(*saved.optimizer, saved.resume.value_or(ResumeState{}));
      put("\x86");
    }
    put(".");
    if (long_bytes_) out_[1] = '\x04';
    return std::move(out_);
  }

 private:
  void put(std::string_view bytes) { out_ += bytes; }
  template <class T>
  void put_number(T number) {
    char raw[sizeof number];
    std::memcpy(raw, &number, sizeof number);
    out_.append(raw, sizeof number);
  }
  void put_integer(int64_t number) {
    if (number >= 0 && number < 256) {
      put("K");
      put_number(static_cast<uint8_t>(number));
    } else if (number >= INT32_MIN && number <= INT32_MAX) {
      put("J");
      put_number(static_cast<int32_t>(number));
    } else {
      put("\x8a\x08");
      put_number(number);
    }
  }
  void put_real(double number) {
    uint64_t bits = std::bit_cast<uint64_t>(number);
    put("G");
    for (int shift = 56; shift >= 0; shift -= 8) out_ += static_cast<char>(bits >> shift);
  }
  void put_text(std::string_view text) {
    put("X");
    put_number(static_cast<uint32_t>(text.size()));
    put(text);
  }
  void put_key(const ParamKey& key) {
    if (key.is_number())
      put_integer(key.number());
    else
      put_text(key.name());
  }
  // Imported once, and read from an index of the memo from then on.
  void put_global(std::string_view module, std::string_view name, uint8_t index) {
    if (remembered_.insert(index).second) {
      put("c");
      put(module);
      put("\n");
      put(name);
      put("\nq");
    } else {
      put("h");
    }
    put_number(index);
  }
  // As Python writes NDArray(None) whose state is {'handle': bytearray(…)}.
  void put_array(const NDArray& array) {
    put_global("mxnet.ndarray.ndarray", "NDArray", 0);
    put("N\x85R}");
    put_text("handle");
    put_global("builtins", "bytearray", 1);
    const size_t start = out_.size();
    put("B");
    put_number(uint32_t{0});
    const size_t begin = out_.size();
    write_array([this](const void* data, size_t bytes) { out_.append(static_cast<const char*>(data), bytes); }, array,
                array.rank() == 0 ? ArrayGeneration::v3 : ArrayGeneration::v2);
    const uint64_t length = out_.size() - begin;
    if (length <= UINT32_MAX) {
      const auto short_length = static_cast<uint32_t>(length);
      std::memcpy(out_.data() + start + 1, &short_length, sizeof short_length);
    } else {
      char raw[sizeof length];
      std::memcpy(raw, &length, sizeof length);
      out_.replace(start, begin - start, "\x8e" + std::string(raw, sizeof raw));
      long_bytes_ = true;
    }
    put("\x85Rsb");
  }
  void put_state(const StateTree& state) {
    if (state.empty()) {
      put("N");
    } else if (!state.is_tuple) {
      put_array(state.array);
    } else {
      put("(");
      for (const StateTree& item : state.tuple) put_state(item);
      put("t");
    }
  }

  // ---- The optimizer: fields by name; "a.b" is a field of the object, or an entry of the dictionary or list, "a".

  void put_scalar(const Fields::mapped_type& value) {
    std::visit(
        [this]<class T>(const T& v) {
          if constexpr (std::is_same_v<T, std::monostate>)
            put("N");
          else if constexpr (std::is_same_v<T, bool>)
            put(v ? "\x88" : "\x89");
          else if constexpr (std::is_same_v<T, int64_t>)
            put_integer(v);
          else if constexpr (std::is_same_v<T, double>)
            put_real(v);
          else
            put_text(v);
        },
        value);
  }
  void put_fields(const Fields& fields) {
    for (auto field = fields.begin(); field != fields.end();) {
      const std::string name = field->first.substr(0, field->first.find('.'));
      Fields inner;
      const Fields::mapped_type own = field->first == name ? field->second : Fields::mapped_type{};
      for (; field != fields.end() && field->first.substr(0, field->first.find('.')) == name; ++field)
        if (field->first != name) inner[field->first.substr(name.size() + 1)] = field->second;
      put_text(name);
      if (inner.empty())
        put_scalar(own);
      else
        put_composite(std::get_if<std::string>(&own), inner);
    }
  }
  static bool is_index(const std::string& key) {
    return !key.empty() && key.size() < 18 &&
           std::all_of(key.begin(), key.end(), [](char c) { return c >= '0' && c <= '9'; });
  }
  void put_entries(const Fields& entries) {
    for (const auto& [key, value] : entries) {
      if (is_index(key))
        put_integer(std::stoll(key));
      else
        put_text(key);
      put_scalar(value);
    }
  }
  void put_composite(const std::string* class_name, const Fields& inner) {
    if (class_name && class_name->find('.') != std::string::npos) {
      const size_t dot = class_name->rfind('.');
      put_object(class_name->substr(0, dot), class_name->substr(dot + 1), [&] { put_fields(inner); });
      return;
    }
    const bool numbered =
        std::all_of(inner.begin(), inner.end(), [](const auto& item) { return is_index(item.first); });
    if (class_name && *class_name == "list" && numbered) {
      std::map<int64_t, const Fields::mapped_type*> in_order;
      for (const auto& [key, value] : inner) in_order[std::stoll(key)] = &value;
      put("](");
      for (const auto& [index, value] : in_order) put_scalar(*value);
      put("e");
      return;
    }
    put("}(");
    put_entries(inner);
    put("u");
  }
  template <class PutFields>
  void put_object(const std::string& module, const std::string& name, PutFields put_inner) {
    put("c" + module + "\n" + name + "\n)\x81}(");
    put_inner();
    put("ub");
  }
  // The dictionaries by parameter that every MXNet optimizer has are written from the resume state unless they are
  // among the fields.
  void put_optimizer(const PickledObject& optimizer, const ResumeState& resume) {
    Fields fields = optimizer.fields;
    Fields counts = take(fields, "_index_update_count");
    (void)take(fields, "_all_index_update_counts");
    (void)take(fields, "sym_info");
    put_object(optimizer.module, optimizer.name, [&] {
      put_text("_index_update_count");
      put("}q\x02(");
      if (counts.empty())
        for (const auto& [key, count] : resume.index_update_count) put_key(key), put_integer(count);
      else
        put_entries(counts);
      put("u");
      put_text("_all_index_update_counts");
      put(std::string_view("}K\0h\x02s", 6));
      put_text("sym_info");
      put(")");
      const auto absent = [&](const std::string& name) {
        const auto next = fields.lower_bound(name);
        return next == fields.end() || (next->first != name && !next->first.starts_with(name + "."));
      };
      if (absent("num_update")) put_text("num_update"), put_integer(resume.num_update);
      if (absent("begin_num_update")) put_text("begin_num_update"), put_integer(resume.begin_num_update);
      for (const char* name : {"lr_mult", "wd_mult", "idx2name"})
        if (absent(name)) put_text(name), put("}");
      for (const char* name : {"lr_scheduler", "clip_gradient"})
        if (absent(name)) put_text(name), put("N");
      for (const char* name : {"allow_np_array", "multi_precision"})
        if (absent(name)) put_text(name), put("\x89");
      if (absent("aggregate_num")) put_text("aggregate_num"), put_integer(0);
      put_fields(fields);
    });
  }
  // The entries below a name, taken out.
  static Fields take(Fields& fields, const std::string& name) {
    Fields taken;
    for (auto field = fields.lower_bound(name); field != fields.end() && field->first.starts_with(name);) {
      if (field->first.size() > name.size() && field->first[name.size()] != '.') {
        ++field;
        continue;
      }
      if (field->first != name) taken[field->first.substr(name.size() + 1)] = field->second;
      field = fields.erase(field);
    }
    return taken;
  }

  std::string out_;
  std::set<uint8_t> remembered_;
  bool long_bytes_ = false;
};

// ---- What the pickle means

class Meaning {
 public:
  explicit Meaning(std::string_view source) : source_(source) {}

  SavedStates of(const PickleValue& root) {
    SavedStates saved;
    const PickleValue* states = &root;
    if (root.kind == Kind::tuple && root.items.size() == 2) {
      states = root.items[0];
      const PickleValue& optimizer = *root.items[1];
      if (optimizer.kind != Kind::object) fail_at(optimizer, "an optimizer beside its states");
      saved.optimizer = PickledObject{optimizer.module, optimizer.text, {}};
      if (optimizer.state) flatten(*optimizer.state, "", saved.optimizer->fields, 0);
    }
    if (states->kind != Kind::dict) fail_at(*states, "a dictionary of states by parameter");
    std::map<ParamKey, size_t> index_of;  // of two entries with the same key the later wins
    for (size_t i = 0; i + 1 < states->items.size(); i += 2) {
      const ParamKey key = key_of(*states->items[i]);
      StateTree tree = tree_of(*states->items[i + 1], 0);
      const auto [found, added] = index_of.emplace(key, saved.states.size());
      if (added)
        saved.states.emplace_back(key, std::move(tree));
      else
        saved.states[found->second].second = std::move(tree);
    }
    return saved;
  }

 private:
  [[noreturn]] void fail_at(const PickleValue& value, std::string_view expected) const {
    fail("[", source_, "] at offset ", value.offset, " expected ", expected, ": found ", name_of(value.kind));
  }
  void count(const PickleValue& value) {
    if (++parts_ > most_parts) fail_at(value, "states of a sane size");
  }
  ParamKey key_of(const PickleValue& value) const {
    if (value.kind == Kind::integer) return ParamKey(value.integer);
    if (value.kind == Kind::text) return ParamKey(value.text);
    fail_at(value, "the number or name of a parameter");
  }
  StateTree tree_of(const PickleValue& value, int depth) {
    count(value);
    if (depth > deepest_state) fail_at(value, "states that are not nested so deeply");
    if (value.kind == Kind::none) return {};
    if (value.kind == Kind::array) return value.array;
    if (value.kind != Kind::tuple && value.kind != Kind::list)
      fail_at(value, "None, an array or a tuple of them as the state of a parameter");
    std::vector<StateTree> items;
    for (const PickleValue* item : value.items) items.push_back(tree_of(*item, depth + 1));
    return StateTree::of(std::move(items));
  }
  void flatten(const PickleValue& value, const std::string& name, Fields& fields, int depth) {
    count(value);
    name_bytes_ += name.size();
    if (depth > deepest_state || name_bytes_ > most_name_bytes) fail_at(value, "an optimizer of a sane size");
    const auto inner = [&](const std::string& key) { return name.empty() ? key : name + "." + key; };
    switch (value.kind) {
      case Kind::none:
        fields[name] = std::monostate{};
        return;
      case Kind::boolean:
        fields[name] = value.integer != 0;
        return;
      case Kind::integer:
        fields[name] = value.integer;
        return;
      case Kind::real:
        fields[name] = value.real;
        return;
      case Kind::text:
        fields[name] = value.text;
        return;
      case Kind::object:
        fields[name] = value.module + "." + value.text;
        if (value.state) flatten(*value.state, name, fields, depth + 1);
        return;
      case Kind::list:
        if (!value.items.empty()) fields[name] = "list";
        [[fallthrough]];
      case Kind::tuple:
        for (size_t i = 0; i < value.items.size(); ++i)
          flatten(*value.items[i], inner(std::to_string(i)), fields, depth + 1);
        return;
      case Kind::dict:
        for (size_t i = 0; i + 1 < value.items.size(); i += 2) {
          const PickleValue& key = *value.items[i];
          if (key.kind == Kind::text || key.kind == Kind::integer)
            flatten(*value.items[i + 1], inner(key_of(key).str()), fields, depth + 1);
        }
        return;
      default:
        return;  // e.g. an array: not a plain number or text
    }
  }

  std::string_view source_;
  size_t parts_ = 0, name_bytes_ = 0;
};

}  // namespace

std::string write_state_pickle(const SavedStates& states) { return PickleWriter().write(states); }

SavedStates states_in(const Pickle& pickle, std::string_view source) { return Meaning(source).of(*pickle.root); }

}  // namespace symbind
