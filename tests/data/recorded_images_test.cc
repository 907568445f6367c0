// Images decoded, resized and augmented as MXNet 1.9.1 does, compared with records in tests/oracle.
#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "symbind/data/image.h"
#include "symbind/data/image_record_iter.h"
#include "symbind/data/recordio.h"

#include "tests/support/codec_test.h"
#include "tests/support/oracle.h"
#include "tests/support/source_dir.h"
#include "tests/support/temp_dir.h"

namespace symbind::testing {
namespace {

using nlohmann::json;
using Dims = std::vector<int64_t>;

const json& recorded(const std::string& what) {
  static const json all = read_recorded("images.json.gz");
  return all.at(what);
}

// The images of the cases, by the formula of record_images.py.
NDArray pattern(const Dims& dims) {
  std::vector<uint8_t> values;
  for (int64_t y = 0; y < dims[0]; ++y)
    for (int64_t x = 0; x < dims[1]; ++x)
      for (int64_t c = 0; c < dims[2]; ++c)
        values.push_back(static_cast<uint8_t>(y * 5 + x * 3 + c * 40 + (y * 7 + x * 11) % 13 * 4));
  NDArray image(Shape(dims), cpu(), DType::uint8);
  std::copy(values.begin(), values.end(), static_cast<uint8_t*>(image.mutable_data()));
  return image;
}

// The largest difference, and how many values differ by more than half a unit.
void expect_close(const NDArray& actual, const json& expected, double tolerance) {
  ASSERT_EQ(actual.shape(), Shape(expected.at("shape").get<Dims>()));
  const auto values = actual.to_vector<double>(), wanted = expected.at("data").get<std::vector<double>>();
  double largest = 0;
  for (size_t i = 0; i < values.size(); ++i) largest = std::max(largest, std::abs(values[i] - wanted[i]));
  EXPECT_LE(largest, tolerance);
}

class RecordedImageFiles : public CodecTest {};

TEST_F(RecordedImageFiles, AreDecodedTheSame) {
  for (const json& each : recorded("decoded")) {
    const std::string file = each.at("file");
    SCOPED_TRACE(join(file, ", flag ", each.at("flag"), ", to_rgb ", each.at("to_rgb")));
    const NDArray image = imread(source_dir() + "/tests/oracle/recorded/images/" + file,
                                 {.flag = each.at("flag"), .to_rgb = each.at("to_rgb") == 1});
    // The conversions of inks and greys round differently, and so do versions of libjpeg.
    expect_close(image, each, 2);
  }
}

TEST(RecordedImages, AreResizedTheSame) {
  for (const json& each : recorded("resized")) {
    SCOPED_TRACE(join(each.at("from"), " to ", each.at("to"), " by ", each.at("interp"), ", ", each.at("dtype")));
    const bool bytes = each.at("dtype") == "uint8";
    const NDArray image = pattern(each.at("from").get<Dims>());
    const NDArray resized =
        imresize(bytes ? image : image.astype(DType::float32), each.at("to")[1], each.at("to")[0], each.at("interp"));
    expect_close(resized, each, bytes ? 1 : 2e-3);
  }
}

TEST(RecordedImages, GetTheSameBorders) {
  for (const json& each : recorded("bordered")) {
    SCOPED_TRACE(each.at("type"));
    const auto border = static_cast<Border>(each.at("type").get<int>());
    expect_close(copy_make_border(pattern({3, 4, 3}), 1, 2, 3, 2, border, {1, 2, 3}), each, 0);
  }
}

// Files of records, as the cases have them.
struct Records {
  explicit Records(const std::vector<std::pair<float, NDArray>>& images) {
    RecordWriter writer(path);
    std::vector<RecordPosition> positions;
    for (const auto& [label, image] : images) {
      const auto number = static_cast<int64_t>(positions.size());
      positions.push_back({number, writer.tell()});
      writer.write(
          pack_record({.label = label, .id = static_cast<uint64_t>(number) + 100}, imencode(image, ".png", 1)));
    }
    writer.close();
    write_record_index(index, positions);
  }
  TempDir dir;
  std::string path = dir.file("images.rec"), index = dir.file("images.idx");
};

void set_augmentation(ImageRecordIterOptions& to, const json& given) {
  to.resize = given.value("resize", to.resize);
  to.inter_method = given.value("inter_method", to.inter_method);
  to.mirror = given.value("mirror", to.mirror);
  to.pad = given.value("pad", to.pad);
  to.fill_value = given.value("fill_value", to.fill_value);
  to.rotate = given.value("rotate", to.rotate);
  to.mean_r = given.value("mean_r", to.mean_r);
  to.mean_g = given.value("mean_g", to.mean_g);
  to.std_g = given.value("std_g", to.std_g);
  to.std_b = given.value("std_b", to.std_b);
  to.scale = given.value("scale", to.scale);
  to.max_crop_size = given.value("max_crop_size", to.max_crop_size);
  to.min_crop_size = given.value("min_crop_size", to.min_crop_size);
  to.max_random_scale = given.value("max_random_scale", to.max_random_scale);
  to.min_random_scale = given.value("min_random_scale", to.min_random_scale);
  to.min_img_size = given.value("min_img_size", to.min_img_size);
  to.max_img_size = given.value("max_img_size", to.max_img_size);
  to.dtype = dtype_from_name(given.value("dtype", "float32"));
}

TEST_F(RecordedImageFiles, AreAugmentedTheSame) {
  for (const json& each : recorded("augmented")) {
    SCOPED_TRACE(join(each.at("image"), " to ", each.at("data_shape"), ", ", each.at("options")));
    const Records records({{1.F, pattern(each.at("image").get<Dims>())}});
    ImageRecordIterOptions options{.path_imgrec = records.path,
                                   .data_shape = Shape(each.at("data_shape").get<Dims>()),
                                   .preprocess_threads = 1,
                                   .verbose = false};
    set_augmentation(options, each.at("options"));
    ImageRecordIter iter(options);
    // One unit for each time that an image was resized; turned images are at positions that are rounded differently.
    expect_close(iter.next()->data[0], each, each.at("options").contains("rotate") ? 8 : 2);
  }
}

TEST_F(RecordedImageFiles, ComeInTheSameBatches) {
  std::vector<std::pair<float, NDArray>> images;
  for (int i = 0; i < 10; ++i) images.emplace_back(static_cast<float>(i), pattern({4, 5, 3}));
  const Records records(images);
  for (const json& each : recorded("walked")) {
    const json& given = each.at("options");
    SCOPED_TRACE(given);
    ImageRecordIter iter({.path_imgrec = records.path,
                          .path_imgidx = given.contains("path_imgidx") ? records.index : "",
                          .data_shape = {3, 4, 5},
                          .batch_size = given.at("batch_size"),
                          .shuffle = given.value("shuffle", false),
                          .seed = given.value("seed", 0),
                          .preprocess_threads = 3,
                          .num_parts = given.value("num_parts", 1),
                          .part_index = given.value("part_index", 0),
                          .verbose = false});
    for (const json& epoch : each.at("epochs")) {
      for (const json& expected : epoch) {
        const auto batch = iter.next();
        ASSERT_TRUE(batch);
        EXPECT_EQ(batch->label[0].to_vector<double>(), expected.at("label").get<std::vector<double>>());
        EXPECT_EQ(batch->pad, expected.at("pad").get<int64_t>());
      }
      EXPECT_FALSE(iter.next());
      iter.reset();
    }
  }
}

}  // namespace
}  // namespace symbind::testing
