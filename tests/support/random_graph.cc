#include "tests/support/random_graph.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <random>

#include "symbind/symbind.h"

namespace symbind::testing {
namespace {

// A result that later operators may read; `magnitude` is a rough bound of its values.
struct Value {
  Symbol symbol;
  std::vector<int64_t> shape;
  double magnitude;
};

class Generator {
 public:
  explicit Generator(uint64_t seed) : engine_(seed * 0x9E3779B97F4A7C15u + 0x5DEECE66Du) {
    const int64_t batch = pick({1, 2, 3, 4});
    add_input({batch, pick({3, 5, 8, 16}), pick({4, 5, 6, 8}), pick({4, 5, 7, 8})});
    if (chance(0.3)) add_input({batch, pick({4, 7, 16})});
    grouped_ = chance(0.15);
  }

  RandomGraph make(uint64_t seed, int size) {
    for (int tries = 0; operators_ < size && tries < 20 * size; ++tries) {
      const AttrScope scope(Attributes{{"ctx_group", grouped_ && chance(0.5) ? "far" : "near"}});
      if (chance(0.45))
        grow_motif();
      else
        grow(recent());
    }
    RandomGraph graph{Symbol::group(outputs()), {}, {}, grouped_, seed};
    const auto arguments = graph.symbol.list_arguments();
    for (const auto& [name, shape] : inputs_)
      if (std::count(arguments.begin(), arguments.end(), name)) graph.inputs[name] = shape;
    for (const std::string& name : arguments)
      graph.grad_req[name] = chance(0.7) ? "write" : chance(0.5) ? "add" : "null";
    return graph;
  }

 private:
  // ---- dice ---------------------------------------------------------------------------------------------------------
  bool chance(double probability) { return std::uniform_real_distribution<>(0, 1)(engine_) < probability; }
  int64_t between(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(engine_); }
  template <class T>
  T pick(std::initializer_list<T> choices) {
    return *(choices.begin() + between(0, static_cast<int64_t>(choices.size()) - 1));
  }
  const Value& any() { return values_[static_cast<size_t>(between(0, static_cast<int64_t>(values_.size()) - 1))]; }
  // Mostly one of the last few, so that networks are deep.
  Value recent() {
    if (chance(0.25)) return any();
    const auto last = static_cast<int64_t>(values_.size()) - 1;
    return values_[static_cast<size_t>(between(std::max<int64_t>(0, last - 2), last))];
  }
  std::optional<Value> another(const std::function<bool(const Value&)>& fits) {
    std::vector<const Value*> found;
    for (const Value& value : values_)
      if (fits(value)) found.push_back(&value);
    if (found.empty()) return {};
    return *found[static_cast<size_t>(between(0, static_cast<int64_t>(found.size()) - 1))];
  }

  // ---- building -----------------------------------------------------------------------------------------------------
  std::string fresh(const std::string& kind) { return join(kind, names_++); }

  Symbol add_variable(const std::vector<int64_t>& shape) {
    const std::string name = fresh("input");
    inputs_[name] = Shape(shape);
    return Symbol::variable(name);
  }
  void add_input(const std::vector<int64_t>& shape) { values_.push_back({add_variable(shape), shape, 1}); }

  // Every output of a new operator becomes a value; nothing happens when its shapes do not go together.
  std::optional<Value> add(const Symbol& symbol, double magnitude) {
    std::vector<std::vector<int64_t>> shapes;
    try {
      NamedShapes known;
      for (const std::string& name : symbol.list_arguments())
        if (inputs_.contains(name)) known[name] = inputs_.at(name);
      shapes = infer_shape(symbol, known).outputs;
    } catch (const Error&) {
      return {};
    }
    for (const auto& shape : shapes)
      if (Shape(shape).size() == 0 || Shape(shape).size() > 4000 || shape.empty()) return {};
    ++operators_;
    for (size_t i = 0; i < shapes.size(); ++i) values_.push_back({symbol[i], shapes[i], magnitude});
    if (magnitude > 6) {
      ++operators_;
      values_.push_back({symbol[0] * (1 / magnitude), shapes[0], 1});
    }
    return values_.back();
  }

  std::optional<Value> convolve(const Value& x) {
    if (x.shape.size() != 4) return {};
    Convolution params;
    const int64_t kernel = pick({1, 1, 3, 3, 5, 2});
    params.kernel = {kernel, kernel};
    if (chance(0.1)) params.kernel = {1, kernel};
    if (const int64_t pad = chance(0.6) ? kernel / 2 : between(0, 1); pad > 0) params.pad = {pad, pad};
    if (chance(0.2)) params.stride = {2, 2};
    if (chance(0.07)) params.dilate = {2, 2};
    params.num_filter = chance(0.4) ? x.shape[1] : pick<int64_t>({3, 8, 16, 16, 24, 32, 7, 1});
    params.no_bias = chance(0.5);
    if (chance(0.12) && x.shape[1] % 2 == 0 && params.num_filter % 2 == 0) params.num_group = 2;
    if (chance(0.05) && params.num_filter == x.shape[1]) params.num_group = x.shape[1];
    const std::string name = fresh("conv");
    const double magnitude = x.magnitude + 0.5;
    // Sometimes the weights of an earlier one.
    const auto fits = [&](const auto& weight) { return weight.channels == x.shape[1]; };
    if (const auto found = std::find_if(weights_.begin(), weights_.end(), fits);
        found != weights_.end() && chance(0.3)) {
      params.num_group = 1;
      params.kernel = found->kernel;
      params.num_filter = found->filters;
      return add(convolution({{"data", x.symbol}, {"weight", found->symbol}}, params, name), magnitude);
    }
    const Symbol weight = Symbol::variable(name + "_weight");
    const auto made = add(convolution({{"data", x.symbol}, {"weight", weight}}, params, name), magnitude);
    if (made && params.num_group == 1) weights_.push_back({weight, x.shape[1], params.num_filter, params.kernel});
    return made;
  }

  std::optional<Value> normalise(const Value& x) {
    if (x.shape.size() < 2 || Shape(x.shape).size() / x.shape[1] < 4) return {};
    BatchNorm params;
    params.fix_gamma = chance(0.4);
    params.use_global_stats = chance(0.2);
    params.output_mean_var = chance(0.07);
    params.eps = pick({1e-3, 2e-3, 1e-2});
    params.momentum = pick({0.9, 0.5});
    const Symbol norm = batch_norm(x.symbol, params, fresh("bn"));
    const auto made = add(norm, 3);
    return made && params.output_mean_var ? values_[values_.size() - 3] : made;
  }

  std::optional<Value> activate(const Value& x) {
    if (chance(0.1)) return add(leaky_relu(x.symbol, {.act_type = pick<std::string>({"leaky", "elu"})}), x.magnitude);
    const auto type = pick<std::string>({"relu", "relu", "relu", "sigmoid", "tanh", "softrelu"});
    return add(activation(x.symbol, {.act_type = type}, fresh(type)), type == "relu" ? x.magnitude : 1);
  }

  std::optional<Value> pool(const Value& x) {
    if (x.shape.size() != 4) return {};
    Pooling params;
    params.pool_type = pick<std::string>({"max", "avg"});
    params.global_pool = chance(0.15);
    const int64_t kernel = between(2, 3);
    params.kernel = {kernel, kernel};
    const int64_t stride = between(1, 2);
    params.stride = {stride, stride};
    if (chance(0.5)) params.pad = {1, 1};
    // Otherwise a window may lie wholly beside the image: the maximum of nothing.
    if ((kernel == 3 || params.pad.empty()) && std::min(x.shape[2], x.shape[3]) >= kernel && chance(0.3))
      params.pooling_convention = "full";
    if (params.pool_type == "avg" && chance(0.4)) params.count_include_pad = chance(0.5);
    return add(pooling(x.symbol, params, fresh("pool")), x.magnitude);
  }

  std::optional<Value> combine(const Value& x) {
    auto y = another([&](const Value& value) { return value.shape == x.shape; });
    if (chance(0.1)) y = Value{add_variable(x.shape), x.shape, 1};
    switch (between(0, 5)) {
      case 0:
        return add(elemwise_mul(x.symbol, y->symbol), x.magnitude * y->magnitude);
      case 1:  // but nothing from itself: zeros are a poor test
        if (y->symbol.entries()[0].node == x.symbol.entries()[0].node) return {};
        return add(elemwise_sub(x.symbol, y->symbol), x.magnitude + y->magnitude);
      case 2:
        return add(add_n({x.symbol, y->symbol, x.symbol}, {.num_args = 3}, fresh("add_n")),
                   2 * x.magnitude + y->magnitude);
      default:
        return add(elemwise_add(x.symbol, y->symbol), x.magnitude + y->magnitude);
    }
  }

  std::optional<Value> with_number(const Value& x) {
    switch (between(0, 4)) {
      case 0:
        return add(x.symbol + 0.25, x.magnitude + 0.25);
      case 1:
        return add(1.5 - x.symbol, x.magnitude + 1.5);
      case 2:
        return add(-x.symbol, x.magnitude);
      case 3:
        return add(x.symbol / 1.25, x.magnitude);
      default:
        return add(x.symbol * 0.75, x.magnitude);
    }
  }

  std::optional<Value> join_up(const Value& x) {
    const size_t axis = chance(0.85) ? 1 : static_cast<size_t>(between(0, static_cast<int64_t>(x.shape.size()) - 1));
    if (axis >= x.shape.size()) return {};
    std::vector<Symbol> parts{x.symbol};
    double magnitude = x.magnitude;
    for (int64_t i = between(1, 2); i > 0; --i) {
      const auto y = another([&](const Value& value) {
        if (value.shape.size() != x.shape.size()) return false;
        for (size_t k = 0; k < x.shape.size(); ++k)
          if (k != axis && value.shape[k] != x.shape[k]) return false;
        return true;
      });
      parts.push_back(y->symbol);
      magnitude = std::max(magnitude, y->magnitude);
    }
    return add(concat(parts, {.num_args = static_cast<int64_t>(parts.size()), .dim = static_cast<int64_t>(axis)},
                      fresh("concat")),
               magnitude);
  }

  std::optional<Value> cut(const Value& x) {
    const int64_t axis = chance(0.7) ? 1 : between(0, static_cast<int64_t>(x.shape.size()) - 1);
    if (axis >= static_cast<int64_t>(x.shape.size())) return {};
    const int64_t extent = x.shape[static_cast<size_t>(axis)];
    if (extent < 2) return {};
    if (extent % 2 == 0 && chance(0.5))
      return add(slice_channel(x.symbol, {.num_outputs = 2, .axis = axis}, fresh("split")), x.magnitude);
    const int64_t begin = chance(0.5) ? 0 : between(0, extent - 2);
    return add(slice_axis(x.symbol, {.axis = axis, .begin = begin, .end = between(begin + 1, extent)}), x.magnitude);
  }

  std::optional<Value> rearrange(const Value& x) {
    if (x.shape.size() == 4) switch (between(0, 5)) {
        case 0:
          return add(transpose(x.symbol, {.axes = {0, 2, 3, 1}}), x.magnitude);
        case 1:
          return add(transpose(x.symbol, {.axes = {0, 1, 3, 2}}), x.magnitude);
        case 2:
          return add(reshape(x.symbol, {.shape = {0, 0, -1}}), x.magnitude);
        case 3:
          return add(reshape(x.symbol, {.shape = {0, -1, x.shape[2], x.shape[3]}}), x.magnitude);
        case 4:
          return add(reshape(x.symbol, {.shape = {0, x.shape[2], -1, x.shape[3]}}), x.magnitude);
        default:
          return add(flatten(x.symbol), x.magnitude);
      }
    if (x.shape.size() == 3)
      return chance(0.5) ? add(transpose(x.symbol, {.axes = {0, 2, 1}}), x.magnitude)
                         : add(expand_dims(x.symbol, {.axis = between(0, 3)}), x.magnitude);
    if (x.shape.size() == 2 && x.shape[1] % 4 == 0)
      return add(reshape(x.symbol, {.shape = {0, -1, 2, 2}}), x.magnitude);
    return chance(0.5) ? add(transpose(x.symbol), x.magnitude) : add(flatten(x.symbol), x.magnitude);
  }

  std::optional<Value> connect(const Value& x) {
    FullyConnected params;
    params.num_hidden = pick({4, 7, 8, 16});
    params.no_bias = chance(0.4);
    params.flatten = chance(0.8);
    return add(fully_connected(x.symbol, params, fresh("fc")), x.magnitude + 0.5);
  }

  std::optional<Value> spread(const Value& x) {
    std::vector<int64_t> shape(x.shape.size(), 1);
    const size_t axis = shape.size() > 1 && chance(0.8) ? 1 : 0;
    shape[axis] = x.shape[axis];
    const Symbol other = add_variable(shape);
    if (chance(0.5)) return add(broadcast_mul(x.symbol, other), x.magnitude);
    return chance(0.5) ? add(broadcast_add(x.symbol, other), x.magnitude + 1)
                       : add(broadcast_sub(other, x.symbol), x.magnitude + 1);
  }

  std::optional<Value> gather_up(const Value& x) {
    const auto rank = static_cast<int64_t>(x.shape.size());
    const Tuple axes = rank == 4 && chance(0.5) ? Tuple{2, 3} : Tuple{between(0, rank - 1)};
    if (rank < 2) return {};
    return chance(0.7) ? add(mean(x.symbol, {.axis = axes, .keepdims = chance(0.5)}), x.magnitude)
                       : add(sum(x.symbol, {.axis = axes, .keepdims = chance(0.5)}), 4 * x.magnitude);
  }

  std::optional<Value> grow(const Value& x) {
    switch (between(0, 23)) {
      case 0:
      case 1:
      case 2:
      case 3:
        return convolve(x);
      case 4:
      case 5:
        return normalise(x);
      case 6:
      case 7:
      case 8:
        return activate(x);
      case 9:
        return pool(x);
      case 10:
      case 11:
      case 12:
        return combine(x);
      case 13:
      case 14:
        return with_number(x);
      case 15:
        return join_up(x);
      case 16:
        return cut(x);
      case 17:
        return rearrange(x);
      case 18:
        return connect(x);
      case 19:
        if (grouped_) return {};  // devices draw different numbers
        return add(dropout(x.symbol, {.p = 0.25}, fresh("drop")), 1.4 * x.magnitude);
      case 20:
        return spread(x);
      case 21:
        return gather_up(x);
      case 22:
        return add(apply("BlockGrad", x.symbol), x.magnitude);
      default:
        return add(square(x.symbol), x.magnitude * x.magnitude);
    }
  }

  // The sequences that passes look for, with every now and then a part left out or another reader in the middle.
  void grow_motif() {
    using Step = std::optional<Value> (Generator::*)(const Value&);
    static const std::vector<std::vector<Step>> motifs{
        {&Generator::convolve, &Generator::normalise, &Generator::activate},
        {&Generator::normalise, &Generator::activate, &Generator::convolve},
        {&Generator::normalise, &Generator::convolve},
        {&Generator::convolve, &Generator::combine, &Generator::activate},
        {&Generator::convolve, &Generator::normalise, &Generator::combine, &Generator::activate},
        {&Generator::combine, &Generator::with_number, &Generator::activate, &Generator::combine},
        {&Generator::connect, &Generator::activate},
        {&Generator::convolve, &Generator::activate, &Generator::pool},
        {&Generator::convolve, &Generator::join_up},
        {&Generator::cut, &Generator::activate, &Generator::combine},
    };
    Value x = recent();
    for (const Step step : motifs[static_cast<size_t>(between(0, static_cast<int64_t>(motifs.size()) - 1))]) {
      if (chance(0.08)) continue;
      if (const auto made = (this->*step)(x)) x = *made;
    }
  }

  std::vector<Symbol> outputs() {
    std::vector<Symbol> found;
    const auto take = [&](const Value& value) {
      const Entry& wanted = value.symbol.entries()[0];
      const bool known = std::any_of(found.begin(), found.end(), [&](const Symbol& other) {
        return other.entries()[0].node == wanted.node && other.entries()[0].index == wanted.index;
      });
      if (!known) found.push_back(value.symbol);
    };
    take(values_.back());
    for (int64_t more = between(0, 3); more > 0; --more) take(chance(0.5) ? recent() : any());
    return found;
  }

  std::mt19937_64 engine_;
  std::vector<Value> values_;
  struct Weight {
    Symbol symbol;
    int64_t channels, filters;
    Tuple kernel;
  };
  std::vector<Weight> weights_;
  NamedShapes inputs_;
  int operators_ = 0, names_ = 0;
  bool grouped_ = false;  // some operators on another device than others
};

std::vector<double> uniform(uint64_t seed, const std::string& name, int64_t count, double low, double high) {
  std::mt19937_64 engine(seed ^ std::hash<std::string>()(name));
  std::uniform_real_distribution<> distribution(low, high);
  std::vector<double> values(static_cast<size_t>(count));
  for (double& value : values) value = static_cast<float>(distribution(engine));  // the same in every type
  return values;
}

}  // namespace

RandomGraph random_graph(uint64_t seed, int size) { return Generator(seed).make(seed, size); }

ExecutorPtr bind_random_graph(const RandomGraph& graph, Context context, const SimpleBindOptions& options,
                              DType dtype) {
  SimpleBindOptions with_requests = options;
  std::map<std::string, std::string> requests;
  NamedShapes shapes;
  for (const std::string& name : graph.symbol.list_arguments()) {  // a part of the graph may have fewer
    requests[name] = graph.grad_req.at(name);
    with_requests.type_dict[name] = dtype;
    if (graph.inputs.contains(name)) shapes[name] = graph.inputs.at(name);
  }
  with_requests.grad_req = requests;
  auto executor = simple_bind(graph.symbol, context, shapes, with_requests);
  for (const auto& [name, array] : executor->arg_dict()) {
    const Shape& shape = array.shape();
    const bool gamma = name.ends_with("gamma");
    auto values = uniform(graph.seed, name, array.size(), gamma ? 0.5 : -1, gamma ? 1.5 : 1);
    const double inputs = name.ends_with("weight") ? static_cast<double>(shape.size() / shape[0]) : 1;
    for (double& value : values) value = static_cast<float>(value / std::sqrt(inputs));
    array.copy_from(values);
  }
  for (const auto& [name, array] : executor->aux_dict()) {
    const bool variance = name.ends_with("var");
    array.copy_from(uniform(graph.seed, name, array.size(), variance ? 0.5 : -0.5, variance ? 1.5 : 0.5));
  }
  for (const auto& [name, array] : executor->grad_dict())
    array.copy_from(uniform(graph.seed + 1, name, array.size(), -1, 1));
  return executor;
}

}  // namespace symbind::testing
