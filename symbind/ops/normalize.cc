#include "symbind/ops/normalize.h"

#include "symbind/graph/define.h"
#include "symbind/ops/floating.h"

namespace symbind {
namespace {

// ---- L2Normalization and LRN ----------------------------------------------------------------------------------------

template <class P>
Op<P>& l2_fields(Op<P>& op) {
  return op.param(&L2Normalization::eps, "eps", "small constant added to the sum of squares before the root")
      .param(&L2Normalization::mode, "mode",
             "what is normalized together: 'instance': all elements of a sample; 'channel': the channels at each "
             "position; 'spatial': all positions of each channel",
             one_of(l2_mode::all));
}

OpDef define(Op<L2Normalization> op) {
  return l2_fields(op)
      .doc(
          "Divides data by its L2 norm, √(Σx² + eps), over the elements that mode selects. The output has the shape of "
          "data.")
      .precision(Precision::full)
      .infer_shape([](const L2Normalization& p, Shapes& s) {
        same_shape(s);
        const auto data = s["data"];
        const int least = p.mode == "instance" ? 2 : 3;
        if (data.rank_known())
          require(data.rank() >= least, s.where(), " mode ", p.mode, " needs ", least, " axes: data ", data.get());
      })
      .infer_type([](const L2Normalization&, Types& t) { same_floating_type(t); })
      .gradient([](const L2Normalization& p, Grad& g) {
        g.set("data", l2_normalization_grad(g.out_grad(), g.input("data"), {p}));
      });
}
OpDef define(Op<L2NormalizationGrad> op) {
  return l2_fields(op).inputs({"out_grad", "data"}).shapes_of<L2Normalization>().types_of<L2Normalization>();
}

template <class P>
Op<P>& lrn_fields(Op<P>& op) {
  return op.param(&LRN::alpha, "alpha", "factor of the mean square")
      .param(&LRN::beta, "beta", "exponent of the divisor")
      .param(&LRN::knorm, "knorm", "constant term of the divisor")
      .param(
          &LRN::nsize, "nsize",
          "number of neighbouring channels in the window; an even number counts in the mean, and has the window of the "
          "odd one below",
          between(1, 1 << 30));
}

OpDef define(Op<LRN> op) {
  return lrn_fields(op)
      .doc(
          "Local response normalization: x / (knorm + alpha · mean of x² over nsize neighbouring channels)^beta. data "
          "and the output are (n, channels, rows, columns).")
      .precision(Precision::full)
      .outputs_in_files([](const LRN&) { return 2; })
      .infer_shape([](const LRN&, Shapes& s) {
        same_shape(s);
        const auto data = s["data"];
        if (data.rank_known()) require(data.rank() == 4, s.where(), " data must have 4 axes: data ", data.get());
      })
      .infer_type([](const LRN&, Types& t) { same_floating_type(t); })
      .gradient([](const LRN& p, Grad& g) { g.set("data", lrn_grad(g.out_grad(), g.input("data"), {p})); });
}
OpDef define(Op<LRNGrad> op) { return lrn_fields(op).inputs({"out_grad", "data"}).shapes_of<LRN>().types_of<LRN>(); }

// ---- InstanceNorm and LayerNorm -------------------------------------------------------------------------------------

template <class P, class G>
Op<P>& scaled(Op<P>& op, Builder<G> grad) {
  return op.inputs({"data", "gamma", "beta"})
      .infer_type([](const P&, Types& t) { same_floating_type(t); })
      .gradient([grad](const P& p, Grad& g) {
        const Symbol grads = grad(g.out_grad(), g.input("data"), g.input("gamma"), {p});
        g.set("data", grads[0]);
        g.set("gamma", grads[1]);
        g.set("beta", grads[2]);
      });
}

template <class P, class G>
Op<G>& scaled_grad(Op<G>& op) {
  return op.inputs({"out_grad", "data", "gamma"})
      .outputs({"data_grad", "gamma_grad", "beta_grad"})
      .infer_shape([](const G&, Shapes& s) {
        s.output(0).meet(s["data"].get());
        s.output(1).meet(s["gamma"].get());
        s.output(2).meet(s["gamma"].get());
      })
      .template shapes_of<P>()
      .template types_of<P>();
}

void infer_scale(Shapes& s, int64_t extent) {
  s["gamma"].meet({extent});
  s["beta"].meet({extent});
}

OpDef define(Op<InstanceNorm> op) {
  return scaled(op, instance_norm_grad)
      .doc(
          "Instance normalization: normalizes each channel of each sample to mean 0 and variance 1 over its spatial "
          "axes, then scales by gamma and shifts by beta, both (channels).")
      .precision(Precision::full)
      .param(&InstanceNorm::eps, "eps", "small constant added to the variance before the root")
      .outputs_in_files([](const InstanceNorm&) { return 3; })
      .infer_shape([](const InstanceNorm&, Shapes& s) {
        s["data"].meet(s.output(0));
        const auto data = s["data"];
        if (!data.rank_known()) return;
        require(data.rank() >= 3, s.where(), " data needs channels and space: data ", data.get());
        infer_scale(s, data[1]);
      });
}
OpDef define(Op<InstanceNormGrad> op) {
  return scaled_grad<InstanceNorm>(op).param(&InstanceNorm::eps, "eps",
                                             "small constant added to the variance before the root");
}

template <class P>
Op<P>& layer_fields(Op<P>& op) {
  return op.param(&LayerNorm::axis, "axis", "axis to normalize; negative ones count from the end")
      .param(&LayerNorm::eps, "eps", "small constant added to the variance before the root")
      .param(&LayerNorm::output_mean_var, "output_mean_var",
             "return the mean and the standard deviation as further outputs");
}

OpDef define(Op<LayerNorm> op) {
  return layer_fields(scaled(op, layer_norm_grad))
      .doc(
          "Layer normalization: normalizes data to mean 0 and variance 1 along an axis, then scales by gamma and "
          "shifts by beta, both with the extent of the axis.")
      .precision(Precision::full)
      .outputs({"output", "mean", "std"})
      .visible_outputs([](const LayerNorm& p) { return p.output_mean_var ? 3 : 1; })
      .infer_shape([](const LayerNorm& p, Shapes& s) {
        s["data"].meet(s.output(0));
        const auto data = s["data"];
        if (!data.rank_known()) return;
        const int axis = data.get().axis(p.axis, s.where());
        infer_scale(s, data[axis]);
        s.output(1).meet(data.get().with(axis, 1));
        s.output(2).meet(data.get().with(axis, 1));
      });
}
OpDef define(Op<LayerNormGrad> op) { return layer_fields(scaled_grad<LayerNorm>(op)); }

template <class P>
Op<P>& group_fields(Op<P>& op) {
  return op
      .param(&GroupNorm::num_groups, "num_groups",
             "number of groups that the channels are split into; each group is computed separately", at_least(1))
      .param(&GroupNorm::eps, "eps", "small constant added to the variance before the root")
      .param(&GroupNorm::output_mean_var, "output_mean_var",
             "return the mean and the standard deviation as further outputs");
}

// As in MXNet, a group has one scale and one shift.
OpDef define(Op<GroupNorm> op) {
  return group_fields(scaled(op, group_norm_grad))
      .doc(
          "Group normalization: normalizes each group of channels of each sample to mean 0 and variance 1, then scales "
          "by gamma and shifts by beta, both (num_groups).")
      .precision(Precision::full)
      .outputs({"output", "mean", "std"})
      .visible_outputs([](const GroupNorm& p) { return p.output_mean_var ? 3 : 1; })
      .infer_shape([](const GroupNorm& p, Shapes& s) {
        s["data"].meet(s.output(0));
        s.output(0).meet(s["data"]);
        const auto data = s["data"];
        infer_scale(s, p.num_groups);
        if (!data.rank_known()) return;
        require(data.rank() >= 3, s.where(), " data needs channels and space: data ", data.get());
        require(data[1] == unknown_dim || data[1] % p.num_groups == 0, s.where(),
                " num_groups must divide the channels: num_groups ", p.num_groups, ", data ", data.get());
        s.output(1).meet({data[0], p.num_groups});
        s.output(2).meet({data[0], p.num_groups});
      });
}
OpDef define(Op<GroupNormGrad> op) { return group_fields(scaled_grad<GroupNorm>(op)); }

}  // namespace

void register_normalize(OpRegistry& registry) {
  add<L2Normalization>(registry, "L2Normalization", define);
  add_internal<L2NormalizationGrad>(registry, "_backward_L2Normalization", define);
  add<LRN>(registry, "LRN", define);
  add_internal<LRNGrad>(registry, "_backward_LRN", define);
  add<InstanceNorm>(registry, "InstanceNorm", define);
  add_internal<InstanceNormGrad>(registry, "_backward_InstanceNorm", define);
  add<LayerNorm>(registry, "LayerNorm", define);
  add_internal<LayerNormGrad>(registry, "_backward_LayerNorm", define);
  add<GroupNorm>(registry, "GroupNorm", define);
  add_internal<GroupNormGrad>(registry, "_backward_GroupNorm", define);
}

}  // namespace symbind
