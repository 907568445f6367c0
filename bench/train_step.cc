// The time of a whole training step (forward, backward, SGD with momentum; by an executor and operators, or through
// Module), or of a prediction. Prints one JSON row.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <sys/resource.h>
#include <unistd.h>

#include "symbind/symbind.h"

#include "examples/support/networks.h"

using namespace symbind;

namespace {

struct Case {
  Symbol symbol;
  Shape data;  // the first axis is the batch
  int64_t classes = 10;
  Shape label = {};        // none: a number for each of the batch
  int64_t vocabulary = 0;  // the data are whole numbers below it; none: normal numbers

  Shape label_shape() const { return label.rank() > 0 ? label : Shape{data[0]}; }
  std::shared_ptr<Initializer> initializer() const {
    if (vocabulary > 0) return std::make_shared<init::Uniform>(0.1);
    return std::make_shared<init::Xavier>(init::XavierOptions{.magnitude = 2});
  }
};

Case mlp() {
  Symbol net = Symbol::variable("data");
  net = activation(fully_connected(net, {.num_hidden = 128}, "fc1"), {.act_type = "relu"});
  net = activation(fully_connected(net, {.num_hidden = 64}, "fc2"), {.act_type = "relu"});
  net = fully_connected(net, {.num_hidden = 10}, "fc3");
  return {softmax_output(net, {}, "softmax"), {64, 784}};
}

Case lenet() {
  Symbol net = Symbol::variable("data");
  for (const int64_t filters : {20, 50}) {
    net = convolution(net, {.kernel = {5, 5}, .num_filter = filters});
    net = pooling(activation(net, {.act_type = "tanh"}), {.kernel = {2, 2}, .pool_type = "max", .stride = {2, 2}});
  }
  net = activation(fully_connected(flatten(net), {.num_hidden = 500}, "fc1"), {.act_type = "tanh"});
  net = fully_connected(net, {.num_hidden = 10}, "fc2");
  return {softmax_output(net, {}, "softmax"), {64, 1, 28, 28}};
}

Case resnet50() { return {networks::resnet({.depth = 50, .classes = 1000}), {32, 3, 224, 224}, 1000}; }

Case resnet50_of_one() {
  Case network = resnet50();
  network.data[0] = 1;
  return network;
}

// A layer of LSTM cells over the steps of a sequence, from operators.
std::vector<Symbol> lstm_layer(const std::vector<Symbol>& steps, int64_t hidden, const std::string& name) {
  const auto zeros_to_begin_with = [&] { return make_zeros({.shape = {0, hidden}}); };
  Symbol h = zeros_to_begin_with(), c = zeros_to_begin_with();
  const auto weight_and_bias = [&](const std::string& of) {
    return std::pair(Symbol::variable(name + of + "_weight"), Symbol::variable(name + of + "_bias"));
  };
  const auto [i2h_weight, i2h_bias] = weight_and_bias("i2h");
  const auto [h2h_weight, h2h_bias] = weight_and_bias("h2h");
  std::vector<Symbol> outputs;
  for (const Symbol& x : steps) {
    const Symbol gates = fully_connected(x, i2h_weight, i2h_bias, {.num_hidden = 4 * hidden}) +
                         fully_connected(h, h2h_weight, h2h_bias, {.num_hidden = 4 * hidden});
    const Symbol parts = slice_channel(gates, {.num_outputs = 4});
    const Symbol in = activation(parts[0], {.act_type = "sigmoid"});
    const Symbol forget = activation(parts[1], {.act_type = "sigmoid"});
    const Symbol transform = activation(parts[2], {.act_type = "tanh"});
    const Symbol out = activation(parts[3], {.act_type = "sigmoid"});
    c = forget * c + in * transform;
    h = out * activation(c, {.act_type = "tanh"});
    outputs.push_back(h);
  }
  return outputs;
}

// A language model: the next word at each of 35 steps. `layers` turns the words (batch, length, hidden) into rows.
constexpr int64_t lm_batch = 32, lm_length = 35, lm_words = 10000, lm_hidden = 200;

Case language_model(Symbol (*layers)(const Symbol& embedded)) {
  const Symbol embedded =
      embedding({{"data", Symbol::variable("data")}}, {.input_dim = lm_words, .output_dim = lm_hidden}, "embed");
  const Symbol rows = reshape(layers(embedded), {.shape = {-1, lm_hidden}});
  const Symbol words_at_all = fully_connected(rows, {.num_hidden = lm_words}, "pred");
  const Symbol label = reshape(Symbol::variable("softmax_label"), {.shape = {-1}});
  return {.symbol = softmax_output(words_at_all, label, {}, "softmax"),
          .data = {lm_batch, lm_length},
          .classes = lm_words,
          .label = {lm_batch, lm_length},
          .vocabulary = lm_words};
}

Case unrolled_lstm() {
  return language_model([](const Symbol& embedded) {
    const Symbol slices = slice_channel(embedded, {.num_outputs = lm_length, .axis = 1, .squeeze_axis = true});
    std::vector<Symbol> steps;
    for (int64_t t = 0; t < lm_length; ++t) steps.push_back(slices[static_cast<size_t>(t)]);
    for (const char* layer : {"lstm0_", "lstm1_"}) steps = lstm_layer(steps, lm_hidden, layer);
    for (Symbol& step : steps) step = expand_dims(step, {.axis = 1});
    return concat(steps, {.dim = 1});
  });
}

Case fused_lstm() {
  return language_model([](const Symbol& embedded) {
    const auto zeros_to_begin_with = [] { return make_zeros({.shape = {2, 0, lm_hidden}}); };
    const Symbol steps_first = swap_axis(embedded, {.dim1 = 0, .dim2 = 1});
    const Symbol outputs =
        rnn({steps_first, Symbol::variable("lstm_weight"), zeros_to_begin_with(), zeros_to_begin_with()},
            {.state_size = lm_hidden, .num_layers = 2, .mode = rnn_mode::lstm});
    return swap_axis(outputs, {.dim1 = 0, .dim2 = 1});
  });
}

// Inception-ResNet-v2 as published, but for widths that are no multiple of a vector: 129 in the middle blocks, and 1154
// between them.
class InceptionResnet {
 public:
  static Symbol network() {
    Symbol net = stem(Symbol::variable("data"));
    for (int i = 0; i < 10; ++i) net = block35(net);
    net = concat({conv(net, 450, {3, 3}, {0, 0}, {2, 2}),
                  conv(conv(conv(net, 256, {1, 1}), 256, {3, 3}, {1, 1}), 384, {3, 3}, {0, 0}, {2, 2}), halved(net)},
                 {.dim = 1});
    for (int i = 0; i < 20; ++i) net = block17(net);
    const Symbol narrow = conv(net, 256, {1, 1});
    net = concat({conv(narrow, 384, {3, 3}, {0, 0}, {2, 2}), conv(narrow, 288, {3, 3}, {0, 0}, {2, 2}),
                  conv(conv(narrow, 288, {3, 3}, {1, 1}), 320, {3, 3}, {0, 0}, {2, 2}), halved(net)},
                 {.dim = 1});
    for (int i = 0; i < 10; ++i) net = block8(net, i < 9);
    net = pooling(conv(net, 1536, {1, 1}), {.kernel = {1, 1}, .pool_type = "avg", .global_pool = true});
    return softmax_output(fully_connected(flatten(net), {.num_hidden = 1000}, "fc1"), {}, "softmax");
  }

 private:
  static Symbol conv(const Symbol& x, int64_t filters, Tuple kernel, Tuple pad = {0, 0}, Tuple stride = {1, 1}) {
    const Symbol y = convolution(x, {.kernel = std::move(kernel),
                                     .stride = std::move(stride),
                                     .pad = std::move(pad),
                                     .num_filter = filters,
                                     .no_bias = true});
    return activation(batch_norm(y, {.eps = 2e-5, .fix_gamma = false}), {.act_type = "relu"});
  }
  static Symbol halved(const Symbol& x) { return pooling(x, {.kernel = {3, 3}, .pool_type = "max", .stride = {2, 2}}); }
  static Symbol stem(Symbol x) {
    x = conv(x, 32, {3, 3}, {0, 0}, {2, 2});
    x = halved(conv(conv(x, 32, {3, 3}), 64, {3, 3}, {1, 1}));
    x = halved(conv(conv(x, 80, {1, 1}), 192, {3, 3}));
    const Symbol mean = pooling(x, {.kernel = {3, 3}, .pool_type = "avg", .stride = {1, 1}, .pad = {1, 1}});
    return concat({conv(x, 96, {1, 1}), conv(conv(x, 48, {1, 1}), 64, {5, 5}, {2, 2}),
                   conv(conv(conv(x, 64, {1, 1}), 96, {3, 3}, {1, 1}), 96, {3, 3}, {1, 1}), conv(mean, 64, {1, 1})},
                  {.dim = 1});
  }
  static Symbol residual(const Symbol& x, const std::vector<Symbol>& towers, int64_t filters, double scale, bool relu) {
    const Symbol up = convolution(concat(towers, {.dim = 1}), {.kernel = {1, 1}, .num_filter = filters});
    const Symbol sum = x + up * scale;
    return relu ? activation(sum, {.act_type = "relu"}) : sum;
  }
  static Symbol block35(const Symbol& x) {
    return residual(x,
                    {conv(x, 32, {1, 1}), conv(conv(x, 32, {1, 1}), 32, {3, 3}, {1, 1}),
                     conv(conv(conv(x, 32, {1, 1}), 48, {3, 3}, {1, 1}), 64, {3, 3}, {1, 1})},
                    320, 0.17, true);
  }
  static Symbol block17(const Symbol& x) {
    return residual(x,
                    {conv(x, 192, {1, 1}), conv(conv(conv(x, 129, {1, 1}), 160, {1, 7}, {0, 3}), 192, {7, 1}, {3, 0})},
                    1154, 0.1, true);
  }
  static Symbol block8(const Symbol& x, bool relu) {
    return residual(x,
                    {conv(x, 192, {1, 1}), conv(conv(conv(x, 192, {1, 1}), 224, {1, 3}, {0, 1}), 256, {3, 1}, {1, 0})},
                    2146, 0.2, relu);
  }
};

Case inception_resnet() { return {InceptionResnet::network(), {2, 3, 299, 299}, 1000}; }

// Sentences of 56 words, each a row of 300 numbers: kernels over three to five whole words, the largest answer of each.
Case text_cnn() {
  const Symbol words = Symbol::variable("data");
  std::vector<Symbol> answers;
  for (const int64_t length : {3, 4, 5}) {
    const Symbol y = activation(convolution(words, {.kernel = {length, 300}, .num_filter = 100}), {.act_type = "relu"});
    answers.push_back(pooling(y, {.kernel = {56 - length + 1, 1}, .pool_type = "max"}));
  }
  const Symbol all = dropout(flatten(concat(answers, {.dim = 1})), {.p = 0.5});
  return {softmax_output(fully_connected(all, {.num_hidden = 2}, "fc1"), {}, "softmax"), {50, 1, 56, 300}, 2};
}

const std::map<std::string, Case (*)()> cases = {{"mlp-train", mlp},
                                                 {"lenet-train", lenet},
                                                 {"lenet-infer", lenet},
                                                 {"lstm-train", fused_lstm},
                                                 {"lstm-train-unrolled", unrolled_lstm},
                                                 {"resnet50-train", resnet50},
                                                 {"resnet50-infer", resnet50},
                                                 {"resnet50-infer-b1", resnet50_of_one},
                                                 {"inception-resnet-v2-infer", inception_resnet},
                                                 {"text-cnn-train", text_cnn}};

bool is_inference(const std::string& name) { return name.find("-infer") != std::string::npos; }

bool is_parameter(const std::string& name) { return name != "data" && name != "softmax_label"; }

std::map<std::string, std::string> gradients_of_parameters(const Symbol& symbol) {
  std::map<std::string, std::string> grad_req;
  for (const std::string& name : symbol.list_arguments())
    if (is_parameter(name)) grad_req[name] = "write";
  return grad_req;
}

class Training {
 public:
  Training(const Case& network, Context context, size_t memory_budget)
      : executor_(simple_bind(
            network.symbol, context, {{"data", network.data}, {"softmax_label", network.label_shape()}},
            {.grad_req = gradients_of_parameters(network.symbol), .options = {.memory_budget = memory_budget}})) {
    std::mt19937 random(1);
    const auto initializer = network.initializer();
    const NamedArrays gradients = executor_->grad_dict();
    for (auto [name, array] : executor_->arg_dict()) {
      if (!is_parameter(name)) {
        std::vector<float> values(static_cast<size_t>(array.size()));
        const int64_t whole = name == "data" ? network.vocabulary : network.classes;
        std::normal_distribution<float> normal;
        std::uniform_int_distribution<int64_t> below(0, std::max<int64_t>(whole, 1) - 1);
        for (float& value : values) value = whole > 0 ? static_cast<float>(below(random)) : normal(random);
        array.copy_from(values);
      } else {
        (*initializer)(InitDesc{name}, array);
        weights_.push_back(array);
        for (const NDArray& each : {array, gradients.at(name), zeros(array.shape(), context)}) updated_.push_back(each);
      }
    }
    update_.num_weights = static_cast<int64_t>(weights_.size());
    update_.lrs.assign(weights_.size(), 0.01);
    update_.wds.assign(weights_.size(), 1e-4);
    update_.momentum = 0.9;
    update_.rescale_grad = 1.0 / static_cast<double>(network.data[0]);
  }

  void step() {
    executor_->forward(/*is_train=*/true);
    executor_->backward();
    invoke(multi_sgd_mom_update, updated_, update_, {.out = weights_});
    waitall();
  }
  size_t arena_bytes() const { return executor_->memory().arena; }
  std::string table() const { return executor_->debug_str(); }

 private:
  ExecutorPtr executor_;
  std::vector<NDArray> weights_, updated_;  // the second: weight, gradient and momentum of each
  MultiSgdMomUpdate update_;
};

// A prediction, the result on the host.
class Prediction {
 public:
  Prediction(const Case& network, Context context)
      : executor_(simple_bind(network.symbol, context, {{"data", network.data}}, {.grad_req = "null"})) {
    const auto initializer = network.initializer();
    for (auto [name, array] : executor_->arg_dict())
      if (is_parameter(name)) (*initializer)(InitDesc{name}, array);
    for (const auto& [name, array] : executor_->aux_dict()) array.fill(name.ends_with("_var") ? 1 : 0);
    const Tuple shape(network.data.begin(), network.data.end());
    random::normal({.shape = shape}).copyto(executor_->arg_dict().at("data"));
  }

  void step() { result_ = executor_->forward(/*is_train=*/false)[0].to_vector<float>(); }
  size_t arena_bytes() const { return executor_->memory().arena; }
  size_t kept_bytes() const { return executor_->memory().kept; }
  std::string table() const { return executor_->debug_str(); }

 private:
  ExecutorPtr executor_;
  std::vector<float> result_;
};

// Training through Module, which also takes the batch in.
class ModuleTraining {
 public:
  ModuleTraining(const Case& network, Context context) : module_(network.symbol, {.context = {context}}) {
    module_.bind({{"data", network.data}}, {{"softmax_label", network.label_shape()}});
    module_.init_params({.initializer = network.initializer()});
    module_.init_optimizer(
        {.kvstore = nullptr, .optimizer_params = {{"learning_rate", 0.01}, {"momentum", 0.9}, {"wd", 1e-4}}});
    if (network.vocabulary > 0)
      batch_.data = {whole_numbers(network.data, network.vocabulary)};
    else
      batch_.data = {random::normal({.shape = Tuple(network.data.begin(), network.data.end())})};
    batch_.label = {whole_numbers(network.label_shape(), network.classes)};
  }

  static NDArray whole_numbers(const Shape& shape, int64_t below) {
    std::vector<float> values(static_cast<size_t>(shape.size()));
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i * 7919 % static_cast<size_t>(below));
    return array(values, shape);
  }

  void step() {
    module_.forward_backward(batch_);
    module_.update();
    waitall();
  }
  size_t arena_bytes() const { return module_.exec_group()->total_exec_bytes(); }
  std::string table() const { return module_.exec_group()->execs()[0]->debug_str(); }

 private:
  Module module_;
  DataBatch batch_;
};

template <class AnyTraining>
double median_ms(AnyTraining& training, double seconds) {
  using Clock = std::chrono::steady_clock;
  const auto now = [] { return Clock::now(); };
  const auto since = [&](Clock::time_point begin) { return std::chrono::duration<double>(now() - begin).count(); };
  const auto begin_warm_up = now();
  for (int i = 0; i < 10 && (i < 2 || since(begin_warm_up) < seconds); ++i) training.step();
  std::vector<double> times;
  for (const auto begin = now(); since(begin) < seconds || times.size() < 3;) {
    const auto step_begin = now();
    training.step();
    times.push_back(since(step_begin) * 1e3);
  }
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

constexpr const char* usage =
    "usage: train_step --case mlp-train|lenet-train|lstm-train|lstm-train-unrolled|resnet50-train|lenet-infer|\n"
    "                         resnet50-infer|resnet50-infer-b1|inception-resnet-v2-infer|text-cnn-train\n"
    "                  [--through executor|module] [--threads N] [--device cpu|gpu] [--batch N] [--seconds S]\n"
    "                  [--budget MIB] [--table FILE]\n"
    "--table writes the plans as tables, with the time of each step if SYMBIND_PROFILE=1 is set\n";

struct Options {
  std::string name, through = "executor", threads, device = "cpu", table;
  double seconds = 3;
  size_t memory_budget = 0;
  int64_t batch = 0;  // 0: the case's own
};

Options parse_options(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; i += 2) {
    const std::string option = argv[i];
    if (option == "--help") {
      std::cout << usage;
      std::exit(0);
    }
    require(i + 1 < argc, option, " needs a value\n", usage);
    const std::string value = argv[i + 1];
    if (option == "--case")
      options.name = value;
    else if (option == "--through")
      options.through = value;
    else if (option == "--threads")
      options.threads = value;
    else if (option == "--device")
      options.device = value;
    else if (option == "--batch")
      options.batch = std::atoll(value.c_str());
    else if (option == "--seconds")
      options.seconds = std::atof(value.c_str());
    else if (option == "--table")
      options.table = value;
    else if (option == "--budget")
      options.memory_budget = static_cast<size_t>(std::atof(value.c_str()) * (1 << 20));
    else
      fail("unknown option ", option, "\n", usage);
  }
  require(cases.contains(options.name), "which case? ", usage);
  require(options.through == "executor" || options.through == "module", "through what? ", usage);
  require(options.batch >= 0, "a batch has at least one sample\n", usage);
  require(options.device == "cpu" || options.device == "gpu", "which device? ", usage);
  return options;
}

// OpenMP reads its variables before main() begins: set, they count for a program started anew.
void start_again_with_threads(const std::string& threads, char** argv) {
  const char* now = std::getenv("OMP_NUM_THREADS");
  if (threads.empty() || (now && threads == now)) return;
  ::setenv("OMP_NUM_THREADS", threads.c_str(), 1);
  ::execv("/proc/self/exe", argv);
  fail("cannot start again with ", threads, " threads");
}

template <class AnyTraining>
AnyTraining make(const Case& network, Context context, const Options& options) {
  if constexpr (std::is_same_v<AnyTraining, Training>) {
    return {network, context, options.memory_budget};
  } else {
    require(options.memory_budget == 0, "a budget needs --through executor");
    return {network, context};
  }
}

template <class AnyTraining>
void run(const Options& options) {
  Case network = cases.at(options.name)();
  if (options.batch > 0) {
    network.data[0] = options.batch;
    if (network.label.rank() > 0) network.label[0] = options.batch;
  }
  const int64_t batch_size = network.data[0];
  const Context context = options.device == "gpu" ? gpu() : cpu();
  AnyTraining training = make<AnyTraining>(network, context, options);
  const double ms = median_ms(training, options.seconds);
  rusage usage_of_process{};
  ::getrusage(RUSAGE_SELF, &usage_of_process);
  const auto mb = [](auto bytes) { return static_cast<double>(bytes) / (1 << 20); };
  std::cout << "{\"case\": \"" << options.name << "\", \"batch\": " << batch_size << ", \"ms\": " << ms
            << ", \"per_s\": " << static_cast<double>(batch_size) / ms * 1e3
            << ", \"rss_mb\": " << usage_of_process.ru_maxrss / 1024
            << ", \"arena_mb\": " << mb(training.arena_bytes());
  if constexpr (std::is_same_v<AnyTraining, Prediction>) std::cout << ", \"kept_mb\": " << mb(training.kept_bytes());
  if (context.is_gpu()) {
    // All arrays ever alive at the same time, the arena among them, and what the pool holds beyond those now.
    const auto memory = Device::get(context).memory();
    std::cout << ", \"device_peak_mb\": " << mb(memory.peak) << ", \"device_pooled_mb\": " << mb(memory.pooled);
  }
  std::cout << "}\n";
  if (!options.table.empty()) std::ofstream(options.table) << training.table();
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Options options = parse_options(argc, argv);
    start_again_with_threads(options.threads, argv);
    if (is_inference(options.name))
      run<Prediction>(options);
    else
      options.through == "module" ? run<ModuleTraining>(options) : run<Training>(options);
  } catch (const std::exception& error) {
    std::cerr << "train_step: " << error.what() << "\n";
    return 1;
  }
}
