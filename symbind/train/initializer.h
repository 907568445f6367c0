// The first values of parameters. An initializer looks at a parameter's name: weights are its own business, biases and
// the like have one usual value. A variable that carries an initializer of its own (its __init__ attribute) gets that
// one. All draw from host_random(): seed(n) makes them reproducible, on every device and with any number of threads.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "symbind/core/ndarray.h"
#include "symbind/graph/node.h"

namespace symbind {

// The parameter to be initialised, and its variable's attributes (Symbol::attr_dict).
struct InitDesc {
  std::string name;
  Attributes attrs = {};
};

class Initializer {
 public:
  virtual ~Initializer() = default;

  // By the __init__ attribute, else by the end of the name: weight, bias, gamma, beta, min, max. Any other name fails.
  void operator()(const InitDesc& desc, NDArray& array) const;
  // By the name alone, as old programs do it: besides the above, moving_mean, moving_var, moving_inv_var and
  // moving_avg, and names that begin with upsampling (bilinear interpolation) or stn_loc (the identity).
  void operator()(const std::string& name, NDArray& array) const;

  // The text an __init__ attribute holds: ["uniform", {"scale": 0.07}]
  virtual std::string dumps() const = 0;

 protected:
  virtual void init_weight(const InitDesc& desc, NDArray& array) const = 0;
  virtual void init_bias(const InitDesc& desc, NDArray& array) const;
  virtual void init_gamma(const InitDesc& desc, NDArray& array) const;
  virtual void init_beta(const InitDesc& desc, NDArray& array) const;
  virtual void init_default(const InitDesc& desc, NDArray& array) const;  // fails

 private:
  bool init_by_ending(const InitDesc& desc, NDArray& array) const;
};

using InitializerPtr = std::shared_ptr<const Initializer>;

// From the text of dumps(), or from a name alone: "zeros". Fails on an unknown name, listing those there are.
InitializerPtr create_initializer(std::string_view text);

// Makes an initializer of one's own known to create_initializer, under a name in lower case. The factory receives the
// text of the JSON object with its arguments.
using InitializerFactory = std::function<InitializerPtr(const std::string& arguments)>;
void register_initializer(const std::string& name, InitializerFactory factory);

namespace init {

class Zero final : public Initializer {
 public:
  std::string dumps() const override;

 private:
  void init_weight(const InitDesc& desc, NDArray& array) const override;
};

class One final : public Initializer {
 public:
  std::string dumps() const override;

 private:
  void init_weight(const InitDesc& desc, NDArray& array) const override;
};

class Constant final : public Initializer {
 public:
  explicit Constant(double value) : value_(value) {}
  std::string dumps() const override;

 private:
  void init_weight(const InitDesc& desc, NDArray& array) const override;
  double value_;
};

// Uniform between -scale and scale.
class Uniform final : public Initializer {
 public:
  explicit Uniform(double scale = 0.07) : scale_(scale) {}
  std::string dumps() const override;

 private:
  void init_weight(const InitDesc& desc, NDArray& array) const override;
  double scale_;
};

struct XavierOptions {
  std::string rnd_type = "uniform";  // or "gaussian"
  std::string factor_type = "avg";   // of the numbers of inputs and outputs; or "in", "out"
  double magnitude = 3;
};

// Keeps the scale of activations and gradients alike in all layers: uniform between ∓√(magnitude / factor), or normal
// with that deviation.
class Xavier final : public Initializer {
 public:
  explicit Xavier(XavierOptions options = {});
  std::string dumps() const override;

 private:
  void init_weight(const InitDesc& desc, NDArray& array) const override;
  XavierOptions options_;
};

}  // namespace init
}  // namespace symbind
