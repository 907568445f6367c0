#include "symbind/core/shape.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "symbind/core/error.h"
#include "symbind/core/shape_convention.h"

namespace symbind {
namespace {

thread_local bool numpy_shapes = false;

}  // namespace

bool uses_numpy_shapes() { return numpy_shapes; }
bool use_numpy_shapes(bool active) { return std::exchange(numpy_shapes, active); }

Shape::Shape(std::span<const int64_t> dims) {
  require(dims.size() <= max_rank, "a shape has at most ", max_rank, " dimensions, not ", dims.size());
  for (int64_t dim : dims) {
    require(dim >= unknown_dim, "a dimension cannot be negative: ", dim);
    push_back(dim);
  }
  if (rank_ < 0) rank_ = 0;
}

Shape Shape::of_rank(int rank, int64_t dim) {
  require(rank >= 0 && rank <= max_rank, "a shape has 0 to ", max_rank, " dimensions, not ", rank);
  Shape shape;
  shape.rank_ = rank;
  std::fill_n(shape.dims_.begin(), rank, dim);
  return shape;
}

Shape Shape::from_public(std::span<const int64_t> dims) {
  if (numpy_shapes) return Shape(dims);
  if (dims.empty()) return {};
  Shape shape(dims);
  std::replace(shape.dims_.begin(), shape.dims_.begin() + shape.rank_, int64_t{0}, unknown_dim);
  return shape;
}

std::vector<int64_t> Shape::to_public() const {
  std::vector<int64_t> dims(begin(), end());
  if (!numpy_shapes) std::replace(dims.begin(), dims.end(), unknown_dim, int64_t{0});
  return dims;
}

bool Shape::known() const {
  return rank_known() && std::none_of(begin(), end(), [](int64_t dim) { return dim < 0; });
}

int Shape::axis(int64_t index, std::string_view who) const {
  const int64_t counted = index < 0 ? index + rank_ : index;
  if (counted < 0 || counted >= rank_) {
    const bool something_known = std::any_of(begin(), end(), [](int64_t dim) { return dim != unknown_dim; });
    fail(who, " axis ", index, " is outside of an array with ", rank_, rank_ == 1 ? " axis" : " axes",
         something_known ? join(": ", *this) : "");
  }
  return static_cast<int>(counted);
}

void Shape::fail_outside(int axis) const {
  if (!rank_known()) fail("axis ", axis, " was asked of a shape of unknown rank");
  fail("axis ", axis, " is outside of a shape with ", rank_, rank_ == 1 ? " axis: " : " axes: ", *this);
}

int64_t Shape::size() const { return size(0, rank_); }

int64_t Shape::size(int begin, int end) const {
  int64_t count = 1;
  for (int axis = begin; axis < end; ++axis) {
    const int64_t dim = dims_[static_cast<size_t>(axis)];
    require(dim >= 0, "the shape ", *this, " is not fully known");
    require(!__builtin_mul_overflow(count, dim, &count), "the shape ", *this, " has more elements than can be counted");
  }
  // No type needs more than 16 bytes per element: byte counts never overflow after this check.
  require(count <= std::numeric_limits<int64_t>::max() / 16, "the shape ", *this, " is too large");
  return count;
}

Shape Shape::slice(int begin, int end) const {
  return Shape(dims().subspan(static_cast<size_t>(begin), static_cast<size_t>(std::max(0, end - begin))));
}

Shape Shape::with(int axis, int64_t dim) const {
  Shape changed = *this;
  changed[axis] = dim;
  return changed;
}

void Shape::push_back(int64_t dim) {
  if (rank_ < 0) rank_ = 0;
  require(rank_ < max_rank, "a shape has at most ", max_rank, " dimensions");
  dims_[static_cast<size_t>(rank_++)] = dim;
}

std::array<int64_t, Shape::max_rank> Shape::strides() const {
  std::array<int64_t, max_rank> steps{};
  int64_t step = 1;
  for (int axis = rank_ - 1; axis >= 0; --axis) {
    steps[static_cast<size_t>(axis)] = step;
    step *= (*this)[axis];
  }
  return steps;
}

// A friend that only the class declares does not get the visibility of the header's namespace.
SYMBIND_API bool operator==(const Shape& a, const Shape& b) {
  return a.rank_ == b.rank_ && std::equal(a.begin(), a.end(), b.begin(), b.end());
}

std::string Shape::str() const { return join(*this); }

std::ostream& operator<<(std::ostream& out, const Shape& shape) {
  if (!shape.rank_known()) return out << "?";
  out << "(";
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (axis > 0) out << ",";
    if (shape[axis] == unknown_dim)
      out << "?";
    else
      out << std::to_string(shape[axis]);
  }
  return out << (shape.rank() == 1 ? ",)" : ")");
}

bool unify(Shape& a, const Shape& b) {
  if (!b.rank_known()) return true;
  if (!a.rank_known()) {
    a = b;
    return true;
  }
  if (a.rank() != b.rank()) return false;
  Shape both = a;
  for (int axis = 0; axis < a.rank(); ++axis) {
    if (both[axis] == unknown_dim)
      both[axis] = b[axis];
    else if (b[axis] != unknown_dim && b[axis] != both[axis])
      return false;
  }
  a = both;
  return true;
}

Shape broadcast(const Shape& a, const Shape& b, std::string_view who) {
  const int rank = std::max(a.rank(), b.rank());
  Shape result = Shape::of_rank(rank, 1);
  for (int axis = 0; axis < rank; ++axis) {
    const int in_a = axis - (rank - a.rank()), in_b = axis - (rank - b.rank());
    const int64_t dim_a = in_a < 0 ? 1 : a[in_a], dim_b = in_b < 0 ? 1 : b[in_b];
    require(dim_a == dim_b || dim_a == 1 || dim_b == 1, who, " shapes ", a, " and ", b,
            " cannot be broadcast together");
    result[axis] = dim_a == 1 ? dim_b : dim_a;
  }
  return result;
}

}  // namespace symbind
