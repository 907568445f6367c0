#include "symbind/train/metric.h"

#include <cmath>
#include <limits>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "symbind/train/metrics.h"

#include "tests/support/arrays.h"
#include "tests/support/oracle.h"

namespace symbind {
namespace {

using testing::decode_array;
using testing::fails_with;
using testing::read_recorded;

double number_in(const nlohmann::json& value) {
  if (!value.is_string()) return value.get<double>();
  if (value == "nan") return std::numeric_limits<double>::quiet_NaN();
  return value == "-inf" ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
}

std::vector<NDArray> arrays_in(const nlohmann::json& encoded) {
  std::vector<NDArray> arrays;
  for (const auto& array : encoded) arrays.push_back(decode_array(array));
  return arrays;
}

// Both compute in float32 where the arrays are; a logarithm may differ in its last bit.
::testing::AssertionResult agrees(const EvalMetric::NameValues& actual, const nlohmann::json& expected) {
  const auto failed = [&] {
    auto result = ::testing::AssertionFailure() << "expected " << expected << ", got";
    for (const auto& [name, value] : actual) result << " " << name << "=" << value;
    return result;
  };
  if (actual.size() != expected.at("names").size()) return failed();
  for (size_t i = 0; i < actual.size(); ++i) {
    const double wanted = number_in(expected.at("values")[i]), value = actual[i].second;
    const bool same =
        std::isnan(wanted) ? std::isnan(value) : std::abs(value - wanted) <= 1e-12 + 2.4e-7 * std::abs(wanted);
    if (actual[i].first != expected.at("names")[i].get<std::string>() || !same) return failed();
  }
  return ::testing::AssertionSuccess();
}

// In MXNet the global correlation of all elements is always 0, and a local reset does not start it anew.
bool is_micro_correlation(const nlohmann::json& recorded) {
  return recorded.at("metric").get<std::string>().starts_with("pearson") &&
         recorded.at("arguments").value("average", "") == "micro";
}

std::map<std::string, std::string> arguments_of(const nlohmann::json& recorded) {
  return recorded.at("arguments").get<std::map<std::string, std::string>>();
}

void run(EvalMetric& metric, const nlohmann::json& recorded) {
  for (const auto& batch : recorded.at("batches"))
    metric.update(arrays_in(batch.at("labels")), arrays_in(batch.at("preds")));
}

TEST(Metric, AgreesWithMXNet) {
  const auto all = read_recorded("metrics.json.gz");
  ASSERT_GT(all.at("metrics").size(), 100u);
  for (const auto& recorded : all.at("metrics")) {
    SCOPED_TRACE(recorded.at("id").get<std::string>());
    const auto metric = EvalMetric::create(recorded.at("metric"), arguments_of(recorded));
    if (recorded.value("error", false)) {
      EXPECT_THROW(run(*metric, recorded), Error);
      continue;
    }
    const bool local_alone = is_micro_correlation(recorded);
    size_t step = 0;
    const auto compare = [&] {
      const auto& expected = recorded.at("steps").at(step++);
      if (local_alone && step > 2 && step < recorded.at("steps").size()) return;
      EXPECT_TRUE(agrees(metric->get(), expected.at("local"))) << "step " << step;
      if (local_alone) return;
      EXPECT_TRUE(agrees(metric->get_global(), expected.at("global"))) << "global, step " << step;
    };
    const auto& batches = recorded.at("batches");
    for (size_t i = 0; i < batches.size(); ++i) {
      metric->update(arrays_in(batches[i].at("labels")), arrays_in(batches[i].at("preds")));
      compare();
      if (i != 1) continue;
      metric->reset_local();
      compare();
    }
    metric->reset();
    compare();
    EXPECT_EQ(step, recorded.at("steps").size());
  }
}

// Sums and means of float32 arrays are rounded as NumPy rounds them, so that logs of both can be compared as texts.
TEST(Metric, SumsAreRoundedAsMXNetRoundsThem) {
  int compared = 0;
  const auto all = read_recorded("metrics.json.gz");
  for (const auto& recorded : all.at("metrics")) {
    const std::string id = recorded.at("id");
    const std::string metric_name = recorded.at("metric");
    if (!std::set<std::string>{"mae", "mse", "rmse"}.contains(metric_name) || recorded.value("error", false)) continue;
    const auto metric = EvalMetric::create(metric_name, arguments_of(recorded));
    run(*metric, recorded);
    const auto& steps = recorded.at("steps");
    const double wanted = number_in(steps.at(steps.size() - 2).at("global").at("values")[0]);
    EXPECT_DOUBLE_EQ(metric->get_global()[0].second, wanted) << id;
    ++compared;
  }
  EXPECT_GE(compared, 30);
}

TEST(Metric, PccTakesClassesInsteadOfScores) {
  metric::PCC scores, classes;
  scores.update({array({0, 1, 2, 1})}, {array(std::vector<double>{1, 0, 0, 0, 0, 1, 0, 0, 1, 0, 1, 0}, {4, 3})});
  classes.update({array({0, 1, 2, 1})}, {array({0, 2, 2, 1})});
  EXPECT_NEAR(classes.get()[0].second, 0.7, 1e-12);
  EXPECT_EQ(classes.get()[0].second, scores.get()[0].second);
  EXPECT_TRUE(fails_with([&] { classes.update({array({0, 1})}, {array({0, -1})}); }, "predictions", "-1"));
}

TEST(Metric, TypesDoNotChangeTheAnswer) {
  const NDArray label = array({0, 2, 1, 2}),
                pred = array(std::vector<double>{.5, .25, .25, .125, .5, .375, .25, .5, .25, 0, 0, 1}, {4, 3});
  for (const char* name : {"acc", "ce", "nll_loss", "perplexity", "pcc", "loss"}) {
    const auto reference = EvalMetric::create(name);
    reference->update({label}, {pred});
    for (const DType label_type : {DType::float32, DType::int32, DType::uint8, DType::float16, DType::int64})
      for (const DType pred_type : {DType::float16, DType::bfloat16, DType::float64}) {
        const auto metric = EvalMetric::create(name);
        metric->update({label.astype(label_type)}, {pred.astype(pred_type)});
        EXPECT_NEAR(metric->get()[0].second, reference->get()[0].second, 1e-6) << name << label_type << pred_type;
      }
  }
  metric::MSE mixed;
  mixed.update({array({1, 2}, cpu(), DType::int32)}, {array({1.5, 4}, cpu(), DType::float16)});
  EXPECT_DOUBLE_EQ(mixed.get()[0].second, (0.25 + 4) / 2);
}

TEST(Metric, WorksOnEveryDevice) {
  for (const Context context : testing::all_devices()) {
    metric::Accuracy accuracy;
    accuracy.update({array({1, 0}, context)}, {array(std::vector<double>{.1, .9, .2, .8}, {2, 2}, context)});
    EXPECT_EQ(accuracy.get()[0].second, 0.5) << context;
    metric::MAE mae;
    mae.update({array({1, 0}, context)}, {array({2, 2}, context)});
    EXPECT_EQ(mae.get()[0].second, 1.5) << context;
  }
}

TEST(Metric, PairsArraysByNameOrInOrder) {
  const NDArray zero = array({0, 0}), one = array({1, 1});
  const NDArray picks_zero = array(std::vector<double>{1, 0, 1, 0}, {2, 2}),
                picks_one = array(std::vector<double>{0, 1, 0, 1}, {2, 2});
  const NamedList labels = {{"z_label", zero}, {"a_label", one}},
                  preds = {{"z_output", picks_zero}, {"a_output", picks_one}};
  const auto all = EvalMetric::create("acc");
  all->update_dict(labels, preds);
  EXPECT_EQ(all->get()[0].second, 1);

  metric::Accuracy chosen(1, {"mine", {"a_output"}, {"z_label"}});
  chosen.update_dict(labels, preds);
  EXPECT_EQ(chosen.get(), (EvalMetric::NameValues{{"mine", 0}}));
  const auto by_text =
      EvalMetric::create("acc", {{"name", "mine"}, {"output_names", "['a_output']"}, {"label_names", "a_label"}});
  by_text->update_dict(labels, preds);
  EXPECT_EQ(by_text->get(), (EvalMetric::NameValues{{"mine", 1}}));

  metric::Accuracy lost(1, {"acc", {"b_output"}});
  EXPECT_TRUE(fails_with([&] { lost.update_dict(labels, preds); }, "acc", "b_output", "z_output, a_output"));
}

TEST(Metric, ACompositeHoldsSeveral) {
  const auto both = EvalMetric::create(std::vector<std::string>{"acc", "mse"});
  EXPECT_TRUE(std::isnan(both->get()[1].second));
  const NDArray label = array({0, 1}), pred = array({0, 3});
  both->update({label}, {pred});
  EXPECT_EQ(both->get(), (EvalMetric::NameValues{{"accuracy", 0.5}, {"mse", 2}}));
  EXPECT_EQ(both->str(), "EvalMetric: {'accuracy': 0.5, 'mse': 2}");
  both->reset_local();
  EXPECT_TRUE(std::isnan(both->get()[0].second));
  EXPECT_EQ(both->get_global(), (EvalMetric::NameValues{{"accuracy", 0.5}, {"mse", 2}}));
  both->reset();
  EXPECT_TRUE(std::isnan(both->get_global()[0].second));
  both->update_dict({{"l", label}}, {{"o", pred}});
  EXPECT_EQ(both->get()[0].second, 0.5);
}

TEST(Metric, ACompositeShowsItsPartsWhatItSees) {
  metric::Composite composite({EvalMetric::create("loss")}, {"composite", {"b_output"}});
  composite.update_dict({}, {{"a_output", array({1})}, {"b_output", array({5})}});
  EXPECT_EQ(composite.get()[0].second, 5);
  EXPECT_EQ(composite.get_metric(0)->name(), "loss");
  EXPECT_TRUE(fails_with([&] { composite.get_metric(1); }, "1 metrics"));
}

TEST(Metric, AFunctionOfOnesOwn) {
  metric::CustomMetric difference([](const NDArray& label, const NDArray& pred) { return label.item() - pred.item(); },
                                  "difference");
  difference.update({array({5}), array({7})}, {array({1}), array({1})});
  EXPECT_EQ(difference.get(), (EvalMetric::NameValues{{"difference", 5}}));
  EXPECT_TRUE(fails_with([&] { difference.update({array({5})}, {array({1}), array({2})}); }, "difference", "1 labels"));

  const auto weighted = metric::np(
      [](const std::vector<double>& label, const std::vector<double>& pred) {
        return metric::Score(label[0] * pred[0], static_cast<int64_t>(label.size()));
      },
      "weighted", /*allow_extra_outputs=*/true);
  weighted->update({array({5, 1})}, {array({2, 0}), array({9})});
  EXPECT_EQ(weighted->get(), (EvalMetric::NameValues{{"weighted", 5}}));
}

TEST(Metric, MicroCorrelationIsThatOfAllElements) {
  const std::vector<double> x = {1, 2, 4, 7, 5, 3}, y = {2, 1, 5, 6, 8, 2};
  metric::PearsonCorrelation at_once("micro"), in_parts("micro");
  at_once.update({array(x, {6})}, {array(y, {6})});
  in_parts.update({array(x, {6}).slice(0, 1)}, {array(y, {6}).slice(0, 1)});
  in_parts.reset_local();
  in_parts.update({array(x, {6}).slice(1, 6)}, {array(y, {6}).slice(1, 6)});
  EXPECT_NEAR(in_parts.get_global()[0].second, at_once.get()[0].second, 1e-12);
  metric::PearsonCorrelation rest("micro");
  rest.update({array(x, {6}).slice(1, 6)}, {array(y, {6}).slice(1, 6)});
  EXPECT_NEAR(in_parts.get()[0].second, rest.get()[0].second, 1e-12);
}

TEST(Metric, TopKTakesMoreClassesThanThereAre) {
  metric::TopKAccuracy top(5);
  EXPECT_EQ(top.name(), "top_k_accuracy_5");
  top.update({array({0, 1})}, {array(std::vector<double>{.1, .9, .2, .8}, {2, 2})});
  EXPECT_EQ(top.get()[0].second, 1);
}

TEST(Metric, OfEqualScoresTheFirstCount) {
  metric::TopKAccuracy top(2);
  top.update({array({0, 1, 2})}, {array(std::vector<double>{1, 1, 1, 1, 1, 1, 1, 1, 1}, {3, 3})});
  EXPECT_DOUBLE_EQ(top.get()[0].second, 2.0 / 3);
}

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

TEST(Metric, ARowWithANaNIsNoClassAndCountsAsWrong) {
  const NDArray label = array({0, 1, 0, 1});
  // Two rows that are right, a row of NaN, and one where only another class's score is NaN.
  const NDArray pred = array(std::vector<double>{.9, .1, .2, .8, not_a_number, not_a_number, not_a_number, .5}, {4, 2});
  const auto value = [&](const EvalMetricPtr& metric) {
    metric->update({label}, {pred});
    return metric->get()[0].second;
  };
  EXPECT_EQ(value(EvalMetric::create("acc")), 0.5);
  EXPECT_EQ(value(EvalMetric::create("top_k_accuracy", {{"top_k", "2"}})), 0.5);
  EXPECT_EQ(value(EvalMetric::create("f1")), 0.5);  // one true positive, one false, and one that was missed
  EXPECT_EQ(value(EvalMetric::create("mcc")), 0);
  EXPECT_EQ(value(EvalMetric::create("pcc")), 0);
  // As classes instead of scores.
  metric::Accuracy accuracy;
  accuracy.update({array({0, 1})}, {array(std::vector<double>{0, not_a_number}, {2})});
  EXPECT_EQ(accuracy.get()[0].second, 0.5);
  // Along an axis that is not the last.
  metric::Accuracy images;
  images.update({array(std::vector<double>{0, 0}, {1, 2})},
                {array(std::vector<double>{.9, .9, .1, not_a_number}, {1, 2, 2})});
  EXPECT_EQ(images.get()[0].second, 0.5);
}

TEST(Metric, NaNIsPassedOn) {
  const NDArray label = array({0, 1});
  const NDArray pred = array(std::vector<double>{.9, .1, not_a_number, not_a_number}, {2, 2});
  for (const char* name : {"perplexity", "ce", "nll_loss", "loss"}) {
    const auto metric = EvalMetric::create(name);
    metric->update({label}, {pred});
    metric->update({array({0})}, {array(std::vector<double>{.9, .1}, {1, 2})});
    EXPECT_TRUE(std::isnan(metric->get()[0].second)) << name;
  }
  const NDArray numbers = array(std::vector<double>{1, not_a_number}, {2});
  for (const char* name : {"mae", "mse", "rmse", "pearsonr"}) {
    const auto metric = EvalMetric::create(name);
    metric->update({label}, {numbers});
    metric->update({label}, {array({3, 5})});
    EXPECT_TRUE(std::isnan(metric->get()[0].second)) << name;
  }
  metric::PearsonCorrelation micro("micro");
  micro.update({label}, {numbers});
  micro.update({label}, {array({3, 5})});
  EXPECT_TRUE(std::isnan(micro.get()[0].second));
  metric::Perplexity labelled(std::nullopt);
  labelled.update({numbers}, {array(std::vector<double>{.5, .5, .5, .5}, {2, 2})});
  EXPECT_TRUE(std::isnan(labelled.get()[0].second));
}

TEST(Metric, PerplexityOfSentences) {
  const NDArray pred = testing::random_array({2, 3, 4}, 7, 0.1, 1),
                label = array(std::vector<double>{0, 1, 2, 3, 0, 1}, {2, 3});
  metric::Perplexity whole(std::nullopt), flat(std::nullopt);
  whole.update({label}, {pred});
  flat.update({label.reshape({-1})}, {pred.reshape({6, 4})});
  EXPECT_EQ(whole.get()[0].second, flat.get()[0].second);
}

TEST(Metric, MismatchesNameBothShapes) {
  const NDArray label = zeros({3}), pred = zeros({4, 2});
  for (const char* name : {"acc", "f1", "mcc", "ce", "nll_loss", "perplexity", "pcc", "mae", "mse", "rmse", "pearsonr"})
    EXPECT_TRUE(fails_with([&] { EvalMetric::create(name)->update({label}, {pred}); }, "(3,)", "(4,2)")) << name;
  EXPECT_TRUE(fails_with([&] { metric::TopKAccuracy(2).update({label}, {pred}); }, "(3,)", "(4,2)"));
  EXPECT_TRUE(fails_with([&] { metric::TopKAccuracy(2).update({label}, {label}); }, "two axes", "(3,)"));
  EXPECT_TRUE(fails_with([&] { metric::Accuracy(2).update({label}, {pred}); }, "accuracy", "axis"));
  EXPECT_TRUE(fails_with([&] { metric::F1().update({array({0, 1, 2})}, {zeros({3, 2})}); }, "two classes", "0, 1, 2"));
  EXPECT_TRUE(fails_with([&] { metric::PCC().update({array({-1, 1})}, {zeros({2, 2})}); }, "classes", "-1"));
  EXPECT_TRUE(fails_with([&] { metric::CrossEntropy().update({array({9})}, {zeros({1, 2})}); }, "2 classes", "9"));
}

TEST(Metric, BadArgumentsAreSaid) {
  EXPECT_TRUE(fails_with([] { EvalMetric::create("acuracy"); }, "acuracy", "accuracy", "top_k_accuracy"));
  EXPECT_TRUE(fails_with([] { EvalMetric::create("acc", {{"axes", "1"}}); }, "axes", "axis, label_names, name"));
  EXPECT_TRUE(fails_with([] { EvalMetric::create("acc", {{"axis", "one"}}); }, "axis", "one"));
  EXPECT_TRUE(fails_with([] { EvalMetric::create("top_k_accuracy"); }, "top_k", "1"));
  EXPECT_TRUE(fails_with([] { metric::F1("mean"); }, "macro or micro", "mean"));
}

TEST(Metric, AStateGoesOnWhereItWasTaken) {
  const NDArray labels = array({0, 1, 1, 0}), more_labels = array({1, 1, 0, 1});
  const NDArray scores = array({.9, .1, .2, .8, .7, .3, .4, .6}).reshape({4, 2});
  const NDArray numbers = array({.5, .5, 1, 2});
  const auto check = [&](EvalMetric& first, EvalMetric& second, const NDArray& preds) {
    first.update({labels}, {preds});
    second.set_state(first.state());
    EXPECT_EQ(second.get(), first.get()) << first.name();
    first.reset_local();
    second.reset_local();
    first.update({more_labels}, {preds});
    second.update({more_labels}, {preds});
    EXPECT_EQ(second.get(), first.get()) << first.name();
    EXPECT_EQ(second.get_global(), first.get_global()) << first.name();
    EXPECT_NE(second.get_global(), first.get()) << first.name();
    EXPECT_TRUE(fails_with([&] { second.set_state({1, 2, 3}); }, first.name(), "state")) << first.name();
  };
  metric::Accuracy accuracy, other_accuracy;
  check(accuracy, other_accuracy, scores);
  metric::F1 f1("micro"), other_f1("micro");
  check(f1, other_f1, scores);
  metric::PearsonCorrelation pearson("micro"), other_pearson("micro");
  check(pearson, other_pearson, numbers);
  metric::PCC pcc, other_pcc;
  check(pcc, other_pcc, scores);
}

TEST(Metric, AStateOfImpossibleTablesIsRefused) {
  metric::PCC pcc;
  const std::vector<double> sums(pcc.state().size() - 2);  // what comes before the two tables
  for (const double classes : {-1.0, 65537.0, 4294967296.0, 1e300, std::nan("")}) {
    std::vector<double> state = sums;
    state.insert(state.end(), {classes, 0});
    EXPECT_TRUE(fails_with([&] { pcc.set_state(state); }, "[pcc]", "65536 classes")) << classes;
  }
  std::vector<double> state = sums;
  state.insert(state.end(), {3, 0});
  EXPECT_TRUE(fails_with([&] { pcc.set_state(state); }, "[pcc]", "9 numbers", "ends early"));
}

TEST(Metric, SumsAndNamesCanBeChanged) {
  metric::Accuracy accuracy;
  accuracy.set_sums({3, 4});
  accuracy.set_options({"mine"});
  EXPECT_EQ(accuracy.get(), (EvalMetric::NameValues{{"mine", 0.75}}));
  EXPECT_EQ(accuracy.sums().instances, 4);
  accuracy.set_global_sums({1, 2});
  EXPECT_EQ(accuracy.get_global()[0].second, 0.5);
}

TEST(Metric, ResettingForgetsSumsThatWereSet) {
  metric::PCC pcc;
  metric::PearsonCorrelation pearson("micro");
  metric::F1 f1;
  for (EvalMetric* const metric : std::initializer_list<EvalMetric*>{&pcc, &pearson, &f1}) {
    metric->set_sums({3, 4});
    metric->set_global_sums({1, 2});
    metric->reset_local();
    EXPECT_EQ(metric->sums().instances, 0) << metric->name();
    EXPECT_EQ(metric->global_sums().instances, 2) << metric->name();
    metric->set_sums({3, 4});
    metric->reset();
    EXPECT_EQ(metric->sums().instances, 0) << metric->name();
    EXPECT_EQ(metric->global_sums().instances, 0) << metric->name();
  }
}

class Nines final : public EvalMetric {
 public:
  Nines() : EvalMetric({"nines"}) {}
  void update(const std::vector<NDArray>&, const std::vector<NDArray>&) override { count(9, 1); }
};

TEST(Metric, ALabelThatIsNoNumberIsCalledSo) {
  const NDArray scores = array({{0.2, 0.8}, {0.9, 0.1}});
  for (const char* name : {"ce", "nll_loss", "pcc"})
    for (const double label : {std::nan(""), HUGE_VAL, 1e30})
      EXPECT_TRUE(fails_with(
          [&] {
            EvalMetric::create(name)->update({array({label, 1})}, {scores});
          },
          "NaN, infinite"))
          << name << ' ' << label;
}

TEST(Metric, OnesOwnCanBeRegistered) {
  register_metric("Nines", [](const auto&) { return std::make_shared<Nines>(); });
  const auto metric = EvalMetric::create("nines");
  metric->update({}, {});
  EXPECT_EQ(metric->get()[0].second, 9);
}

}  // namespace
}  // namespace symbind
