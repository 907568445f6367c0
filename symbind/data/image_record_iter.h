// Batches of images from a RecordIO file, decoded, augmented and normalized on the iterator's threads while the network
// computes.
//
//     ImageRecordIter train({.path_imgrec = "train.rec", .data_shape = {3, 224, 224}, .batch_size = 128,
//                            .shuffle = true, .resize = 256, .rand_crop = true, .rand_mirror = true,
//                            .mean_r = 123.68, .mean_g = 116.78, .mean_b = 103.94});
//
// An image passes through those of these steps that the options request: the shorter side is resized to `resize`; it is
// rotated, sheared and scaled; padded; cropped to data_shape (and enlarged first if it is smaller); its colors are
// changed; it is mirrored; (pixel - mean) · contrast + illumination is multiplied by scale / std.
//
// Random choices depend on the seeds, the epoch and the position of the sample in the epoch, not on the threads.
#pragma once

#include "symbind/data/iterator.h"

namespace SYMBIND_API symbind {

// The names and defaults are MXNet's.
struct ImageRecordIterOptions {
  std::string path_imgrec;
  std::string path_imgidx{};   // an index: sharding and shuffling cover all records from the first epoch on
  std::string path_imglist{};  // labels by record id: lines of id, labels and a path, separated by tabs
  Shape data_shape = {};       // (channels, height, width), of 1, 3 or 4 channels
  int64_t label_width = 1;
  int64_t batch_size = 1;
  bool shuffle = false;
  // Of the order and of the augmentation; without it the order is that of 0, and mx.random.seed() decides the
  // augmentation.
  std::optional<int64_t> seed = std::nullopt;
  std::optional<int64_t> seed_aug = std::nullopt;  // of the augmentation alone
  int64_t shuffle_chunk_size = 0;                  // MB that are shuffled together without an index
  int64_t preprocess_threads = 4;
  int64_t prefetch_buffer = 4;  // batches prepared ahead
  int64_t num_parts = 1;
  int64_t part_index = 0;
  bool round_batch = true;       // the last batch takes samples from the next epoch; otherwise it repeats some
  DType dtype = DType::float32;  // or float16; uint8 and int8 (at most 127) are the pixels unchanged
  // Batches hold pixels as uint8, which a module normalizes on its devices, where its network gets them as `dtype`. The
  // values are those without this option.
  bool normalize_on_device = false;
  bool skip_bad_images = false;  // an image that cannot be decoded is reported, and replaced by another of its batch
  bool verbose = true;           // log what is read
  std::string data_name = "data";
  std::string label_name = "softmax_label";

  // ---- augmentation
  int64_t resize = -1;  // of the shorter side, before everything else
  bool rand_crop = false;
  bool random_resized_crop = false;  // of a random area and aspect, resized to data_shape
  int64_t max_rotate_angle = 0;      // degrees: random angle in [-v, v]
  int64_t rotate = -1;               // degrees: fixed angle
  float max_aspect_ratio = 0;        // width / height is changed by a random factor in [1 - v, 1 + v], or
  std::optional<float> min_aspect_ratio = std::nullopt;  // where this is given, in [min, max]
  float max_shear_ratio = 0;
  int64_t max_crop_size = -1, min_crop_size = -1;  // crops a square of a random size, resized to data_shape
  float max_random_scale = 1, min_random_scale = 1;
  float max_random_area = 1, min_random_area = 1;  // of random_resized_crop, as a fraction of the image's area
  float max_img_size = 1e10F, min_img_size = 0;    // of a side, after scaling
  float brightness = 0, contrast = 0, saturation = 0;
  float pca_noise = 0;
  int64_t random_h = 0, random_s = 0, random_l = 0;  // added to hue, saturation and lightness: a number in [-v, v]
  int64_t fill_value = 255;                          // for pixels outside the image
  int64_t inter_method = 1;  // 0 nearest, 1 bilinear, 2 cubic, 3 area, 4 Lanczos, 9 chosen by the sizes, 10 random
  int64_t pad = 0;           // pixels on every side
  bool mirror = false, rand_mirror = false;
  float mean_r = 0, mean_g = 0, mean_b = 0, mean_a = 0;
  float std_r = 1, std_g = 1, std_b = 1, std_a = 1;
  NDArray mean_image = {};  // of data_shape: subtracted instead of mean_r, mean_g, mean_b
  float scale = 1;
  float max_random_contrast = 0, max_random_illumination = 0;
};

// Images are decoded on threads of the iterator; the iterator itself serves one thread at a time.
class ImageRecordIter : public DataIter {
 public:
  explicit ImageRecordIter(ImageRecordIterOptions options);
  ~ImageRecordIter() override;

  std::vector<DataDesc> provide_data() const override;
  std::vector<DataDesc> provide_label() const override;
  int64_t batch_size() const override;

  void reset() override;
  void begin_epoch() override;
  // `index` holds the records' ids. A record that cannot be read fails with the file and its offset, and so does every
  // next() after it, until reset().
  std::optional<DataBatch> next() override;

 private:
  class Maker;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace symbind
