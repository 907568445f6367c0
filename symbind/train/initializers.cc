// The built-in initializers, except those of recurrent layers.
#include <functional>
#include <regex>
#include <utility>

#include "symbind/core/log.h"
#include "symbind/files/params.h"
#include "symbind/train/initializer.h"
#include "symbind/train/initializer_fill.h"
#include "symbind/train/initializer_text.h"

namespace symbind::init {

std::string Zero::dumps() const { return dump("zero"); }
void Zero::init_weight(const InitDesc&, NDArray& array) const { array.fill(0); }

std::string One::dumps() const { return dump("one"); }
void One::init_weight(const InitDesc&, NDArray& array) const { array.fill(1); }

Constant::Constant(const NDArray& values) : Constant(values.to_vector<double>(), values.shape()) {}

Constant::Constant(std::vector<double> values, Shape shape) : values_(std::move(values)), shape_(shape) {
  require(static_cast<int64_t>(values_.size()) == shape_.size(), "[initializer constant] ", values_.size(),
          " values do not fill the shape ", shape_);
}

std::string Constant::dumps() const {
  size_t next = 0;
  const std::function<std::string(int)> nested = [&](int axis) {
    if (axis == shape_.rank()) return number(values_[next++]);
    std::string text = "[";
    for (int64_t i = 0; i < shape_[axis]; ++i) text += (i ? ", " : "") + nested(axis + 1);
    return text + "]";
  };
  return dump("constant", {{"value", nested(0)}});
}

void Constant::init_weight(const InitDesc& desc, NDArray& array) const {
  if (shape_.rank() == 0) return array.fill(values_[0]);
  const Shape& target = array.shape();
  const int added = target.rank() - shape_.rank();
  bool fits = added >= 0;
  for (int axis = 0; fits && axis < shape_.rank(); ++axis)
    fits = shape_[axis] == 1 || shape_[axis] == target[axis + added];
  require(fits, where(desc), "values of shape ", shape_, " do not fill an array of shape ", target);
  std::vector<double> filled(static_cast<size_t>(target.size()));
  for (size_t i = 0; i < filled.size(); ++i) {
    auto rest = static_cast<int64_t>(i);
    int64_t from = 0, step = 1;
    for (int axis = shape_.rank() - 1; axis >= 0; --axis) {
      const int64_t extent = target[axis + added];
      if (shape_[axis] != 1) from += rest % extent * step;
      step *= shape_[axis];
      rest /= extent;
    }
    filled[i] = values_[static_cast<size_t>(from)];
  }
  array.copy_from(filled);
}

std::string Uniform::dumps() const { return dump("uniform", {{"scale", number(scale_)}}); }
void Uniform::init_weight(const InitDesc& desc, NDArray& array) const { fill_uniform(desc, array, scale_); }

std::string Normal::dumps() const { return dump("normal", {{"sigma", number(sigma_)}}); }
void Normal::init_weight(const InitDesc& desc, NDArray& array) const { fill_normal(desc, array, sigma_); }

namespace {

void check_factor_type(const char* initializer, const std::string& factor_type) {
  require(factor_type == "avg" || factor_type == "in" || factor_type == "out", "[initializer ", initializer,
          "] factor_type must be avg, in or out: ", factor_type);
}

}  // namespace

Xavier::Xavier(XavierOptions options) : options_(std::move(options)) {
  const auto& [rnd_type, factor_type, magnitude] = options_;
  require(rnd_type == "uniform" || rnd_type == "gaussian",
          "[initializer xavier] rnd_type must be uniform or gaussian: ", rnd_type);
  check_factor_type("xavier", factor_type);
  require(magnitude >= 0, "[initializer xavier] magnitude must be at least 0: ", magnitude);
}

std::string Xavier::dumps() const {
  return dump("xavier", {{"rnd_type", quoted(options_.rnd_type)},
                         {"factor_type", quoted(options_.factor_type)},
                         {"magnitude", number(options_.magnitude)}});
}

void Xavier::init_weight(const InitDesc& desc, NDArray& array) const { fill_xavier(desc, array, options_); }

MSRAPrelu::MSRAPrelu(std::string factor_type, double slope) : factor_type_(std::move(factor_type)), slope_(slope) {
  check_factor_type("msraprelu", factor_type_);
}

std::string MSRAPrelu::dumps() const {
  return dump("msraprelu", {{"factor_type", quoted(factor_type_)}, {"slope", number(slope_)}});
}

void MSRAPrelu::init_weight(const InitDesc& desc, NDArray& array) const {
  fill_xavier(desc, array,
              {.rnd_type = "gaussian", .factor_type = factor_type_, .magnitude = 2 / (1 + slope_ * slope_)});
}

Orthogonal::Orthogonal(double scale, std::string rand_type) : scale_(scale), rand_type_(std::move(rand_type)) {
  require(rand_type_ == "uniform" || rand_type_ == "normal",
          "[initializer orthogonal] rand_type must be uniform or normal: ", rand_type_);
}

std::string Orthogonal::dumps() const {
  return dump("orthogonal", {{"scale", number(scale_)}, {"rand_type", quoted(rand_type_)}});
}

void Orthogonal::init_weight(const InitDesc& desc, NDArray& array) const {
  fill_orthogonal(desc, array, scale_, rand_type_ == "normal");
}

std::string Bilinear::dumps() const { return dump("bilinear"); }
void Bilinear::init_weight(const InitDesc& desc, NDArray& array) const { fill_bilinear(desc, array); }

Load::Load(const NamedArrays& params, InitializerPtr default_init, bool verbose)
    : default_init_(std::move(default_init)), verbose_(verbose) {
  for (const auto& [name, array] : params) {
    const bool prefixed = name.starts_with("arg:") || name.starts_with("aux:");
    params_[prefixed ? name.substr(4) : name] = array;
  }
}

Load::Load(const std::string& path, InitializerPtr default_init, bool verbose)
    : Load(symbind::load(path).dict(), std::move(default_init), verbose) {}

// False if the name is missing but there is a default.
bool Load::load(const std::string& name, NDArray& array) const {
  const auto found = params_.find(name);
  if (found == params_.end()) {
    require(default_init_ != nullptr, "[initializer load] '", name,
            "' is not among the loaded parameters, and no default initializer was given");
    if (verbose_) log_info("Initialized ", name, " by default");
    return false;
  }
  require(found->second.shape() == array.shape(), "[initializer load] '", name, "' has shape ", array.shape(),
          ", the loaded one has ", found->second.shape());
  found->second.copyto(array);
  if (verbose_) log_info("Initialized ", name, " by loading");
  return true;
}

void Load::operator()(const InitDesc& desc, NDArray& array) const {
  if (!load(desc.name, array)) (*default_init_)(desc, array);
}

void Load::operator()(const std::string& name, NDArray& array) const {
  if (!load(name, array)) (*default_init_)(name, array);
}

void Load::init_weight(const InitDesc& desc, NDArray& array) const { (*this)(desc, array); }
std::string Load::dumps() const { fail("[initializer load] holds arrays: there is no text for it"); }

Mixed::Mixed(const std::vector<std::string>& patterns, const std::vector<InitializerPtr>& initializers) {
  require(patterns.size() == initializers.size(),
          "[initializer mixed] there must be an initializer per pattern: ", patterns.size(), " patterns, ",
          initializers.size(), " initializers");
  for (size_t i = 0; i < patterns.size(); ++i) {
    try {
      auto matches = [pattern = std::regex(patterns[i])](const std::string& name) {
        return std::regex_search(name, pattern, std::regex_constants::match_continuous);
      };
      choices_.push_back({patterns[i], std::move(matches), initializers[i]});
    } catch (const std::regex_error& error) {
      fail("[initializer mixed] a pattern must be a regular expression: '", patterns[i], "' (", error.what(), ")");
    }
  }
}

const Initializer& Mixed::initializer_of(const std::string& name) const {
  for (const auto& [pattern, matches, initializer] : choices_) {
    if (!matches(name)) continue;
    require(initializer != nullptr, "[initializer mixed] '", name, "' matches the pattern '", pattern,
            "', for which no initializer is given");
    return *initializer;
  }
  fail("[initializer mixed] '", name, "' matches no pattern; a last pattern '.*' matches everything");
}

void Mixed::operator()(const InitDesc& desc, NDArray& array) const { initializer_of(desc.name)(desc, array); }
void Mixed::operator()(const std::string& name, NDArray& array) const { initializer_of(name)(name, array); }
void Mixed::init_weight(const InitDesc& desc, NDArray& array) const { (*this)(desc, array); }
std::string Mixed::dumps() const { fail("[initializer mixed] there is no text for several initializers"); }

}  // namespace symbind::init
