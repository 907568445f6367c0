// Metrics by name, with arguments as text.
#include <set>
#include <string_view>
#include <utility>

#include "symbind/core/named_factories.h"
#include "symbind/graph/param.h"
#include "symbind/train/metrics.h"

namespace symbind {
namespace {

using TextArguments = std::map<std::string, std::string>;

// "softmax_output", "a, b" or "['a', 'b']"
std::vector<std::string> names_in(std::string_view text) {
  std::vector<std::string> names;
  std::string name;
  for (const char letter : text) {
    if (letter == ',') {
      names.push_back(std::exchange(name, {}));
    } else if (std::string_view(" []()'\"").find(letter) == std::string_view::npos) {
      name += letter;
    }
  }
  if (!name.empty()) names.push_back(name);
  if (names == std::vector<std::string>{"None"}) names.clear();
  return names;
}

// The arguments of one metric; arguments that remain after all known ones are taken are an error.
class Arguments {
 public:
  Arguments(std::string metric, TextArguments given) : metric_(std::move(metric)), given_(std::move(given)) {}

  template <class T>
  T take(const std::string& key, T value) {
    if (const std::optional<std::string> text = take_text(key)) try {
        parse(*text, value);
      } catch (const Error& error) {
        fail("[metric ", metric_, "] ", key, ": ", error.what());
      }
    return value;
  }
  // The options of every metric.
  EvalMetric::Options options(const std::string& usual_name) {
    EvalMetric::Options options{take<std::string>("name", usual_name)};
    if (const auto text = take_text("output_names")) options.output_names = names_in(*text);
    if (const auto text = take_text("label_names")) options.label_names = names_in(*text);
    return options;
  }
  void expect_no_more() const {
    if (!given_.empty())
      fail("[metric ", metric_, "] unknown argument '", given_.begin()->first, "'; there are ",
           comma_separated(known_));
  }

 private:
  std::optional<std::string> take_text(const std::string& key) {
    known_.insert(key);
    const auto found = given_.find(key);
    if (found == given_.end()) return std::nullopt;
    std::string text = std::move(found->second);
    given_.erase(found);
    return text;
  }
  std::string metric_;
  TextArguments given_;
  std::set<std::string> known_;
};

template <class Metric>
EvalMetricPtr simple(Arguments& arguments, const char* name) {
  return std::make_shared<Metric>(arguments.options(name));
}

// New metrics are added here.
void add_built_in(NamedFactories<MetricFactory>& factories) {
  using namespace metric;
  // make(arguments) builds the metric; it is known under every one of `names`.
  const auto put = [&](std::initializer_list<const char*> names, auto make) {
    for (const char* name : names)
      factories.add(name, [name, make](const TextArguments& given) -> EvalMetricPtr {
        Arguments arguments(name, given);
        auto made = make(arguments);
        arguments.expect_no_more();
        return made;
      });
  };
  put({"acc", "accuracy"}, [](Arguments& a) {
    const auto axis = a.take<int64_t>("axis", 1);
    return std::make_shared<Accuracy>(axis, a.options("accuracy"));
  });
  put({"top_k_accuracy", "top_k_acc", "topkaccuracy"}, [](Arguments& a) {
    const auto top_k = a.take<int64_t>("top_k", 1);
    return std::make_shared<TopKAccuracy>(top_k, a.options("top_k_accuracy"));
  });
  put({"f1"}, [](Arguments& a) {
    const auto average = a.take<std::string>("average", "macro");
    return std::make_shared<F1>(average, a.options("f1"));
  });
  put({"mcc"}, [](Arguments& a) {
    const auto average = a.take<std::string>("average", "macro");
    return std::make_shared<MCC>(average, a.options("mcc"));
  });
  put({"pearsonr", "pearsoncorrelation"}, [](Arguments& a) {
    const auto average = a.take<std::string>("average", "macro");
    return std::make_shared<PearsonCorrelation>(average, a.options("pearsonr"));
  });
  put({"ce", "crossentropy", "cross-entropy"}, [](Arguments& a) {
    const auto eps = a.take<double>("eps", 1e-12);
    return std::make_shared<CrossEntropy>(eps, a.options("cross-entropy"));
  });
  put({"nll_loss", "negativeloglikelihood"}, [](Arguments& a) {
    const auto eps = a.take<double>("eps", 1e-12);
    return std::make_shared<NegativeLogLikelihood>(eps, a.options("nll-loss"));
  });
  put({"perplexity"}, [](Arguments& a) {
    const auto ignore_label = a.take<std::optional<double>>("ignore_label", std::nullopt);
    const auto axis = a.take<int64_t>("axis", -1);
    return std::make_shared<Perplexity>(ignore_label, axis, a.options("perplexity"));
  });
  put({"mae"}, [](Arguments& a) { return simple<MAE>(a, "mae"); });
  put({"mse"}, [](Arguments& a) { return simple<MSE>(a, "mse"); });
  put({"rmse"}, [](Arguments& a) { return simple<RMSE>(a, "rmse"); });
  put({"pcc"}, [](Arguments& a) { return simple<PCC>(a, "pcc"); });
  put({"loss"}, [](Arguments& a) { return simple<Loss>(a, "loss"); });
  put({"torch"}, [](Arguments& a) { return simple<Torch>(a, "torch"); });
  put({"caffe"}, [](Arguments& a) { return simple<Caffe>(a, "caffe"); });
  put({"composite", "compositeevalmetric"},
      [](Arguments& a) { return std::make_shared<Composite>(std::vector<EvalMetricPtr>{}, a.options("composite")); });
}

NamedFactories<MetricFactory>& factories() {
  static NamedFactories<MetricFactory> all("metric", add_built_in);
  return all;
}

}  // namespace

EvalMetricPtr EvalMetric::create(const std::string& name, const TextArguments& arguments) {
  return factories().find(lower_case(name))(arguments);
}

EvalMetricPtr EvalMetric::create(const std::vector<std::string>& names) {
  auto all = std::make_shared<metric::Composite>();
  for (const std::string& name : names) all->add(create(name));
  return all;
}

void register_metric(const std::string& name, MetricFactory factory) {
  factories().add(lower_case(name), std::move(factory));
}

}  // namespace symbind
