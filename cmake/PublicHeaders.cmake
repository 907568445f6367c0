# The headers of the library that programs may include, and nothing else is installed: what symbind.h includes, directly or
# through others, and graph/define.h for operators of one's own. Those of operators come from the list in ops/all.h.

set(SYMBIND_PUBLIC_HEADERS
  core/api.h
  core/array_text.h
  core/busy.h
  core/context.h
  core/device.h
  core/dtype.h
  core/error.h
  core/fixed_string.h
  core/interrupt.h
  core/log.h
  core/ndarray.h
  core/param_key.h
  core/random.h
  core/shape.h
  core/state_tree.h
  core/text.h
  data/idx.h
  data/iterator.h
  data/mnist_iter.h
  data/ndarray_iter.h
  data/prefetch.h
  data/resize_iter.h
  data/sharding.h
  exec/arithmetic.h
  exec/binding.h
  exec/executor.h
  exec/indexing.h
  exec/invoke.h
  exec/profiler.h
  exec/random.h
  files/checkpoint.h
  files/params.h
  files/states.h
  fwd.h
  symbind.h
  version.h
  graph/attributes.h
  graph/builder.h
  graph/define.h
  graph/grad_req.h
  graph/node.h
  graph/op.h
  graph/param.h
  graph/symbol.h
  kvstore/kvstore.h
  optim/clip_global_norm.h
  optim/lr_scheduler.h
  optim/optimizer.h
  optim/optimizer_params.h
  optim/options.h
  optim/rule_optimizer.h
  optim/update_rule.h
  optim/updater.h
  passes/compile_options.h
  passes/infer.h
  passes/own_operator.h
  train/base_module.h
  train/callback.h
  train/executor_group.h
  train/initializer.h
  train/metric.h
  train/metrics.h
  train/module.h
  train/monitor.h
  train/predictor.h
  ops/all.h
  ops/choices.h)
symbind_listed_families(families all)
list(TRANSFORM families PREPEND "ops/")
list(TRANSFORM families APPEND ".h")
list(APPEND SYMBIND_PUBLIC_HEADERS ${families})
