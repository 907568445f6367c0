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
  std::string random_crop = "no", random_mirror = "no";
  int64_t num_batches = 1, num_examples = 1281167, resize = 0, pad = 0, threads = 4;

  void add_to(Options& options) {
    options
        .add("--data-train", train, "a RecordIO file, or a folder of digits in MNIST's idx files; else random images",
             "PATH")
        .add("--data-train-idx", train_index, "the index of the RecordIO file", "FILE")
        .add("--data-val", validation, "a RecordIO file to be tested on; the digits have their own", "FILE")
        .add("--data-val-idx", validation_index, "its index", "FILE")
        .add("--num-batches", num_batches, "batches of random images an epoch")
        .add("--num-examples", num_examples, "images in the RecordIO file, for the learning rate and the progress bar")
        .add("--resize", resize, "resize the shorter side of its images to this first; 0: do not", 0)
        .add("--pad-size", pad, "pixels around an image before it is cropped", 0)
        .add_choice("--random-crop", random_crop, {"yes", "no"}, "crop at a random position, else in the middle")
        .add_choice("--random-mirror", random_mirror, {"yes", "no"}, "mirror half of the images")
        .add("--data-nthreads", threads, "threads that decode images");
  }
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

inline Images digit_images(const ImageData& data, const Shape& image, int64_t batch_size, int64_t classes) {
  require(classes >= 10, "there are 10 digits: --num-classes must be 10 or more");
  const Digits digits = read_digits(data.train, "train"), unseen = read_digits(data.train, "t10k");
  const auto resized = [&](const Digits& part, bool shuffle) {
    const auto images = std::make_shared<NDArrayIter>(part.images, part.labels,
                                                      NDArrayIterOptions{.batch_size = batch_size, .shuffle = shuffle});
    return std::make_shared<ResizedImages>(images, image);
  };
  return {resized(digits, true), resized(unseen, false), (digits.count() + batch_size - 1) / batch_size};
}

inline Images record_images(const ImageData& data, const Shape& image, int64_t batch_size) {
  ImageRecordIterOptions options{.path_imgrec = data.train, .data_shape = image, .batch_size = batch_size};
  options.preprocess_threads = data.threads;
  options.resize = data.resize ? data.resize : -1;
  options.mean_r = 123.68F;  // of ImageNet's images
  options.mean_g = 116.779F;
  options.mean_b = 103.939F;
  ImageRecordIterOptions train = options;
  train.path_imgidx = data.train_index;
  train.shuffle = true;
  train.pad = data.pad;
  train.fill_value = 127;
  train.rand_crop = data.random_crop == "yes";
  train.rand_mirror = data.random_mirror == "yes";
  Images images{std::make_shared<ImageRecordIter>(train), nullptr,
                std::max<int64_t>(1, data.num_examples / batch_size)};
  if (data.validation.empty()) return images;
  options.path_imgrec = data.validation;
  options.path_imgidx = data.validation_index;
  options.round_batch = false;
  images.validation = std::make_shared<ImageRecordIter>(options);
  return images;
}

inline Images images_of(const ImageData& data, const Shape& image, int64_t batch_size, int64_t classes) {
  if (data.train.empty()) return random_images(data, image, batch_size, classes);
  if (std::filesystem::is_directory(data.train)) return digit_images(data, image, batch_size, classes);
  return record_images(data, image, batch_size);
}

}  // namespace examples
