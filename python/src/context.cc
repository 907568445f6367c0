#include "symbind/core/context.h"

#include "symbind/core/device.h"
#include "symbind/core/parts.h"
#include "symbind/core/shape_convention.h"
#include "symbind/version.h"

#include "bindings.h"
#include "convert.h"

namespace symbind::python {
namespace {

Context context_named(const std::string& type, int id) {
  for (const auto& [name, value] : {std::pair{"cpu", DeviceType::cpu},
                                    {"gpu", DeviceType::gpu},
                                    {"cpu_pinned", DeviceType::cpu_pinned},
                                    {"cpu_shared", DeviceType::cpu}})
    if (type == name) return {value, id};
  fail("no device is of type '", type, "': cpu, gpu and cpu_pinned are");
}

const char* type_name(Context context) {
  if (context.type == DeviceType::cpu_pinned) return "cpu_pinned";
  return context.is_gpu() ? "gpu" : "cpu";
}

}  // namespace

void bind_context(nb::module_& m) {
  m.def("_uses_numpy_shapes", &uses_numpy_shapes);
  m.def("_use_numpy_shapes", &use_numpy_shapes, nb::arg("active"));
  nb::class_<Context>(m, "Context",
                      "Where arrays live and work runs: cpu(i) or gpu(i). `with ctx:` makes it the default.")
      .def(
          "__init__",
          [](Context* self, nb::handle device_type, int device_id) {
            new (self) Context(nb::isinstance<Context>(device_type)
                                   ? nb::cast<Context>(device_type)
                                   : context_named(nb::cast<std::string>(device_type), device_id));
          },
          nb::arg("device_type"), nb::arg("device_id") = 0)
      .def_prop_ro("device_type", &type_name)
      .def_prop_ro("device_typeid", [](Context self) { return static_cast<int>(self.type); })
      .def_ro("device_id", &Context::id)
      .def(
          "__eq__",
          [](Context self, nb::handle other) {
            return nb::isinstance<Context>(other) && nb::cast<Context>(other) == self;
          },
          nb::arg().none())
      .def("__hash__", [](Context self) { return std::hash<Context>{}(self); })
      .def("__repr__", &Context::str)
      .def("__enter__",
           [](nb::handle self) {
             push_context(nb::cast<Context>(self));
             return nb::borrow(self);
           })
      .def("__exit__", [](Context, nb::args) { pop_context(); })
      .def_prop_rw_static(
          "default_ctx", [](nb::handle) { return current_context(); },
          [](nb::handle, Context context) { replace_context(context); },
          "The context of this thread where none is given. MXNet's older way to set it; `with ctx:` sets it for a "
          "block.")
      .def(
          "empty_cache", [](Context self) { Device::get(self).empty_pool(); },
          "Gives pooled memory back to the system.")
      .def("__reduce__", [](nb::handle self) {
        const auto context = nb::cast<Context>(self);
        return nb::make_tuple(self.type(), nb::make_tuple(type_name(context), context.id));
      });
  m.def("cpu", &cpu, nb::arg("device_id") = 0, "The CPU; several ids behave as several devices.");
  m.def("gpu", &gpu, nb::arg("device_id") = 0, "A GPU.");
  m.def("cpu_pinned", &cpu_pinned, nb::arg("device_id") = 0, "Host memory that GPUs copy from and to quickly.");
  m.def("num_gpus", &num_gpus, "How many GPUs there are.");
  m.def("_gpu_number", [](int id) { return gpu_number(gpu(id)); });  // CUDA's
  m.def("_version", &version);
  m.def("_parts", [] {
    nb::list all;
    for (const Part& part : parts()) all.append(nb::make_tuple(part.name, part.usable, part.details));
    return all;
  });
  m.def("current_context", &current_context, "The context of the innermost `with ctx:`, else cpu(0).");
  m.def(
      "memory_stats",
      [](Context context) {
        const MemoryStats stats = Device::get(context).memory();
        nb::dict result;
        result["live"] = stats.live;
        result["peak"] = stats.peak;
        result["pooled"] = stats.pooled;
        return result;
      },
      nb::arg("ctx"), "Bytes of a device: allocated now, peak so far, pooled for reuse.");
  m.def("waitall", &waitall, nb::call_guard<ReleaseGil>(), "Waits until every device has done its work.");
}

}  // namespace symbind::python
