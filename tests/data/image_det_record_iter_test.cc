// ImageDetRecordIter: which options and labels it refuses, and which objects are left, and where, after augmentation.
#include "symbind/data/image_det_record_iter.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "symbind/data/image.h"
#include "symbind/data/recordio.h"

#include "tests/support/arrays.h"
#include "tests/support/temp_dir.h"

namespace symbind {
namespace {

using testing::fails_with;

struct Box {
  double left, top, right, bottom;
};

constexpr int cells = 4;  // a side of the image: each is an object whose class is its number, and has its own gray

Box cell(int number) {
  const double left = number % cells, top = number / cells;  // NOLINT(bugprone-integer-division)
  return {left / cells, top / cells, (left + 1) / cells, (top + 1) / cells};
}

class ImageObjects : public ::testing::Test {
 protected:
  void write(const std::vector<float>& labels) const {
    NDArray image({80, 80, 3}, cpu(), DType::uint8);
    auto* pixel = static_cast<uint8_t*>(image.mutable_data());
    for (int y = 0; y < 80; ++y)
      for (int x = 0; x < 80; ++x)
        pixel = std::fill_n(pixel, 3, static_cast<uint8_t>(10 + 10 * (y / 20 * cells + x / 20)));
    RecordWriter writer(path);
    writer.write(pack_record({.labels = labels, .id = 7}, imencode(image, ".png", 1)));
    writer.close();
  }
  void write_cells() const {
    std::vector<float> labels{3, 5, 9};  // a head of three numbers
    for (int number = 0; number < cells * cells; ++number) {
      const Box box = cell(number);
      for (const double value : {static_cast<double>(number), box.left, box.top, box.right, box.bottom})
        labels.push_back(static_cast<float>(value));
    }
    write(labels);
  }
  ImageDetRecordIterOptions options() const {
    return {.path_imgrec = path, .data_shape = {3, 80, 80}, .verbose = false, .inter_method = 0};
  }

  testing::TempDir dir;
  std::string path = dir.file("objects.rec");
};

// The objects of a batch of one image by their class; checks what is before and after them.
std::map<int, Box> objects_of(const DataBatch& batch) {
  const auto label = batch.label[0].to_vector<double>();
  const auto count = static_cast<size_t>(label[3]);
  EXPECT_EQ(std::vector(label.begin() + 4, label.begin() + 7), (std::vector<double>{3, 5, 9}));
  EXPECT_EQ(std::count(label.begin() + 4 + static_cast<int64_t>(count), label.end(), -1),
            static_cast<int64_t>(label.size() - 4 - count));
  std::map<int, Box> objects;
  for (size_t at = 7; at < 4 + count; at += 5)
    objects[static_cast<int>(label[at])] = {label[at + 1], label[at + 2], label[at + 3], label[at + 4]};
  EXPECT_EQ(objects.size() * 5 + 3, count);
  return objects;
}

// Does the box say where the gray of the object is in the image?
void expect_pixels_in_box(const DataBatch& batch, int object, const Box& box) {
  const auto image = batch.data[0].to_vector<double>();
  int left = 80, top = 80, right = 0, bottom = 0;
  for (int y = 0; y < 80; ++y)
    for (int x = 0; x < 80; ++x)
      if (image[static_cast<size_t>(y * 80 + x)] == 10 + 10 * object) {
        left = std::min(left, x), right = std::max(right, x + 1);
        top = std::min(top, y), bottom = std::max(bottom, y + 1);
      }
  constexpr double pixels = 4;  // the sides of a crop are whole pixels of the image, which are up to two of the result
  EXPECT_NEAR(left, 80 * box.left, pixels) << object;
  EXPECT_NEAR(top, 80 * box.top, pixels) << object;
  EXPECT_NEAR(right, 80 * box.right, pixels) << object;
  EXPECT_NEAR(bottom, 80 * box.bottom, pixels) << object;
}

TEST_F(ImageObjects, AListGivesTheLabels) {
  write_cells();
  auto o = options();
  o.path_imglist = dir.file("objects.lst");
  const auto list = [&](const std::string& text) { std::ofstream(o.path_imglist) << text; };
  list("3\t2\t5\t1\t0\t0\t1\t1\ta.png\n7\t3\t5\t9\t4\t0.25\t0.5\t0.75\t1\tb.png\n");
  const auto batch = ImageDetRecordIter(o).next();
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch->label[0].shape(), (Shape{1, 12}));
  const auto objects = objects_of(*batch);
  ASSERT_TRUE(objects.contains(4));
  EXPECT_EQ(objects.at(4).left, 0.25);
  EXPECT_EQ(objects.at(4).bottom, 1);
  o.label_width = 7;
  EXPECT_TRUE(fails_with([&] { ImageDetRecordIter iter(o); }, "expected an id, 7 labels and a path"));
  o.label_width = 0;
  EXPECT_TRUE(fails_with([&] { ImageDetRecordIter iter(o); }, "expected an id, 0 labels and a path"));
  o.label_width = -1;
  list("3\t2\t5\t1\t0\t0\t1\t1\ta.png\n");
  EXPECT_TRUE(fails_with([&] { ImageDetRecordIter(o).next(); }, "its id 7 is not in"));
  list("3\ta.png\n");
  EXPECT_TRUE(fails_with([&] { ImageDetRecordIter iter(o); }, "expected an id, labels and a path", "found 2 words"));
}

TEST_F(ImageObjects, BoxesAreWhereTheirPixelsAre) {
  write_cells();
  const std::vector<std::function<void(ImageDetRecordIterOptions&)>> augmentations{
      [](auto&) {}, [](auto& o) { o.rand_mirror_prob = 1; },
      [](auto& o) { o.rand_pad_prob = 1, o.max_pad_scale = 2, o.fill_value = 0; },
      [](auto& o) {
        o.rand_crop_prob = 1, o.min_crop_scales = {0.5}, o.max_crop_scales = {0.7F}, o.rand_mirror_prob = 0.5;
      },
      [](auto& o) { o.resize = 40, o.rand_mirror_prob = 0.5; }};
  for (size_t kind = 0; kind < augmentations.size(); ++kind) {
    SCOPED_TRACE(kind);
    for (int64_t seed = 0; seed < 10; ++seed) {
      auto o = options();
      o.seed = seed;
      augmentations[kind](o);
      const auto batch = ImageDetRecordIter(o).next();
      EXPECT_EQ(batch->index, std::vector<int64_t>{7});
      const auto objects = objects_of(*batch);
      EXPECT_EQ(objects.size() == 16, kind != 3);
      for (const auto& [object, box] : objects)
        if (box.right - box.left > 0.1 && box.bottom - box.top > 0.1) expect_pixels_in_box(*batch, object, box);
    }
  }
}

// A crop of half the image's sides holds a whole cell, whose box tells where the crop is.
Box window_of(const std::map<int, Box>& objects) {
  for (const auto& [object, box] : objects)
    if (std::abs(box.right - box.left - 0.5) < 1e-4 && std::abs(box.bottom - box.top - 0.5) < 1e-4) {
      const double left = cell(object).left - box.left / 2, top = cell(object).top - box.top / 2;
      return {left, top, left + 0.5, top + 0.5};
    }
  ADD_FAILURE() << "no whole cell";
  return {};
}

double inside(const Box& box, const Box& window) {
  return std::max(0., std::min(box.right, window.right) - std::max(box.left, window.left)) *
         std::max(0., std::min(box.bottom, window.bottom) - std::max(box.top, window.top));
}

TEST_F(ImageObjects, ACropKeepsThoseWhoseCentreOrShareIsInside) {
  write_cells();
  for (const bool by_centre : {true, false})
    for (int64_t seed = 0; seed < 20; ++seed) {
      SCOPED_TRACE(::testing::Message() << (by_centre ? "centre" : "overlap") << " seed " << seed);
      auto o = options();
      o.seed = seed;
      o.rand_crop_prob = 1;
      o.min_crop_scales = o.max_crop_scales = {0.5};
      o.crop_emit_mode = by_centre ? "center" : "overlap";
      o.emit_overlap_thresh = 0.2F;
      const auto objects = objects_of(*ImageDetRecordIter(o).next());
      const Box window = window_of(objects);
      for (int number = 0; number < cells * cells; ++number) {
        const Box box = cell(number);
        const double x = (box.left + box.right) / 2, y = (box.top + box.bottom) / 2;
        const bool centre = x > window.left && x < window.right && y > window.top && y < window.bottom;
        const double share = inside(box, window) * cells * cells;
        if (!by_centre && std::abs(share - 0.2) < 1e-3) continue;  // too close to tell
        EXPECT_EQ(objects.contains(number), by_centre ? centre : share > 0.2) << number << " share " << share;
      }
    }
}

TEST_F(ImageObjects, ASeedMakesCropsReproducible) {
  write_cells();
  const auto crop = [&](int64_t seed) {
    auto o = options();
    o.seed = seed;
    o.rand_crop_prob = 1;
    o.min_crop_scales = o.max_crop_scales = {0.5};
    return ImageDetRecordIter(o).next()->data[0].to_vector<double>();
  };
  EXPECT_EQ(crop(1), crop(1));
  EXPECT_NE(crop(1), crop(2));
}

TEST_F(ImageObjects, CropsThatNoObjectFillsAsAskedAreNotMade) {
  write_cells();
  auto o = options();
  o.rand_crop_prob = 1;
  o.min_crop_scales = o.max_crop_scales = {0.5};
  o.min_crop_sample_coverages = {0.5};  // a cell is a quarter of such a crop
  EXPECT_EQ(objects_of(*ImageDetRecordIter(o).next()).size(), 16U);
  o.min_crop_sample_coverages = {0.2F};
  EXPECT_LT(objects_of(*ImageDetRecordIter(o).next()).size(), 16U);
  // Intersection over union is the same number where the cell is inside.
  o.min_crop_overlaps = {0.3F};
  EXPECT_EQ(objects_of(*ImageDetRecordIter(o).next()).size(), 16U);
  // Of two samplers the second has the last of its list.
  o.min_crop_overlaps = {0.3F, 0.2F};
  o.num_crop_sampler = 3;
  std::set<size_t> sizes;
  for (int64_t seed = 0; seed < 20; ++seed) {
    o.seed = seed;
    sizes.insert(objects_of(*ImageDetRecordIter(o).next()).size());
  }
  EXPECT_TRUE(sizes.contains(16));
  EXPECT_GT(sizes.size(), 1U);
}

TEST_F(ImageObjects, LabelsThatCannotBeObjectsAreRefused) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const std::vector<float>& labels : std::vector<std::vector<float>>{{2},
                                                                          {2, 5, 1, 0, 0, 1},
                                                                          {1, 5, 1, 0, 0, 1},
                                                                          {2, 4, 1, 0, 0, 1},
                                                                          {8, 5, 1, 0, 0, 1, 1},
                                                                          {nan, 5, 1, 0, 0, 1, 1},
                                                                          {2, nan, 1, 0, 0, 1, 1},
                                                                          {1e30F, 5, 1, 0, 0, 1, 1},
                                                                          {2, 1e30F, 1, 0, 0, 1, 1},
                                                                          {-1e30F, -1e30F, 1, 0, 0, 1, 1}}) {
    write(labels);
    EXPECT_TRUE(fails_with([&] { ImageDetRecordIter(options()).next(); }, path, "the record at offset 0", "label"))
        << ::testing::PrintToString(labels);
  }
  write({2, 5});  // no objects
  EXPECT_EQ(ImageDetRecordIter(options()).next()->label[0].to_vector<double>(),
            (std::vector<double>{3, 80, 80, 2, 2, 5}));
}

TEST_F(ImageObjects, OptionsAreChecked) {
  write_cells();
  const auto refuses = [&](const std::function<void(ImageDetRecordIterOptions&)>& change, const std::string& name) {
    auto o = options();
    change(o);
    EXPECT_TRUE(fails_with([&] { ImageDetRecordIter iter(o); }, "[ImageDetRecordIter]", name));
  };
  refuses([](auto& o) { o.path_imgrec = ""; }, "path_imgrec");
  refuses([](auto& o) { o.batch_size = 0; }, "batch_size");
  refuses([](auto& o) { o.preprocess_threads = 0; }, "preprocess_threads");
  refuses([](auto& o) { o.preprocess_threads = 1025; }, "preprocess_threads");
  refuses([](auto& o) { o.prefetch_buffer = 0; }, "prefetch_buffer");
  refuses([](auto& o) { o.shuffle_chunk_size = -1; }, "shuffle_chunk_size");
  refuses([](auto& o) { o.data_shape = {80, 80}; }, "data_shape");
  refuses([](auto& o) { o.data_shape = {2, 80, 80}; }, "data_shape");
  refuses([](auto& o) { o.data_shape = {3, 0, 80}; }, "data_shape");
  refuses([](auto& o) { o.resize_mode = "fill"; }, "resize_mode");
  refuses([](auto& o) { o.crop_emit_mode = "all"; }, "crop_emit_mode");
  refuses([](auto& o) { o.max_pad_scale = 0.5; }, "max_pad_scale");
  refuses([](auto& o) { o.max_pad_scale = 101; }, "max_pad_scale");
  refuses([](auto& o) { o.fill_value = 256; }, "fill_value");
  refuses([](auto& o) { o.fill_value = -1; }, "fill_value");
  refuses([](auto& o) { o.num_crop_sampler = -1; }, "num_crop_sampler");
  refuses([](auto& o) { o.min_crop_overlaps = {}; }, "must not be empty");
  refuses([](auto& o) { o.max_crop_trials = {}; }, "max_crop_trials");
  refuses([](auto& o) { o.label_pad_width = 82; }, "label_pad_width");
  auto o = options();
  o.label_pad_width = 83;
  EXPECT_EQ(ImageDetRecordIter(o).provide_label()[0].shape, (Shape{1, 87}));
  o.label_width = 82;
  EXPECT_TRUE(fails_with([&] { ImageDetRecordIter(o).next(); }, "label_width is 82", "83 labels"));
}

}  // namespace
}  // namespace symbind
