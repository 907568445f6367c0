#include "symbind/ops/sync_batch_norm.h"

#include "symbind/graph/define.h"
#include "symbind/ops/batch_norm_fields.h"

namespace symbind {

BatchNorm as_batch_norm(const SyncBatchNorm& p) {
  BatchNorm params;
  params.eps = p.eps;
  params.momentum = p.momentum;
  params.fix_gamma = p.fix_gamma;
  params.use_global_stats = p.use_global_stats;
  params.output_mean_var = true;
  return params;
}

namespace {

// Arrays, shapes and types are those of BatchNorm.
template <class P, class AsBatchNorm>
Op<P>& like_batch_norm(Op<P>& op, AsBatchNorm as_params) {
  return with_batch_norm_results(op.inputs({"data", "gamma", "beta"}))
      .ignored_inputs([](const P& p) { return p.fix_gamma ? Names{"gamma"} : Names{}; })
      .infer_shape([as_params](const P& p, Shapes& s) {
        const BatchNorm params = as_params(p);
        op_of<BatchNorm>().infer_shape(&params, s);
      })
      .infer_type([as_params](const P& p, Types& t) {
        const BatchNorm params = as_params(p);
        op_of<BatchNorm>().infer_type(&params, t);
      });
}

void set_gradients(Grad& g, const Symbol& grads) {
  g.set("data", grads[0]);
  g.set("gamma", grads[1]);
  g.set("beta", grads[2]);
}

template <class P>
Op<P>& with_fields(Op<P>& op) {
  return op.synchronized()
      .param(&SyncBatchNorm::eps, "eps", "small constant added to the variance before the root")
      .param(&SyncBatchNorm::momentum, "momentum",
             "fraction of the old value kept when a moving statistic is updated, in [0, 1]")
      .param(&SyncBatchNorm::fix_gamma, "fix_gamma", "treat gamma as 1, and set its gradient to 0")
      .param(&SyncBatchNorm::use_global_stats, "use_global_stats",
             "normalize by the moving statistics in training as well")
      .param(&SyncBatchNorm::output_mean_var, "output_mean_var", "return the mean and the variance as further outputs")
      .param(&SyncBatchNorm::ndev, "ndev",
             "number of contexts; accepted for compatibility and ignored, since those of the module count", at_least(1))
      .param(&SyncBatchNorm::key, "key", "name of the layer in errors about the contexts that wait for one another");
}

OpDef define(Op<SyncBatchNorm> op) {
  return like_batch_norm(with_fields(op), as_batch_norm)
      .doc(
          "Batch normalization along axis 1 with the statistics of the whole batch. In training its mean and variance "
          "are those of the batch over all contexts of a module and over all workers of a distributed job that train "
          "in step (dist_sync, horovod); the parts may differ in size. An executor that is bound alone has the "
          "statistics of the batch that it is given, whatever ndev says. Inference uses the moving averages. The "
          "output var is the variance.")
      .gradient([](const SyncBatchNorm& p, Grad& g) {
        if (!g.has_out_grad(0)) return;
        set_gradients(
            g, sync_batch_norm_grad({g.out_grad(), g.input("data"), g.input("gamma"), g.output(1), g.output(2)}, {p}));
      });
}

OpDef define(Op<SyncBatchNormGrad> op) {
  return with_fields(op)
      .inputs({"out_grad", "data", "gamma", "mean", "var"})
      .outputs({"data_grad", "gamma_grad", "beta_grad"})
      .infer_shape([](const SyncBatchNormGrad&, Shapes& s) {
        s.output(0).meet(s["data"]);
        for (size_t index : {1, 2}) s.output(index).meet(s["gamma"]);
      })
      .shapes_of<SyncBatchNorm>()
      .infer_type([](const SyncBatchNormGrad&, Types& t) {
        t.output(0).meet(t["data"]);
        for (size_t index : {1, 2}) t.output(index).meet(t["gamma"]);
      })
      .types_of<SyncBatchNorm>();
}

OpDef define(Op<BatchNormWithReLU> op) {
  return like_batch_norm(with_batch_norm_fields(op), [](const BatchNormWithReLU& p) -> BatchNorm { return p; })
      .doc(
          "Batch normalization followed by a ReLU: max(0, gamma · (x - mean) / √(variance + eps) + beta) for each "
          "channel. The parameters are those of BatchNorm.")
      .gradient([](const BatchNormWithReLU& p, Grad& g) {
        if (!g.has_out_grad(0)) return;
        BatchNormReluGrad params;
        static_cast<BatchNorm&>(params) = p;
        set_gradients(g, batch_norm_relu_grad({g.out_grad(), g.input("data"), g.input("gamma"), g.input("beta"),
                                               g.output(1), g.output(2)},
                                              params));
      });
}

}  // namespace

Symbol network_of(const SyncBatchNorm& p, const ComposedInputs& in) {
  const Symbol normalized = batch_norm(in.symbols, as_batch_norm(p));
  const Symbol variance = pow(normalized[2], -2.0) - p.eps;  // var is 1 / √(variance + eps)
  return Symbol::group({normalized[0], normalized[1], variance});
}

Symbol network_of(const SyncBatchNormGrad& p, const ComposedInputs& in) {
  const Symbol deviation = pow(in[4] + p.eps, -0.5);  // its reciprocal: what the gradient reads instead of var
  return batch_norm_grad({in[0], in[1], in[2], in[3], deviation}, {as_batch_norm(p)});
}

Symbol network_of(const BatchNormWithReLU& p, const ComposedInputs& in) {
  BatchNormRelu params;
  static_cast<BatchNorm&>(params) = p;
  params.output_mean_var = true;
  return batch_norm_relu(in.symbols, params);
}

void register_sync_batch_norm(OpRegistry& registry) {
  add<SyncBatchNorm>(registry, "_contrib_SyncBatchNorm", define);
  add_internal<SyncBatchNormGrad>(registry, "_backward_SyncBatchNorm", define);
  add<BatchNormWithReLU>(registry, "_contrib_BatchNormWithReLU", define);
}

}  // namespace symbind
