// The handwritten digits of data/: reading them, and drawing them in a terminal.
#pragma once

#include <algorithm>
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

// A few digits, evenly spread over all, three side by side, each with what it was read as; `read` may be empty.
inline void draw_digits(const Digits& digits, const std::vector<int>& read, int64_t count) {
  constexpr int64_t across = 3, frame = 2;  // `frame` empty pixels around a digit are left out
  static const char* const shades[] = {" ", "░", "▒", "▓", "█"};
  const int64_t height = digits.images.shape()[2], width = digits.images.shape()[3];
  for (int64_t first = 0; first < count; first += across) {
    std::vector<int64_t> chosen;
    for (int64_t i = first; i < std::min(first + across, count); ++i) chosen.push_back(i * digits.count() / count);
    for (int64_t row = frame; row + 1 < height - frame; row += 2) {
      for (const int64_t index : chosen) {
        const std::vector<float> pixels = digits.images.at(index).to_vector<float>();
        std::cout << "  ";
        for (int64_t x = frame; x < width - frame; ++x) {  // two pixels, one above the other, make a character
          const auto above = static_cast<size_t>(row * width + x), below = above + static_cast<size_t>(width);
          std::cout << shades[std::min(4, static_cast<int>((pixels[above] + pixels[below]) / 2 * 5))];
        }
      }
      std::cout << "\n";
    }
    for (const int64_t index : chosen) {
      const std::string what = read.empty() ? "" : join("read ", read[static_cast<size_t>(index)], ", ");
      std::string caption = join("  ", what, "is ", digits.labels.at(index).item());
      caption.resize(static_cast<size_t>(width - 2 * frame) + 2, ' ');
      std::cout << caption;
    }
    std::cout << "\n\n";
  }
}

}  // namespace examples
