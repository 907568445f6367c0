// The operators on boxes: their sizes and parameters as plain numbers, and the work per box. Compiled for every device.
#pragma once

#include "symbind/backend/boxes.h"
#include "symbind/core/shape.h"
#include "symbind/ops/boxes.h"

namespace symbind::boxes {

// Non-maximum suppression of `batches` arrays of boxes.
template <class C>
struct NmsRule {
  int64_t batches, boxes, numbers;  // numbers: of a box
  int64_t coord, score, id;         // their indices in a box
  int64_t most;                     // boxes that are searched; 0: the output is the input
  C overlap, valid, background;
  bool any_class, from_center, to_center;

  NmsRule(const BoxNMS& p, const Shape& data)
      : batches(data.size(0, data.rank() - 2)),
        boxes(data[data.rank() - 2]),
        numbers(data[data.rank() - 1]),
        coord(p.coord_start),
        score(p.score_index),
        id(p.id_index),
        most(p.topk < 0 || p.topk > boxes ? boxes : p.topk),
        overlap(static_cast<C>(static_cast<float>(p.overlap_thresh))),
        valid(static_cast<C>(static_cast<float>(p.valid_thresh))),
        background(static_cast<C>(p.background_id)),
        any_class(p.force_suppress || p.id_index < 0),
        from_center(p.in_format == "center"),
        to_center(p.out_format == "center") {}

  // read(index) is a number of the box.
  template <class Read>
  constexpr bool is_valid(const Read& read) const {
    return read(score) > valid && !(id >= 0 && read(id) == background);
  }
  template <class Read>
  constexpr Box<C> corners(const Read& read) const {
    const Box<C> box{read(coord), read(coord + 1), read(coord + 2), read(coord + 3)};
    return from_center ? corners_of_center(box) : box;
  }
  constexpr bool drops(const Box<C>& a, C class_a, const Box<C>& b, C class_b) const {
    return (any_class || class_a == class_b) && intersection_over_union(a, b) > overlap;
  }
  // The coordinate `index` (0 … 3) of a box in the output.
  constexpr C coordinate(const Box<C>& box, int64_t index) const {
    const Box<C> out = to_center ? center_of_corners(box) : box;
    return index == 0 ? out.x1 : index == 1 ? out.y1 : index == 2 ? out.x2 : out.y2;
  }
};

template <class C>
struct EncodeRule {
  int64_t anchors, refs;  // of a batch

  // Number `index` (0 … 3) of the code of an anchor, and whether it is valid. The readers return elements of the
  // inputs.
  template <class Samples, class Matches, class Anchors, class Refs>
  constexpr bool code(int64_t anchor, const Samples& samples, const Matches& matches, const Anchors& read_anchor,
                      const Refs& read_ref, Code<C>& result) const {
    if (!(samples(anchor) > C(0.5)) || refs == 0) return false;
    const C match = matches(anchor);
    const int64_t ref = match >= C(1) && match < static_cast<C>(refs) ? static_cast<int64_t>(match) : 0;
    result = encode(Box<C>{read_anchor(anchor * 4), read_anchor(anchor * 4 + 1), read_anchor(anchor * 4 + 2),
                           read_anchor(anchor * 4 + 3)},
                    Box<C>{read_ref(ref * 4), read_ref(ref * 4 + 1), read_ref(ref * 4 + 2), read_ref(ref * 4 + 3)});
    return true;
  }
};

template <class C>
struct DecodeRule {
  C std0, std1, std2, std3, clip;
  bool from_corners;

  explicit DecodeRule(const BoxDecode& p)
      : std0(number(p.std0)),
        std1(number(p.std1)),
        std2(number(p.std2)),
        std3(number(p.std3)),
        clip(number(p.clip)),
        from_corners(p.format == "corner") {}
  static C number(double value) { return static_cast<C>(static_cast<float>(value)); }

  constexpr C limited(C value) const { return clip > C(0) && value > clip ? clip : value; }
  constexpr Box<C> operator()(const Code<C>& code, const Box<C>& anchor) const {
    return decode(from_corners ? center_of_corners(anchor) : anchor,
                  Code<C>{code.x * std0, code.y * std1, limited(code.width * std2), limited(code.height * std3)});
  }
};

}  // namespace symbind::boxes
