#include "tests/ops/op_cases.h"

namespace symbind::testing {
namespace {

const std::vector<DType> numbers{DType::float32, DType::float64, DType::float16, DType::bfloat16,
                                 DType::int32,   DType::int64,   DType::int8,    DType::uint8};

void add_diagonals(std::vector<OpCase>& cases) {
  cases.push_back({.name = "diag",
                   .op = "diag",
                   .attributes = {{"k", "1"}},
                   .inputs = {{"data", {2, 3}, 0, 20}},
                   .reference =
                       [](Inputs_ in) {
                         return std::vector{Values{{2}, {in[0].data[1], in[0].data[5]}}};
                       },
                   .dtypes = numbers});
  cases.push_back({.name = "diag_made",
                   .op = "diag",
                   .attributes = {{"k", "-1"}},
                   .inputs = {{"data", {2}, 0, 20}},
                   .reference =
                       [](Inputs_ in) {
                         const double a = in[0].data[0], b = in[0].data[1];
                         return std::vector{Values{{3, 3}, {0, 0, 0, a, 0, 0, 0, b, 0}}};
                       },
                   .dtypes = numbers});
  cases.push_back({.name = "diag_inside",
                   .op = "diag",
                   .attributes = {{"axis1", "-1"}, {"axis2", "1"}},
                   .inputs = {{"data", {2, 3, 2, 4}}},
                   .more_shapes = {{{0, 3, 2, 4}}, {{2, 0, 2, 4}}}});
}

void add_sums(std::vector<OpCase>& cases) {
  cases.push_back({.name = "cumsum",
                   .op = "cumsum",
                   .inputs = {{"a", {2, 3}, 0, 5}},
                   .reference =
                       [](Inputs_ in) {
                         Values out{{static_cast<int64_t>(in[0].data.size())}, in[0].data};
                         for (size_t i = 1; i < out.data.size(); ++i) out.data[i] += out.data[i - 1];
                         return std::vector{out};
                       },
                   .dtypes = numbers,
                   .more_shapes = {{{0, 3}}, {{1}}, {{7}}},
                   .slack = 2});
  cases.push_back({.name = "cumsum_inside",
                   .op = "cumsum",
                   .attributes = {{"axis", "-2"}},
                   .inputs = {{"a", {2, 3, 4}}},
                   .more_shapes = {{{2, 0, 4}}, {{3, 9, 1}}},
                   .slack = 2});
  cases.push_back({.name = "moments",
                   .op = "moments",
                   .attributes = {{"axes", "(1,)"}},
                   .inputs = {{"data", {2, 2}, -2, 2}},
                   .reference =
                       [](Inputs_ in) {
                         Values mean{{2}, {}}, variance{{2}, {}};
                         for (size_t row : {0, 2}) {
                           const double a = in[0].data[row], b = in[0].data[row + 1];
                           mean.data.push_back((a + b) / 2);
                           variance.data.push_back((a - b) * (a - b) / 4);
                         }
                         return std::vector{mean, variance};
                       },
                   .slack = 4});
  cases.push_back({.name = "moments_kept",
                   .op = "moments",
                   .attributes = {{"axes", "(0, -1)"}, {"keepdims", "True"}},
                   .inputs = {{"data", {2, 3, 4}, -2, 2}},
                   .more_shapes = {{{2, 0, 4}}, {{1, 3, 1}}},
                   .slack = 4});
}

void add_sketches(std::vector<OpCase>& cases) {
  cases.push_back({.name = "count_sketch",
                   .op = "_contrib_count_sketch",
                   .attributes = {{"out_dim", "3"}},
                   .inputs = {{"data", {4, 9}},
                              {"h", {1, 9}, 0, 2.9, DType::none, false},
                              {"s", {1, 9}, -1, 1, DType::none, false}},
                   .reference =
                       [](Inputs_ in) {
                         const auto length = static_cast<size_t>(in[1].data.size());
                         const size_t rows = in[0].data.size() / length;
                         Values out{in[0].shape.with(in[0].shape.rank() - 1, 3), std::vector<double>(3 * rows, 0)};
                         for (size_t i = 0; i < in[0].data.size(); ++i)
                           out.data[i / length * 3 + static_cast<size_t>(in[1].data[i % length])] +=
                               in[2].data[i % length] * in[0].data[i];
                         return std::vector{out};
                       },
                   .more_shapes = {{{1, 1}, {1}, {1}}, {{2, 3, 5}, {1, 5}, {5}}, {{0, 4}, {4}, {4}}},
                   .slack = 2});
}

}  // namespace

void add_index_cases(std::vector<OpCase>& cases) {
  add_sketches(cases);
  add_diagonals(cases);
  add_sums(cases);
  cases.push_back({.name = "shape_array",
                   .op = "shape_array",
                   .inputs = {{"data", {2, 3}}},
                   .reference =
                       [](Inputs_ in) {
                         return std::vector{Values{{2}, {double(in[0].shape[0]), double(in[0].shape[1])}}};
                       },
                   .differentiable = false,
                   .more_shapes = {{{0, 3}}}});
  cases.push_back({.name = "size_array",
                   .op = "size_array",
                   .inputs = {{"data", {2, 3}}},
                   .reference =
                       [](Inputs_ in) {
                         return std::vector{Values{{1}, {double(in[0].shape.size())}}};
                       },
                   .differentiable = false,
                   .more_shapes = {{{0, 3}}, {{5}}}});
  cases.push_back({.name = "ravel_multi_index",
                   .op = "ravel_multi_index",
                   .attributes = {{"shape", "(4, 5)"}},
                   .inputs = {{"data", {2, 3}, 0, 4, DType::int64}},
                   .reference =
                       [](Inputs_ in) {
                         Values out{{3}, {}};
                         for (size_t i = 0; i < 3; ++i) out.data.push_back(in[0].data[i] * 5 + in[0].data[3 + i]);
                         return std::vector{out};
                       },
                   .differentiable = false});
  cases.push_back({.name = "unravel_index",
                   .op = "unravel_index",
                   .attributes = {{"shape", "(4, 5)"}},
                   .inputs = {{"data", {3}, 0, 19, DType::int64}},
                   .differentiable = false,
                   .more_shapes = {{{0}}}});
  cases.push_back({.name = "khatri_rao",
                   .op = "khatri_rao",
                   .attributes = {{"num_args", "2"}},
                   .inputs = {{"arg0", {1, 2}}, {"arg1", {2, 2}}},
                   .reference =
                       [](Inputs_ in) {
                         const auto &a = in[0].data, &b = in[1].data;
                         return std::vector{Values{{2, 2}, {a[0] * b[0], a[1] * b[1], a[0] * b[2], a[1] * b[3]}}};
                       },
                   .slack = 2});
  cases.push_back({.name = "khatri_rao_of_three",
                   .op = "khatri_rao",
                   .attributes = {{"num_args", "3"}},
                   .inputs = {{"arg0", {2, 3}}, {"arg1", {3, 3}}, {"arg2", {2, 3}}},
                   .more_shapes = {{{2, 0}, {3, 0}, {2, 0}}, {{2, 3}, {0, 3}, {2, 3}}},
                   .slack = 2});
}

}  // namespace symbind::testing
