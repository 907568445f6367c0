// LayerNorm along the last axis, GroupNorm and InstanceNorm by the row kernels.
//
// The columns of LayerNorm's gradient are summed while its rows are computed, in pieces of rows that depend only on the
// number of rows: the result is the same for any number of threads.
#include <algorithm>

#include "symbind/backend/cpu/loops.h"
#include "symbind/backend/cpu/row_implementations.h"
#include "symbind/backend/cpu/row_kernels.h"
#include "symbind/core/error.h"
#include "symbind/ops/normalize.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {
namespace {

constexpr int64_t work = 2;  // of a number

struct NormNode {
  NormSize size;
  int64_t rows;
  bool shows_statistics;
};

int64_t row_grain(const NormNode& norm) { return element_grain / work / std::max<int64_t>(1, norm.size.length) + 1; }

std::unique_ptr<Kernel> build_forward(const NodeView& node, const NormNode& norm) {
  return visit_row_type(node.inputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    return make_kernel(
        [norm, kernels = row_kernels<T>()->norm](const Args& args) {
          const T *const x = args.in<T>(0), *const gamma = args.in<T>(1), *const beta = args.in<T>(2);
          T* const y = args.out<T>();
          T* const mean = norm.shows_statistics ? args.out<T>(1) : nullptr;
          T* const deviation = norm.shows_statistics ? args.out<T>(2) : nullptr;
          parallel_for(norm.rows, row_grain(norm), [=](int64_t begin, int64_t end) {
            kernels.forward(norm.size, begin, end, x, gamma, beta, y, mean, deviation);
          });
        },
        {.in_place = {{0, 0}}});
  });
}

// A scale for each row.
std::unique_ptr<Kernel> build_backward(const NodeView& node, const NormNode& norm) {
  return visit_row_type(node.inputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    return make_kernel(
        [norm, kernels = row_kernels<T>()->norm](const Args& args) {
          const T *const dy = args.in<T>(0), *const x = args.in<T>(1), *const gamma = args.in<T>(2);
          T* const dx = args.out<T>();
          auto* const sums = static_cast<NormSums*>(args.scratch);
          parallel_for(norm.rows, row_grain(norm), [=](int64_t begin, int64_t end) {
            kernels.backward(norm.size, begin, end, dy, x, gamma, dx, sums);
          });
          for (int64_t channel = 0; channel < norm.size.channels; ++channel) {
            NormSums total{0, 0};
            for (int64_t row = channel; row < norm.rows; row += norm.size.channels) {
              total.gamma += sums[row].gamma;
              total.beta += sums[row].beta;
            }
            args.out<T>(1)[channel] = static_cast<T>(static_cast<float>(total.gamma));
            args.out<T>(2)[channel] = static_cast<T>(static_cast<float>(total.beta));
          }
        },
        {.in_place = {{0, 0}, {1, 0}}, .scratch_bytes = static_cast<size_t>(norm.rows) * sizeof(NormSums)});
  });
}

// ---- A scale for each column ----------------------------------------------------------------------------------------

// Pieces of rows with separate sums: enough for all threads, but far fewer than rows.
int64_t column_pieces(const NormNode& norm) {
  const int64_t by_work = norm.rows * norm.size.length / (element_grain / work);
  return std::clamp<int64_t>(std::min(by_work, norm.rows / 64), 1, 16);
}

// One piece's memory: its sums in double for gamma and beta, and those of a few rows in float.
struct PieceMemory {
  int64_t padded;
  explicit PieceMemory(int64_t length) : padded((length + widest_vector - 1) / widest_vector * widest_vector) {}
  size_t bytes() const { return static_cast<size_t>(padded) * 2 * (sizeof(double) + sizeof(float)); }
  double* by_gamma(void* scratch, int64_t piece) const {
    return reinterpret_cast<double*>(static_cast<std::byte*>(scratch) + static_cast<size_t>(piece) * bytes());
  }
  double* by_beta(void* scratch, int64_t piece) const { return by_gamma(scratch, piece) + padded; }
  float* partial(void* scratch, int64_t piece) const {
    return reinterpret_cast<float*>(by_gamma(scratch, piece) + 2 * padded);
  }
};

template <class T>
void add_pieces(int64_t length, int64_t pieces, const PieceMemory& memory, void* scratch, T* gamma_grad, T* beta_grad) {
  double *const by_gamma = memory.by_gamma(scratch, 0), *const by_beta = memory.by_beta(scratch, 0);
  for (int64_t piece = 1; piece < pieces; ++piece) {
    const double *const more_gamma = memory.by_gamma(scratch, piece), *const more_beta = memory.by_beta(scratch, piece);
    for (int64_t k = 0; k < length; ++k) {
      by_gamma[k] += more_gamma[k];
      by_beta[k] += more_beta[k];
    }
  }
  for (int64_t k = 0; k < length; ++k) {
    gamma_grad[k] = static_cast<T>(static_cast<float>(by_gamma[k]));
    beta_grad[k] = static_cast<T>(static_cast<float>(by_beta[k]));
  }
}

std::unique_ptr<Kernel> build_backward_columns(const NodeView& node, const NormNode& norm) {
  const int64_t pieces = column_pieces(norm);
  const PieceMemory memory(norm.size.length);
  return visit_row_type(node.inputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    return make_kernel(
        [norm, pieces, memory, kernels = row_kernels<T>()->norm](const Args& args) {
          const T *const dy = args.in<T>(0), *const x = args.in<T>(1), *const gamma = args.in<T>(2);
          T* const dx = args.out<T>();
          parallel_for(pieces, 1, [&, scratch = args.scratch](int64_t begin, int64_t end) {
            for (int64_t piece = begin; piece < end; ++piece)
              kernels.backward_columns(norm.size, norm.rows * piece / pieces, norm.rows * (piece + 1) / pieces, dy, x,
                                       gamma, dx, memory.by_gamma(scratch, piece), memory.by_beta(scratch, piece),
                                       memory.partial(scratch, piece));
          });
          add_pieces(norm.size.length, pieces, memory, args.scratch, args.out<T>(1), args.out<T>(2));
        },
        {.in_place = {{0, 0}, {1, 0}}, .scratch_bytes = static_cast<size_t>(pieces) * memory.bytes()});
  });
}

// ---- The three operators --------------------------------------------------------------------------------------------

std::string refuse(const NodeView& node) {
  const DType dtype = node.outputs[0].dtype;
  if (!has_row_kernels(dtype)) return join("element type ", dtype, ", or the processor has no vectors for it");
  return node.outputs[0].shape.size() == 0 ? "an array is empty" : "";
}
template <class P>
std::string refuse_layer(const NodeView& node) {
  const Shape& shape = node.outputs[0].shape;
  if (shape.axis(node.as<P>().axis, node.where()) != shape.rank() - 1) return "not along the last axis";
  return refuse(node);
}

NormNode layers(const Shape& data, double eps) {
  const int64_t length = data[data.rank() - 1];
  return {{length, 0, eps}, data.size() / length, true};
}
NormNode groups(const Shape& data, int64_t count, double eps, bool shows_statistics) {
  return {{data.size(1, data.rank()) / count, count, eps}, data[0] * count, shows_statistics};
}

}  // namespace

void add_norm_rows(ImplementationTable& table) {
  add_rows<LayerNorm>(table, refuse_layer<LayerNorm>, [](const NodeView& node) {
    return build_forward(node, layers(node.inputs[0].shape, node.as<LayerNorm>().eps));
  });
  add_rows<LayerNormGrad>(table, refuse_layer<LayerNormGrad>, [](const NodeView& node) {
    const double eps = node.as<LayerNormGrad>().eps;
    return build_backward_columns(node, layers(node.inputs[1].shape, eps));
  });
  add_rows<GroupNorm>(table, refuse, [](const NodeView& node) {
    const auto& p = node.as<GroupNorm>();
    return build_forward(node, groups(node.inputs[0].shape, p.num_groups, p.eps, true));
  });
  add_rows<GroupNormGrad>(table, refuse, [](const NodeView& node) {
    const auto& p = node.as<GroupNormGrad>();
    return build_backward(node, groups(node.inputs[1].shape, p.num_groups, p.eps, true));
  });
  add_rows<InstanceNorm>(table, refuse, [](const NodeView& node) {
    const Shape& data = node.inputs[0].shape;
    return build_forward(node, groups(data, data[1], node.as<InstanceNorm>().eps, false));
  });
  add_rows<InstanceNormGrad>(table, refuse, [](const NodeView& node) {
    const Shape& data = node.inputs[1].shape;
    const double eps = node.as<InstanceNormGrad>().eps;
    return build_backward(node, groups(data, data[1], eps, false));
  });
}

}  // namespace symbind::cpu_backend
