// Images of another iterator at another size: enlarged or shrunk to the nearest pixel, a single channel repeated.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "symbind/symbind.h"

namespace examples {

using namespace symbind;

class ResizedImages : public DataIter {
 public:
  // `images` has one input (batch, channels, height, width). `shape` is (channels, height, width); it has as many
  // channels as the images, or those have one.
  ResizedImages(std::shared_ptr<DataIter> images, const Shape& shape)
      : images_(std::move(images)), shape_(shape), from_(image_shape(*images_)) {
    require(shape.rank() == 3, "an image shape has channels, height and width, not ", shape);
    require(from_[0] == 1 || from_[0] == shape[0], "images with ", from_[0], " channels cannot get ", shape[0]);
  }

  std::vector<DataDesc> provide_data() const override {
    std::vector<DataDesc> all = images_->provide_data();
    all[0].shape = {batch_size(), shape_[0], shape_[1], shape_[2]};
    return all;
  }
  std::vector<DataDesc> provide_label() const override { return images_->provide_label(); }
  int64_t batch_size() const override { return images_->batch_size(); }
  void reset() override { images_->reset(); }
  void begin_epoch() override { images_->begin_epoch(); }

  std::optional<DataBatch> next() override {
    const InUse use = in_use("next");
    std::optional<DataBatch> batch = images_->next();
    if (batch) batch->data[0] = resized(batch->data[0]);
    return batch;
  }

 private:
  static Shape image_shape(const DataIter& images) {
    const Shape batch = images.provide_data().at(0).shape;
    require(batch.rank() == 4, "images come as (batch, channels, height, width), not ", batch);
    return {batch[1], batch[2], batch[3]};
  }

  NDArray resized(const NDArray& batch) const {
    const int64_t count = batch.shape()[0];
    const std::vector<float> pixels = batch.to_vector<float>();
    std::vector<float> result;
    result.reserve(static_cast<size_t>(count * shape_[0] * shape_[1] * shape_[2]));
    for (int64_t image = 0; image < count; ++image)
      for (int64_t channel = 0; channel < shape_[0]; ++channel) {
        const int64_t plane = image * from_[0] + (from_[0] == 1 ? 0 : channel);
        for (int64_t y = 0; y < shape_[1]; ++y)
          for (int64_t x = 0; x < shape_[2]; ++x) {
            const int64_t row = plane * from_[1] + y * from_[1] / shape_[1];
            result.push_back(pixels[static_cast<size_t>(row * from_[2] + x * from_[2] / shape_[2])]);
          }
      }
    return array(result, {count, shape_[0], shape_[1], shape_[2]});
  }

  std::shared_ptr<DataIter> images_;
  Shape shape_, from_;
};

}  // namespace examples
