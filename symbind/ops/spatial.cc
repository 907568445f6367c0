#include "symbind/ops/spatial.h"

#include "symbind/graph/define.h"
#include "symbind/ops/extents.h"
#include "symbind/ops/floating.h"

namespace symbind {
namespace {

// Along an axis of one element the coordinates -1 and 1 coincide, so the grid is undefined.
void check_target(const Tuple& target_shape) {
  require(target_shape.size() == 2 && target_shape[0] > 1 && target_shape[1] > 1,
          "target_shape must be two numbers of at least 2: ", print(target_shape));
}

// ---- GridGenerator --------------------------------------------------------------------------------------------------

template <class P>
Op<P>& grid_fields(Op<P>& op) {
  return op
      .param(&GridGenerator::transform_type, "transform_type",
             "the kind of transformation: 'affine': data is (batch, 6), a 2 × 3 matrix per image; 'warp': data is "
             "(batch, 2, rows, columns), a flow field in pixels",
             one_of(transform_type::of_grid))
      .param(&GridGenerator::target_shape, "target_shape",
             "rows and columns of the grid of 'affine'; ignored for 'warp'", each_at_least(0))
      .check([](P& p) {
        if (p.transform_type == "affine") check_target(p.target_shape);
      });
}

OpDef define(Op<GridGenerator> op) {
  return grid_fields(op)
      .doc(
          "Generates sampling grids for BilinearSampler: (batch, 2, rows, columns) with x in channel 0 and y in "
          "channel 1, from -1 at the first to 1 at the last pixel.")
      .precision(Precision::full)
      .outputs_in_files([](const GridGenerator&) { return 2; })
      .infer_shape([](const GridGenerator& p, Shapes& s) {
        auto data = s["data"];
        if (p.transform_type == "affine") {
          data.meet({unknown_dim, 6});
          s.output().meet({data[0], 2, p.target_shape[0], p.target_shape[1]});
          data.meet_dim(0, s.output()[0]);
          return;
        }
        data.meet({unknown_dim, 2, unknown_dim, unknown_dim});
        data.meet(s.output());
        for (int axis : {2, 3})
          require(data[axis] == unknown_dim || data[axis] != 1, s.where(),
                  " data needs at least two rows and columns: data ", data.get());
      })
      .infer_type([](const GridGenerator&, Types& t) { same_floating_type(t); })
      .gradient([](const GridGenerator& p, Grad& g) {
        g.set("data", grid_generator_grad(g.out_grad(), g.input("data"), {p}));
      });
}

OpDef define(Op<GridGeneratorGrad> op) {
  return grid_fields(op)
      .inputs({"out_grad", "data"})
      .shape_only({"data"})
      .infer_shape([](const GridGeneratorGrad&, Shapes& s) { s.output().meet(s["data"].get()); })
      .shapes_of<GridGenerator>()
      .types_of<GridGenerator>();
}

// ---- BilinearSampler ------------------------------------------------------------------------------------------------

OpDef define(Op<BilinearSampler> op) {
  return op
      .doc(
          "Samples images at the points of a grid with bilinear interpolation; outside of the image is 0. data is (n, "
          "channels, rows, columns), grid (n, 2, out_rows, out_columns) with coordinates from -1 to 1; the output is "
          "(n, channels, out_rows, out_columns).")
      .precision(Precision::full)
      .param(&BilinearSampler::cudnn_off, "cudnn_off", "accepted for compatibility and ignored")
      .inputs({"data", "grid"})
      .outputs_in_files([](const BilinearSampler&) { return 2; })
      .infer_shape([](const BilinearSampler&, Shapes& s) {
        auto data = s["data"], grid = s["grid"];
        data.meet(Shape::of_rank(4));
        grid.meet({data[0], 2, unknown_dim, unknown_dim});
        data.meet_dim(0, grid[0]);
        s.output().meet({data[0], data[1], grid[2], grid[3]});
      })
      .infer_type([](const BilinearSampler&, Types& t) { same_floating_type(t); })
      .gradient([](const BilinearSampler& p, Grad& g) {
        const Symbol grads = bilinear_sampler_grad(g.out_grad(), g.input("data"), g.input("grid"), {p});
        g.set("data", grads[0]);
        g.set("grid", grads[1]);
      });
}

OpDef define(Op<BilinearSamplerGrad> op) {
  return op.param(&BilinearSampler::cudnn_off, "cudnn_off", "accepted for compatibility and ignored")
      .inputs({"out_grad", "data", "grid"})
      .outputs({"data_grad", "grid_grad"})
      .infer_shape([](const BilinearSamplerGrad&, Shapes& s) {
        s.output(0).meet(s["data"].get());
        s.output(1).meet(s["grid"].get());
      })
      .shapes_of<BilinearSampler>()
      .types_of<BilinearSampler>();
}

// ---- SpatialTransformer ---------------------------------------------------------------------------------------------

template <class P>
Op<P>& transformer_fields(Op<P>& op) {
  return op.param(&SpatialTransformer::target_shape, "target_shape", "rows and columns of the output", each_at_least(0))
      .param(&SpatialTransformer::transform_type, "transform_type",
             "the kind of transformation: only 'affine', where loc is (batch, 6), a 2 × 3 matrix per image",
             one_of(transform_type::of_transformer))
      .param(&SpatialTransformer::sampler_type, "sampler_type", "the interpolation: only 'bilinear'",
             one_of(sampler_type::all))
      .param(&SpatialTransformer::cudnn_off, "cudnn_off", "accepted for compatibility and ignored")
      .check([](P& p) { check_target(p.target_shape); });
}

OpDef define(Op<SpatialTransformer> op) {
  return transformer_fields(op)
      .doc(
          "Transforms each image by its own affine map: GridGenerator followed by BilinearSampler. data is (n, "
          "channels, rows, columns), loc (n, 6); the output is (n, channels, target_shape).")
      .precision(Precision::full)
      .inputs({"data", "loc"})
      .outputs_in_files([](const SpatialTransformer&) { return 3; })
      .infer_shape([](const SpatialTransformer& p, Shapes& s) {
        auto data = s["data"], loc = s["loc"];
        data.meet(Shape::of_rank(4));
        loc.meet({data[0], 6});
        data.meet_dim(0, loc[0]);
        s.output().meet({data[0], data[1], p.target_shape[0], p.target_shape[1]});
      })
      .infer_type([](const SpatialTransformer&, Types& t) { same_floating_type(t); })
      .gradient([](const SpatialTransformer& p, Grad& g) {
        const Symbol grads = spatial_transformer_grad(g.out_grad(), g.input("data"), g.input("loc"), {p});
        g.set("data", grads[0]);
        g.set("loc", grads[1]);
      });
}

// Not composed of the gradients of its parts: half precision is too coarse for the grid between them.
OpDef define(Op<SpatialTransformerGrad> op) {
  return transformer_fields(op)
      .inputs({"out_grad", "data", "loc"})
      .outputs({"data_grad", "loc_grad"})
      .infer_shape([](const SpatialTransformerGrad&, Shapes& s) {
        s.output(0).meet(s["data"].get());
        s.output(1).meet(s["loc"].get());
      })
      .shapes_of<SpatialTransformer>()
      .types_of<SpatialTransformer>();
}

// ---- Correlation ----------------------------------------------------------------------------------------------------

template <class P>
Op<P>& correlation_fields(Op<P>& op) {
  constexpr double most = 1 << 16;
  return op
      .param(&Correlation::kernel_size, "kernel_size", "extent of the patches that are compared, odd", between(1, most))
      .param(&Correlation::max_displacement, "max_displacement", "largest displacement between two patches, in pixels",
             between(0, most))
      .param(&Correlation::stride1, "stride1", "step between neighbouring patches of data1, in pixels",
             between(1, most))
      .param(&Correlation::stride2, "stride2", "step between neighbouring displacements, in pixels", between(1, most))
      .param(&Correlation::pad_size, "pad_size", "number of zeros added on each side of both images", between(0, most))
      .param(&Correlation::is_multiply, "is_multiply",
             "compare patches by their mean product; False: by their mean absolute difference")
      .check([](P& p) { require(p.kernel_size % 2 == 1, "kernel_size must be odd: ", p.kernel_size); });
}

OpDef define(Op<Correlation> op) {
  return correlation_fields(op)
      .doc(
          "Correlation of two images: compares patches of data1 with patches of data2 at all displacements. Both are "
          "(n, channels, rows, columns); the output has one channel per displacement, (2 · (max_displacement / "
          "stride2) + 1)² of them.")
      .precision(Precision::widest)
      .inputs({"data1", "data2"})
      .outputs_in_files([](const Correlation&) { return 3; })
      .multiply_adds([](const Correlation& p, auto in, auto out) {
        return static_cast<double>(out[0].size()) * static_cast<double>(in[0][1] * p.kernel_size * p.kernel_size);
      })
      .infer_shape([](const Correlation& p, Shapes& s) {
        auto data = s["data1"];
        data.meet(Shape::of_rank(4));
        data.meet(s["data2"]);
        Shape result{data[0], (2 * (p.max_displacement / p.stride2) + 1) * (2 * (p.max_displacement / p.stride2) + 1)};
        for (int axis : {2, 3}) {
          const int64_t padded = extent_sum(data[axis], 2 * p.pad_size, s.where());
          const int64_t spare = padded - (2 * p.max_displacement + p.kernel_size - 1);
          require(padded == unknown_dim || spare >= 1, s.where(),
                  " the images are too small for patches and displacements: data1 ", data.get());
          result.push_back(padded == unknown_dim ? unknown_dim : (spare + p.stride1 - 1) / p.stride1);
        }
        s.output().meet(result);
      })
      .infer_type([](const Correlation&, Types& t) { same_floating_type(t); })
      .gradient([](const Correlation& p, Grad& g) {
        const Symbol grads = correlation_grad(g.out_grad(), g.input("data1"), g.input("data2"), {p});
        g.set("data1", grads[0]);
        g.set("data2", grads[1]);
      });
}

OpDef define(Op<CorrelationGrad> op) {
  return correlation_fields(op)
      .inputs({"out_grad", "data1", "data2"})
      .outputs({"data1_grad", "data2_grad"})
      .infer_shape([](const CorrelationGrad&, Shapes& s) {
        s.output(0).meet(s["data1"].get());
        s.output(1).meet(s["data2"].get());
      })
      .shapes_of<Correlation>()
      .types_of<Correlation>();
}

}  // namespace

void register_spatial(OpRegistry& registry) {
  add<GridGenerator>(registry, "GridGenerator", define);
  add_internal<GridGeneratorGrad>(registry, "_backward_GridGenerator", define);
  add<BilinearSampler>(registry, "BilinearSampler", define);
  add_internal<BilinearSamplerGrad>(registry, "_backward_BilinearSampler", define);
  add<SpatialTransformer>(registry, "SpatialTransformer", define);
  add_internal<SpatialTransformerGrad>(registry, "_backward_SpatialTransformer", define);
  add<Correlation>(registry, "Correlation", define);
  add_internal<CorrelationGrad>(registry, "_backward_Correlation", define);
}

}  // namespace symbind
