#include "symbind/train/initializer.h"

#include <cmath>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "symbind/core/named_factories.h"
#include "symbind/train/initializer_fill.h"

namespace symbind {
namespace {

using Json = nlohmann::ordered_json;

// Arguments of initializers are flat. Text nested deeper than this is refused: copies and dumps of such a value
// recurse.
constexpr int deepest = 16;

Json parse_shallow(std::string_view text) {
  const auto check_depth = [](int depth, Json::parse_event_t, Json&) {
    require(depth <= deepest, "[initializer] its arguments are nested deeper than ", deepest, " levels");
    return true;
  };
  return Json::parse(text, check_depth, /*allow_exceptions=*/false);
}

// ---- By name ---------------------------------------------------------------------------------------------

// The arguments of one initializer as JSON; arguments that remain after all known ones are taken are an error.
class Arguments {
 public:
  Arguments(std::string initializer, const std::string& text)
      : initializer_(std::move(initializer)), values_(Json::parse(text)) {}

  double take(const char* key, std::optional<double> otherwise) {
    const Json value = take_json(key);
    if (value.is_null() && otherwise) return *otherwise;
    require(value.is_number(), "[initializer ", initializer_, "] ", key,
            " must be a number: ", value.is_null() ? "it is missing" : value.dump());
    return value.get<double>();
  }
  std::string take(const char* key, const std::string& otherwise) { return take_text(key, otherwise); }
  std::string take(const char* key, const char* otherwise) { return take_text(key, otherwise); }
  std::string take_text(const char* key, const std::string& otherwise) {
    const Json value = take_json(key);
    if (value.is_null()) return otherwise;
    require(value.is_string(), "[initializer ", initializer_, "] ", key, " must be text: ", value.dump());
    return value.get<std::string>();
  }
  int64_t take_whole(const char* key) {
    const double value = take(key, std::optional<double>());
    require(value == std::floor(value) && value >= 1 && value < 1e9, "[initializer ", initializer_, "] ", key,
            " must be a whole number above 0: ", value);
    return static_cast<int64_t>(value);
  }
  bool take_bool(const char* key, bool otherwise) {
    const Json value = take_json(key);
    if (value.is_null()) return otherwise;
    require(value.is_boolean(), "[initializer ", initializer_, "] ", key, " must be true or false: ", value.dump());
    return value.get<bool>();
  }
  // A number, or nested lists of numbers of equal lengths.
  std::pair<std::vector<double>, std::vector<int64_t>> take_numbers(const char* key) {
    const Json value = take_json(key);
    std::vector<double> numbers;
    std::vector<int64_t> shape;
    for (const Json* inner = &value; inner->is_array(); inner = &inner->front()) {
      shape.push_back(static_cast<int64_t>(inner->size()));
      if (inner->empty()) break;
    }
    std::vector<std::pair<const Json*, size_t>> pending{{&value, 0}};  // with its depth
    while (!pending.empty()) {
      const auto [item, depth] = pending.back();
      pending.pop_back();
      const bool leaf = depth == shape.size();
      require(leaf ? item->is_number() : item->is_array() && std::ssize(*item) == shape[depth], "[initializer ",
              initializer_, "] ", key, " must be a number, or lists of numbers of equal lengths: ",
              value.is_null() ? "it is missing" : value.dump());
      if (leaf) numbers.push_back(item->get<double>());
      if (!leaf)
        for (auto part = item->rbegin(); part != item->rend(); ++part) pending.emplace_back(&*part, depth + 1);
    }
    return {std::move(numbers), std::move(shape)};
  }
  void expect_no_more() const {
    if (!values_.empty()) fail("[initializer ", initializer_, "] unknown argument '", values_.begin().key(), "'");
  }

 private:
  Json take_json(const char* key) {
    const auto found = values_.find(key);
    if (found == values_.end()) return nullptr;
    Json value = *found;
    values_.erase(found);
    return value;
  }
  std::string initializer_;
  Json values_;
};

template <class Make>
InitializerFactory factory_of(const std::string& name, Make make) {
  return [name, make](const std::string& text) -> InitializerPtr {
    Arguments arguments(name, text);
    auto made = make(arguments);
    arguments.expect_no_more();
    return made;
  };
}

// New initializers are added here.
void add_built_in(NamedFactories<InitializerFactory>& factories) {
  const auto put = [&](const std::string& name, auto make) { factories.add(name, factory_of(name, make)); };
  for (const char* name : {"zero", "zeros"}) put(name, [](Arguments&) { return std::make_shared<init::Zero>(); });
  for (const char* name : {"one", "ones"}) put(name, [](Arguments&) { return std::make_shared<init::One>(); });
  put("constant", [](Arguments& a) {
    auto [values, shape] = a.take_numbers("value");
    return std::make_shared<init::Constant>(std::move(values), Shape(shape));
  });
  put("uniform", [](Arguments& a) { return std::make_shared<init::Uniform>(a.take("scale", 0.07)); });
  put("normal", [](Arguments& a) { return std::make_shared<init::Normal>(a.take("sigma", 0.01)); });
  put("orthogonal", [](Arguments& a) {
    const double scale = a.take("scale", 1.414);
    return std::make_shared<init::Orthogonal>(scale, a.take("rand_type", "uniform"));
  });
  put("bilinear", [](Arguments&) { return std::make_shared<init::Bilinear>(); });
  put("msraprelu", [](Arguments& a) {
    const std::string factor_type = a.take("factor_type", "avg");
    return std::make_shared<init::MSRAPrelu>(factor_type, a.take("slope", 0.25));
  });
  put("lstmbias", [](Arguments& a) { return std::make_shared<init::LSTMBias>(a.take("forget_bias", 1.0)); });
  put("fusedrnn", [](Arguments& a) {
    const std::string inner = a.take("init", "");
    return std::make_shared<init::FusedRNN>(
        init::FusedRNNOptions{.init = inner.empty() ? nullptr : create_initializer(inner),
                              .num_hidden = a.take_whole("num_hidden"),
                              .num_layers = a.take_whole("num_layers"),
                              .mode = a.take("mode", ""),
                              .bidirectional = a.take_bool("bidirectional", false),
                              .forget_bias = a.take("forget_bias", 1.0)});
  });
  put("xavier", [](Arguments& a) {
    const init::XavierOptions usual;
    return std::make_shared<init::Xavier>(init::XavierOptions{.rnd_type = a.take("rnd_type", usual.rnd_type),
                                                              .factor_type = a.take("factor_type", usual.factor_type),
                                                              .magnitude = a.take("magnitude", usual.magnitude)});
  });
}

NamedFactories<InitializerFactory>& factories() {
  static NamedFactories<InitializerFactory> all("initializer", add_built_in);
  return all;
}

}  // namespace

InitializerPtr create_initializer(std::string_view text) {
  if (!text.starts_with('[')) return factories().find(lower_case(text))("{}");
  const Json json = parse_shallow(text);
  const bool well_formed = json.is_array() && !json.empty() && json.size() <= 2 && json[0].is_string() &&
                           (json.size() == 1 || json[1].is_object());
  require(well_formed, "[initializer] must be a name or [\"name\", {arguments}]: ", text);
  const std::string arguments = json.size() == 2 ? json[1].dump() : "{}";
  return factories().find(lower_case(json[0].get<std::string>()))(arguments);
}

void register_initializer(const std::string& name, InitializerFactory factory) {
  factories().add(lower_case(name), std::move(factory));
}

// ---- Patterns --------------------------------------------------------------------------------------------

void Initializer::operator()(const InitDesc& desc, NDArray& array) const {
  // A variable's own initializer treats it as a weight, whatever its name.
  const auto own = desc.attrs.find("__init__");
  if (own != desc.attrs.end() && !own->second.empty()) {
    InitDesc told = desc;
    if (!told.global_init) told.global_init = this;
    return create_initializer(own->second)->as_weight(told, array);
  }
  if (!init_by_ending(desc, array)) init_default(desc, array);
}

void Initializer::operator()(const std::string& name, NDArray& array) const {
  const std::string_view text = name;
  const InitDesc desc{name};
  const bool locates = text.starts_with("stn_loc");
  if (text.starts_with("upsampling")) return init::fill_bilinear(desc, array);
  if (locates && text.ends_with("weight")) return array.fill(0);
  if (locates && text.ends_with("bias")) return init::fill_identity_map(desc, array);
  if (text.ends_with("moving_var")) return array.fill(1);
  for (const char* ending : {"moving_mean", "moving_inv_var", "moving_avg"})
    if (text.ends_with(ending)) return array.fill(0);
  if (!init_by_ending(desc, array)) init_default(desc, array);
}

bool Initializer::init_by_ending(const InitDesc& desc, NDArray& array) const {
  const std::string_view name = desc.name;
  if (name.ends_with("weight"))
    init_weight(desc, array);
  else if (name.ends_with("bias"))
    init_bias(desc, array);
  else if (name.ends_with("gamma"))
    init_gamma(desc, array);
  else if (name.ends_with("beta"))
    init_beta(desc, array);
  else if (name.ends_with("min"))
    array.fill(0);
  else if (name.ends_with("max"))
    array.fill(1);
  else
    return false;
  return true;
}

void Initializer::init_bias(const InitDesc&, NDArray& array) const { array.fill(0); }
void Initializer::init_gamma(const InitDesc&, NDArray& array) const { array.fill(1); }
void Initializer::init_beta(const InitDesc&, NDArray& array) const { array.fill(0); }

void Initializer::init_default(const InitDesc& desc, NDArray&) const {
  fail(init::where(desc),
       "no rule for this name: names that end in weight, bias, gamma, beta, min or max have one; give the ",
       "variable its own initializer, with the argument init");
}

}  // namespace symbind
