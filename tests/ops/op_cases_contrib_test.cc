#include <algorithm>
#include <cmath>
#include <tuple>

#include "symbind/core/error.h"

#include "tests/ops/op_cases.h"

namespace symbind::testing {
namespace {

const std::vector<DType> numbers{DType::float32, DType::float64, DType::float16, DType::bfloat16,
                                 DType::int32,   DType::int64,   DType::int8,    DType::uint8};

size_t at(int64_t index) { return static_cast<size_t>(index); }

// ---- Attention ------------------------------------------------------------------------------------------------------

// Element (time, batch, head, part, feature) of an array that interleaves `parts` vectors of each head.
struct Interleaved {
  const Values& values;
  int64_t heads, parts;
  int64_t batch() const { return values.shape[1]; }
  int64_t features() const { return values.shape[2] / (heads * parts); }
  double operator()(int64_t time, int64_t slot, int64_t part, int64_t feature) const {  // slot: (batch, head)
    return values.data[at(((time * batch() * heads + slot) * parts + part) * features() + feature)];
  }
};

std::vector<Values> plain_scores(const Interleaved& queries, const Interleaved& keys, int64_t key_part) {
  const int64_t slots = queries.batch() * queries.heads, rows = queries.values.shape[0], columns = keys.values.shape[0];
  Values out{{slots, rows, columns}, {}};
  for (int64_t slot = 0; slot < slots; ++slot)
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j) {
        double sum = 0;
        for (int64_t f = 0; f < queries.features(); ++f) sum += queries(i, slot, 0, f) * keys(j, slot, key_part, f);
        out.data.push_back(sum / std::sqrt(static_cast<double>(queries.features())));
      }
  return {out};
}

std::vector<Values> plain_weighted(const Interleaved& values, int64_t part, const Values& attention) {
  const int64_t slots = attention.shape[0], rows = attention.shape[1], columns = attention.shape[2];
  Values out{{rows, values.batch(), values.heads * values.features()}, {}};
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t slot = 0; slot < slots; ++slot)
      for (int64_t f = 0; f < values.features(); ++f) {
        double sum = 0;
        for (int64_t j = 0; j < columns; ++j)
          sum += attention.data[at((slot * rows + i) * columns + j)] * values(j, slot, part, f);
        out.data.push_back(sum);
      }
  return {out};
}

void add_attention(std::vector<OpCase>& cases) {
  const Attributes two{{"heads", "2"}};
  cases.push_back({.name = "selfatt_qk",
                   .op = "_contrib_interleaved_matmul_selfatt_qk",
                   .attributes = two,
                   .inputs = {{"queries_keys_values", {3, 2, 24}}},
                   .reference =
                       [](Inputs_ in) {
                         const Interleaved x{in[0], 2, 3};
                         return plain_scores(x, x, 1);
                       },
                   .more_shapes = {{{1, 1, 6}}, {{0, 2, 12}}, {{3, 0, 12}}},
                   .slack = 4});
  cases.push_back({.name = "selfatt_valatt",
                   .op = "_contrib_interleaved_matmul_selfatt_valatt",
                   .attributes = two,
                   .inputs = {{"queries_keys_values", {3, 2, 12}}, {"attention", {4, 3, 3}}},
                   .reference =
                       [](Inputs_ in) {
                         return plain_weighted({in[0], 2, 3}, 2, in[1]);
                       },
                   .more_shapes = {{{2, 1, 6}, {2, 2, 2}}, {{3, 0, 12}, {0, 3, 3}}},
                   .slack = 4});
  cases.push_back({.name = "encdec_qk",
                   .op = "_contrib_interleaved_matmul_encdec_qk",
                   .attributes = two,
                   .inputs = {{"queries", {2, 2, 6}}, {"keys_values", {3, 2, 12}}},
                   .reference =
                       [](Inputs_ in) {
                         return plain_scores({in[0], 2, 1}, {in[1], 2, 2}, 0);
                       },
                   .more_shapes = {{{4, 1, 2}, {1, 1, 4}}, {{0, 2, 6}, {3, 2, 12}}},
                   .slack = 4});
  cases.push_back({.name = "encdec_valatt",
                   .op = "_contrib_interleaved_matmul_encdec_valatt",
                   .attributes = two,
                   .inputs = {{"keys_values", {3, 2, 12}}, {"attention", {4, 2, 3}}},
                   .reference =
                       [](Inputs_ in) {
                         return plain_weighted({in[0], 2, 2}, 1, in[1]);
                       },
                   .more_shapes = {{{1, 1, 4}, {2, 4, 1}}, {{3, 2, 12}, {4, 0, 3}}},
                   .slack = 4});
  cases.push_back({.name = "div_sqrt_dim",
                   .op = "_contrib_div_sqrt_dim",
                   .inputs = {{"data", {2, 5}, 0, 20}},
                   .reference =
                       [](Inputs_ in) {
                         Values out = in[0];
                         for (double& value : out.data) value /= std::sqrt(static_cast<double>(in[0].shape[-1]));
                         return std::vector{out};
                       },
                   .more_shapes = {{{7}}, {{0, 3}}, {{2, 3, 4}}},
                   .slack = 2});
}

// ---- Images ---------------------------------------------------------------------------------------------------------

// The coordinate that output i of an axis reads.
double source_of(int64_t i, int64_t in, int64_t out, bool align) {
  if (out == 1) return 0;
  if (align) return static_cast<double>(i) * static_cast<double>(in - 1) / static_cast<double>(out - 1);
  return std::max(0.0, (static_cast<double>(i) + 0.5) * static_cast<double>(in) / static_cast<double>(out) - 0.5);
}

Reference plain_resize(int64_t rows, int64_t columns, bool align) {
  return [=](Inputs_ in) {
    const Shape& x = in[0].shape;
    Values out{{x[0], x[1], rows, columns}, {}};
    for (int64_t plane = 0; plane < x[0] * x[1]; ++plane)
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j) {
          const double y = source_of(i, x[2], rows, align), z = source_of(j, x[3], columns, align);
          double sum = 0;
          for (int64_t a = 0; a < x[2]; ++a)
            for (int64_t b = 0; b < x[3]; ++b) {
              const double last_row = a == x[2] - 1 && y > static_cast<double>(a) ? 1 : 0;
              const double last_column = b == x[3] - 1 && z > static_cast<double>(b) ? 1 : 0;
              const double by = std::max({0.0, 1 - std::abs(y - static_cast<double>(a)), last_row});
              const double bx = std::max({0.0, 1 - std::abs(z - static_cast<double>(b)), last_column});
              sum += by * bx * in[0].data[at((plane * x[2] + a) * x[3] + b)];
            }
          out.data.push_back(sum);
        }
    return std::vector{out};
  };
}

std::vector<Values> plain_adaptive(Inputs_ in, int64_t rows, int64_t columns) {
  const Shape& x = in[0].shape;
  Values out{{x[0], x[1], rows, columns}, {}};
  const auto begin = [](int64_t i, int64_t in_, int64_t out_) {
    return static_cast<int64_t>(std::floor(static_cast<double>(i * in_) / static_cast<double>(out_)));
  };
  const auto end = [](int64_t i, int64_t in_, int64_t out_) {
    return static_cast<int64_t>(std::ceil(static_cast<double>((i + 1) * in_) / static_cast<double>(out_)));
  };
  for (int64_t plane = 0; plane < x[0] * x[1]; ++plane)
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j) {
        double sum = 0, count = 0;
        for (int64_t a = begin(i, x[2], rows); a < end(i, x[2], rows); ++a)
          for (int64_t b = begin(j, x[3], columns); b < end(j, x[3], columns); ++b, ++count)
            sum += in[0].data[at((plane * x[2] + a) * x[3] + b)];
        out.data.push_back(sum / count);
      }
  return {out};
}

void add_resizing(std::vector<OpCase>& cases) {
  for (const bool align : {true, false})
    for (const auto& [name, rows, columns] : {std::tuple{"larger", 5, 7}, {"smaller", 2, 2}, {"of_one", 1, 1}})
      cases.push_back({.name = join("BilinearResize2D_", name, align ? "_aligned" : "_by_edges"),
                       .op = "_contrib_BilinearResize2D",
                       .attributes = {{"height", std::to_string(rows)},
                                      {"width", std::to_string(columns)},
                                      {"align_corners", align ? "True" : "False"}},
                       .inputs = {{"data", {2, 1, 3, 4}}},
                       .reference = plain_resize(rows, columns, align),
                       .more_shapes = {{{1, 2, 1, 9}}, {{0, 2, 3, 3}}, {{1, 1, 6, 2}}},
                       .slack = 4});
  cases.push_back({.name = "BilinearResize2D_like",
                   .op = "_contrib_BilinearResize2D",
                   .attributes = {{"mode", "like"}},
                   .inputs = {{"data", {1, 2, 3, 3}}, {"like", {1, 1, 4, 2}}},
                   .reference = plain_resize(4, 2, true),
                   .slack = 4});
  cases.push_back({.name = "AdaptiveAvgPooling2D",
                   .op = "_contrib_AdaptiveAvgPooling2D",
                   .attributes = {{"output_size", "(2, 3)"}},
                   .inputs = {{"data", {2, 1, 5, 7}}},
                   .reference = [](Inputs_ in) { return plain_adaptive(in, 2, 3); },
                   .more_shapes = {{{1, 2, 1, 2}}, {{0, 2, 3, 3}}, {{1, 1, 4, 6}}},
                   .slack = 4});
  for (const char* size : {"(0, 2)", "(3, 0)"})
    cases.push_back({.name = join("AdaptiveAvgPooling2D_empty_", size[1]),
                     .op = "_contrib_AdaptiveAvgPooling2D",
                     .attributes = {{"output_size", size}},
                     .inputs = {{"data", {2, 3, 5, 4}}},
                     .reference = [rows = size[1] - '0', columns = size[4] - '0'](Inputs_) {
                       return std::vector{Values{{2, 3, rows, columns}, {}}};
                     }});
  cases.push_back({.name = "AdaptiveAvgPooling2D_of_one",
                   .op = "_contrib_AdaptiveAvgPooling2D",
                   .inputs = {{"data", {2, 3, 5, 4}}},
                   .reference = [](Inputs_ in) { return plain_adaptive(in, 1, 1); },
                   .slack = 4});
}

// ---- Windows --------------------------------------------------------------------------------------------------------

// Windows of 2 × 3 with steps of (2, 1), holes of (1, 2) and a border of 1.
struct PlainWindows {
  int64_t rows, columns;  // of the image
  int64_t height() const { return (rows + 2 - 2) / 2 + 1; }
  int64_t width() const { return columns + 2 - 5 + 1; }
  // Calls visit(index in the image, index in the columns) for all that are inside.
  template <class Visit>
  void each(int64_t planes, Visit visit) const {
    for (int64_t plane = 0; plane < planes; ++plane)
      for (int64_t a = 0; a < 2; ++a)
        for (int64_t b = 0; b < 3; ++b)
          for (int64_t i = 0; i < height(); ++i)
            for (int64_t j = 0; j < width(); ++j) {
              const int64_t y = 2 * i - 1 + a, x = j - 1 + 2 * b;
              if (y >= 0 && y < rows && x >= 0 && x < columns)
                visit(at((plane * rows + y) * columns + x), at(((plane * 6 + a * 3 + b) * height() + i) * width() + j));
            }
  }
};

void add_windows(std::vector<OpCase>& cases) {
  const Attributes window{{"kernel", "(2, 3)"}, {"stride", "(2, 1)"}, {"dilate", "(1, 2)"}, {"pad", "(1, 1)"}};
  cases.push_back({.name = "im2col",
                   .op = "im2col",
                   .attributes = window,
                   .inputs = {{"data", {2, 2, 4, 5}}},
                   .reference =
                       [](Inputs_ in) {
                         const Shape& x = in[0].shape;
                         const PlainWindows windows{x[2], x[3]};
                         Values out{{x[0], x[1] * 6, windows.height() * windows.width()}, {}};
                         out.data.resize(at(out.shape.size()), 0);
                         windows.each(x[0] * x[1], [&](size_t from, size_t to) { out.data[to] = in[0].data[from]; });
                         return std::vector{out};
                       },
                   .more_shapes = {{{1, 1, 2, 3}}, {{0, 2, 4, 5}}}});
  Attributes back = window;
  back["output_size"] = "(4, 5)";
  cases.push_back({.name = "col2im",
                   .op = "col2im",
                   .attributes = back,
                   .inputs = {{"data", {2, 12, 9}}},
                   .reference =
                       [](Inputs_ in) {
                         const PlainWindows windows{4, 5};
                         Values out{{in[0].shape[0], in[0].shape[1] / 6, 4, 5}, {}};
                         out.data.resize(at(out.shape.size()), 0);
                         windows.each(in[0].shape[0] * in[0].shape[1] / 6,
                                      [&](size_t to, size_t from) { out.data[to] += in[0].data[from]; });
                         return std::vector{out};
                       },
                   .more_shapes = {{{1, 6, 9}}, {{0, 6, 9}}},
                   .slack = 4});
  cases.push_back({.name = "im2col_of_a_line",
                   .op = "im2col",
                   .attributes = {{"kernel", "(3,)"}, {"pad", "(2,)"}},
                   .inputs = {{"data", {2, 2, 4}}}});
  cases.push_back({.name = "im2col_of_a_volume",
                   .op = "im2col",
                   .attributes = {{"kernel", "(2, 1, 2)"}, {"stride", "(1, 2, 1)"}},
                   .inputs = {{"data", {1, 2, 3, 3, 3}}}});
}

// ---- Slices ---------------------------------------------------------------------------------------------------------

void add_replacing(std::vector<OpCase>& cases) {
  cases.push_back(
      {.name = "index_copy",
       .op = "_contrib_index_copy",
       .inputs = {{"old_tensor", {4, 3}},
                  {.name = "index_vector", .shape = {3}, .low = 0, .high = 2, .dtype = DType::int64, .gradient = false},
                  {"new_tensor", {3, 3}}},
       .reference =
           [](Inputs_ in) {
             Values out = in[0];
             const int64_t inner = in[0].shape.size(1, in[0].shape.rank());
             for (int64_t i = 0; i < in[1].shape[0]; ++i)
               for (int64_t k = 0; k < inner; ++k)
                 out.data[at(static_cast<int64_t>(in[1].data[at(i)]) * inner + k)] = in[2].data[at(i * inner + k)];
             return std::vector{out};
           },
       .dtypes = numbers,
       .more_shapes = {{{5}, {7}, {7}}, {{3, 2, 2}, {0}, {0, 2, 2}}, {{5, 0}, {2}, {2, 0}}}});
  cases.push_back(
      {.name = "scatter_set_nd",
       .op = "_scatter_set_nd",
       .attributes = {{"shape", "(3, 4, 2)"}},
       .inputs = {{"lhs", {3, 4, 2}},
                  {"rhs", {5, 2}},
                  {.name = "indices", .shape = {2, 5}, .low = 0, .high = 2, .dtype = DType::int32, .gradient = false}},
       .reference =
           [](Inputs_ in) {
             Values out = in[0];
             for (int64_t i = 0; i < 5; ++i) {
               const auto row = static_cast<int64_t>(in[2].data[at(i)]);
               const auto column = static_cast<int64_t>(in[2].data[at(5 + i)]);
               for (int64_t k = 0; k < 2; ++k) out.data[at((row * 4 + column) * 2 + k)] = in[1].data[at(i * 2 + k)];
             }
             return std::vector{out};
           },
       .dtypes = numbers});
}

void add_splitting(std::vector<OpCase>& cases) {
  cases.push_back({.name = "split_v2_by_indices",
                   .op = "_split_v2",
                   .attributes = {{"indices", "(0, 1, 3)"}, {"axis", "1"}},
                   .inputs = {{"data", {2, 4}, 0, 20}},
                   .reference =
                       [](Inputs_ in) {
                         const auto& x = in[0].data;
                         return std::vector{Values{{2, 1}, {x[0], x[4]}}, Values{{2, 2}, {x[1], x[2], x[5], x[6]}},
                                            Values{{2, 1}, {x[3], x[7]}}};
                       },
                   .dtypes = numbers});
  cases.push_back({.name = "split_v2_in_sections",
                   .op = "_split_v2",
                   .attributes = {{"indices", "()"}, {"sections", "2"}, {"axis", "-1"}},
                   .inputs = {{"data", {3, 2, 4}}},
                   .more_shapes = {{{2, 6}}, {{0, 4}}, {{3, 0}}}});
  cases.push_back({.name = "split_v2_squeezed",
                   .op = "_split_v2",
                   .attributes = {{"indices", "()"}, {"sections", "2"}, {"axis", "0"}, {"squeeze_axis", "True"}},
                   .inputs = {{"data", {2, 3}}},
                   .reference = [](Inputs_ in) {
                     const auto& x = in[0].data;
                     return std::vector{Values{{3}, {x[0], x[1], x[2]}}, Values{{3}, {x[3], x[4], x[5]}}};
                   }});
}

// ---- Small functions ------------------------------------------------------------------------------------------------

void add_functions(std::vector<OpCase>& cases) {
  cases.push_back({.name = "quadratic",
                   .op = "_contrib_quadratic",
                   .attributes = {{"a", "2"}, {"b", "-3"}, {"c", "5"}},
                   .inputs = {{"data", {3, 4}, 0, 4}},
                   .reference =
                       [](Inputs_ in) {
                         Values out = in[0];
                         for (double& x : out.data) x = 2 * x * x - 3 * x + 5;
                         return std::vector{out};
                       },
                   .dtypes = numbers,
                   .more_shapes = {{{0, 3}}, {{257}}},
                   .slack = 4});
  const Reference identity = [](Inputs_ in) { return std::vector{in[0]}; };
  cases.push_back({.name = "gradientmultiplier",
                   .op = "_contrib_gradientmultiplier",
                   .attributes = {{"scalar", "1"}},
                   .inputs = {{"data", {3, 4}, 0, 20}},
                   .reference = identity,
                   .dtypes = numbers,
                   .more_shapes = {{{0, 3}}}});
  cases.push_back({.name = "identity_with_attr_like_rhs",
                   .op = "_identity_with_attr_like_rhs",
                   .inputs = {{"lhs", {3, 4}, 0, 20}, {"rhs", {3, 4}, 0, 20}},
                   .reference = identity,
                   .dtypes = numbers,
                   .more_shapes = {{{0, 3}, {0, 3}}}});
  cases.push_back({.name = "cast_storage",
                   .op = "cast_storage",
                   .attributes = {{"stype", "row_sparse"}},
                   .inputs = {{"data", {3, 4}, 0, 20}},
                   .reference = identity,
                   .dtypes = numbers});
  for (const bool sign : {false, true})
    cases.push_back({.name = sign ? "sign_ste" : "round_ste",
                     .op = sign ? "_contrib_sign_ste" : "_contrib_round_ste",
                     .inputs = {{"data", {3, 4}, -4, 4}},
                     .reference =
                         [sign](Inputs_ in) {
                           Values out = in[0];
                           for (double& x : out.data) x = sign ? (x > 0) - (x < 0) : std::round(x);
                           return std::vector{out};
                         },
                     .differentiable = false,  // the gradient is not that of the function: contrib_test.cc
                     .more_shapes = {{{0, 3}}, {{257}}}});
  cases.push_back({.name = "arange_like",
                   .op = "_contrib_arange_like",
                   .attributes = {{"start", "2"}, {"step", "3"}, {"repeat", "2"}},
                   .inputs = {{"data", {2, 4}}},
                   .reference =
                       [](Inputs_ in) {
                         Values out = in[0];
                         for (size_t i = 0; i < out.data.size(); ++i) out.data[i] = 2 + 3 * static_cast<double>(i / 2);
                         return std::vector{out};
                       },
                   .dtypes = numbers,
                   .differentiable = false,
                   .more_shapes = {{{5}}, {{0, 2}}}});
  cases.push_back({.name = "arange_like_downwards",
                   .op = "_contrib_arange_like",
                   .attributes = {{"start", "2"}, {"step", "3"}, {"repeat", "-2"}},
                   .inputs = {{"data", {5}}},
                   .reference =
                       [](Inputs_) {
                         return std::vector{Values{{5}, {2, 2, -1, -1, -4}}};
                       },
                   .differentiable = false});
  cases.push_back({.name = "arange_like_along_an_axis",
                   .op = "_contrib_arange_like",
                   .attributes = {{"start", "0.5"}, {"step", "0.5"}, {"axis", "-1"}},
                   .inputs = {{"data", {2, 3}}},
                   .reference =
                       [](Inputs_) {
                         return std::vector{Values{{3}, {0.5, 1, 1.5}}};
                       },
                   .differentiable = false});
  cases.push_back({.name = "index_array",
                   .op = "_contrib_index_array",
                   .inputs = {{"data", {2, 2}}},
                   .reference =
                       [](Inputs_) {
                         return std::vector{Values{{2, 2, 2}, {0, 0, 0, 1, 1, 0, 1, 1}}};
                       },
                   .differentiable = false});
  cases.push_back({.name = "index_array_of_axes",
                   .op = "_contrib_index_array",
                   .attributes = {{"axes", "(-1, 0)"}},
                   .inputs = {{"data", {2, 1, 2}}},
                   .reference =
                       [](Inputs_) {
                         return std::vector{Values{{2, 1, 2, 2}, {0, 0, 1, 0, 0, 1, 1, 1}}};
                       },
                   .differentiable = false});
}

void add_counts(std::vector<OpCase>& cases) {
  cases.push_back({.name = "histogram",
                   .op = "_histogram",
                   .attributes = {{"bin_cnt", "4"}, {"range", "(0, 8)"}},
                   .inputs = {{"data", {5, 7}, 0, 9}},
                   .reference =
                       [](Inputs_ in) {
                         Values counts{{4}, {0, 0, 0, 0}};
                         for (const double x : in[0].data)
                           if (x >= 0 && x <= 8) ++counts.data[std::min<size_t>(3, static_cast<size_t>(x / 2))];
                         return std::vector{counts, Values{{5}, {0, 2, 4, 6, 8}}};
                       },
                   .dtypes = {DType::float64, DType::int32, DType::int64, DType::uint8},
                   .differentiable = false,
                   .more_shapes = {{{0}}, {{300}}}});
  cases.push_back({.name = "histogram_with_bins",
                   .op = "_histogram",
                   .inputs = {{"data", {50}, 0, 9}, {.name = "bins", .shape = {2}, .low = 3, .high = 3}},
                   .reference =
                       [](Inputs_ in) {
                         double count = 0;
                         for (const double x : in[0].data) count += x == 3;
                         return std::vector{Values{{1}, {count}}, in[1]};
                       },
                   .dtypes = {DType::float64, DType::int32, DType::int64, DType::uint8},
                   .differentiable = false});
  cases.push_back({.name = "getnnz",
                   .op = "_contrib_getnnz",
                   .attributes = {{"axis", "1"}},
                   .inputs = {{"data", {3, 5}, 0, 2}},
                   .reference =
                       [](Inputs_ in) {
                         Values out{{in[0].shape[0]}, std::vector<double>(at(in[0].shape[0]), 0)};
                         for (size_t i = 0; i < in[0].data.size(); ++i)
                           out.data[i / at(in[0].shape[1])] += in[0].data[i] != 0;
                         return std::vector{out};
                       },
                   .dtypes = {DType::int32, DType::int8, DType::uint8},
                   .differentiable = false,
                   .more_shapes = {{{2, 1}}, {{0, 3}}}});
  cases.push_back({.name = "square_sum",
                   .op = "_square_sum",
                   .attributes = {{"axis", "1"}, {"keepdims", "True"}},
                   .inputs = {{"data", {3, 4}, -3, 3}},
                   .reference =
                       [](Inputs_ in) {
                         Values out{{in[0].shape[0], 1}, std::vector<double>(at(in[0].shape[0]), 0)};
                         for (size_t i = 0; i < in[0].data.size(); ++i)
                           out.data[i / at(in[0].shape[1])] += in[0].data[i] * in[0].data[i];
                         return std::vector{out};
                       },
                   .more_shapes = {{{1, 9}}, {{0, 3}}},
                   .slack = 4});
  cases.push_back(
      {.name = "sparse_retain",
       .op = "_sparse_retain",
       .inputs = {{"data", {4, 2}, 0, 20},
                  {.name = "indices", .shape = {2}, .low = 0, .high = 3, .dtype = DType::int64, .gradient = false}},
       .reference = [](Inputs_ in) {
         Values out = in[0];
         for (size_t i = 0; i < out.data.size(); ++i) {
           bool kept = false;
           for (const double row : in[1].data) kept |= row == static_cast<double>(i / 2);
           if (!kept) out.data[i] = 0;
         }
         return std::vector{out};
       }});
  cases.push_back(
      {.name = "onehot_encode",
       .op = "_onehot_encode",
       .inputs = {{.name = "lhs", .shape = {4}, .low = 0, .high = 2, .dtype = DType::int32}, {"rhs", {4, 3}}},
       .reference =
           [](Inputs_ in) {
             Values out{{4, 3}, std::vector<double>(12, 0)};
             for (size_t i = 0; i < 4; ++i) out.data[i * 3 + static_cast<size_t>(in[0].data[i])] = 1;
             return std::vector{out};
           },
       .differentiable = false});
}

// ---- Layers under other names ---------------------------------------------------------------------------------------

// Channels of two elements each along axis 1: normalized they are about -1 and 1.
std::vector<OpInput> batch_norm_inputs() {
  return {{"data", {3, 2, 4}, -2, 2},
          {"gamma", {2}, 0.5, 1.5},
          {"beta", {2}, -1, 1},
          {.name = "moving_mean", .shape = {2}, .low = -1, .high = 1, .gradient = false, .aux = true},
          {.name = "moving_var", .shape = {2}, .low = 0.5, .high = 2, .gradient = false, .aux = true}};
}

void add_layers(std::vector<OpCase>& cases) {
  cases.push_back({.name = "SyncBatchNorm",
                   .op = "_contrib_SyncBatchNorm",
                   .attributes = {{"key", "bn"}, {"fix_gamma", "False"}, {"ndev", "2"}},
                   .inputs = batch_norm_inputs(),
                   .dtypes = {DType::float32, DType::float64},
                   .slack = 16});
  cases.push_back({.name = "SyncBatchNorm_with_statistics",
                   .op = "_contrib_SyncBatchNorm",
                   .attributes = {{"key", "bn"}, {"output_mean_var", "True"}, {"use_global_stats", "True"}},
                   .inputs = batch_norm_inputs(),
                   .reference =
                       [](Inputs_ in) {
                         Values out = in[0];
                         for (size_t i = 0; i < out.data.size(); ++i) {
                           const size_t channel = i / 4 % 2;
                           out.data[i] = (out.data[i] - in[3].data[channel]) / std::sqrt(in[4].data[channel] + 0.001) +
                                         in[2].data[channel];
                         }
                         return std::vector{out, in[3], in[4]};
                       },
                   .dtypes = {DType::float32, DType::float64},
                   .differentiable = false,
                   .slack = 16});
  cases.push_back({.name = "BatchNormWithReLU",
                   .op = "_contrib_BatchNormWithReLU",
                   .attributes = {{"fix_gamma", "False"}},
                   .inputs = batch_norm_inputs(),
                   .dtypes = {DType::float32, DType::float64},
                   .slack = 16});
  for (const char* type : {"max", "avg", "sum"})
    cases.push_back({.name = join("Pooling_v1_", type),
                     .op = "Pooling_v1",
                     .attributes = {{"kernel", "(2, 2)"}, {"stride", "(2, 2)"}, {"pad", "(1, 1)"}, {"pool_type", type}},
                     .inputs = {{"data", {2, 1, 4, 4}, -20, 20}},
                     .reference =
                         [type = std::string(type)](Inputs_ in) {
                           Values out{{in[0].shape[0], in[0].shape[1], 3, 3}, {}};
                           for (int64_t plane = 0; plane < in[0].shape[0] * in[0].shape[1]; ++plane)
                             for (int64_t i = 0; i < 3; ++i)
                               for (int64_t j = 0; j < 3; ++j) {
                                 double sum = 0, most = -1e30;
                                 for (int64_t y = 2 * i - 1; y < 2 * i + 1; ++y)
                                   for (int64_t x = 2 * j - 1; x < 2 * j + 1; ++x) {
                                     const bool inside = y >= 0 && y < 4 && x >= 0 && x < 4;
                                     const double value = inside ? in[0].data[at((plane * 4 + y) * 4 + x)] : 0;
                                     sum += value;
                                     most = std::max(most, value);
                                   }
                                 out.data.push_back(type == "max" ? most : type == "avg" ? sum / 4 : sum);
                               }
                           return std::vector{out};
                         },
                     .slack = 4});
  for (const char* type : {"max", "avg", "sum"})
    cases.push_back({.name = join("Pooling_v1_padded_beyond_the_kernel_", type),
                     .op = "Pooling_v1",
                     .attributes = {{"kernel", "(1, 2)"}, {"stride", "(2, 3)"}, {"pad", "(1, 2)"}, {"pool_type", type}},
                     .inputs = {{"data", {1, 1, 2, 2}, 1, 20}},
                     .reference =
                         [type = std::string(type)](Inputs_ in) {
                           // Windows that hold zeros alone, and one with the last element of the data.
                           const double last = in[0].data[3];
                           return std::vector{Values{{1, 1, 2, 2}, {0, 0, 0, type == "avg" ? last / 2 : last}}};
                         },
                     .slack = 4});
  cases.push_back({.name = "Pooling_v1_global",
                   .op = "Pooling_v1",
                   .attributes = {{"kernel", "(1, 1)"}, {"global_pool", "True"}, {"pool_type", "avg"}},
                   .inputs = {{"data", {2, 3, 2, 3}}},
                   .slack = 4});
  cases.push_back(
      {.name = "Pooling_v1_rounded_up",
       .op = "Pooling_v1",
       .attributes = {{"kernel", "(3, 3)"}, {"stride", "(2, 2)"}, {"pool_type", "avg"}, {"pooling_convention", "full"}},
       .inputs = {{"data", {1, 2, 6, 6}}},
       .slack = 4});
}

}  // namespace

void add_contrib_cases(std::vector<OpCase>& cases) {
  add_attention(cases);
  add_resizing(cases);
  add_windows(cases);
  add_replacing(cases);
  add_splitting(cases);
  add_functions(cases);
  add_counts(cases);
  add_layers(cases);
}

}  // namespace symbind::testing
