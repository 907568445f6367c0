// Images to train on, as options say: random ones, the digits of data/, or a RecordIO file.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "symbind/symbind.h"

#include "examples/support/digits.h"
#include "examples/support/options.h"
#include "examples/support/resized_images.h"

namespace examples {

struct ImageData {
  std::string train, train_index, validation, validation_index;
  bool benchmark = false;
  int64_t num_batches = 1, num_examples = 1281167, threads = 4;
  bool imagenet_augmentation = false;
  double min_aspect_ratio = 0;
  std::vector<double> rgb_mean = {123.68, 116.779, 103.939}, rgb_std = {1, 1, 1};
  ImageRecordIterOptions records{.path_imgrec = {}, .fill_value = 127};  // as single options say

  void add_to(Options& options) {
    options
        .add("--data-train", train, "a RecordIO file, or a folder of digits in MNIST's idx files; else random images",
             "PATH")
        .add("--data-train-idx", train_index, "the index of the RecordIO file", "FILE")
        .add("--data-val", validation, "a RecordIO file to be tested on; the digits have their own", "FILE")
        .add("--data-val-idx", validation_index, "its index", "FILE")
        .add_switch("--benchmark", benchmark, "1: random images in any case")
        .add("--num-batches", num_batches, "batches of random images an epoch")
        .add("--num-examples", num_examples, "images in the RecordIO file, for the learning rate and the progress bar")
        .add("--data-nthreads", threads, "threads that decode images")
        .add("--rgb-mean", rgb_mean, "subtracted from the colors of its images")
        .add("--rgb-std", rgb_std, "their colors are divided by this")
        .add("--resize", records.resize, "resize the shorter side of its images to this first; -1: do not", -1);
    add_augmentation(options);
  }
  // How the images to train on are augmented.
  ImageRecordIterOptions augmentation() const {
    ImageRecordIterOptions chosen = records;
    if (min_aspect_ratio > 0) chosen.min_aspect_ratio = static_cast<float>(min_aspect_ratio);
    if (!imagenet_augmentation) return chosen;
    chosen.rand_crop = false;
    chosen.random_resized_crop = chosen.rand_mirror = true;
    chosen.min_random_area = 0.08F;
    chosen.min_aspect_ratio = 3.0F / 4;
    chosen.max_aspect_ratio = 4.0F / 3;
    chosen.brightness = chosen.contrast = chosen.saturation = 0.4F;
    chosen.pca_noise = 0.1F;
    return chosen;
  }
  std::vector<double> deviation() const {
    return imagenet_augmentation ? std::vector<double>{58.393, 57.12, 57.375} : rgb_std;
  }

 private:
  void add_augmentation(Options& options) {
    options.add("--pad-size", records.pad, "pixels around an image before it is cropped", 0)
        .add("--fill-value", records.fill_value, "the color of what is outside of an image", 0)
        .add_switch("--random-crop", records.rand_crop, "1: crop at a random position, else in the middle")
        .add_switch("--random-mirror", records.rand_mirror, "1: mirror half of the images")
        .add_switch("--random-resized-crop", records.random_resized_crop, "1: crop a random area and resize it")
        .add("--max-random-area", records.max_random_area, "the largest part of an image such a crop takes")
        .add("--min-random-area", records.min_random_area, "the smallest")
        .add("--max-random-h", records.random_h, "change the hue by up to this", 0)
        .add("--max-random-s", records.random_s, "change the saturation by up to this", 0)
        .add("--max-random-l", records.random_l, "change the lightness by up to this", 0)
        .add("--max-random-aspect-ratio", records.max_aspect_ratio, "change width / height by up to this part")
        .add("--min-random-aspect-ratio", min_aspect_ratio,
             "with this above 0, the ratio is changed by a factor between this and --max-random-aspect-ratio")
        .add("--max-random-rotate-angle", records.max_rotate_angle, "rotate by up to this many degrees", 0)
        .add("--max-random-shear-ratio", records.max_shear_ratio, "shear by up to this part")
        .add("--max-random-scale", records.max_random_scale, "the largest factor of an image's size")
        .add("--min-random-scale", records.min_random_scale, "the smallest")
        .add("--brightness", records.brightness, "change the brightness by up to this part")
        .add("--contrast", records.contrast, "change the contrast by up to this part")
        .add("--saturation", records.saturation, "change the saturation by up to this part")
        .add("--pca-noise", records.pca_noise, "noise along the principal colors")
        .add_switch("--use-imagenet-data-augmentation", imagenet_augmentation,
                    "1: crops, colors and deviations as usual for ImageNet, instead of the options above");
  }
};

// The worker of a job, and how many there are: each trains on its part of the images.
struct Share {
  int64_t rank = 0, workers = 1;
};

// What an epoch runs over, and what validation does; none: there is no validation.
struct Images {
  std::shared_ptr<DataIter> train, validation;
  int64_t batches;  // an epoch
};

// One batch, again and again.
inline Images random_images(const ImageData& data, const Shape& image, int64_t batch_size, int64_t classes) {
  std::vector<float> labels;
  for (int64_t i = 0; i < batch_size; ++i) labels.push_back(static_cast<float>(i * 7 % classes));
  const NDArray pixels = random::normal({.shape = {batch_size, image[0], image[1], image[2]}});
  const auto batch =
      std::make_shared<NDArrayIter>(pixels, array(labels, {batch_size}), NDArrayIterOptions{.batch_size = batch_size});
  return {std::make_shared<ResizeIter>(batch, data.num_batches), nullptr, data.num_batches};
}

inline Images digit_images(const ImageData& data, const Shape& image, int64_t batch_size, int64_t classes,
                           const Share& share) {
  require(classes >= 10, "there are 10 digits: --num-classes must be 10 or more");
  Digits digits = read_digits(data.train, "train");
  const Digits unseen = read_digits(data.train, "t10k");
  const int64_t begin = share.rank * digits.count() / share.workers;
  const int64_t end = (share.rank + 1) * digits.count() / share.workers;
  digits = {digits.images.slice(begin, end), digits.labels.slice(begin, end)};
  const auto resized = [&](const Digits& part, bool shuffle) {
    const auto images = std::make_shared<NDArrayIter>(part.images, part.labels,
                                                      NDArrayIterOptions{.batch_size = batch_size, .shuffle = shuffle});
    return std::make_shared<ResizedImages>(images, image);
  };
  return {resized(digits, true), resized(unseen, false), (digits.count() + batch_size - 1) / batch_size};
}

inline Images record_images(const ImageData& data, const Shape& image, int64_t batch_size, const Share& share) {
  const std::vector<double> deviations = data.deviation();
  require(data.rgb_mean.size() == 3 && deviations.size() == 3, "--rgb-mean and --rgb-std take three numbers");
  const auto described = [&](ImageRecordIterOptions options, const std::string& path, const std::string& index) {
    options.path_imgrec = path;
    options.path_imgidx = index;
    options.data_shape = image;
    options.batch_size = batch_size;
    options.preprocess_threads = data.threads;
    options.resize = data.records.resize;
    const auto mean = [&](size_t color) { return static_cast<float>(data.rgb_mean[color]); };
    const auto deviation = [&](size_t color) { return static_cast<float>(deviations[color]); };
    options.mean_r = mean(0), options.mean_g = mean(1), options.mean_b = mean(2);
    options.std_r = deviation(0), options.std_g = deviation(1), options.std_b = deviation(2);
    return options;
  };
  ImageRecordIterOptions train = described(data.augmentation(), data.train, data.train_index);
  train.shuffle = true;
  train.num_parts = share.workers;
  train.part_index = share.rank;
  Images images{std::make_shared<ImageRecordIter>(train), nullptr,
                std::max<int64_t>(1, data.num_examples / batch_size / share.workers)};
  if (data.validation.empty()) return images;
  ImageRecordIterOptions validation =
      described(ImageRecordIterOptions{.path_imgrec = {}}, data.validation, data.validation_index);
  validation.round_batch = false;
  images.validation = std::make_shared<ImageRecordIter>(validation);
  return images;
}

inline Images images_of(const ImageData& data, const Shape& image, int64_t batch_size, int64_t classes,
                        const Share& share = {}) {
  if (data.benchmark || data.train.empty()) return random_images(data, image, batch_size, classes);
  if (std::filesystem::is_directory(data.train)) return digit_images(data, image, batch_size, classes, share);
  return record_images(data, image, batch_size, share);
}

}  // namespace examples
