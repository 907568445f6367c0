#include "symbind/backend/cross_device_copy.h"

#include "symbind/ops/system.h"

namespace symbind {

std::unique_ptr<Kernel> build_cross_device_copy(const NodeView& node) {
  const auto& params = node.as<CrossDeviceCopy>();
  Device& from = Device::get(Context::from_string(params.from));
  Device& to = Device::get(Context::from_string(params.to));
  auto kernel = make_kernel([&from, &to, bytes = node.inputs[0].bytes()](const Args& args) {
    copy_bytes(to, args.outputs[0], from, args.inputs[0], bytes);
  });
  kernel->capturable = false;
  return kernel;
}

}  // namespace symbind
