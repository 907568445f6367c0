#include "symbind/data/mnist_iter.h"

#include <algorithm>

#include "symbind/core/log.h"
#include "symbind/data/sharding.h"
#include "symbind/data/shuffle.h"

namespace symbind {
namespace {

IdxArray read_of_rank(const std::string& path, int rank, std::string_view what) {
  IdxArray array = read_idx(path);
  require(array.shape.rank() == rank, "[MNISTIter] ", what, " have ", rank, rank == 1 ? " axis" : " axes", ", but ",
          path, " holds an array of shape ", array.shape);
  return array;
}

}  // namespace

MNISTIter::MNISTIter(MNISTIterOptions options) : options_(std::move(options)) {
  require(options_.batch_size >= 1, "[MNISTIter] batch_size must be at least 1: ", options_.batch_size);
  images_ = read_of_rank(options_.image, 3, "images");
  labels_ = read_of_rank(options_.label, 1, "labels");
  const int64_t count = images_.shape[0];
  require(labels_.shape[0] == count, "[MNISTIter] there must be as many labels as images: ", options_.image, " holds ",
          count, ", ", options_.label, " holds ", labels_.shape[0]);

  const Shard part = shard_of(count, options_.num_parts, options_.part_index, "MNISTIter");
  require(part.size() >= options_.batch_size, "[MNISTIter] batch_size must be at most the number of images, ",
          part.size(), options_.num_parts > 1 ? join(" in part ", options_.part_index, " of ", options_.num_parts) : "",
          ": ", options_.batch_size);
  if (options_.shuffle) {
    order_ = seeded_order(part.size(), static_cast<uint32_t>(options_.seed));
  } else {
    order_.resize(static_cast<size_t>(part.size()));
    for (size_t i = 0; i < order_.size(); ++i) order_[i] = static_cast<int64_t>(i);
  }
  for (int64_t& sample : order_) sample += part.begin;
  if (!options_.silent)
    log_info("[MNISTIter] ", part.size(), " images of ", options_.image, options_.shuffle ? ", shuffled" : "",
             ", in batches of shape ", batch_shape());
}

Shape MNISTIter::batch_shape() const {
  const int64_t height = images_.shape[1], width = images_.shape[2];
  return options_.flat ? Shape{options_.batch_size, height * width} : Shape{options_.batch_size, 1, height, width};
}

std::vector<DataDesc> MNISTIter::provide_data() const { return {{.name = options_.data_name, .shape = batch_shape()}}; }

std::vector<DataDesc> MNISTIter::provide_label() const {
  return {{.name = options_.label_name, .shape = {options_.batch_size}}};
}

void MNISTIter::reset() {
  const InUse use = in_use("reset");
  next_ = 0;
}

std::optional<DataBatch> MNISTIter::next() {
  const InUse use = in_use("next");
  const auto size = static_cast<size_t>(options_.batch_size);
  if (order_.size() - next_ < size) return std::nullopt;
  const NDArray data(batch_shape()), label(Shape{options_.batch_size});
  auto* pixel = static_cast<float*>(data.mutable_data());
  auto* digit = static_cast<float*>(label.mutable_data());
  const auto pixels = static_cast<size_t>(images_.shape.size(1, 3));
  const auto begin = order_.begin() + static_cast<ptrdiff_t>(next_), end = begin + options_.batch_size;
  for (auto sample = begin; sample != end; ++sample) {
    const uint8_t* image = images_.values.data() + static_cast<size_t>(*sample) * pixels;
    pixel = std::transform(image, image + pixels, pixel, [](uint8_t grey) { return static_cast<float>(grey) / 256; });
    *digit++ = static_cast<float>(labels_.values[static_cast<size_t>(*sample)]);
  }
  next_ += size;
  return DataBatch{.data = {data}, .label = {label}, .index = {begin, end}};
}

}  // namespace symbind
