// Boxes given by their corners, and their overlaps. Compiled for every device.
#pragma once

#include "symbind/backend/freestanding.h"

namespace symbind::boxes {

template <class C>
struct Box {
  C x1, y1, x2, y2;
};

// The length that two intervals share; 0 where a bound is NaN.
template <class C>
constexpr C shared_length(C begin, C end, C other_begin, C other_end) {
  const C length = (end < other_end ? end : other_end) - (begin > other_begin ? begin : other_begin);
  return length > C(0) ? length : C(0);
}

template <class C>
constexpr C shared_area(const Box<C>& a, const Box<C>& b) {
  return shared_length(a.x1, a.x2, b.x1, b.x2) * shared_length(a.y1, a.y2, b.y1, b.y2);
}

// 0 where the corners are in the wrong order.
template <class C>
constexpr C area(const Box<C>& box) {
  const C width = box.x2 - box.x1, height = box.y2 - box.y1;
  return width < C(0) || height < C(0) ? C(0) : width * height;
}

// 0 where neither box has an area.
template <class C>
constexpr C intersection_over_union(const Box<C>& a, const Box<C>& b) {
  const C shared = shared_area(a, b), all = area(a) + area(b) - shared;
  return all > C(0) ? shared / all : C(0);
}

// Of boxes whose corners are pixels: a box of one pixel has the area 1.
template <class C>
constexpr C pixel_intersection_over_union(const Box<C>& a, const Box<C>& b) {
  const C width = (a.x2 < b.x2 ? a.x2 : b.x2) - (a.x1 > b.x1 ? a.x1 : b.x1) + C(1);
  const C height = (a.y2 < b.y2 ? a.y2 : b.y2) - (a.y1 > b.y1 ? a.y1 : b.y1) + C(1);
  const C shared = (width > C(0) ? width : C(0)) * (height > C(0) ? height : C(0));
  const C area_a = (a.x2 - a.x1 + C(1)) * (a.y2 - a.y1 + C(1)), area_b = (b.x2 - b.x1 + C(1)) * (b.y2 - b.y1 + C(1));
  return shared / (area_a + area_b - shared);
}

template <class C>
constexpr Box<C> corners_of_center(const Box<C>& box) {
  const C half_width = box.x2 / C(2), half_height = box.y2 / C(2);
  return {box.x1 - half_width, box.y1 - half_height, box.x1 + half_width, box.y1 + half_height};
}

// (x, y, width, height)
template <class C>
constexpr Box<C> center_of_corners(const Box<C>& box) {
  return {(box.x1 + box.x2) / C(2), (box.y1 + box.y2) / C(2), box.x2 - box.x1, box.y2 - box.y1};
}

// Offsets of a box's centre relative to an anchor, and logarithms of the ratios of their sizes.
template <class C>
struct Code {
  C x, y, width, height;
};
template <class C>
constexpr Code<C> encode(const Box<C>& anchor, const Box<C>& box) {
  const Box<C> a = center_of_corners(anchor), b = center_of_corners(box);
  return {(b.x1 - a.x1) / a.x2, (b.y1 - a.y1) / a.y2, libm::log(b.x2 / a.x2), libm::log(b.y2 / a.y2)};
}
// The corners of the box; `center` is the anchor as (x, y, width, height).
template <class C>
constexpr Box<C> decode(const Box<C>& center, const Code<C>& code) {
  return corners_of_center(Box<C>{code.x * center.x2 + center.x1, code.y * center.y2 + center.y1,
                                  libm::exp(code.width) * center.x2, libm::exp(code.height) * center.y2});
}

template <class C>
constexpr C clipped(C value, C low, C high) {
  return value < low ? low : value > high ? high : value;
}

// A sort key: an unsigned number that is smaller for higher scores. Equal scores, also 0 and -0, have equal keys; NaN
// comes last.
template <class C>
constexpr auto descending_key(C score) {
  using U = freestanding::unsigned_of<freestanding::conditional<sizeof(C) == 8, int64_t, int32_t>>;
  constexpr U sign = U(1) << (sizeof(U) * 8 - 1);
  if (score != score) return static_cast<U>(~U(0));
  const U bits = freestanding::bit_cast<U>(score == C(0) ? C(0) : score);
  return static_cast<U>(bits & sign ? bits : ~(bits | sign));
}

}  // namespace symbind::boxes
