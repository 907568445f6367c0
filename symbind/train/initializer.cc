#include "symbind/train/initializer.h"

#include <cmath>
#include <map>
#include <mutex>
#include <numbers>
#include <optional>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "symbind/core/random.h"

namespace symbind {
namespace {

using Json = nlohmann::ordered_json;

std::string where(const InitDesc& desc) { return join("[initializer of ", desc.name, "] "); }

// ["name", {"key": value}], with the blanks of Python's writer.
std::string dump(const std::string& name, const Json& arguments = Json::object()) {
  std::string text = "[\"" + name + "\", {";
  const char* separator = "";
  for (const auto& [key, value] : arguments.items()) {
    text += separator + ("\"" + key + "\": ") + value.dump();
    separator = ", ";
  }
  return text + "}]";
}

// A whole number is written without a fraction, as Python writes the numbers users give.
Json number(double value) {
  return value == std::floor(value) && std::abs(value) < 1e15 ? Json(static_cast<int64_t>(value)) : Json(value);
}

// Every initializer takes one draw, whatever the size of the array: what comes later does not depend on it. The numbers
// are made as float and converted, so an array of any type gets the same ones up to rounding.
template <class FromWords>
void fill_random(const InitDesc& desc, NDArray& array, FromWords from_words) {
  require(is_floating(array.dtype()), where(desc), "random values need a floating type: ", array.dtype());
  const RandomCursor cursor = host_random().take(1);
  std::vector<float> values(static_cast<size_t>(array.size()));
  for (size_t i = 0; i < values.size(); i += 4) {
    const PhiloxBlock block = philox(cursor.key, cursor.draw, i / 4);
    float four[4];
    from_words(block, four);
    for (size_t k = 0; k < 4 && i + k < values.size(); ++k) values[i + k] = four[k];
  }
  array.copy_from(values);
}

void fill_uniform(const InitDesc& desc, NDArray& array, double scale) {
  const float low = static_cast<float>(-scale), width = static_cast<float>(2 * scale);
  fill_random(desc, array, [=](const PhiloxBlock& block, float* four) {
    for (int k = 0; k < 4; ++k) four[k] = low + width * unit_float(block.words[k]);
  });
}

// Box and Muller: two words make two normal numbers. 1 - u lies in (0, 1], so the logarithm is finite.
void fill_normal(const InitDesc& desc, NDArray& array, double sigma) {
  fill_random(desc, array, [=](const PhiloxBlock& block, float* four) {
    for (int k = 0; k < 4; k += 2) {
      const double radius = sigma * std::sqrt(-2 * std::log(1 - double{unit_float(block.words[k])}));
      const double angle = 2 * std::numbers::pi * double{unit_float(block.words[k + 1])};
      four[k] = static_cast<float>(radius * std::cos(angle));
      four[k + 1] = static_cast<float>(radius * std::sin(angle));
    }
  });
}

// The weights with which a deconvolution enlarges an image by interpolating between its pixels.
void fill_bilinear(const InitDesc& desc, NDArray& array) {
  require(array.rank() == 4, where(desc), "bilinear weights have four axes: ", array.shape());
  const int64_t height = array.shape()[2], width = array.shape()[3];
  const double factor = std::ceil(static_cast<double>(width) / 2);
  const double center = (2 * factor - 1 - std::fmod(factor, 2)) / (2 * factor);
  std::vector<float> values(static_cast<size_t>(array.size()));
  for (size_t i = 0; i < values.size(); ++i) {
    const auto position = static_cast<int64_t>(i);
    const auto x = static_cast<double>(position % width), y = static_cast<double>(position / width % height);
    values[i] = static_cast<float>((1 - std::abs(x / factor - center)) * (1 - std::abs(y / factor - center)));
  }
  array.copy_from(values);
}

// The bias of a layer that predicts an affine map of the plane: the identity.
void fill_identity_map(const InitDesc& desc, NDArray& array) {
  require(array.size() == 6, where(desc), "an affine map of the plane has six numbers: ", array.shape());
  array.copy_from(std::vector<float>{1, 0, 0, 0, 1, 0});
}

// ---- By name
// ----------------------------------------------------------------------------------------------------------

class Registry {
 public:
  static Registry& get() {
    static Registry registry;
    return registry;
  }
  void add(const std::string& name, InitializerFactory factory) {
    const std::lock_guard lock(mutex_);
    factories_[name] = std::move(factory);
  }
  InitializerFactory find(const std::string& name) const {
    const std::lock_guard lock(mutex_);
    const auto found = factories_.find(name);
    if (found != factories_.end()) return found->second;
    std::vector<std::string> known;
    for (const auto& [known_name, factory] : factories_) known.push_back(known_name);
    fail("[initializer ", name, "] there is no such initializer; there are: ", comma_separated(known));
  }

 private:
  Registry();
  mutable std::mutex mutex_;
  std::map<std::string, InitializerFactory> factories_;
};

// The arguments of one initializer as JSON; what is left over when all known ones are taken is an error.
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
  std::string take(const char* key, const std::string& otherwise) {
    const Json value = take_json(key);
    if (value.is_null()) return otherwise;
    require(value.is_string(), "[initializer ", initializer_, "] ", key, " must be text: ", value.dump());
    return value.get<std::string>();
  }
  void expect_no_more() const {
    if (!values_.empty()) fail("[initializer ", initializer_, "] there is no such argument: ", values_.begin().key());
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

// New initializers find their place here.
Registry::Registry() {
  const auto put = [this](const std::string& name, auto make) { factories_[name] = factory_of(name, make); };
  for (const char* name : {"zero", "zeros"}) put(name, [](Arguments&) { return std::make_shared<init::Zero>(); });
  for (const char* name : {"one", "ones"}) put(name, [](Arguments&) { return std::make_shared<init::One>(); });
  put("constant", [](Arguments& a) { return std::make_shared<init::Constant>(a.take("value", std::nullopt)); });
  put("uniform", [](Arguments& a) { return std::make_shared<init::Uniform>(a.take("scale", 0.07)); });
  put("xavier", [](Arguments& a) {
    const init::XavierOptions usual;
    return std::make_shared<init::Xavier>(init::XavierOptions{.rnd_type = a.take("rnd_type", usual.rnd_type),
                                                              .factor_type = a.take("factor_type", usual.factor_type),
                                                              .magnitude = a.take("magnitude", usual.magnitude)});
  });
}

std::string lower_case(std::string text) {
  for (char& letter : text)
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  return text;
}

}  // namespace

InitializerPtr create_initializer(std::string_view text) {
  if (!text.starts_with('[')) return Registry::get().find(lower_case(std::string(text)))("{}");
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  const bool well_formed = json.is_array() && !json.empty() && json.size() <= 2 && json[0].is_string() &&
                           (json.size() == 1 || json[1].is_object());
  require(well_formed, "[initializer] must be a name or [\"name\", {arguments}]: ", text);
  const std::string arguments = json.size() == 2 ? json[1].dump() : "{}";
  return Registry::get().find(lower_case(json[0].get<std::string>()))(arguments);
}

void register_initializer(const std::string& name, InitializerFactory factory) {
  Registry::get().add(lower_case(name), std::move(factory));
}

// ---- Patterns
// ---------------------------------------------------------------------------------------------------------

void Initializer::operator()(const InitDesc& desc, NDArray& array) const {
  // A variable's own initializer treats it as a weight, whatever its name.
  const auto own = desc.attrs.find("__init__");
  if (own != desc.attrs.end() && !own->second.empty()) return create_initializer(own->second)->init_weight(desc, array);
  if (!init_by_ending(desc, array)) init_default(desc, array);
}

void Initializer::operator()(const std::string& name, NDArray& array) const {
  const std::string_view text = name;
  const InitDesc desc{name};
  const bool locates = text.starts_with("stn_loc");
  if (text.starts_with("upsampling")) return fill_bilinear(desc, array);
  if (locates && text.ends_with("weight")) return array.fill(0);
  if (locates && text.ends_with("bias")) return fill_identity_map(desc, array);
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
  fail(where(desc),
       "no rule for this name: names that end in weight, bias, gamma, beta, min or max have one; give the ",
       "variable an initializer of its own, as Symbol::variable(name, {.init = ...}) does");
}

// ---- Initializers
// -----------------------------------------------------------------------------------------------------

namespace init {

std::string Zero::dumps() const { return dump("zero"); }
void Zero::init_weight(const InitDesc&, NDArray& array) const { array.fill(0); }

std::string One::dumps() const { return dump("one"); }
void One::init_weight(const InitDesc&, NDArray& array) const { array.fill(1); }

std::string Constant::dumps() const { return dump("constant", {{"value", number(value_)}}); }
void Constant::init_weight(const InitDesc&, NDArray& array) const { array.fill(value_); }

std::string Uniform::dumps() const { return dump("uniform", {{"scale", number(scale_)}}); }
void Uniform::init_weight(const InitDesc& desc, NDArray& array) const { fill_uniform(desc, array, scale_); }

Xavier::Xavier(XavierOptions options) : options_(std::move(options)) {
  const auto& [rnd_type, factor_type, magnitude] = options_;
  require(rnd_type == "uniform" || rnd_type == "gaussian",
          "[initializer xavier] rnd_type must be uniform or gaussian: ", rnd_type);
  require(factor_type == "avg" || factor_type == "in" || factor_type == "out",
          "[initializer xavier] factor_type must be avg, in or out: ", factor_type);
  require(magnitude >= 0, "[initializer xavier] magnitude must be at least 0: ", magnitude);
}

std::string Xavier::dumps() const {
  return dump("xavier", {{"rnd_type", options_.rnd_type},
                         {"factor_type", options_.factor_type},
                         {"magnitude", number(options_.magnitude)}});
}

void Xavier::init_weight(const InitDesc& desc, NDArray& array) const {
  const Shape& shape = array.shape();
  require(shape.rank() >= 2, where(desc), "xavier needs an array of at least two axes: ", shape);
  const auto space = static_cast<double>(shape.size(2, shape.rank()));
  const double inputs = static_cast<double>(shape[1]) * space, outputs = static_cast<double>(shape[0]) * space;
  const double factor = options_.factor_type == "in"    ? inputs
                        : options_.factor_type == "out" ? outputs
                                                        : (inputs + outputs) / 2;
  const double scale = factor > 0 ? std::sqrt(options_.magnitude / factor) : 0;
  if (options_.rnd_type == "uniform")
    fill_uniform(desc, array, scale);
  else
    fill_normal(desc, array, scale);
}

}  // namespace init
}  // namespace symbind
