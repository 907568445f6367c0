// The targets of Mask R-CNN's masks: the mean of a cell's points in a mask. Compiled for every device.
#pragma once

#include "symbind/backend/roi_align.h"
#include "symbind/ops/mask_target.h"

namespace symbind::mask_target_rule {

struct MaskSize {
  int64_t images, regions, masks, rows, columns;  // regions and masks of an image
  int64_t classes, out_rows, out_columns;
  int64_t sample_ratio;
  bool aligned;

  MaskSize(const MaskTarget& p, const Shape& masks_shape)
      : images(masks_shape[0]),
        regions(p.num_rois),
        masks(masks_shape[1]),
        rows(masks_shape[2]),
        columns(masks_shape[3]),
        classes(p.num_classes),
        out_rows(p.mask_size[0]),
        out_columns(p.mask_size[1]),
        sample_ratio(p.sample_ratio),
        aligned(p.aligned) {}
  constexpr int64_t cells() const { return out_rows * out_columns; }
  constexpr int64_t space() const { return rows * columns; }
};

// A region of an image and its mask. corner(0 … 3) are its numbers x1, y1, x2, y2.
template <class C>
struct MaskRegion {
  int64_t mask;  // among those of its image; -1: there is none
  roi_align_rule::Axis<C> down, across;

  template <class Corner>
  constexpr MaskRegion(const MaskSize& size, C match, const Corner& corner)
      : mask(roi_align_rule::image_of(match, size.masks)),
        down(roi_align_rule::axis_between(corner(1), corner(3), C(1), size.out_rows, size.sample_ratio, size.aligned)),
        across(roi_align_rule::axis_between(corner(0), corner(2), C(1), size.out_columns, size.sample_ratio,
                                            size.aligned)) {}

  // The mean of the points of a cell; pixel(index) is an element of the mask's plane.
  template <class Pixel>
  constexpr C mean(const MaskSize& size, int64_t cell, const Pixel& pixel) const {
    using roi_align_rule::Point, roi_align_rule::Range;
    const int64_t row = cell / size.out_columns, column = cell % size.out_columns;
    const Range rows = down.points_between(row, C(-1), static_cast<C>(size.rows));
    const Range columns = across.points_between(column, C(-1), static_cast<C>(size.columns));
    C sum = 0;
    for (int64_t i = rows.begin; i < rows.end; ++i) {
      const Point<C> y(down.point(row, i), size.rows);
      if (!y.inside) continue;
      const int64_t low = y.low * size.columns, high = y.high * size.columns;
      for (int64_t k = columns.begin; k < columns.end; ++k) {
        const Point<C> x(across.point(column, k), size.columns);
        if (!x.inside) continue;
        sum += (C(1) - y.share) * ((C(1) - x.share) * pixel(low + x.low) + x.share * pixel(low + x.high)) +
               y.share * ((C(1) - x.share) * pixel(high + x.low) + x.share * pixel(high + x.high));
      }
    }
    const C count = static_cast<C>(down.points) * static_cast<C>(across.points);
    return count > C(0) ? sum / count : C(0);
  }
};

}  // namespace symbind::mask_target_rule
