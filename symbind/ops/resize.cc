#include "symbind/ops/resize.h"

#include <algorithm>

#include "symbind/graph/define.h"
#include "symbind/ops/floating.h"

namespace symbind {
namespace {

// ---- BilinearResize2D -----------------------------------------------------------------------------------------------

constexpr double most = 1 << 20;  // rows or columns

bool is_like(const BilinearResize2D& p) { return p.mode == "like"; }

int64_t scaled(int64_t extent, double scale) {
  return static_cast<int64_t>(std::min(scale * static_cast<double>(extent), 0x1p62));  // more may not fit
}

// The resized extent according to the mode; `fixed` and `scale` are the parameters of this axis.
int64_t resized(const BilinearResize2D& p, int64_t extent, int64_t fixed, const std::optional<double>& scale) {
  const bool odd = extent % 2 == 1;
  if (p.mode == "size") return scale ? scaled(extent, *scale) : fixed;
  if (p.mode == "odd_scale") return odd ? scaled(extent - 1, *scale) + 1 : scaled(extent, *scale);
  if (p.mode == "to_even_down") return odd ? extent - 1 : extent;
  if (p.mode == "to_even_up") return odd ? extent + 1 : extent;
  if (p.mode == "to_odd_down") return odd ? extent : extent - 1;
  return odd ? extent : extent + 1;  // to_odd_up
}

void check(const BilinearResize2D& p) {
  require(p.scale_height.has_value() == p.scale_width.has_value(),
          "scale_height and scale_width must both be given, or neither");
  require(p.mode != "odd_scale" || p.scale_height.has_value(), "mode odd_scale needs scale_height and scale_width");
  for (const auto& scale : {p.scale_height, p.scale_width})
    require(!scale || (*scale >= 0 && *scale <= most), "scales must not be negative: ", scale.value_or(0));
}

// An output pixel cannot be computed from an image without pixels.
void require_pixels(Shapes& s) {
  const auto data = s["data"];
  for (const int axis : {2, 3})
    require(data[axis] != 0, s.where(), " data must have rows and columns: data ", data.get());
}

OpDef define(Op<BilinearResize2D> op) {
  return op
      .doc(
          "Resizes images by bilinear interpolation: data is (n, channels, rows, columns), the output (n, channels, "
          "height, width).")
      .param(&BilinearResize2D::height, "height", "rows of the output with mode 'size'", between(1, most))
      .param(&BilinearResize2D::width, "width", "columns of the output with mode 'size'", between(1, most))
      .param(&BilinearResize2D::scale_height, "scale_height",
             "factor of the rows with modes 'size', where it replaces height, and 'odd_scale'")
      .param(&BilinearResize2D::scale_width, "scale_width", "the same for the columns")
      .param(&BilinearResize2D::mode, "mode",
             "where the size comes from: 'size': height and width, or the scales; 'odd_scale': the scales, such that "
             "an odd extent stays odd; 'like': the second input; 'to_even_down', 'to_even_up', 'to_odd_down', "
             "'to_odd_up': the nearest even or odd extent below or above that of data",
             one_of({"like", "odd_scale", "size", "to_even_down", "to_even_up", "to_odd_down", "to_odd_up"}))
      .param(&BilinearResize2D::align_corners, "align_corners",
             "True: the corner pixels of input and output are the same points; False: the outer edges of both are")
      .check([](BilinearResize2D& p) { check(p); })
      .inputs([](const BilinearResize2D& p) {
        return is_like(p) ? Names{"data", "like"} : Names{"data"};
      })
      .shape_only({"like"})
      .infer_shape([](const BilinearResize2D& p, Shapes& s) {
        auto data = s["data"], out = s.output();
        data.meet(Shape::of_rank(4));
        out.meet({data[0], data[1], unknown_dim, unknown_dim});
        data.meet({out[0], out[1], unknown_dim, unknown_dim});
        require_pixels(s);
        if (is_like(p)) {
          s["like"].meet(Shape::of_rank(4));
          for (const int axis : {2, 3}) {
            out.meet_dim(axis, s["like"][axis]);
            s["like"].meet_dim(axis, out[axis]);
          }
          return;
        }
        for (const int axis : {2, 3}) {
          const bool constant = p.mode == "size" && !p.scale_height;
          if (data[axis] == unknown_dim && !constant) continue;
          const int64_t extent = axis == 2 ? resized(p, data[axis], p.height, p.scale_height)
                                           : resized(p, data[axis], p.width, p.scale_width);
          require(extent >= 1 && static_cast<double>(extent) <= most, s.where(), " the output would have ", extent,
                  axis == 2 ? " rows: data " : " columns: data ", data.get());
          out.meet_dim(axis, extent);
        }
      })
      .infer_type([](const BilinearResize2D& p, Types& t) {
        t["data"].meet(t.output());
        t.output().meet(t["data"]);
        require_floating(t, "data", t["data"]);
        if (is_like(p)) t["like"].default_to(at_least_float32(t["data"]));
      })
      .gradient([](const BilinearResize2D& p, Grad& g) {
        g.set("data", bilinear_resize_2d_grad(g.out_grad(), g.input("data"), {.align_corners = p.align_corners}));
      });
}

// (out_grad, like) of one batch and channels → the shape of like
template <class P>
Op<P>& as_gradient(Op<P>& op) {
  return op.inputs({"out_grad", "like"})
      .shape_only({"like"})
      .infer_shape([](const P&, Shapes& s) {
        auto dy = s["out_grad"], like = s["like"];
        dy.meet({like[0], like[1], unknown_dim, unknown_dim});
        s.output().meet(like.get());
      })
      .infer_type([](const P&, Types& t) { same_floating_type(t); });
}

OpDef define(Op<BilinearResize2DGrad> op) {
  return as_gradient(op).param(&BilinearResize2DGrad::align_corners, "align_corners",
                               "whether the corner pixels of input and output are the same points");
}

// ---- AdaptiveAvgPooling2D -------------------------------------------------------------------------------------------

template <class P>
Op<P>& pooling_fields(Op<P>& op) {
  return op
      .param(&AdaptiveAvgPooling2D::output_size, "output_size",
             "(rows, columns) of the output, or one number for both; (): 1", each_at_least(0))
      .check([](P& p) {
        if (p.output_size.empty()) p.output_size = {1};
        if (p.output_size.size() == 1) p.output_size.push_back(p.output_size[0]);
        require(p.output_size.size() == 2, "output_size must be one or two numbers: ", print(p.output_size));
        for (const int64_t extent : p.output_size)
          require(static_cast<double>(extent) <= most, "output_size is too large: ", print(p.output_size));
      });
}

OpDef define(Op<AdaptiveAvgPooling2D> op) {
  return pooling_fields(op)
      .doc(
          "Means of windows that cover images of any size: data is (n, channels, rows, columns), the output (n, "
          "channels, output_size). Window i of an axis reaches from ⌊i · in / out⌋ to ⌈(i + 1) · in / out⌉.")
      .infer_shape([](const AdaptiveAvgPooling2D& p, Shapes& s) {
        auto data = s["data"], out = s.output();
        data.meet(Shape::of_rank(4));
        out.meet({data[0], data[1], p.output_size[0], p.output_size[1]});
        data.meet({out[0], out[1], unknown_dim, unknown_dim});
        require_pixels(s);
      })
      .infer_type([](const AdaptiveAvgPooling2D&, Types& t) { same_floating_type(t); })
      .gradient([](const AdaptiveAvgPooling2D& p, Grad& g) {
        g.set("data", adaptive_avg_pooling_2d_grad(g.out_grad(), g.input("data"), {p}));
      });
}

OpDef define(Op<AdaptiveAvgPooling2DGrad> op) { return as_gradient(pooling_fields(op)); }

}  // namespace

void register_resize(OpRegistry& registry) {
  add<BilinearResize2D>(registry, "_contrib_BilinearResize2D", define);
  add_internal<BilinearResize2DGrad>(registry, "_backward_BilinearResize2D", define);
  add<AdaptiveAvgPooling2D>(registry, "_contrib_AdaptiveAvgPooling2D", define);
  add_internal<AdaptiveAvgPooling2DGrad>(registry, "_backward_AdaptiveAvgPooling2D", define);
}

}  // namespace symbind
