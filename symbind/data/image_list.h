// Labels of images from a list, as im2rec writes one: lines of an id, the labels and a path, between tabs.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace symbind {

using LabelsById = std::unordered_map<uint64_t, std::vector<float>>;

// Every line has `label_width` labels; any number of them where it is negative.
LabelsById read_image_list(const std::string& path, int64_t label_width);

// The labels of a record. Fails where its id is not in the list of `path`.
const std::vector<float>& listed_labels(const LabelsById& list, uint64_t id, const std::string& path);

}  // namespace symbind
