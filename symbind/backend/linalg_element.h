// Operators on matrices whose elements are computed independently: function(inputs, i) is element i of the output. One
// source for all devices.
#pragma once

#include <cstdint>

#include "symbind/backend/freestanding.h"
#include "symbind/ops/linalg_element.h"
#include "symbind/passes/target.h"

namespace symbind::linalg {

// Up to three inputs of one type. An operator without a second one does not read it; only the third may be null.
template <class T>
struct Arrays {
  const T *a, *b, *c;

  Arrays(const Args& args, int64_t inputs)
      : a(args.in<T>(0)), b(inputs > 1 ? args.in<T>(1) : a), c(inputs > 2 ? args.in<T>(2) : nullptr) {}
};

// Element i of square matrices.
struct MatrixElement {
  int64_t matrix, row, column;

  constexpr MatrixElement(int64_t i, int64_t extent)
      : matrix(i / (extent * extent)), row(i / extent % extent), column(i % extent) {}
};

// A triangle of a matrix stored as a vector: the lower one row by row, the upper one column by column.
struct TriangleSize {
  int64_t extent;  // of the whole matrix
  int64_t offset;  // of the first diagonal
  bool lower;

  constexpr int64_t side() const { return extent - (offset < 0 ? -offset : offset); }
  constexpr int64_t count() const { return side() * (side() + 1) / 2; }
  // The index of (row, column) in the triangle; -1 outside.
  constexpr int64_t index(int64_t row, int64_t column) const {
    if (lower)
      row += offset;
    else
      column -= offset;
    const int64_t longer = lower ? row : column, shorter = lower ? column : row;
    return longer < 0 || shorter > longer ? -1 : longer * (longer + 1) / 2 + shorter;
  }
  // The matrix element that corresponds to element `index` of the triangle.
  constexpr int64_t element(int64_t index) const {
    int64_t longer = 0, high = side();  // the largest number whose triangle is not larger than the index
    while (longer + 1 < high) {
      const int64_t middle = (longer + high) / 2;
      if (middle * (middle + 1) / 2 <= index)
        longer = middle;
      else
        high = middle;
    }
    const int64_t shorter = index - longer * (longer + 1) / 2;
    return lower ? (longer - offset) * extent + shorter : shorter * extent + longer + offset;
  }
};

struct SumLogs {
  int64_t extent;
  template <class T>
  constexpr T operator()(const Arrays<T>& in, int64_t i) const {
    T sum = 0;
    for (int64_t k = 0; k < extent; ++k) sum += libm::log(in.a[(i * extent + k) * extent + k]);
    return sum;
  }
};

struct SumLogsGrad {
  int64_t extent;
  template <class T>
  constexpr T operator()(const Arrays<T>& in, int64_t i) const {
    const MatrixElement at(i, extent);
    return at.row == at.column ? in.a[at.matrix] / in.b[i] : T(0);
  }
};

struct ExtractTriangle {
  TriangleSize size;
  template <class T>
  constexpr T operator()(const Arrays<T>& in, int64_t i) const {
    return in.a[i / size.count() * size.extent * size.extent + size.element(i % size.count())];
  }
};

struct MakeTriangle {
  TriangleSize size;
  template <class T>
  constexpr T operator()(const Arrays<T>& in, int64_t i) const {
    const MatrixElement at(i, size.extent);
    const int64_t index = size.index(at.row, at.column);
    return index < 0 ? T(0) : in.a[at.matrix * size.count() + index];
  }
};

struct OneTriangle {
  int64_t extent;
  bool lower, mirrored;
  double factor;
  template <class T>
  constexpr T operator()(const Arrays<T>& in, int64_t i) const {
    const MatrixElement at(i, extent);
    const bool inside = lower ? at.column <= at.row : at.row <= at.column;
    if (inside) return static_cast<T>(factor) * in.a[i];
    return mirrored ? static_cast<T>(factor) * in.a[(at.matrix * extent + at.column) * extent + at.row] : T(0);
  }
};

struct SumWithTranspose {
  int64_t extent;
  template <class T>
  constexpr T operator()(const Arrays<T>& in, int64_t i) const {
    const MatrixElement at(i, extent);
    return in.a[i] + in.a[(at.matrix * extent + at.column) * extent + at.row];
  }
};

struct TransposeTimes {
  int64_t extent;
  template <class T>
  constexpr T operator()(const Arrays<T>& in, int64_t i) const {
    const MatrixElement at(i, extent);
    return in.b[at.matrix] * in.a[(at.matrix * extent + at.column) * extent + at.row];
  }
};

// ½ · (M_ji - M_ij) / (L_j - L_i) off the diagonal, the gradient of the eigenvalues on it.
struct EigenMiddle {
  int64_t extent;
  template <class T>
  constexpr T operator()(const Arrays<T>& in, int64_t i) const {
    const MatrixElement at(i, extent);
    const int64_t row = at.matrix * extent + at.row, column = at.matrix * extent + at.column;
    if (row == column) return in.c ? in.c[row] : T(0);
    const T apart = in.b[column] - in.b[row];
    return apart == T(0) ? T(0) : T(0.5) * (in.a[column * extent + at.row] - in.a[i]) / apart;
  }
};

// visit(op, function of a node → the function of its elements) for each operator.
template <class Visit>
void for_each_element_operator(Visit visit) {
  const auto of_input = [](const NodeView& node, size_t input) {
    const Shape& shape = node.inputs[input].shape;
    return shape[shape.rank() - 1];
  };
  const auto triangle_of = [](int64_t extent, int64_t offset, bool lower) {
    return TriangleSize{extent, offset, offset == 0 ? lower : offset < 0};
  };
  visit(op_of<LinalgSumlogdiag>(), [=](const NodeView& node) { return SumLogs{of_input(node, 0)}; });
  visit(op_of<SumlogdiagGrad>(), [=](const NodeView& node) { return SumLogsGrad{of_input(node, 1)}; });
  visit(op_of<LinalgExtracttrian>(), [=](const NodeView& node) {
    const auto& p = node.as<LinalgExtracttrian>();
    return ExtractTriangle{triangle_of(of_input(node, 0), p.offset, p.lower)};
  });
  visit(op_of<LinalgMaketrian>(), [=](const NodeView& node) {
    const auto& p = node.as<LinalgMaketrian>();
    const Shape& shape = node.outputs[0].shape;
    return MakeTriangle{triangle_of(shape[shape.rank() - 1], p.offset, p.lower)};
  });
  visit(op_of<Triangle>(), [=](const NodeView& node) {
    const auto& p = node.as<Triangle>();
    return OneTriangle{of_input(node, 0), p.lower, p.mirrored, p.factor};
  });
  visit(op_of<PlusTranspose>(), [=](const NodeView& node) { return SumWithTranspose{of_input(node, 0)}; });
  visit(op_of<ScaledTranspose>(), [=](const NodeView& node) { return TransposeTimes{of_input(node, 0)}; });
  visit(op_of<EigenGrad>(), [=](const NodeView& node) { return EigenMiddle{of_input(node, 0)}; });
}

}  // namespace symbind::linalg
