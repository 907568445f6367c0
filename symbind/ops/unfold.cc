#include "symbind/ops/unfold.h"

#include "symbind/graph/define.h"
#include "symbind/ops/extents.h"
#include "symbind/ops/floating.h"

namespace symbind {
namespace {

constexpr int64_t largest_window = 1 << 20;

// Fills the tuples that were left out, and checks that all have as many numbers as kernel.
template <class P>
void complete(P& p) {
  const Tuple& kernel = p.kernel;
  require(!kernel.empty() && kernel.size() <= 3, "kernel must have 1, 2 or 3 numbers: ", print(kernel));
  if (p.stride.empty()) p.stride.assign(kernel.size(), 1);
  if (p.dilate.empty()) p.dilate.assign(kernel.size(), 1);
  if (p.pad.empty()) p.pad.assign(kernel.size(), 0);
  const Tuple* const tuples[] = {&kernel, &p.stride, &p.dilate, &p.pad};
  for (const Tuple* tuple : tuples) {
    require(tuple->size() == kernel.size(), "stride, dilate and pad must have as many numbers as kernel: kernel ",
            print(kernel), ", and ", print(*tuple));
    for (const int64_t number : *tuple)
      require(number <= largest_window, "kernel, stride, dilate and pad must be at most ", largest_window, ": ",
              number);
  }
}

template <class Base, class P>
Op<P>& with_fields(Op<P>& op) {
  return op
      .param(&Base::kernel, "kernel", "extent of the window along the spatial axes: (w), (h, w) or (d, h, w)",
             each_at_least(1))
      .param(&Base::stride, "stride", "step of the window along each spatial axis; (): 1", each_at_least(1))
      .param(&Base::dilate, "dilate", "distance between neighbouring elements of the window; (): 1", each_at_least(1))
      .param(&Base::pad, "pad", "number of zeros on each side of each spatial axis; (): 0", each_at_least(0))
      .infer_type([](const P&, Types& t) { same_floating_type(t); });
}

// Windows along a spatial axis of known extent.
template <class P>
int64_t windows_along(const P& p, size_t i, int64_t extent, const std::string& where) {
  const int64_t last_begin = extent + 2 * p.pad[i] - (p.dilate[i] * (p.kernel.get()[i] - 1) + 1);
  require(last_begin >= 0, where, " the window is larger than the padded image: kernel ", print(p.kernel.get()),
          ", extent ", extent);
  return last_begin / p.stride[i] + 1;
}

template <class P>
int64_t kernel_elements(const P& p) {
  int64_t elements = 1;
  for (const int64_t extent : p.kernel.get()) elements *= extent;
  return elements;
}

// ---- im2col ---------------------------------------------------------------------------------------------------------

template <class P>
Op<P>& im2col_fields(Op<P>& op) {
  return with_fields<Im2col>(op).check([](P& p) { complete(p); });
}

OpDef define(Op<Im2col> op) {
  return im2col_fields(op)
      .doc(
          "The windows of a convolution as columns: data (n, channels, spatial…) becomes (n, channels · kernel "
          "elements, windows). Outside of the image are zeros.")
      .infer_shape([](const Im2col& p, Shapes& s) {
        auto data = s["data"], out = s.output();
        const auto spatial = p.kernel.get().size();
        data.meet(Shape::of_rank(static_cast<int>(spatial) + 2));
        const int64_t elements = kernel_elements(p);
        int64_t windows = 1;
        for (size_t i = 0; i < spatial; ++i) {
          const int64_t extent = data[static_cast<int>(i) + 2];
          windows = extent_product(windows, extent == unknown_dim ? extent : windows_along(p, i, extent, s.where()),
                                   s.where());
        }
        out.meet({data[0], extent_product(data[1], elements, s.where()), windows});
        data.meet_dim(0, out[0]);
        if (out[1] == unknown_dim) return;
        require(out[1] % elements == 0, s.where(), " the columns have ", out[1],
                " elements, no multiple of the window's ", elements);
        data.meet_dim(1, out[1] / elements);
      })
      .gradient([](const Im2col& p, Grad& g) { g.set("data", im2col_grad(g.out_grad(), g.input("data"), {p})); });
}

OpDef define(Op<Im2colGrad> op) {
  return im2col_fields(op)
      .inputs({"out_grad", "like"})
      .shape_only({"like"})
      .infer_shape([](const Im2colGrad&, Shapes& s) { s.output().meet(s["like"].get()); })
      .shapes_of<Im2col>();
}

// ---- col2im ---------------------------------------------------------------------------------------------------------

OpDef define(Op<Col2im> op) {
  return with_fields<Col2im>(op)
      .doc(
          "Columns added up to images, the transpose of im2col: data (n, channels · kernel elements, windows) becomes "
          "(n, channels, output_size…). Each pixel is the sum of what all windows hold for it.")
      .param(&Col2im::output_size, "output_size", "spatial extents of the output", each_at_least(1))
      .check([](Col2im& p) {
        complete(p);
        require(p.output_size.get().size() == p.kernel.get().size(),
                "output_size must have as many numbers as kernel: output_size ", print(p.output_size.get()),
                ", kernel ", print(p.kernel.get()));
        for (size_t i = 0; i < p.kernel.get().size(); ++i) windows_along(p, i, p.output_size.get()[i], "");
      })
      .infer_shape([](const Col2im& p, Shapes& s) {
        auto data = s["data"], out = s.output();
        data.meet(Shape::of_rank(3));
        int64_t windows = 1;
        Shape result{data[0], unknown_dim};
        for (size_t i = 0; i < p.kernel.get().size(); ++i) {
          windows = extent_product(windows, windows_along(p, i, p.output_size.get()[i], s.where()), s.where());
          result.push_back(p.output_size.get()[i]);
        }
        data.meet_dim(2, windows);
        const int64_t elements = kernel_elements(p);
        if (data[1] != unknown_dim) {
          require(data[1] % elements == 0, s.where(), " axis 1 of data must be a multiple of the window's ", elements,
                  " elements: data ", data.get());
          result[1] = data[1] / elements;
        }
        out.meet(result);
        data.meet_dim(0, out[0]);
        data.meet_dim(1, extent_product(out[1], elements, s.where()));
      })
      .gradient([](const Col2im& p, Grad& g) {
        g.set("data", im2col(g.out_grad(), {.kernel = p.kernel, .stride = p.stride, .dilate = p.dilate, .pad = p.pad}));
      });
}

template <class P>
UnfoldSize size_for(const P& p, const Shape& image) {
  UnfoldSize size;
  size.planes = image[0] * image[1];
  const Tuple& kernel = p.kernel;
  const size_t first = 3 - kernel.size();
  for (size_t i = 0; i < kernel.size(); ++i) {
    size.image[first + i] = image[static_cast<int>(i) + 2];
    size.kernel[first + i] = kernel[i];
    size.stride[first + i] = p.stride[i];
    size.dilate[first + i] = p.dilate[i];
    size.pad[first + i] = p.pad[i];
    size.windows[first + i] = windows_along(p, i, image[static_cast<int>(i) + 2], "");
  }
  return size;
}

}  // namespace

UnfoldSize unfold_size(const Im2col& params, const Shape& image) { return size_for(params, image); }
UnfoldSize unfold_size(const Col2im& params, const Shape& image) { return size_for(params, image); }

void register_unfold(OpRegistry& registry) {
  add<Im2col>(registry, "im2col", define);
  add_internal<Im2colGrad>(registry, "_backward_im2col", define);
  add<Col2im>(registry, "col2im", define);
}

}  // namespace symbind
