// The cases of op_cases_test.cc that are in files of their own.
#pragma once

#include <functional>
#include <vector>

#include "tests/support/op_case.h"

namespace symbind::testing {

using Inputs_ = const std::vector<Values>&;
using Reference = std::function<std::vector<Values>(Inputs_)>;

void add_math_cases(std::vector<OpCase>& cases);    // functions of one number, softmax, losses
void add_choice_cases(std::vector<OpCase>& cases);  // functions of two numbers, elements by number, reductions
void add_shape_cases(std::vector<OpCase>& cases);   // elements moved
void add_layer_cases(std::vector<OpCase>& cases);   // rectifiers, normalizations, products of many matrices
void add_index_cases(std::vector<OpCase>& cases);   // indices, diagonals, cumulative sums, moments, products by column
void add_rnn_cases(std::vector<OpCase>& cases);     // recurrent layers
void add_vision_cases(std::vector<OpCase>& cases);  // regions of images, images sampled at computed coordinates
void add_density_cases(std::vector<OpCase>& cases);
void add_ctc_cases(std::vector<OpCase>& cases);      // alignments of sequences
void add_linalg_cases(std::vector<OpCase>& cases);   // matrices
void add_contrib_cases(std::vector<OpCase>& cases);  // attention, resizing, windows, slices replaced, dense storage
void add_image_cases(std::vector<OpCase>& cases);    // images on their way to a network

}  // namespace symbind::testing
