// ImageRecordIter: what the recorded batches do not show.
#include "symbind/data/image_record_iter.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "symbind/core/log.h"
#include "symbind/core/random.h"
#include "symbind/data/image.h"
#include "symbind/data/image_augment.h"
#include "symbind/data/recordio.h"

#include "tests/support/arrays.h"
#include "tests/support/codec_test.h"
#include "tests/support/temp_dir.h"

namespace symbind {
namespace {

using testing::fails_with;
using testing::TempDir;
using testing::write_file;
using Values = std::vector<double>;

NDArray plain(int64_t height, int64_t width, uint8_t value) {
  NDArray image({height, width, 3}, cpu(), DType::uint8);
  std::fill_n(static_cast<uint8_t*>(image.mutable_data()), height * width * 3, value);
  return image;
}

NDArray noise(int64_t height, int64_t width) {
  NDArray image({height, width, 3}, cpu(), DType::uint8);
  auto* pixel = static_cast<uint8_t*>(image.mutable_data());
  for (int64_t i = 0; i < height * width * 3; ++i)
    pixel[i] = static_cast<uint8_t>(philox(1, 2, static_cast<uint64_t>(i)).words[0]);
  return image;
}

class ImageRecords : public testing::CodecTest {
 protected:
  // Record i has label and color i.
  void write(int count) {
    RecordWriter writer(path);
    std::vector<RecordPosition> positions;
    for (int i = 0; i < count; ++i) {
      positions.push_back({i, writer.tell()});
      writer.write(pack_record({.label = static_cast<float>(i), .id = static_cast<uint64_t>(i)},
                               imencode(plain(6, 5, static_cast<uint8_t>(i)), ".png", 1)));
    }
    writer.close();
    write_record_index(index, positions);
  }
  void write_one(const NDArray& image) {
    RecordWriter writer(path);
    writer.write(pack_record({}, imencode(image, ".png", 1)));
    writer.close();
  }
  ImageRecordIterOptions options() const {
    return {.path_imgrec = path, .data_shape = {3, 4, 4}, .batch_size = 4, .seed_aug = 3, .verbose = false};
  }
  static Values labels(DataIter& iter) {
    Values all;
    while (const auto batch = iter.next())
      for (const double label : batch->label[0].to_vector<double>()) all.push_back(label);
    return all;
  }

  TempDir dir;
  std::string path = dir.file("images.rec"), index = dir.file("images.idx");
};

TEST_F(ImageRecords, AreTheSameWhateverTheThreads) {
  write_one(noise(20, 30));
  std::vector<Values> made;
  for (const int64_t threads : {1, 2, 5}) {
    auto o = options();
    o.preprocess_threads = threads;
    o.prefetch_buffer = threads;
    o.rand_crop = o.rand_mirror = true;
    o.brightness = o.contrast = o.saturation = o.pca_noise = 0.3F;
    o.random_h = o.random_s = o.random_l = 20;
    o.max_rotate_angle = 20;
    o.max_random_contrast = o.max_random_illumination = 0.2F;
    ImageRecordIter iter(o);
    Values all;
    for (int epoch = 0; epoch < 3; ++epoch) {
      while (const auto batch = iter.next())
        for (const double value : batch->data[0].to_vector<double>()) all.push_back(value);
      iter.reset();
    }
    made.push_back(all);
  }
  EXPECT_EQ(made[0], made[1]);
  EXPECT_EQ(made[0], made[2]);
  EXPECT_FALSE(std::equal(made[0].begin(), made[0].begin() + 192, made[0].begin() + 192));  // epochs differ
}

TEST_F(ImageRecords, SeedsMakeAugmentationReproducible) {
  write_one(noise(20, 30));
  const auto first = [&](std::optional<int64_t> seed_aug) {
    auto o = options();
    o.seed_aug = seed_aug;
    o.rand_crop = true;
    return ImageRecordIter(o).next()->data[0].to_vector<double>();
  };
  EXPECT_EQ(first(1), first(1));
  EXPECT_NE(first(1), first(2));
  const auto by_one_seed = [&](int64_t seed, std::optional<int64_t> seed_aug) {
    auto o = options();
    o.seed = seed;
    o.seed_aug = seed_aug;
    o.rand_crop = true;
    return ImageRecordIter(o).next()->data[0].to_vector<double>();
  };
  EXPECT_EQ(by_one_seed(4, std::nullopt), by_one_seed(4, std::nullopt));
  EXPECT_NE(by_one_seed(4, std::nullopt), by_one_seed(5, std::nullopt));
  EXPECT_EQ(by_one_seed(4, 1), by_one_seed(5, 1));
  seed(7);
  const Values once = first(std::nullopt);
  EXPECT_NE(once, first(std::nullopt));
  seed(7);
  EXPECT_EQ(once, first(std::nullopt));
}

TEST_F(ImageRecords, AShuffledEpochHasEveryRecordOnce) {
  write(40);
  Values in_order;
  for (int i = 0; i < 40; ++i) in_order.push_back(i);
  for (const std::string& given_index : {std::string(), index}) {
    auto o = options();
    o.shuffle = true;
    o.path_imgidx = given_index;
    ImageRecordIter iter(o);
    std::set<Values> orders;
    for (int epoch = 0; epoch < 3; ++epoch) {
      Values order = labels(iter);
      orders.insert(order);
      EXPECT_NE(order, in_order);
      std::sort(order.begin(), order.end());
      EXPECT_EQ(order, in_order);
      iter.reset();
    }
    EXPECT_EQ(orders.size(), 3U);
  }
}

TEST_F(ImageRecords, AResetInTheMiddleBeginsAgain) {
  write(40);
  auto o = options();
  ImageRecordIter iter(o);
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < round % 4; ++i) ASSERT_TRUE(iter.next());
    iter.reset();
    EXPECT_EQ(iter.next()->label[0].to_vector<double>(), (Values{0, 1, 2, 3}));
    iter.reset();
  }
  EXPECT_EQ(labels(iter).size(), 40U);
  EXPECT_FALSE(iter.next());
  EXPECT_FALSE(iter.next());
}

TEST_F(ImageRecords, AnIteratorMayEndWithBatchesInTheMaking) {
  write(40);
  for (int i = 0; i < 20; ++i) {
    ImageRecordIter iter(options());
    if (i % 2) (void)iter.next();
  }
}

TEST_F(ImageRecords, WithoutRoundBatchTheLastBatchRepeats) {
  write(6);
  auto o = options();
  o.round_batch = false;
  ImageRecordIter iter(o);
  for (int epoch = 0; epoch < 2; ++epoch) {
    EXPECT_EQ(iter.next()->pad, 0);
    const auto last = iter.next();
    EXPECT_EQ(last->pad, 2);
    EXPECT_EQ(last->label[0].to_vector<double>(), (Values{4, 5, 0, 1}));
    EXPECT_EQ(last->index, (std::vector<int64_t>{4, 5, 0, 1}));
    EXPECT_FALSE(iter.next());
    iter.reset();
  }
}

TEST_F(ImageRecords, LabelsMayComeFromAList) {
  write(4);
  auto o = options();
  o.path_imglist = dir.file("images.lst");
  o.label_width = 2;
  write_file(o.path_imglist, "3\t30\t1\ta/b.jpg\n1\t10\t2\tc.jpg\n0\t0\t3\td\n2\t20\t4\te\n");
  EXPECT_EQ(labels(*std::make_unique<ImageRecordIter>(o)), (Values{0, 3, 10, 2, 20, 4, 30, 1}));
  write_file(o.path_imglist, "3\t30\t1\ta/b.jpg\n1\t10\tc.jpg\n");
  EXPECT_TRUE(fails_with([&] { ImageRecordIter iter(o); }, o.path_imglist, "line 2", "2 labels"));
  write_file(o.path_imglist, "3\t30\t1\ta/b.jpg\n");
  EXPECT_TRUE(fails_with([&] { ImageRecordIter(o).next(); }, path, "id", "is not in", o.path_imglist));
  o.label_width = 1;
  EXPECT_TRUE(fails_with([&] { ImageRecordIter iter(o); }, "an id, 1 label and a path between tabs: found 4 words"));
  write_file(o.path_imglist, "0\t5\ta\n1\t6\ta\n2\t7\ta\n3\t8\ta\n1\t9\ta\n");
  EXPECT_EQ(labels(*std::make_unique<ImageRecordIter>(o)), (Values{5, 9, 7, 8})) << "the last line of an id counts";
}

TEST_F(ImageRecords, IdsOfAListAreWholeNumbers) {
  RecordWriter writer(path);
  for (const uint64_t id : {uint64_t{3}, (uint64_t{1} << 53) + 1, ~uint64_t{0}})
    writer.write(pack_record({.label = 0, .id = id}, imencode(plain(6, 5, 9), ".jpg")));
  writer.close();
  auto o = options();
  o.batch_size = 3;
  o.path_imglist = dir.file("images.lst");
  write_file(o.path_imglist, "3.0\t1\ta\n9007199254740993\t2\tb\n9007199254740992\t3\tc\n18446744073709551615\t4\td\n");
  EXPECT_EQ(labels(*std::make_unique<ImageRecordIter>(o)), (Values{1, 2, 4}));
  for (const std::string id : {"-1", "-0.5", "2.5", "18446744073709551616", "1e30", "inf", "nan"}) {
    write_file(o.path_imglist, "3\t1\ta\n" + id + "\t1\ta\n");
    EXPECT_TRUE(fails_with([&] { ImageRecordIter iter(o); }, o.path_imglist, "line 2", "whole number", "'" + id + "'"));
  }
  write_file(o.path_imglist, "3\t1\ta\nx\t1\ta\n");
  EXPECT_TRUE(fails_with([&] { ImageRecordIter iter(o); }, "line 2", "expected a number: found 'x'"));
}

TEST_F(ImageRecords, BrokenImagesAreNamedAndFailUntilReset) {
  RecordWriter writer(path);
  const std::string good = imencode(plain(6, 5, 9), ".jpg");
  for (uint64_t i = 0; i < 8; ++i)
    writer.write(pack_record({.label = static_cast<float>(i), .id = i}, i == 5 ? good.substr(0, 200) : good));
  writer.close();
  ImageRecordIter iter(options());
  for (int epoch = 0; epoch < 2; ++epoch) {
    ASSERT_TRUE(iter.next());
    for (int again = 0; again < 2; ++again)
      EXPECT_TRUE(fails_with([&] { iter.next(); }, path, "the record at offset", "JPEG"));
    iter.reset();
  }
}

TEST_F(ImageRecords, BrokenImagesAreLeftOutWhereAskedFor) {
  RecordWriter writer(path);
  for (uint64_t i = 0; i < 4; ++i)
    writer.write(
        pack_record({.label = static_cast<float>(i), .id = i},
                    i == 0 || i == 2 ? "nonsense" : imencode(plain(6, 5, static_cast<uint8_t>(i)), ".png", 1)));
  writer.close();
  std::vector<std::string> warnings;
  const LogSink before = set_log_sink([&](LogLevel, std::string_view text) { warnings.emplace_back(text); });
  auto o = options();
  o.skip_bad_images = true;
  ImageRecordIter iter(o);
  const auto batch = iter.next();
  set_log_sink(before);
  EXPECT_EQ(batch->label[0].to_vector<double>(), (Values{1, 1, 1, 3}));
  EXPECT_EQ(batch->data[0].to_vector<double>()[0], 1);
  ASSERT_EQ(warnings.size(), 2U);
  EXPECT_NE(warnings[0].find("left out the image at offset 0, id 0"), std::string::npos) << warnings[0];

  RecordWriter all_bad(path);
  for (int i = 0; i < 4; ++i) all_bad.write(pack_record({}, "nonsense"));
  all_bad.close();
  EXPECT_TRUE(fails_with([&] { ImageRecordIter(o).next(); }, path, "none of the images"));
}

TEST_F(ImageRecords, DamagedAndWrongFilesAreNamed) {
  write(8);
  std::string bytes = testing::read_file(path);
  auto o = options();
  write_file(path, bytes.substr(0, bytes.size() - 50));
  EXPECT_TRUE(fails_with([&] { labels(*std::make_unique<ImageRecordIter>(o)); }, path, "at offset", "truncated"));
  o.path_imgidx = index;
  EXPECT_TRUE(fails_with([&] { labels(*std::make_unique<ImageRecordIter>(o)); }, path, "at offset"));
  write_file(index, "0\t0\n1\t99999999\n");
  EXPECT_TRUE(fails_with([&] { ImageRecordIter iter(o); }, index, "does not belong to", path));
  write_file(path, "");
  o.path_imgidx = "";
  EXPECT_TRUE(fails_with([&] { ImageRecordIter iter(o); }, path, "no records"));
  o.path_imgrec = dir.file("missing");
  EXPECT_TRUE(fails_with([&] { ImageRecordIter iter(o); }, "missing", "No such file"));
}

TEST_F(ImageRecords, WrongOptionsAreRefused) {
  write(4);
  const auto refused = [&](auto change, const char* what) {
    auto o = options();
    change(o);
    return fails_with([&] { ImageRecordIter(o).next(); }, what);
  };
  using O = ImageRecordIterOptions;
  EXPECT_TRUE(refused([](O& o) { o.data_shape = {4, 4}; }, "data_shape"));
  EXPECT_TRUE(refused([](O& o) { o.data_shape = {2, 4, 4}; }, "1, 3 or 4 channels"));
  EXPECT_TRUE(refused([](O& o) { o.batch_size = 0; }, "batch_size"));
  EXPECT_TRUE(refused([](O& o) { o.preprocess_threads = 0; }, "preprocess_threads"));
  EXPECT_TRUE(refused([](O& o) { o.prefetch_buffer = 0; }, "prefetch_buffer"));
  EXPECT_TRUE(refused([](O& o) { o.dtype = DType::int32; }, "dtype"));
  EXPECT_TRUE(refused([](O& o) { o.num_parts = 0; }, "num_parts"));
  EXPECT_TRUE(refused([](O& o) { o.part_index = 1; }, "part_index"));
  EXPECT_TRUE(refused([](O& o) { o.inter_method = 6; }, "interpolation"));
  EXPECT_TRUE(refused([](O& o) { o.std_g = 0; }, "std_g"));
  EXPECT_TRUE(refused([](O& o) { o.max_crop_size = 3; }, "max_crop_size"));
  EXPECT_TRUE(refused([](O& o) { o.min_random_scale = 2; }, "min_random_scale"));
  EXPECT_TRUE(refused([](O& o) { o.mean_image = zeros({3, 5, 5}); }, "mean image"));
  EXPECT_TRUE(refused([](O& o) { o.label_width = 2; }, "label_width is 2, but the record has one label"));
}

TEST_F(ImageRecords, MeanImagesAndHalfPrecision) {
  write_one(plain(4, 4, 100));
  auto o = options();
  o.batch_size = 1;
  o.mean_image = full({3, 4, 4}, 30);
  o.scale = 0.5F;
  o.std_g = 7;
  EXPECT_NEAR(ImageRecordIter(o).next()->data[0].to_vector<double>()[0], 35, 1e-5);
  EXPECT_NEAR(ImageRecordIter(o).next()->data[0].to_vector<double>()[16], 5, 1e-5);
  o.mean_image = {};
  o.mean_r = 50;
  o.dtype = DType::float16;
  EXPECT_EQ(ImageRecordIter(o).next()->data[0].dtype(), DType::float16);
  EXPECT_EQ(ImageRecordIter(o).next()->data[0].to_vector<double>()[0], 25);
}

TEST_F(ImageRecords, PixelsThatADeviceNormalizesHaveTheSameRandomChanges) {
  write_one(noise(20, 30));
  for (const int64_t channels : {1, 3, 4}) {
    auto o = options();
    o.data_shape = {channels, 4, 4};
    o.rand_crop = o.rand_mirror = true;
    o.max_rotate_angle = 20;
    if (channels == 3) o.brightness = o.contrast = o.saturation = o.pca_noise = 0.3F;
    o.mean_r = 123.68F, o.mean_g = 116.78F, o.mean_b = 103.94F, o.mean_a = 3;
    o.std_r = 58.4F, o.std_g = 57.1F, o.std_b = 57.4F, o.std_a = 7;
    o.scale = 0.3F;
    ImageRecordIter numbers(o);
    o.normalize_on_device = true;
    ImageRecordIter pixels(o);
    const DataDesc described = pixels.provide_data()[0];
    EXPECT_EQ(described.dtype, DType::float32) << "what the network gets";
    ASSERT_TRUE(described.normalization);
    const PixelNormalization by = *described.normalization;
    EXPECT_EQ(by.mean.size(), static_cast<size_t>(channels));
    int batches = 0;
    for (int epoch = 0; epoch < 5; ++epoch, pixels.reset(), numbers.reset()) {
      while (const auto batch = pixels.next()) {
        ++batches;
        EXPECT_EQ(batch->data[0].dtype(), DType::uint8);
        EXPECT_EQ(batch->provide_data, std::vector{described});
        const auto values = batch->data[0].to_vector<float>();
        std::vector<float> expected;
        for (size_t i = 0; i < values.size(); ++i) {
          const size_t c = i / 16 % static_cast<size_t>(channels);
          expected.push_back((values[i] - static_cast<float>(by.mean[c])) * static_cast<float>(by.scale) /
                             static_cast<float>(by.std[c]));
        }
        EXPECT_EQ(numbers.next()->data[0].to_vector<float>(), expected);
      }
      EXPECT_FALSE(numbers.next());
    }
    EXPECT_GE(batches, 2);
  }
}

TEST_F(ImageRecords, OnlyTheSameNormalizationOfAllImagesCanBeLeftToADevice) {
  write(4);
  const auto refused = [&](auto change, const char* what) {
    auto o = options();
    o.normalize_on_device = true;
    change(o);
    return fails_with([&] { ImageRecordIter iter(o); }, "[ImageRecordIter] normalize_on_device", what);
  };
  using O = ImageRecordIterOptions;
  EXPECT_TRUE(
      refused([](O& o) { o.dtype = DType::uint8; }, "floating dtype, that of the normalized images, not uint8"));
  EXPECT_TRUE(refused([](O& o) { o.mean_image = zeros({3, 4, 4}); }, "mean_img"));
  EXPECT_TRUE(refused([](O& o) { o.max_random_contrast = 0.1F; }, "max_random_contrast"));
  EXPECT_TRUE(refused([](O& o) { o.max_random_illumination = 0.1F; }, "max_random_illumination"));
}

TEST_F(ImageRecords, RandomCropsAreAllOverTheImage) {
  // The color says which row it is from.
  NDArray image({50, 10, 3}, cpu(), DType::uint8);
  for (int64_t i = 0; i < 50 * 30; ++i) static_cast<uint8_t*>(image.mutable_data())[i] = static_cast<uint8_t>(i / 30);
  write_one(image);
  auto o = options();
  o.batch_size = 500;
  o.rand_crop = true;
  const auto values = ImageRecordIter(o).next()->data[0].to_vector<double>();
  std::set<double> rows;
  for (size_t i = 0; i < 500; ++i) rows.insert(values[i * 48]);
  EXPECT_EQ(rows.size(), 47U);
  EXPECT_EQ(*rows.begin(), 0);
  EXPECT_EQ(*rows.rbegin(), 46);
}

TEST_F(ImageRecords, RandomResizedCropsCoverPartsOfTheImage) {
  NDArray image({64, 64, 3}, cpu(), DType::uint8);
  for (int64_t i = 0; i < 64 * 192; ++i)
    static_cast<uint8_t*>(image.mutable_data())[i] = static_cast<uint8_t>(i / 192 * 4);
  write_one(image);
  auto o = options();
  o.batch_size = 200;
  o.random_resized_crop = true;
  o.min_random_area = 0.1F;
  o.max_random_area = 0.5F;
  o.min_aspect_ratio = 0.75F;
  o.max_aspect_ratio = 1.33F;
  const auto values = ImageRecordIter(o).next()->data[0].to_vector<double>();
  for (size_t i = 0; i < 200; ++i) {
    const double rows = (values[i * 48 + 12] - values[i * 48]) / 4 * 4 / 3;  // between the first and the last of four
    EXPECT_GT(rows, 64 * std::sqrt(0.1 * 0.75) - 3);
    EXPECT_LT(rows, 64 * std::sqrt(0.5 * 1.34) + 3);
  }
}

TEST(ImageColors, ChangeAsTheirNamesSay) {
  Pixels image;
  image.resize(1, 2, 3);
  const auto set = [&](std::initializer_list<uint8_t> values) {
    std::copy(values.begin(), values.end(), image.data());
  };
  const auto now = [&] { return std::vector<int>(image.data(), image.data() + 6); };
  set({100, 200, 50, 10, 20, 30});
  add_brightness(image, 1.5F);
  EXPECT_EQ(now(), (std::vector<int>{150, 255, 75, 15, 30, 45}));
  set({100, 100, 100, 50, 50, 50});
  add_contrast(image, 2);
  EXPECT_EQ(now(), (std::vector<int>{125, 125, 125, 25, 25, 25}));
  set({100, 100, 100, 200, 0, 0});
  add_saturation(image, 0);
  EXPECT_EQ(now(), (std::vector<int>{100, 100, 100, 60, 60, 60}));
  set({100, 200, 50, 255, 20, 0});
  add_hue_saturation_lightness(image, 0, 0, 0);
  EXPECT_EQ(now(), (std::vector<int>{100, 200, 50, 255, 20, 0}));
  set({255, 0, 0, 100, 100, 100});
  add_hue_saturation_lightness(image, 60, 0, 0);  // 120 degrees: red becomes green
  EXPECT_EQ(now(), (std::vector<int>{0, 255, 0, 100, 100, 100}));
  add_light(image, {10, -10, 0});
  EXPECT_EQ(now(), (std::vector<int>{10, 245, 0, 110, 90, 100}));
}

}  // namespace
}  // namespace symbind
