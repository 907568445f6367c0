// Initial values of parameters. An initializer decides by a parameter's name: weights get values of its kind, biases
// and the like a fixed value. A variable with its own initializer (its __init__ attribute) uses that one. All draw from
// host_random(): seed(n) makes them reproducible, on every device and with any number of threads.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "symbind/core/ndarray.h"
#include "symbind/graph/node.h"

namespace SYMBIND_API symbind {

class Initializer;

// The parameter to be initialised, and its variable's attributes (Symbol::attr_dict).
struct InitDesc {
  std::string name;
  Attributes attrs = {};
  const Initializer* global_init = nullptr;  // the initializer called first, when a variable's own one runs
};

class Initializer {
 public:
  virtual ~Initializer() = default;

  // By the __init__ attribute, else by the end of the name: weight, bias, gamma, beta, min, max. Any other name fails.
  virtual void operator()(const InitDesc& desc, NDArray& array) const;
  // By the name alone, as old programs do: besides the above, moving_mean, moving_var, moving_inv_var and moving_avg,
  // and names that start with upsampling (bilinear interpolation) or stn_loc (the identity).
  virtual void operator()(const std::string& name, NDArray& array) const;

  // Initializes as a weight, whatever the name: how a variable's own initializer is applied.
  void as_weight(const InitDesc& desc, NDArray& array) const { init_weight(desc, array); }

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

// From the text of dumps(), or from a name alone: "zeros". Fails on an unknown name, listing the known ones.
InitializerPtr create_initializer(std::string_view text);

// Registers a user-defined initializer with create_initializer, under a name in lower case. The factory receives the
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

// One value everywhere; or the values of an array, broadcast along its axes of extent 1 and along missing leading axes.
class Constant final : public Initializer {
 public:
  explicit Constant(double value) : values_{value} {}
  explicit Constant(const NDArray& values);
  Constant(std::vector<double> values, Shape shape);
  std::string dumps() const override;

 private:
  void init_weight(const InitDesc& desc, NDArray& array) const override;
  std::vector<double> values_;
  Shape shape_ = Shape(std::vector<int64_t>{});
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

// Normal with standard deviation sigma.
class Normal final : public Initializer {
 public:
  explicit Normal(double sigma = 0.01) : sigma_(sigma) {}
  std::string dumps() const override;

 private:
  void init_weight(const InitDesc& desc, NDArray& array) const override;
  double sigma_;
};

struct XavierOptions {
  std::string rnd_type = "uniform";  // or "gaussian"
  std::string factor_type = "avg";   // of the numbers of inputs and outputs; or "in", "out"
  double magnitude = 3;
};

// Keeps the scale of activations and gradients alike in all layers: uniform between ∓√(magnitude / factor), or normal
// with that standard deviation.
class Xavier final : public Initializer {
 public:
  explicit Xavier(XavierOptions options = {});
  std::string dumps() const override;

 private:
  void init_weight(const InitDesc& desc, NDArray& array) const override;
  XavierOptions options_;
};

// Xavier's normal one, for layers followed by a leaky rectifier of that slope: magnitude 2 / (1 + slope²).
class MSRAPrelu final : public Initializer {
 public:
  explicit MSRAPrelu(std::string factor_type = "avg", double slope = 0.25);
  std::string dumps() const override;

 private:
  void init_weight(const InitDesc& desc, NDArray& array) const override;
  std::string factor_type_;
  double slope_;
};

// Orthonormal rows times scale, or columns where these are fewer; axes after the first count as one.
class Orthogonal final : public Initializer {
 public:
  explicit Orthogonal(double scale = 1.414, std::string rand_type = "uniform");  // or "normal"
  std::string dumps() const override;

 private:
  void init_weight(const InitDesc& desc, NDArray& array) const override;
  double scale_;
  std::string rand_type_;
};

// For a deconvolution that enlarges images.
class Bilinear final : public Initializer {
 public:
  std::string dumps() const override;

 private:
  void init_weight(const InitDesc& desc, NDArray& array) const override;
};

// The bias of an LSTM: zero, but for its forget gate. Meant as a variable's own initializer.
class LSTMBias final : public Initializer {
 public:
  explicit LSTMBias(double forget_bias = 1.0) : forget_bias_(forget_bias) {}
  std::string dumps() const override;

 private:
  void init_weight(const InitDesc& desc, NDArray& array) const override;
  double forget_bias_;
};

struct FusedRNNOptions {
  InitializerPtr init = nullptr;  // for the matrices and biases inside; none: the global initializer
  int64_t num_hidden = 0;
  int64_t num_layers = 0;
  std::string mode;  // "rnn_relu", "rnn_tanh", "lstm" or "gru"
  bool bidirectional = false;
  double forget_bias = 1.0;  // of an LSTM
};

// The one vector that holds all parameters of a fused recurrent layer. Each matrix and bias of each gate inside is
// initialised by itself, under a name like l0_i2h_f_weight (l: forwards, r: backwards).
class FusedRNN final : public Initializer {
 public:
  explicit FusedRNN(FusedRNNOptions options);
  std::string dumps() const override;

 private:
  void init_weight(const InitDesc& desc, NDArray& array) const override;
  FusedRNNOptions options_;
};

// Values from a given map by name, ignoring the prefixes "arg:" and "aux:"; names not in the map use the default
// initializer.
class Load final : public Initializer {
 public:
  explicit Load(const NamedArrays& params, InitializerPtr default_init = nullptr, bool verbose = false);
  explicit Load(const std::string& path, InitializerPtr default_init = nullptr, bool verbose = false);
  void operator()(const InitDesc& desc, NDArray& array) const override;
  void operator()(const std::string& name, NDArray& array) const override;
  std::string dumps() const override;  // fails: it holds arrays

 private:
  void init_weight(const InitDesc& desc, NDArray& array) const override;
  bool load(const std::string& name, NDArray& array) const;
  NamedArrays params_;
  InitializerPtr default_init_;
  bool verbose_;
};

// The initializer of the first regular expression that matches the beginning of the name. It may be missing (null) for
// expressions that match none.
class Mixed final : public Initializer {
 public:
  Mixed(const std::vector<std::string>& patterns, const std::vector<InitializerPtr>& initializers);
  void operator()(const InitDesc& desc, NDArray& array) const override;
  void operator()(const std::string& name, NDArray& array) const override;
  std::string dumps() const override;  // fails: MXNet has no text for it

 private:
  void init_weight(const InitDesc& desc, NDArray& array) const override;
  const Initializer& initializer_of(const std::string& name) const;
  struct Choice {
    std::string pattern;
    std::function<bool(const std::string& name)> matches;
    InitializerPtr initializer;
  };
  std::vector<Choice> choices_;
};

}  // namespace init
}  // namespace symbind
