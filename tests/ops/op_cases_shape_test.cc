#include "tests/ops/op_cases.h"

namespace symbind::testing {
namespace {

Reference same_values(Shape shape) {
  return [shape](Inputs_ in) { return std::vector{Values{shape, in[0].data}}; };
}

// The elements of the first input in another order, given by their indices.
Reference moved(Shape shape, std::vector<size_t> indices) {
  return [=](Inputs_ in) {
    Values out{shape, {}};
    for (const size_t index : indices) out.data.push_back(in[0].data[index]);
    return std::vector{out};
  };
}

std::vector<Values> sum_of_all(Inputs_ in) {
  Values out = in[0];
  for (size_t k = 1; k < in.size(); ++k)
    for (size_t i = 0; i < out.data.size(); ++i) out.data[i] += in[k].data[i];
  return {out};
}

}  // namespace

void add_shape_cases(std::vector<OpCase>& cases) {
  const OpInput matrix{"data", {2, 3}};
  const auto add = [&](const std::string& name, const std::string& op, const Attributes& attributes,
                       const OpInput& input, Reference reference = nullptr) {
    cases.push_back(
        {.name = name, .op = op, .attributes = attributes, .inputs = {input}, .reference = std::move(reference)});
  };
  add("expand_dims", "expand_dims", {{"axis", "1"}}, matrix, same_values({2, 1, 3}));
  add("squeeze", "squeeze", {}, {"data", {1, 3, 1}}, same_values({3}));
  add("SwapAxis", "SwapAxis", {{"dim1", "0"}, {"dim2", "1"}}, matrix, moved({3, 2}, {0, 3, 1, 4, 2, 5}));
  add("SwapAxis_of_four", "SwapAxis", {{"dim1", "1"}, {"dim2", "3"}}, {"data", {2, 3, 4, 5}});
  add("reverse", "reverse", {{"axis", "1"}}, matrix, moved({2, 3}, {2, 1, 0, 5, 4, 3}));
  add("reverse_both", "reverse", {{"axis", "(0, 2)"}}, {"data", {2, 3, 4}});
  add("depth_to_space", "depth_to_space", {{"block_size", "2"}}, {"data", {1, 4, 1, 1}}, same_values({1, 1, 2, 2}));
  add("space_to_depth", "space_to_depth", {{"block_size", "2"}}, {"data", {2, 3, 4, 6}});
  add("SliceChannel", "SliceChannel", {{"num_outputs", "2"}}, {"data", {1, 4}}, [](Inputs_ in) {
    const auto& d = in[0].data;
    return std::vector{Values{{1, 2}, {d[0], d[1]}}, Values{{1, 2}, {d[2], d[3]}}};
  });
  add("SliceChannel_squeezed", "SliceChannel", {{"num_outputs", "3"}, {"squeeze_axis", "True"}}, {"data", {2, 3, 2}});
  add("slice_axis", "slice_axis", {{"axis", "1"}, {"begin", "1"}, {"end", "None"}}, matrix,
      moved({2, 2}, {1, 2, 4, 5}));
  add("tile", "tile", {{"reps", "(2, 2)"}}, {"data", {2}}, moved({2, 4}, {0, 1, 0, 1, 0, 1, 0, 1}));
  add("tile_inside", "tile", {{"reps", "(2, 1, 3)"}}, {"data", {2, 3, 2}});
  add("repeat", "repeat", {{"repeats", "2"}}, matrix, moved({12}, {0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5}));
  add("repeat_inside", "repeat", {{"repeats", "3"}, {"axis", "1"}}, {"data", {2, 3, 2}});
  add("broadcast_to", "broadcast_to", {{"shape", "(2, 2)"}}, {"data", {2, 1}}, moved({2, 2}, {0, 0, 1, 1}));
  add("broadcast_axis", "broadcast_axis", {{"axis", "0"}, {"size", "2"}}, {"data", {1, 2}},
      moved({2, 2}, {0, 1, 0, 1}));
  add("Crop", "Crop", {{"num_args", "1"}, {"h_w", "(1, 2)"}, {"offset", "(1, 1)"}}, {"arg0", {1, 1, 3, 3}},
      moved({1, 1, 1, 2}, {4, 5}));
  add("Pad", "Pad", {{"mode", "edge"}, {"pad_width", "(0, 0, 1, 0)"}}, {"data", {1, 2}}, moved({1, 3}, {0, 0, 1}));
  add("Pad_mirrored", "Pad", {{"mode", "reflect"}, {"pad_width", "(0, 0, 0, 0, 2, 1, 1, 1)"}}, {"data", {2, 1, 3, 4}});
  add("Pad_constant", "Pad", {{"mode", "constant"}, {"constant_value", "1.5"}, {"pad_width", "(1, 0, 0, 2)"}}, matrix);
  // Negative widths cut off; (1, -1) moves the elements, since the extent stays the same.
  add("Pad_cut", "Pad", {{"mode", "edge"}, {"pad_width", "(-1, 1, 1, -2)"}}, matrix, moved({2, 2}, {3, 3, 3, 3}));
  add("Pad_moved", "Pad", {{"mode", "constant"}, {"pad_width", "(0, 0, 1, -1, -1, 1)"}}, {"data", {2, 2, 3}},
      [](Inputs_ in) {
        const auto& d = in[0].data;
        return std::vector{Values{{2, 2, 3}, {0, 0, 0, d[1], d[2], 0, 0, 0, 0, d[7], d[8], 0}}};
      });
  add("Pad_cut_mirrored", "Pad", {{"mode", "reflect"}, {"pad_width", "(0, 0, -1, 2, 2, -3)"}}, {"data", {2, 3, 4}});
  add("Pad_cut_beyond", "Pad", {{"mode", "reflect"}, {"pad_width", "(-5, 3, 0, 0)"}}, {"data", {4, 2}},
      moved({2, 2}, {2, 3, 0, 1}));
  add("Pad_all_cut", "Pad", {{"mode", "constant"}, {"pad_width", "(0, 0, -1, -2)"}}, matrix, [](Inputs_) {
    return std::vector{Values{{2, 0}, {}}};
  });
  cases.push_back({.name = "stack",
                   .op = "stack",
                   .attributes = {{"num_args", "2"}},
                   .inputs = {{"arg0", {2}}, {"arg1", {2}}},
                   .reference = [](Inputs_ in) {
                     Values out{{2, 2}, in[0].data};
                     out.data.insert(out.data.end(), in[1].data.begin(), in[1].data.end());
                     return std::vector{out};
                   }});
  cases.push_back({.name = "stack_inside",
                   .op = "stack",
                   .attributes = {{"num_args", "3"}, {"axis", "1"}},
                   .inputs = {{"arg0", {2, 3}}, {"arg1", {2, 3}}, {"arg2", {2, 3}}}});
  cases.push_back({.name = "add_n",
                   .op = "add_n",
                   .attributes = {{"num_args", "3"}},
                   .inputs = {{"arg0", {2, 3}}, {"arg1", {2, 3}}, {"arg2", {2, 3}}},
                   .reference = sum_of_all,
                   .more_shapes = {{{1}, {1}, {1}}, {{0, 2}, {0, 2}, {0, 2}}, {{700}, {700}, {700}}},
                   .slack = 2});
  cases.push_back({.name = "slice_like",
                   .op = "slice_like",
                   .inputs = {matrix, {.name = "shape_like", .shape = {1, 2}, .gradient = false}},
                   .reference = moved({1, 2}, {0, 1})});
  cases.push_back({.name = "broadcast_like",
                   .op = "broadcast_like",
                   .inputs = {{"lhs", {1, 2}}, {.name = "rhs", .shape = {2, 2}, .gradient = false}},
                   .reference = moved({2, 2}, {0, 1, 0, 1})});
}

}  // namespace symbind::testing
