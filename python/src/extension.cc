// The extension module: every class and function of the library that the Python package exposes.
#include "bindings.h"

NB_MODULE(_symbind, m) {
  using namespace symbind::python;
  m.doc() = "Symbind's C++ classes; use them through the package symbind.";
  nb::set_leak_warnings(false);  // users store arrays in module globals: these are not leaks at exit
  watch_for_exit();
  bind_error(m);
  bind_log(m);
  bind_context(m);
  bind_random(m);
  bind_ndarray(m);
  bind_attributes(m);
  bind_symbol(m);
  bind_op(m);
  bind_custom(m);
  bind_data(m);
  bind_recordio(m);
  bind_text_iters(m);
  bind_image(m);
  bind_image_iters(m);
  bind_executor(m);
  bind_metric(m);
  bind_callback(m);
  bind_monitor(m);
  bind_mixed_precision(m);
  bind_files(m);
  bind_lr_scheduler(m);
  bind_optimizer(m);
  bind_updater(m);
  bind_initializer(m);
  bind_kvstore(m);
  bind_executor_group(m);
  bind_base_module(m);
  bind_module(m);
  bind_bucketing(m);
  bind_sequential(m);
  bind_predictor(m);
  bind_rnn(m);
  bind_profiler(m);
  bind_compat(m);
  bind_sentences(m);
  allow_mixins(m);
}
