// The handwritten digits of data/: reading them, and drawing them in a terminal.
#pragma once

#include <algorithm>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include "symbind/symbind.h"

namespace examples {

using namespace symbind;

struct Digits {
  NDArray images;  // (count, 1, height, width), 0 to 1
  NDArray labels;  // (count)
  int64_t count() const { return labels.shape()[0]; }
};

// `part` is "train" or "t10k", as MNIST names its files.
inline Digits read_digits(const std::string& folder, const std::string& part) {
  const std::string images_file = folder + "/" + part + "-images-idx3-ubyte.gz";
  const std::string labels_file = folder + "/" + part + "-labels-idx1-ubyte.gz";
  const IdxArray images = read_idx(images_file), labels = read_idx(labels_file);
  require(images.shape.rank() == 3, "[", images_file, "] holds an array ", images.shape, ", not images");
  require(labels.shape == Shape({images.shape[0]}), "[", labels_file, "] holds ", labels.shape,
          " labels for the images ", images.shape);
  Digits digits{NDArray({images.shape[0], 1, images.shape[1], images.shape[2]}), NDArray(labels.shape)};
  digits.images.copy_from(images.values);
  digits.labels.copy_from(labels.values);
  digits.images *= 1.0 / 255;
  return digits;
}

// A few images (count, 1, height, width), evenly spread over all, three side by side, each above its caption.
inline void draw_images(const NDArray& images, int64_t count,
                        const std::function<std::string(int64_t index)>& caption_of = {}) {
  constexpr int64_t across = 3, frame = 2;  // `frame` pixels around an image, mostly empty, are left out
  static const char* const shades[] = {" ", "░", "▒", "▓", "█"};
  const int64_t height = images.shape()[2], width = images.shape()[3];
  for (int64_t first = 0; first < count; first += across) {
    std::vector<int64_t> chosen;
    for (int64_t i = first; i < std::min(first + across, count); ++i) chosen.push_back(i * images.shape()[0] / count);
    for (int64_t row = frame; row + 1 < height - frame; row += 2) {
      for (const int64_t index : chosen) {
        const std::vector<float> pixels = images.at(index).to_vector<float>();
        std::cout << "  ";
        for (int64_t x = frame; x < width - frame; ++x) {  // two pixels, one above the other, make a character
          const auto above = static_cast<size_t>(row * width + x), below = above + static_cast<size_t>(width);
          std::cout << shades[std::min(4, static_cast<int>((pixels[above] + pixels[below]) / 2 * 5))];
        }
      }
      std::cout << "\n";
    }
    for (const int64_t index : chosen) {
      std::string caption = caption_of ? "  " + caption_of(index) : "";
      caption.resize(static_cast<size_t>(width - 2 * frame) + 2, ' ');
      std::cout << caption;
    }
    std::cout << "\n\n";
  }
}

// A few digits, each with what it was read as.
inline void draw_digits(const Digits& digits, const std::vector<int>& read, int64_t count) {
  draw_images(digits.images, count, [&](int64_t index) {
    return join("read ", read[static_cast<size_t>(index)], ", is ", digits.labels.at(index).item());
  });
}

}  // namespace examples
