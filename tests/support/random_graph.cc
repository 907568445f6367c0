#include "tests/support/random_graph.h"

#include <algorithm>
#include <cmath>

#include "tests/support/random_graph_generator.h"

namespace symbind::testing {

RandomGraphGenerator::RandomGraphGenerator(uint64_t seed, bool large)
    : engine_(seed * 0x9E3779B97F4A7C15u + 0x5DEECE66Du), most_elements_(large ? 100'000 : 4000) {
  const int64_t batch = pick({1, 2, 3, 4}), channels = large ? pick({16, 32, 48}) : pick({3, 5, 8, 16});
  if (large)
    add_input({batch, channels, pick({12, 15, 20}), pick({12, 17, 24})});
  else if (chance(0.8))
    add_input({batch, channels, pick({4, 5, 6, 8}), pick({4, 5, 7, 8})});
  else if (chance(0.5))
    add_input({batch, channels, pick({5, 8, 12})});
  else
    add_input({batch, channels, pick({2, 3}), pick({3, 4}), pick({3, 5})});
  if (chance(0.3)) add_input({batch, pick({4, 7, 16})});
  grouped_ = chance(0.15);
  mirrored_ = chance(0.15);
}

RandomGraph RandomGraphGenerator::make(uint64_t seed, int size) {
  for (int tries = 0; operators_ < size && tries < 20 * size; ++tries) {
    Attributes attributes{{"ctx_group", grouped_ && chance(0.5) ? "far" : "near"}};
    if (mirrored_ && chance(0.5)) attributes["force_mirroring"] = "True";
    const AttrScope scope(attributes);
    if (chance(0.45))
      grow_motif();
    else
      grow(recent());
  }
  RandomGraph graph{Symbol::group(outputs()), {}, {}, grouped_, seed};
  const auto arguments = graph.symbol.list_arguments();
  for (const auto& [name, shape] : inputs_)
    if (std::count(arguments.begin(), arguments.end(), name)) graph.inputs[name] = shape;
  for (const std::string& name : arguments) graph.grad_req[name] = chance(0.7) ? "write" : chance(0.5) ? "add" : "null";
  return graph;
}

RandomValue RandomGraphGenerator::recent() {
  if (chance(0.25)) return any_of(values_);
  const auto last = static_cast<int64_t>(values_.size()) - 1;
  return values_[static_cast<size_t>(between(std::max<int64_t>(0, last - 2), last))];
}

std::optional<RandomValue> RandomGraphGenerator::another(const std::function<bool(const Value&)>& fits) {
  std::vector<Value> found;
  std::copy_if(values_.begin(), values_.end(), std::back_inserter(found), fits);
  if (found.empty()) return {};
  return any_of(found);
}

Symbol RandomGraphGenerator::add_variable(const std::vector<int64_t>& shape, const std::string& kind) {
  const std::string name = fresh(kind);
  inputs_[name] = Shape(shape);
  return Symbol::variable(name);
}

std::optional<RandomValue> RandomGraphGenerator::add(const Symbol& symbol, double magnitude) {
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
    if (Shape(shape).size() == 0 || Shape(shape).size() > most_elements_ || shape.empty()) return {};
  ++operators_;
  for (size_t i = 0; i < shapes.size(); ++i) values_.push_back({symbol[i], shapes[i], magnitude});
  if (magnitude > 6) {
    ++operators_;
    values_.push_back({symbol[0] * (1 / magnitude), shapes[0], 1});
  }
  return values_.back();
}

std::optional<RandomValue> RandomGraphGenerator::grow(const Value& x) {
  using Step = Made (RandomGraphGenerator::*)(const Value&);
  struct Kind {
    Step step;
    int weight;
  };
  using G = RandomGraphGenerator;
  static const std::vector<Kind> kinds{
      {&G::convolve, 8}, {&G::deconvolve, 1},  {&G::connect, 3}, {&G::normalise, 4}, {&G::normalise_otherwise, 2},
      {&G::activate, 6}, {&G::pool, 3},        {&G::drop, 2},    {&G::lose, 1},      {&G::combine, 6},
      {&G::map, 4},      {&G::with_number, 4}, {&G::join_up, 2}, {&G::cut, 2},       {&G::rearrange, 2},
      {&G::enlarge, 1},  {&G::multiply, 1},    {&G::spread, 2},  {&G::gather_up, 2}};
  int sum = 0;
  for (const Kind& kind : kinds) sum += kind.weight;
  int64_t left = between(0, sum - 1);
  for (const Kind& kind : kinds)
    if ((left -= kind.weight) < 0) return (this->*kind.step)(x);
  return {};
}

// The sequences that passes look for, sometimes with a part left out or another reader in the middle.
void RandomGraphGenerator::grow_motif() {
  using Step = Made (RandomGraphGenerator::*)(const Value&);
  using G = RandomGraphGenerator;
  static const std::vector<std::vector<Step>> motifs{
      {&G::convolve, &G::normalise, &G::activate},
      {&G::normalise, &G::activate, &G::convolve},
      {&G::normalise, &G::convolve},
      {&G::convolve, &G::combine, &G::activate},
      {&G::convolve, &G::normalise, &G::combine, &G::activate},
      {&G::combine, &G::with_number, &G::activate, &G::combine},
      {&G::combine, &G::map, &G::with_number, &G::map},
      {&G::connect, &G::activate},
      {&G::convolve, &G::activate, &G::pool},
      {&G::convolve, &G::join_up},
      {&G::cut, &G::activate, &G::combine},
  };
  Value x = recent();
  for (const Step step : any_of(motifs)) {
    if (chance(0.08)) continue;
    if (const auto made = (this->*step)(x)) x = *made;
  }
}

// Sometimes an input, or the same output twice.
std::vector<Symbol> RandomGraphGenerator::outputs() {
  std::vector<Symbol> found{values_.back().symbol};
  const auto is_known = [&](const Symbol& symbol) {
    const Entry& wanted = symbol.entries()[0];
    return std::any_of(found.begin(), found.end(), [&](const Symbol& other) {
      return other.entries()[0].node == wanted.node && other.entries()[0].index == wanted.index;
    });
  };
  for (int64_t more = between(0, 3); more > 0; --more) {
    const Value value = chance(0.5) ? recent() : any_of(values_);
    if (!is_known(value.symbol) || chance(0.3)) found.push_back(value.symbol);
  }
  return found;
}

namespace {

std::vector<double> uniform(uint64_t seed, const std::string& name, int64_t count, double low, double high) {
  std::mt19937_64 engine(seed ^ std::hash<std::string>()(name));
  std::uniform_real_distribution<> distribution(low, high);
  std::vector<double> values(static_cast<size_t>(count));
  for (double& value : values) value = static_cast<float>(distribution(engine));  // the same in every type
  return values;
}

}  // namespace

RandomGraph random_graph(uint64_t seed, int size, bool large) {
  return RandomGraphGenerator(seed, large).make(seed, size);
}

ExecutorPtr bind_random_graph(const RandomGraph& graph, Context context, const SimpleBindOptions& options,
                              DType dtype) {
  SimpleBindOptions with_requests = options;
  std::map<std::string, std::string> requests;
  NamedShapes shapes;
  for (const std::string& name : graph.symbol.list_arguments()) {  // a part of the graph may have fewer
    requests[name] = graph.grad_req.at(name);
    const bool half = dtype == DType::float16 || dtype == DType::bfloat16;
    if (!half || !name.starts_with("bn")) with_requests.type_dict[name] = dtype;  // norms are in float32 then
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
