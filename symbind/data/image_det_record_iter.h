// Batches of images with objects in boxes, from a RecordIO file. A record's labels are: the length of the header, the
// length of an object, the rest of the header, and the objects: a class, and left, top, right and bottom as fractions
// of the image's width and height.
//
// Labels of a batch have a row for each image: channels, height, width, the number of labels that follow, the labels as
// in the record, with the boxes as augmentation moved them, and label_pad_value up to the row's length.
#pragma once

#include "symbind/data/iterator.h"

namespace SYMBIND_API symbind {

// The names and defaults are MXNet's. One value of each list describes one crop sampler; shorter lists repeat their
// last value.
struct ImageDetRecordIterOptions {
  std::string path_imgrec;
  std::string path_imgidx{};
  std::string path_imglist{};  // labels by the records' id: lines of id, labels and a path, between tabs
  Shape data_shape = {};       // (channels, height, width), of 1 or 3 channels
  int64_t batch_size = 1;
  int64_t label_width = -1;     // how many labels every record has; -1: any number
  int64_t label_pad_width = 0;  // how many labels fit into a batch's row; 0 or -1: as many as the longest has
  float label_pad_value = -1;
  bool shuffle = false;
  std::optional<int64_t> seed = std::nullopt;  // of the order and of the augmentation, as of ImageRecordIter
  int64_t shuffle_chunk_size = 0;
  int64_t preprocess_threads = 4;
  int64_t prefetch_buffer = 4;
  int64_t num_parts = 1;
  int64_t part_index = 0;
  bool round_batch = true;
  bool verbose = true;
  std::string data_name = "data";
  std::string label_name = "softmax_label";

  // ---- augmentation
  int64_t resize = -1;  // of the shorter side, before everything else
  float rand_crop_prob = 0;
  int64_t num_crop_sampler = 1;
  std::vector<float> min_crop_scales = {0}, max_crop_scales = {1};  // as fractions of the image's sides
  std::vector<float> min_crop_aspect_ratios = {1}, max_crop_aspect_ratios = {1};
  std::vector<float> min_crop_overlaps = {0}, max_crop_overlaps = {1};  // intersection over union with an object
  std::vector<float> min_crop_sample_coverages = {0}, max_crop_sample_coverages = {1};  // of the crop, by that object
  std::vector<float> min_crop_object_coverages = {0}, max_crop_object_coverages = {1};  // of that object, by the crop
  std::vector<int64_t> max_crop_trials = {25};
  std::string crop_emit_mode = "center";  // objects whose centre is outside of the crop are dropped; or "overlap":
  float emit_overlap_thresh = 0.3F;       // those of which less than this is inside
  float rand_pad_prob = 0;
  float max_pad_scale = 1;
  int64_t max_random_hue = 0, max_random_saturation = 0, max_random_illumination = 0;
  float max_random_contrast = 0;
  float random_hue_prob = 0, random_saturation_prob = 0, random_illumination_prob = 0, random_contrast_prob = 0;
  float rand_mirror_prob = 0;
  int64_t fill_value = 127;
  int64_t inter_method = 1;
  std::string resize_mode = "force";  // to data_shape whatever the aspect; "shrink" or "fit": inside of it
  float mean_r = 0, mean_g = 0, mean_b = 0;
  float std_r = 1, std_g = 1, std_b = 1;
  float scale = 1;
};

// Serves one thread at a time; images are decoded on threads of the iterator.
class ImageDetRecordIter : public DataIter {
 public:
  explicit ImageDetRecordIter(ImageDetRecordIterOptions options);
  ~ImageDetRecordIter() override;

  std::vector<DataDesc> provide_data() const override;
  std::vector<DataDesc> provide_label() const override;
  int64_t batch_size() const override;

  void reset() override;
  void begin_epoch() override;
  std::optional<DataBatch> next() override;  // `index` holds the records' ids

 private:
  class Maker;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace symbind
