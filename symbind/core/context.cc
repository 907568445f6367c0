#include "symbind/core/context.h"

#include <charconv>

#include "symbind/core/device.h"
#include "symbind/core/error.h"

namespace symbind {

std::ostream& operator<<(std::ostream& out, Context context) {
  switch (context.type) {
    case DeviceType::cpu:
      out << "cpu(";
      break;
    case DeviceType::gpu:
      out << "gpu(";
      break;
    case DeviceType::cpu_pinned:
      out << "cpu_pinned(";
      break;
  }
  return out << std::to_string(context.id) << ")";
}

std::string Context::str() const { return join(*this); }

Context Context::from_string(std::string_view text) {
  const auto fail_here = [&] { fail("'", text, "' is not a context: expected cpu(0), gpu(0) or cpu_pinned(0)"); };
  const size_t open = text.find('(');
  const std::string_view kind = text.substr(0, open);
  Context context;
  if (kind == "cpu")
    context.type = DeviceType::cpu;
  else if (kind == "gpu")
    context.type = DeviceType::gpu;
  else if (kind == "cpu_pinned")
    context.type = DeviceType::cpu_pinned;
  else
    fail_here();
  if (open != std::string_view::npos) {
    const char* begin = text.data() + open + 1;
    const char* end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(begin, end, context.id);
    if (error != std::errc() || rest + 1 != end || *rest != ')' || context.id < 0) fail_here();
  }
  return context;
}

int num_gpus() { return count_gpu_devices(); }

}  // namespace symbind
