// One function per file of this folder: each adds the classes and functions of one header to the extension module.
#pragma once

#include "casters.h"

namespace symbind::python {

void bind_error(nb::module_& m);
void bind_log(nb::module_& m);
void bind_context(nb::module_& m);
void bind_random(nb::module_& m);
void bind_ndarray(nb::module_& m);
void bind_attributes(nb::module_& m);
void bind_symbol(nb::module_& m);
void bind_op(nb::module_& m);
void bind_custom(nb::module_& m);
void bind_data(nb::module_& m);
void bind_recordio(nb::module_& m);
void bind_text_iters(nb::module_& m);
void bind_image(nb::module_& m);
void bind_image_iters(nb::module_& m);
void bind_executor(nb::module_& m);
void bind_metric(nb::module_& m);
void bind_callback(nb::module_& m);
void bind_monitor(nb::module_& m);
void bind_mixed_precision(nb::module_& m);
void bind_files(nb::module_& m);
void bind_lr_scheduler(nb::module_& m);
void bind_optimizer(nb::module_& m);
void bind_updater(nb::module_& m);
void bind_initializer(nb::module_& m);
void bind_kvstore(nb::module_& m);
void bind_executor_group(nb::module_& m);
void bind_base_module(nb::module_& m);
void bind_module(nb::module_& m);
void bind_bucketing(nb::module_& m);
void bind_sequential(nb::module_& m);
void bind_predictor(nb::module_& m);
void bind_rnn(nb::module_& m);
void bind_profiler(nb::module_& m);
void bind_compat(nb::module_& m);
void bind_sentences(nb::module_& m);
void allow_mixins(nb::module_& m);  // after all classes

}  // namespace symbind::python
