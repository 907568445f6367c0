// The batches of MXNet 1.9.1's iterators, as recorded in tests/oracle, given by ours.
#include <cmath>

#include <gtest/gtest.h>

#include "symbind/core/log.h"
#include "symbind/data/csv_iter.h"
#include "symbind/data/libsvm_iter.h"
#include "symbind/data/mnist_iter.h"
#include "symbind/data/ndarray_iter.h"
#include "symbind/data/prefetch.h"
#include "symbind/data/resize_iter.h"
#include "symbind/data/shuffle.h"

#include "tests/support/arrays.h"
#include "tests/support/oracle.h"
#include "tests/support/source_dir.h"
#include "tests/support/temp_dir.h"

namespace symbind::testing {
namespace {

using nlohmann::json;
using Values = std::vector<double>;

const json& recorded(const std::string& what) {
  static const json all = read_recorded("iterators.json");
  return all.at(what);
}

void expect_descs(const std::vector<DataDesc>& actual, const json& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    EXPECT_EQ(actual[i].name, expected[i].at("name").get<std::string>());
    EXPECT_EQ(actual[i].shape, Shape(expected[i].at("shape").get<std::vector<int64_t>>()));
    EXPECT_EQ(name_of(actual[i].dtype), expected[i].at("dtype").get<std::string>());
    EXPECT_EQ(actual[i].layout, expected[i].at("layout").get<std::string>());
  }
}

void expect_described(const DataIter& iter, const json& expected) {
  expect_descs(iter.provide_data(), expected.at("provide_data"));
  expect_descs(iter.provide_label(), expected.at("provide_label"));
}

// As text, where no number is unequal to itself.
std::string text_of(double value) { return std::isnan(value) ? "nan" : join(value); }
std::string text_of(const json& value) {
  return value.is_string() ? value.get<std::string>() : text_of(value.get<double>());
}

void expect_arrays(const std::vector<NDArray>& actual, const json& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    const auto values = actual[i].to_vector<double>();
    ASSERT_EQ(values.size(), expected[i].size());
    for (size_t k = 0; k < values.size(); ++k) EXPECT_EQ(text_of(values[k]), text_of(expected[i][k])) << k;
  }
}

// MXNet calls the samples that rolled over padding of the batch they are at the front of; ours are none.
void expect_next(DataIter& iter, const json& expected, bool rolls_over) {
  const auto batch = iter.next();
  ASSERT_TRUE(batch) << "the epoch ends before " << expected;
  expect_arrays(batch->data, expected.at("data"));
  expect_arrays(batch->label, expected.at("label"));
  EXPECT_EQ(batch->pad, rolls_over ? 0 : expected.at("pad").get<int64_t>());
}

// Does what was done with MXNet's iterator.
void expect_walk(DataIter& iter, const json& expected) {
  expect_described(iter, expected);
  const json& steps = expected.at("steps");
  const bool rolls_over = expected.value("last_batch_handle", "pad") == "roll_over";
  for (size_t i = 0; i < steps.size(); ++i) {
    const std::string step = steps[i];
    SCOPED_TRACE(join("step ", i, ", ", step));
    for (const json& batch : expected.at("batches")[i]) expect_next(iter, batch, rolls_over);
    if (step == "epoch") {
      EXPECT_FALSE(iter.next());
    }
    if (step == "reset") iter.reset();
    if (step == "hard_reset") dynamic_cast<NDArrayIter&>(iter).hard_reset();
  }
}

NDArrayIter numbered(int64_t samples, int64_t batch_size, const std::string& handle) {
  return NDArrayIter(arange(0, 2. * static_cast<double>(samples)).reshape({samples, 2}),
                     arange(100, 100. + static_cast<double>(samples)),
                     {.batch_size = batch_size, .last_batch_handle = handle});
}

TEST(RecordedIterators, NDArrayIterGivesTheSameBatches) {
  const LogSink before = set_log_sink([](LogLevel, std::string_view) {});  // some epochs have no batches
  for (const json& each : recorded("ndarray_iter")) {
    SCOPED_TRACE(join(each.at("samples"), " samples, ", each.at("batch_size"), " a batch, ",
                      each.at("last_batch_handle"), ", ", each.at("steps")));
    NDArrayIter iter = numbered(each.at("samples"), each.at("batch_size"), each.at("last_batch_handle"));
    expect_walk(iter, each);
  }
  set_log_sink(before);
}

TEST(RecordedIterators, NDArrayIterNamesItsInputsTheSame) {
  const NDArray a = zeros({4, 3}), b = zeros({4, 2}), c = zeros({4});
  const std::map<std::string, NDArrayIter> iters = {
      {"one", NDArrayIter(a, c, {.batch_size = 2})},
      {"no_label", NDArrayIter(a, {.batch_size = 2})},
      {"list_of_one", NDArrayIter({a}, {c}, {.batch_size = 2})},
      {"lists", NDArrayIter({a, b}, {c, b}, {.batch_size = 2})},
      {"by_name", NDArrayIter({{"right", a}, {"left", b}}, {{"digit", c}}, {.batch_size = 2})},
      {"other_names", NDArrayIter({a, b}, c, {.batch_size = 2, .data_name = "x", .label_name = "y"})},
      {"layout", NDArrayIter(a, c, {.batch_size = 2, .layout = "NTC"})},
      {"types", NDArrayIter(zeros({4, 2}, cpu(), DType::float16), zeros({4}, cpu(), DType::int32), {.batch_size = 2})},
  };
  for (const json& each : recorded("names")) {
    SCOPED_TRACE(each.at("id"));
    expect_described(iters.at(each.at("id")), each);
  }
}

TEST(RecordedIterators, ResizeIterAndPrefetchingIterGiveTheSameBatches) {
  for (const json& each : recorded("wrapped")) {
    const std::string kind = each.at("iterator");
    SCOPED_TRACE(each.dump().substr(0, 100));
    auto inner = numbered(10, 4, each.value("last_batch_handle", "pad")), another = numbered(10, 4, "pad");
    if (kind == "ResizeIter") {
      ResizeIter iter(inner, each.at("size"), each.at("reset_internal"));
      expect_walk(iter, each);
    } else if (kind == "PrefetchingIter") {
      PrefetchingIter iter(inner);
      expect_walk(iter, each);
    } else {
      PrefetchingIter iter({std::make_shared<NDArrayIter>(inner), std::make_shared<NDArrayIter>(another)},
                           {.rename_data = {{{"data", "left"}}, {{"data", "right"}}},
                            .rename_label = {{{"softmax_label", "one"}}, {{"softmax_label", "two"}}}});
      expect_walk(iter, each);
    }
  }
}

TEST(RecordedIterators, MNISTIterGivesTheSameBatches) {
  const std::string data = source_dir() + "/data/";
  const IdxArray images = read_idx(data + "t10k-images-idx3-ubyte.gz");
  for (const json& each : recorded("mnist_iter")) {
    const json& given = each.at("options");
    SCOPED_TRACE(given);
    MNISTIter iter({.image = data + "t10k-images-idx3-ubyte.gz",
                    .label = data + "t10k-labels-idx1-ubyte.gz",
                    .batch_size = given.at("batch_size"),
                    .shuffle = given.value("shuffle", true),
                    .flat = given.value("flat", false),
                    .seed = given.value("seed", 0),
                    .silent = true,
                    .num_parts = given.value("num_parts", 1),
                    .part_index = given.value("part_index", 0)});
    expect_described(iter, each);
    for (const json& epoch : each.at("epochs")) {
      for (const json& expected : epoch) {
        const auto batch = iter.next();
        ASSERT_TRUE(batch);
        const auto samples = expected.at("samples").get<std::vector<int64_t>>();
        EXPECT_EQ(batch->index, samples);
        EXPECT_EQ(batch->pad, expected.at("pad").get<int64_t>());
        EXPECT_EQ(batch->label[0].to_vector<double>(), expected.at("label").get<Values>());
        const auto pixels = batch->data[0].to_vector<double>();
        const auto line = pixels.begin() + 14 * 28;
        EXPECT_EQ(Values(line, line + 28), expected.at("line").get<Values>());
        for (size_t i = 0; i < pixels.size(); ++i)
          ASSERT_EQ(pixels[i], images.values[static_cast<size_t>(samples[i / 784]) * 784 + i % 784] / 256.);
      }
      EXPECT_FALSE(iter.next());
      iter.reset();
    }
  }
}

template <class Options>
Options text_iter_options(const json& given) {
  Options options;
  options.data_shape = Shape(given.at("data_shape").get<std::vector<int64_t>>());
  options.label_shape = Shape(given.value("label_shape", std::vector<int64_t>{1}));
  options.batch_size = given.at("batch_size");
  return options;
}

TEST(RecordedIterators, CSVIterAndLibSVMIterGiveTheSameBatches) {
  const TempDir dir;
  for (const json& each : recorded("text_iters")) {
    const json &given = each.at("options"), &files = each.at("files");
    SCOPED_TRACE(given);
    SCOPED_TRACE(files);
    const auto path = [&](const char* name) -> std::string {
      if (!files.contains(name)) return "";
      write_file(dir.file(name), files.at(name).get<std::string>());
      return dir.file(name);
    };
    if (files.contains("data_csv")) {
      auto options = text_iter_options<CSVIterOptions>(given);
      options.data_csv = path("data_csv");
      options.label_csv = path("label_csv");
      options.dtype = dtype_from_name(given.value("dtype", "float32"));
      CSVIter iter(options);
      expect_walk(iter, each);
    } else {
      auto options = text_iter_options<LibSVMIterOptions>(given);
      options.data_libsvm = path("data_libsvm");
      options.label_libsvm = path("label_libsvm");
      LibSVMIter iter(options);
      expect_walk(iter, each);
    }
  }
}

TEST(RecordedIterators, SeededOrdersOfManySamplesAreTheSame) {
  for (const json& each : recorded("large_orders")) {
    const auto order = seeded_order(each.at("count"), static_cast<uint32_t>(each.at("seed").get<int>()));
    const size_t every = each.at("every");
    const auto& samples = each.at("samples");
    for (size_t i = 0; i < samples.size(); ++i) EXPECT_EQ(order[i * every], samples[i]) << "sample " << i * every;
  }
}

}  // namespace
}  // namespace symbind::testing
