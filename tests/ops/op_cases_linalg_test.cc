// Matrices are in the last two axes; references take their extents from the inputs' shapes.
#include <cmath>

#include "tests/ops/op_cases.h"

namespace symbind::testing {
namespace {

const std::vector<DType> real{DType::float32, DType::float64};

int64_t extent(const Values& values, int from_end) { return values.shape[values.shape.rank() - from_end]; }
int64_t matrices(const Values& values) { return values.shape.size(0, values.shape.rank() - 2); }

// Element (row, column) of matrix n, turned if asked for.
double at(const Values& values, int64_t n, int64_t row, int64_t column, bool transpose = false) {
  if (transpose) std::swap(row, column);
  const int64_t rows = extent(values, 2), columns = extent(values, 1);
  return values.data[static_cast<size_t>((n * rows + row) * columns + column)];
}

// An array of matrices whose elements are element(n, row, column).
template <class Element>
Values made(const Values& like, int64_t rows, int64_t columns, const Element& element) {
  const int rank = like.shape.rank();
  Values out{like.shape.with(rank - 2, rows).with(rank - 1, columns), {}};
  for (int64_t n = 0; n < matrices(like); ++n)
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t column = 0; column < columns; ++column) out.data.push_back(element(n, row, column));
  return out;
}

Values product(const Values& a, const Values& b, bool ta = false, bool tb = false, double alpha = 1) {
  const int64_t inner = extent(a, ta ? 2 : 1);
  return made(a, extent(a, ta ? 1 : 2), extent(b, tb ? 2 : 1), [&](int64_t n, int64_t row, int64_t column) {
    double sum = 0;
    for (int64_t k = 0; k < inner; ++k) sum += at(a, n, row, k, ta) * at(b, n, k, column, tb);
    return alpha * sum;
  });
}

Values triangle_of(const Values& a, bool lower) {
  return made(a, extent(a, 2), extent(a, 1), [&](int64_t n, int64_t row, int64_t column) {
    return (lower ? column <= row : row <= column) ? at(a, n, row, column) : 0.0;
  });
}

// The determinant by its definition, along the first row.
double determinant(const std::vector<double>& a, size_t n) {
  if (n == 0) return 1;
  double sum = 0;
  for (size_t k = 0; k < n; ++k) {
    std::vector<double> minor;
    for (size_t i = n; i < n * n; ++i)
      if (i % n != k) minor.push_back(a[i]);
    sum += (k % 2 ? -1 : 1) * a[k] * determinant(minor, n - 1);
  }
  return sum;
}
std::vector<double> determinants(const Values& a) {
  std::vector<double> all;
  const auto n = static_cast<size_t>(extent(a, 1));
  for (auto from = a.data.begin(); from != a.data.end(); from += static_cast<ptrdiff_t>(n * n))
    all.push_back(determinant({from, from + static_cast<ptrdiff_t>(n * n)}, n));
  return all;
}
Shape per_matrix(const Values& a) { return a.shape.rank() == 2 ? Shape{1} : a.shape.slice(0, a.shape.rank() - 2); }

void add_products(std::vector<OpCase>& cases) {
  for (const bool ta : {false, true})
    for (const bool tb : {false, true}) {
      const Attributes attributes{
          {"transpose_a", ta ? "True" : "False"}, {"transpose_b", tb ? "True" : "False"}, {"alpha", "1.5"}};
      const std::string suffix = std::string(ta ? "_a" : "") + (tb ? "_b" : "");
      cases.push_back(
          {.name = "linalg_gemm2" + suffix,
           .op = "_linalg_gemm2",
           .attributes = attributes,
           .inputs = {{"A", ta ? Shape{2, 4, 3} : Shape{2, 3, 4}}, {"B", tb ? Shape{2, 5, 4} : Shape{2, 4, 5}}},
           .reference = [=](Inputs_ in) { return std::vector{product(in[0], in[1], ta, tb, 1.5)}; },
           .dtypes = real,
           .more_shapes = {{{3, 3}, {3, 3}}, {{0, 2, 2}, {0, 2, 2}}, {{150, 150}, {150, 150}}},
           .slack = 4});
    }
  cases.push_back({.name = "linalg_gemm",
                   .op = "_linalg_gemm",
                   .attributes = {{"alpha", "2"}, {"beta", "-0.5"}},
                   .inputs = {{"A", {2, 2, 3, 4}}, {"B", {2, 2, 4, 2}}, {"C", {2, 2, 3, 2}}},
                   .reference =
                       [](Inputs_ in) {
                         Values out = product(in[0], in[1], false, false, 2);
                         for (size_t i = 0; i < out.data.size(); ++i) out.data[i] -= 0.5 * in[2].data[i];
                         return std::vector{out};
                       },
                   .dtypes = real,
                   .more_shapes = {{{3, 0}, {0, 2}, {3, 2}}, {{1, 1}, {1, 1}, {1, 1}}}});
  cases.push_back({.name = "linalg_gemm_rows_first",
                   .op = "_linalg_gemm",
                   .attributes = {{"axis", "1"}, {"transpose_b", "True"}},
                   .inputs = {{"A", {2, 3, 2, 2, 4}}, {"B", {2, 5, 2, 2, 4}}, {"C", {2, 3, 2, 2, 5}}},
                   .dtypes = real});
  for (const bool transpose : {false, true})
    cases.push_back(
        {.name = transpose ? "linalg_syrk_transposed" : "linalg_syrk",
         .op = "_linalg_syrk",
         .attributes = {{"transpose", transpose ? "True" : "False"}, {"alpha", "-2"}},
         .inputs = {{"A", {2, 3, 4}}},
         .reference = [=](Inputs_ in) { return std::vector{product(in[0], in[0], transpose, !transpose, -2)}; },
         .dtypes = real,
         .more_shapes = {{{5, 2}}, {{0, 3, 2}}}});
}

// A case for each side, triangle and transpose.
void add_triangular(std::vector<OpCase>& cases) {
  for (const bool transpose : {false, true})
    for (const bool rightside : {false, true})
      for (const bool lower : {false, true}) {
        const Attributes attributes{{"transpose", transpose ? "True" : "False"},
                                    {"rightside", rightside ? "True" : "False"},
                                    {"lower", lower ? "True" : "False"},
                                    {"alpha", "0.5"}};
        const std::string suffix =
            std::string(lower ? "_lower" : "_upper") + (transpose ? "_transposed" : "") + (rightside ? "_right" : "");
        const std::vector<OpInput> inputs{{"A", {2, 3, 3}, 0.5, 1.5},
                                          {"B", rightside ? Shape{2, 4, 3} : Shape{2, 3, 4}}};
        cases.push_back({.name = "linalg_trmm" + suffix,
                         .op = "_linalg_trmm",
                         .attributes = attributes,
                         .inputs = inputs,
                         .reference =
                             [=](Inputs_ in) {
                               const Values a = triangle_of(in[0], lower);
                               return std::vector{rightside ? product(in[1], a, false, transpose, 0.5)
                                                            : product(a, in[1], transpose, false, 0.5)};
                             },
                         .dtypes = real,
                         .more_shapes = {{{5, 5}, {5, 5}}, {{0, 2, 2}, {0, 2, 2}}}});
        cases.push_back({.name = "linalg_trsm" + suffix,
                         .op = "_linalg_trsm",
                         .attributes = attributes,
                         .inputs = inputs,
                         .dtypes = real,
                         .more_shapes = {{{5, 5}, {5, 5}}, {{0, 2, 2}, {0, 2, 2}}},
                         .slack = 8});
      }
}

// The gradients of symmetric matrices are those of both triangles together: finite differences of one element differ.
// tests/ops/linalg_test.cc checks them on matrices that are symmetric by construction.
void add_factorizations(std::vector<OpCase>& cases) {
  cases.push_back({.name = "linalg_potrf",
                   .op = "_linalg_potrf",
                   .inputs = {{"A", {3, 1, 1}, 1, 2}},
                   .reference =
                       [](Inputs_ in) {
                         Values out = in[0];
                         for (double& x : out.data) x = std::sqrt(x);
                         return std::vector{out};
                       },
                   .dtypes = real,
                   .more_shapes = {{{1, 1}}, {{0, 2, 2}}, {{2, 0, 0}}}});
  cases.push_back({.name = "linalg_potri",
                   .op = "_linalg_potri",
                   .inputs = {{"A", {2, 3, 3}, 0.5, 1.5}},
                   .dtypes = real,
                   .more_shapes = {{{1, 1}}, {{0, 2, 2}}},
                   .slack = 32});
  cases.push_back({.name = "linalg_gelqf",
                   .op = "_linalg_gelqf",
                   .inputs = {{"A", {2, 2, 4}}},
                   .dtypes = real,
                   .more_shapes = {{{3, 3}}, {{1, 1}}, {{0, 2, 2}}},
                   .slack = 8});
  cases.push_back({.name = "linalg_syevd",
                   .op = "_linalg_syevd",
                   .inputs = {{"A", {2, 3, 3}}},
                   .dtypes = real,
                   .differentiable = false,
                   .more_shapes = {{{1, 1}}, {{0, 2, 2}}, {{2, 9, 9}}},
                   .slack = 32});
  cases.push_back({.name = "linalg_inverse",
                   .op = "_linalg_inverse",
                   .inputs = {{"A", {2, 2, 2}}},
                   .reference =
                       [](Inputs_ in) {
                         Values out = in[0];
                         for (size_t n = 0; n < out.data.size(); n += 4) {
                           const double a = in[0].data[n], b = in[0].data[n + 1], c = in[0].data[n + 2],
                                        d = in[0].data[n + 3], whole = a * d - b * c;
                           out.data[n] = d / whole, out.data[n + 1] = -b / whole;
                           out.data[n + 2] = -c / whole, out.data[n + 3] = a / whole;
                         }
                         return std::vector{out};
                       },
                   .dtypes = real,
                   .more_shapes = {{{2, 2}}, {{0, 2, 2}}},
                   .slack = 32});
  cases.push_back({.name = "linalg_det",
                   .op = "_linalg_det",
                   .inputs = {{"A", {2, 3, 3}, -2, 2}},
                   .reference =
                       [](Inputs_ in) {
                         return std::vector{Values{per_matrix(in[0]), determinants(in[0])}};
                       },
                   .dtypes = real,
                   .more_shapes = {{{4, 4}}, {{1, 1}}, {{0, 2, 2}}},
                   .slack = 8});
  cases.push_back({.name = "linalg_slogdet",
                   .op = "_linalg_slogdet",
                   .inputs = {{"A", {2, 3, 3}, -2, 2}},
                   .reference =
                       [](Inputs_ in) {
                         Values sign{per_matrix(in[0]), determinants(in[0])}, logarithm = sign;
                         for (double& x : logarithm.data) x = std::log(std::abs(x));
                         for (double& x : sign.data) x = x > 0 ? 1 : -1;
                         return std::vector{sign, logarithm};
                       },
                   .dtypes = real,
                   .more_shapes = {{{4, 4}}, {{1, 1}}, {{0, 2, 2}}},
                   .slack = 8});
}

void add_elements(std::vector<OpCase>& cases) {
  cases.push_back({.name = "linalg_sumlogdiag",
                   .op = "_linalg_sumlogdiag",
                   .inputs = {{"A", {2, 3, 3}, 0.5, 2}},
                   .reference =
                       [](Inputs_ in) {
                         Values out{per_matrix(in[0]), {}};
                         for (int64_t n = 0; n < matrices(in[0]); ++n) {
                           out.data.push_back(0);
                           for (int64_t k = 0; k < extent(in[0], 1); ++k)
                             out.data.back() += std::log(at(in[0], n, k, k));
                         }
                         return std::vector{out};
                       },
                   .dtypes = real,
                   .more_shapes = {{{4, 4}}, {{0, 2, 2}}}});
  for (const int offset : {-1, 0, 2}) {
    const std::string suffix = offset < 0 ? "_below" : offset > 0 ? "_above" : "";
    const auto add = [&](const std::string& name, const std::string& lower, const Shape& shape) {
      Attributes attributes{{"offset", std::to_string(offset)}};
      if (!lower.empty()) attributes["lower"] = lower;
      cases.push_back({.name = name + suffix + lower,
                       .op = "_" + name,
                       .attributes = attributes,
                       .inputs = {{"A", shape}},
                       .dtypes = real});
    };
    add("linalg_extractdiag", "", {2, 4, 4});
    add("linalg_makediag", "", {2, 3});
    for (const char* lower : {"True", "False"}) {
      add("linalg_extracttrian", lower, {2, 4, 4});
      add("linalg_maketrian", lower, {2, 6});
    }
  }
}

}  // namespace

void add_linalg_cases(std::vector<OpCase>& cases) {
  add_products(cases);
  add_triangular(cases);
  add_factorizations(cases);
  add_elements(cases);
}

}  // namespace symbind::testing
