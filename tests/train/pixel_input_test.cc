// Batches that hold images as uint8, which modules normalize on their devices (DataDesc::normalization).
#include <gtest/gtest.h>

#include "symbind/symbind.h"

#include "tests/support/arrays.h"
#include "tests/support/codec_test.h"
#include "tests/support/gpu_test.h"
#include "tests/support/temp_dir.h"
#include "tests/support/training.h"

namespace symbind {
using namespace symbind::testing;

namespace {

const PixelNormalization by_channel{.mean = {123.68, 116.78, 103.94}, .std = {58.4, 57.1, 57.4}, .scale = 0.5};

NDArray random_pixels(int64_t count) { return random_array({count, 3, 6, 5}, 3, 0, 255, DType::uint8); }

// As the network shall get them, computed here in float as ImageRecordIter does.
NDArray normalized(const NDArray& pixels, const PixelNormalization& by = by_channel) {
  const Shape& shape = pixels.shape();
  const auto values = pixels.to_vector<double>();
  std::vector<float> result;
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t channel = i / static_cast<size_t>(shape[2] * shape[3]) % 3;
    result.push_back((static_cast<float>(values[i]) - static_cast<float>(by.mean[channel])) *
                     static_cast<float>(by.scale) / static_cast<float>(by.std[channel]));
  }
  return array(result, shape);
}

// Batches of images, as pixels or normalized on the host; the last one is padded.
class Images final : public DataIter {
 public:
  Images(bool as_pixels, int64_t count, PixelNormalization by = by_channel)
      : as_pixels_(as_pixels),
        by_(std::move(by)),
        batches_(as_pixels ? random_pixels(count) : normalized(random_pixels(count), by_), labels_of(count),
                 {.batch_size = 6}) {}

  std::vector<DataDesc> provide_data() const override {
    std::vector<DataDesc> described = batches_.provide_data();
    described[0].dtype = DType::float32;
    if (as_pixels_) described[0].normalization = by_;
    return described;
  }
  std::vector<DataDesc> provide_label() const override { return batches_.provide_label(); }
  void reset() override { batches_.reset(); }
  std::optional<DataBatch> next() override {
    std::optional<DataBatch> batch = batches_.next();
    if (batch && as_pixels_) batch->provide_data = provide_data();
    return batch;
  }

 private:
  bool as_pixels_;
  PixelNormalization by_;
  NDArrayIter batches_;
};

Symbol network() {
  Symbol net = Symbol::variable("data");
  net = convolution(net, {.kernel = {3, 3}, .num_filter = 4}, "conv1");
  net = activation(net, {.act_type = "relu"}, "relu1");
  net = fully_connected(net, {.num_hidden = 3}, "fc1");
  return softmax_output(net, {}, "softmax");
}

NamedArrays first_weights() {
  return {{"conv1_weight", random_array({4, 3, 3, 3}, 21)},
          {"conv1_bias", random_array({4}, 22)},
          {"fc1_weight", random_array({3, 48}, 23)},
          {"fc1_bias", random_array({3}, 24)}};
}

// What the network got in the last forward.
NDArray input_of(const Module& module, size_t device = 0) {
  return module.exec_group()->execs()[device]->arg_dict().at("data").as_in_context(cpu());
}

NamedArrays fitted(DataIter& data, const std::vector<Context>& contexts, DType compute_dtype = DType::float32,
                   const Symbol& symbol = network()) {
  Module module(symbol, {.context = contexts, .compute_dtype = compute_dtype});
  module.fit(data, {.optimizer_params = {{"learning_rate", 0.01}, {"momentum", 0.9}},
                    .arg_params = first_weights(),
                    .num_epoch = 2});
  return module.get_params().arg_params;
}

std::unique_ptr<Module> bound_to(const DataIter& data, const std::vector<Context>& contexts) {
  auto module = std::make_unique<Module>(network(), ModuleOptions{.context = contexts});
  module->bind(data.provide_data(), data.provide_label());
  module->init_params({.arg_params = first_weights()});
  return module;
}

TEST(PixelInput, TrainingIsThatOfImagesNormalizedOnTheHost) {
  const Quiet quiet;
  for (const Context context : all_devices())
    for (const std::vector<Context>& contexts : {std::vector{context}, std::vector{context, context}})
      for (const DType compute_dtype : {DType::float32, DType::float16, DType::bfloat16}) {
        Images pixels(true, 20), numbers(false, 20);  // the last batch repeats four images
        const NamedArrays actual = fitted(pixels, contexts, compute_dtype);
        const NamedArrays expected = fitted(numbers, contexts, compute_dtype);
        if (context.is_gpu())
          expect_equal(actual, expected);
        else
          expect_same_bits(actual, expected);
        EXPECT_FALSE(same_bits(actual.at("conv1_weight"), first_weights().at("conv1_weight")));
      }
}

TEST(PixelInput, EveryDeviceNormalizesItsSlice) {
  for (const Context context : all_devices())
    for (const bool prepared : {false, true}) {
      Images images(true, 6);
      const auto module = bound_to(images, {context, context});
      const DataBatch batch = *images.next();
      EXPECT_EQ(batch.data[0].dtype(), DType::uint8);
      const NDArray expected = normalized(batch.data[0]);
      const auto expect_slices = [&](const char* given) {
        for (size_t device : {0U, 1U}) {
          const auto slice = static_cast<int64_t>(device) * 3;
          const NDArray input = input_of(*module, device);
          EXPECT_TRUE(same_bits(input, expected.slice(slice, slice + 3))) << context << ": " << given;
          module->exec_group()->execs()[device]->arg_dict().at("data").fill(0);
        }
      };
      if (prepared) module->prepare(batch);
      module->forward(batch, true);
      expect_slices("a whole batch");
      const auto part = [&](int64_t begin) {
        return DataBatch{.data = {batch.data[0].slice(begin, begin + 3)},
                         .label = {batch.label[0].slice(begin, begin + 3)}};
      };
      module->forward(std::vector{part(0), part(3)}, true);
      expect_slices("a batch for each");
    }
}

TEST(PixelInput, ABatchMayHaveAnotherSizeOrHoldNumbers) {
  for (const Context context : all_devices()) {
    Images images(true, 6);
    const auto module = bound_to(images, {context});
    for (const int64_t count : {4, 6, 9}) {
      const DataBatch batch{.data = {random_pixels(count)}, .label = {labels_of(count)}};
      module->prepare(batch);
      module->forward(batch, true);
      EXPECT_TRUE(same_bits(input_of(*module), normalized(batch.data[0]))) << context << ", " << count << " images";
    }
    const NDArray numbers = random_array({6, 3, 6, 5}, 7);
    module->forward({.data = {numbers}, .label = {labels_of(6)}}, true);
    EXPECT_TRUE(same_bits(input_of(*module), numbers)) << context << ": only uint8 is normalized";
  }
}

TEST(PixelInput, AnArrayThatChangedAfterPrepareIsNormalizedAsItIs) {
  for (const Context context : all_devices()) {
    Images images(true, 6);
    const auto module = bound_to(images, {context});
    const DataBatch batch = *images.next();
    module->prepare(batch);
    batch.data[0].fill(7);
    module->forward(batch, true);
    EXPECT_TRUE(same_bits(input_of(*module), normalized(batch.data[0]))) << context;
  }
}

TEST(PixelInput, ScoresAndPredictionsFollowTheIteratorThatIsScored) {
  const PixelNormalization another{.mean = {0, 1, 2}, .std = {255, 255, 255}};
  for (const Context context : all_devices()) {
    Images numbers(false, 20);
    const auto module = bound_to(numbers, {context});  // knows of no pixels
    for (const PixelNormalization& by : {by_channel, another, by_channel}) {
      Images pixels(true, 20, by), expected(false, 20, by);
      const auto score = [&](DataIter& data) { return module->score(data, "ce").at(0).second; };
      EXPECT_NEAR(score(pixels), score(expected), 1e-6) << context;
      pixels.reset();
      expected.reset();
      const NDArray predicted = module->predict(pixels)[0];
      EXPECT_EQ(predicted.shape(), (Shape{20, 3})) << "without padding";
      EXPECT_TRUE(all_close(predicted, module->predict(expected)[0], {1e-5, 1e-6})) << context;
    }
  }
}

TEST(PixelInput, PrefetchingKeepsTheNormalization) {
  Images pixels(true, 20), numbers(false, 20);
  PrefetchingIter fetched(pixels);
  const auto module = bound_to(numbers, {cpu()});
  const NDArray predicted = module->predict(fetched)[0];
  EXPECT_TRUE(same_bits(predicted, module->predict(numbers)[0]));
}

TEST(PixelInput, WhatABatchProvidesConcernsThatBatch) {
  const PixelNormalization another{.mean = {0}, .std = {255}};
  for (const Context context : all_devices()) {
    Images images(true, 6), numbers(false, 6), others(true, 6, another);
    const auto module = bound_to(images, {context});
    const ExecutorPtr executor = module->exec_group()->execs()[0];
    const DataBatch pixels{.data = {random_pixels(6)}, .label = {labels_of(6)}};
    DataBatch with_numbers = *numbers.next();
    with_numbers.provide_data = numbers.provide_data();
    for (const DataBatch& batch : {with_numbers, *others.next()}) {
      module->forward(batch, false);
      module->forward(pixels, true);
      EXPECT_TRUE(same_bits(input_of(*module), normalized(pixels.data[0]))) << context;
    }
    EXPECT_EQ(module->exec_group()->execs()[0], executor) << "the executor has no part in it";
  }
}

TEST(PixelInput, MayBeOnTheDeviceAlready) {
  for (const Context context : all_devices()) {
    Images images(true, 6);
    const auto module = bound_to(images, {context, context});
    const NDArray pixels = random_pixels(6);
    module->forward({.data = {pixels.as_in_context(context)}, .label = {labels_of(6)}}, true);
    for (size_t device : {0U, 1U}) {
      const auto begin = static_cast<int64_t>(device) * 3;
      EXPECT_TRUE(same_bits(input_of(*module, device), normalized(pixels.slice(begin, begin + 3)))) << context;
    }
  }
}

TEST(PixelInput, SlicedBatchesAreNormalizedAsTheySayOrElseAsBound) {
  const PixelNormalization another{.mean = {0, 1, 2}, .std = {255, 255, 255}};
  Images images(true, 6), others(true, 6, another), numbers(false, 6);
  const DataBatch batch = *images.next(), silent{.data = batch.data, .label = batch.label};
  for (const DataIter* const bound : {static_cast<DataIter*>(&images), static_cast<DataIter*>(&others)}) {
    const auto module = bound_to(*bound, {cpu()});
    const auto expect_input = [&](const DataBatch& given, const PixelNormalization& by) {
      module->forward(std::vector{given}, true);
      EXPECT_TRUE(same_bits(input_of(*module), normalized(batch.data[0], by)));
    };
    expect_input(batch, by_channel);
    expect_input(silent, bound == &images ? by_channel : another);
  }
}

TEST(PixelInput, ANormalizationMustFitTheImages) {
  const auto bind = [](const PixelNormalization& by) { bound_to(Images(true, 6, by), {cpu()}); };
  EXPECT_TRUE(fails_with([&] { bind({.mean = {1, 2}}); }, "'data'", "one number, or one per channel", "(1, 2)"));
  EXPECT_TRUE(fails_with([&] { bind({.std = {1, 0, 2}}); }, "'data'", "a std of 0"));
  Images images(true, 6);
  std::vector<DataDesc> described = images.provide_data();
  Module module(network());
  described[0].dtype = DType::uint8;
  EXPECT_TRUE(fails_with([&] { module.bind(described, images.provide_label()); }, "'data'", "floating", "uint8"));
  described = images.provide_data();
  described[0].layout = "NHWC";
  EXPECT_TRUE(fails_with([&] { module.bind(described, images.provide_label()); }, "'data'", "layout NCHW", "NHWC"));
  described = images.provide_data();
  described[0].shape = described[0].shape.with(1, 2);
  described[0].normalization = PixelNormalization{};
  EXPECT_TRUE(fails_with([&] { module.bind(described, images.provide_label()); }, "'data'", "1, 3 or 4 channels"));
}

// The other way: the network gets the pixels, and normalizes them itself.
TEST(PixelInput, ANetworkMayBeginWithACast) {
  const Quiet quiet;
  const Symbol numbers = (cast(Symbol::variable("data"), {.dtype = DType::float32}) - 120) * 0.01;
  const Symbol net = network()({{"data", numbers}});
  for (const Context context : all_devices())
    for (const DType compute_dtype : {DType::float32, DType::float16, DType::bfloat16}) {
      const auto fit = [&](const Symbol& symbol, const NDArray& data) {
        NDArrayIter batches(data, labels_of(20), {.batch_size = 6});
        Module module(symbol, {.context = {context}, .compute_dtype = compute_dtype});
        module.fit(batches, {.arg_params = first_weights(), .num_epoch = 2});
        return module.get_params().arg_params;
      };
      const NDArray pixels = random_pixels(20);
      expect_equal(fit(net, pixels), fit(network(), (pixels.astype(DType::float32) - 120) * 0.01), {1e-3, 1e-3});
    }
}

class PixelRecords : public CodecTest {};

TEST_F(PixelRecords, TrainAsNormalizedOnesDo) {
  const Quiet quiet;
  const TempDir dir;
  const std::string path = dir.file("images.rec");
  RecordWriter writer(path);
  for (uint64_t i = 0; i < 20; ++i)
    writer.write(pack_record({.label = static_cast<float>(i % 3), .id = i},
                             imencode(random_array({9, 8, 3}, i, 0, 255, DType::uint8), ".png", 1)));
  writer.close();
  for (const Context context : all_devices())
    for (const DType dtype : {DType::float32, DType::float16}) {
      const auto train = [&](bool normalize_on_device) {
        ImageRecordIter data({.path_imgrec = path,
                              .data_shape = {3, 6, 5},
                              .batch_size = 6,
                              .shuffle = true,
                              .seed = 1,
                              .dtype = dtype,
                              .normalize_on_device = normalize_on_device,
                              .verbose = false,
                              .rand_crop = true,
                              .brightness = 0.3F,
                              .contrast = 0.3F,
                              .pca_noise = 0.1F,
                              .rand_mirror = true,
                              .mean_r = 123.68F,
                              .mean_g = 116.78F,
                              .mean_b = 103.94F,
                              .std_r = 58.4F,
                              .std_g = 57.1F,
                              .std_b = 57.4F,
                              .scale = 0.5F});
        // The input has the iterator's type, the network computes in float32.
        return fitted(data, {context}, DType::float32,
                      network()({{"data", cast(Symbol::variable("data"), {.dtype = DType::float32})}}));
      };
      if (context.is_gpu())
        expect_equal(train(true), train(false), tolerance_of(dtype));
      else
        expect_same_bits(train(true), train(false));
    }
}

}  // namespace
}  // namespace symbind
