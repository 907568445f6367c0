// The device that holds an array or runs work. Several CPU contexts behave as several devices.
#pragma once

#include <compare>
#include <functional>
#include <ostream>
#include <string>
#include <string_view>

#include "symbind/core/api.h"

namespace SYMBIND_API symbind {

// The numbers are those MXNet writes into files.
enum class DeviceType : int { cpu = 1, gpu = 2, cpu_pinned = 3 };

struct Context {
  DeviceType type = DeviceType::cpu;
  int id = 0;

  bool is_gpu() const { return type == DeviceType::gpu; }
  std::string str() const;                            // "gpu(0)"
  static Context from_string(std::string_view text);  // reads what str() writes
  friend auto operator<=>(const Context&, const Context&) = default;
};

inline Context cpu(int id = 0) { return {DeviceType::cpu, id}; }
inline Context gpu(int id = 0) { return {DeviceType::gpu, id}; }
inline Context cpu_pinned(int id = 0) { return {DeviceType::cpu_pinned, id}; }

int num_gpus();

std::ostream& operator<<(std::ostream& out, Context context);

}  // namespace symbind

template <>
struct std::hash<symbind::Context> {
  size_t operator()(symbind::Context context) const noexcept {
    return static_cast<size_t>(context.type) * 1000003u + static_cast<size_t>(context.id);
  }
};
