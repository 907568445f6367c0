// The extent of an array along each axis. During inference a shape may be partly known: its rank or single dimensions
// may be unknown. The public interface writes an unknown dimension as 0, as MXNet does (see from_public); internally it
// is -1, so that arrays without elements are possible.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <ostream>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "symbind/core/api.h"

namespace SYMBIND_API symbind {

inline constexpr int64_t unknown_dim = -1;

class Shape {
 public:
  static constexpr int max_rank = 8;

  Shape() = default;  // nothing known, not even the rank
  Shape(std::initializer_list<int64_t> dims) : Shape(std::span<const int64_t>(dims.begin(), dims.size())) {}
  explicit Shape(std::span<const int64_t> dims);
  explicit Shape(const std::vector<int64_t>& dims) : Shape(std::span<const int64_t>(dims)) {}

  static Shape of_rank(int rank, int64_t dim = unknown_dim);
  static Shape scalar() { return of_rank(0); }
  // Reads 0 as unknown and () as a shape of unknown rank; to_public writes them so.
  static Shape from_public(std::span<const int64_t> dims);
  std::vector<int64_t> to_public() const;

  bool rank_known() const { return rank_ >= 0; }
  bool known() const;  // every dimension is
  int rank() const { return rank_; }
  // Negative axes count from the end; an axis outside of the shape fails.
  int64_t operator[](int axis) const { return dims_[index_of(axis)]; }
  int64_t& operator[](int axis) { return dims_[index_of(axis)]; }
  // Axis counted from either end, checked; `who` is named in the error.
  int axis(int64_t index, std::string_view who) const;

  int64_t size() const;                    // number of elements; the shape is known
  int64_t size(int begin, int end) const;  // product of the dimensions in [begin, end)
  std::span<const int64_t> dims() const { return {dims_.data(), static_cast<size_t>(rank_ < 0 ? 0 : rank_)}; }
  auto begin() const { return dims().begin(); }
  auto end() const { return dims().end(); }

  Shape slice(int begin, int end) const;  // the dimensions in [begin, end)
  Shape with(int axis, int64_t dim) const;
  void push_back(int64_t dim);
  // Steps in elements of a row-major array of this shape.
  std::array<int64_t, max_rank> strides() const;

  friend bool operator==(const Shape& a, const Shape& b);
  std::string str() const;  // "(32,3,?,?)"; "?" when the rank is unknown

 private:
  size_t index_of(int axis) const {
    const int counted = axis < 0 ? axis + rank_ : axis;
    if (counted < 0 || counted >= rank_) fail_outside(axis);
    return static_cast<size_t>(counted);
  }
  [[noreturn]] void fail_outside(int axis) const;

  int rank_ = -1;
  std::array<int64_t, max_rank> dims_{};
};

std::ostream& operator<<(std::ostream& out, const Shape& shape);

}  // namespace symbind

// As a range a shape is its dimensions, and has as many of them as it has axes: size() counts an array's elements.
template <>
inline constexpr bool std::ranges::disable_sized_range<symbind::Shape> = true;

namespace SYMBIND_API symbind {

// Merges what is known of both into `a`; false if they contradict each other (then `a` is unchanged).
bool unify(Shape& a, const Shape& b);

// NumPy's broadcasting of two known shapes; fails with `who` if they do not fit.
Shape broadcast(const Shape& a, const Shape& b, std::string_view who);

}  // namespace symbind
