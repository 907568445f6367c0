#include "symbind/backend/cpu/map.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "symbind/backend/cpu/convert_array.h"

namespace symbind::cpu_backend {
namespace {

constexpr int64_t piece_length = 1024;

// Space for a piece of numbers of any type.
struct alignas(64) Piece {
  std::byte bytes[piece_length * sizeof(double)];
};

void* element_at(void* array, DType dtype, int64_t index) {
  return static_cast<std::byte*>(array) + static_cast<size_t>(index) * size_of(dtype);
}

// Piece by piece the operands are converted to the loop's type and the results back.
void run_converting(const MapLoop& loop, const std::array<DType, max_arity>& types, DType type, const Args& args,
                    int64_t begin, int64_t end) {
  Piece in[max_arity], out;
  const void* operands[max_arity];
  for (int64_t at = begin; at < end; at += piece_length) {
    const int64_t count = std::min(piece_length, end - at);
    for (size_t k = 0; k < loop.arity; ++k) {
      convert_array(in[k].bytes, loop.type, element_at(args.inputs[k], types[k], at), types[k], count);
      operands[k] = in[k].bytes;
    }
    loop.run(loop.function, out.bytes, operands, 0, count);
    convert_array(element_at(args.outputs[0], type, at), type, out.bytes, loop.type, count);
  }
}

std::unordered_map<const OpDef*, std::vector<MakeLoop>>& loops() {
  static std::unordered_map<const OpDef*, std::vector<MakeLoop>> all;
  return all;
}

}  // namespace

void add_loop(const OpDef& op, MakeLoop make_loop) { loops()[&op].push_back(std::move(make_loop)); }

std::optional<MapLoop> find_loop(const NodeView& node) {
  const auto found = loops().find(&node.op);
  if (found == loops().end()) return std::nullopt;
  for (const MakeLoop& make_loop : found->second)
    if (auto loop = make_loop(node)) return loop;
  return std::nullopt;
}

void add_map(ImplementationTable& table, const OpDef& op) {
  add_plain(table, op, [](const NodeView& node) { return build_map(node, *find_loop(node)); });
}

std::unique_ptr<Kernel> build_map(const NodeView& node, const MapLoop& loop) {
  const DType type = node.outputs[0].dtype;
  const int64_t count = node.outputs[0].shape.size();
  std::array<DType, max_arity> types{};
  bool converts = type != loop.type;
  KernelTraits traits;
  for (size_t k = 0; k < loop.arity; ++k) {
    types[k] = node.inputs[k].dtype;
    converts |= types[k] != loop.type;
    if (size_of(types[k]) == size_of(type)) traits.in_place.emplace_back(static_cast<int>(k), 0);
  }
  if (!converts) {
    return make_kernel(
        [loop, count](const Args& args) {
          parallel_for(count, element_grain, [&](int64_t begin, int64_t end) {
            loop.run(loop.function, args.outputs[0], args.inputs, begin, end);
          });
        },
        traits);
  }
  return make_kernel(
      [loop, count, types, type](const Args& args) {
        parallel_for(count, element_grain,
                     [&](int64_t begin, int64_t end) { run_converting(loop, types, type, args, begin, end); });
      },
      traits);
}

}  // namespace symbind::cpu_backend
