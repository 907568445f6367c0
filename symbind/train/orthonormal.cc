// Householder's QR. A tall matrix is reduced to triangular form by reflections, one per column; the same reflections,
// applied to the first columns of the identity in reverse order, give the orthogonal factor, accurate to a few
// roundings even for nearly dependent columns. Signs are chosen so that the triangle's diagonal is positive: of normal
// random numbers, every orthogonal matrix is then equally likely.
#include "symbind/train/orthonormal.h"

#include <cmath>

namespace symbind::init {
namespace {

// In four lanes, which compilers keep in one register.
double dot(const double* a, const double* b, int64_t count) {
  double lanes[4] = {};
  int64_t i = 0;
  for (; i + 4 <= count; i += 4)
    for (int lane = 0; lane < 4; ++lane) lanes[lane] += a[i + lane] * b[i + lane];
  double sum = (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
  for (; i < count; ++i) sum += a[i] * b[i];
  return sum;
}

struct Reflection {
  std::vector<double> direction;  // x - (direction·x) scale direction
  double scale = 0;
  double diagonal = 0;  // the transformed leading element of its column

  void apply(double* x) const {
    const auto count = static_cast<int64_t>(direction.size());
    const double step = scale * dot(direction.data(), x, count);
    for (int64_t i = 0; i < count; ++i) x[i] -= step * direction[static_cast<size_t>(i)];
  }
};

// The reflection that maps a column to a multiple of the first unit vector, with the sign that avoids cancellation.
Reflection reflection_of(std::span<const double> column) {
  Reflection result;
  const auto count = static_cast<int64_t>(column.size());
  const double length = std::sqrt(dot(column.data(), column.data(), count));
  result.direction.assign(column.begin(), column.end());
  result.diagonal = column[0] > 0 ? -length : length;
  result.direction[0] -= result.diagonal;
  const double square = dot(result.direction.data(), result.direction.data(), count);
  result.scale = square > 0 ? 2 / square : 0;
  return result;
}

// `columns` holds `count` columns of `height` each, one after the other; count <= height.
void orthonormalize(std::vector<double>& columns, int64_t height, int64_t count) {
  const auto from = [&](int64_t column, int64_t row) { return columns.data() + column * height + row; };
  std::vector<Reflection> reflections;
  for (int64_t k = 0; k < count; ++k) {
    reflections.push_back(reflection_of({from(k, k), static_cast<size_t>(height - k)}));
    for (int64_t later = k + 1; later < count; ++later) reflections.back().apply(from(later, k));
  }
  columns.assign(columns.size(), 0);
  for (int64_t k = count - 1; k >= 0; --k) {
    const Reflection& reflection = reflections[static_cast<size_t>(k)];
    *from(k, k) = reflection.diagonal < 0 ? -1 : 1;
    for (int64_t column = k; column < count; ++column) reflection.apply(from(column, k));
  }
}

}  // namespace

std::vector<double> orthonormal(std::span<const float> random, int64_t rows, int64_t columns) {
  const bool tall = rows > columns;
  const int64_t height = tall ? rows : columns, count = tall ? columns : rows;
  // A row of a wide matrix is a column of its transpose: they are one after the other already.
  std::vector<double> vectors(random.begin(), random.end());
  const auto transposed = [](const std::vector<double>& matrix, int64_t of_rows, int64_t of_columns) {
    std::vector<double> result(matrix.size());
    for (int64_t i = 0; i < of_rows; ++i)
      for (int64_t k = 0; k < of_columns; ++k)
        result[static_cast<size_t>(k * of_rows + i)] = matrix[static_cast<size_t>(i * of_columns + k)];
    return result;
  };
  if (tall) vectors = transposed(vectors, rows, columns);
  orthonormalize(vectors, height, count);
  return tall ? transposed(vectors, columns, rows) : vectors;
}

}  // namespace symbind::init
