#include "symbind/ops/system.h"

#include <algorithm>
#include <cstring>

#include "symbind/backend/cpu/families.h"
#include "symbind/backend/cpu/parallel.h"

namespace symbind::cpu_backend {
namespace {

// out[n][j][i] = in[n][i][j] for rows × columns matrices, in blocks that fit the cache.
template <class T>
void transpose_batch(const T* in, T* out, int64_t batch, int64_t rows, int64_t columns) {
  constexpr int64_t block = 32;
  const int64_t row_blocks = (rows + block - 1) / block;
  const int64_t work_per_block = std::min(rows, block) * columns;
  parallel_for(batch * row_blocks, (1 << 15) / std::max<int64_t>(1, work_per_block) + 1,
               [=](int64_t begin, int64_t end) {
                 for (int64_t item = begin; item < end; ++item) {
                   const T* const source = in + item / row_blocks * rows * columns;
                   T* const target = out + item / row_blocks * rows * columns;
                   const int64_t first = item % row_blocks * block, last = std::min(rows, first + block);
                   for (int64_t column = 0; column < columns; column += block) {
                     const int64_t column_end = std::min(columns, column + block);
                     for (int64_t j = column; j < column_end; ++j)
                       for (int64_t i = first; i < last; ++i) target[j * rows + i] = source[i * columns + j];
                   }
                 }
               });
}

std::unique_ptr<Kernel> build_reorder(const NodeView& node) {
  const Shape& shape = node.inputs[0].shape;
  const int64_t batch = shape[0], channels = shape[1], space = shape.size(2, shape.rank());
  const bool to_last = node.as<Reorder>().to_channels_last;
  const int64_t rows = to_last ? channels : space, columns = to_last ? space : channels;
  return visit_dtype(node.inputs[0].dtype, [&]<class T>(std::type_identity<T>) -> std::unique_ptr<Kernel> {
    return make_kernel([=](const Args& args) { transpose_batch(args.in<T>(0), args.out<T>(), batch, rows, columns); });
  });
}

}  // namespace

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

void add_system(ImplementationTable& table) {
  table.add<CrossDeviceCopy>({.name = "copy", .refuse = {}, .build = build_cross_device_copy, .likes = {}});
  table.add<Reorder>({.name = "plain", .refuse = {}, .build = build_reorder, .likes = {}});
}

}  // namespace symbind::cpu_backend
