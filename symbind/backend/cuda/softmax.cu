#include "symbind/backend/cuda/softmax.h"

#include "symbind/backend/cuda/any_type.cuh"
#include "symbind/backend/cuda/device.h"
#include "symbind/backend/cuda/rows.cuh"
#include "symbind/backend/cuda/step.h"
#include "symbind/backend/vector_math.h"
#include "symbind/ops/softmax.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {
namespace {

// An array of elements of type T, and one whose type is known when the kernel runs; computed in C.
template <class C, int width, class T>
__device__ void read_numbers(const T* array, int64_t start, int64_t k, int64_t inner, C* numbers) {
  const auto pack = read_row<width>(array + start, k, inner);
#pragma unroll
  for (int i = 0; i < width; ++i) numbers[i] = static_cast<C>(load(pack.element[i]));
}
template <class C, int width>
__device__ void read_numbers(const AnyInput& array, int64_t start, int64_t k, int64_t inner, C* numbers) {
  static_assert(width == 1);
  numbers[0] = array.at<C>(start + k * inner);
}
template <class C, int width, class T>
__device__ void write_numbers(T* array, int64_t start, int64_t k, int64_t inner, const C* numbers) {
  Pack<T, width> pack;
#pragma unroll
  for (int i = 0; i < width; ++i) pack.element[i] = store<T>(numbers[i]);
  write_row<width>(array + start, k, inner, pack);
}
template <class C, int width>
__device__ void write_numbers(const AnyOutput& array, int64_t start, int64_t k, int64_t inner, const C* numbers) {
  static_assert(width == 1);
  array.set(start + k * inner, numbers[0]);
}

// The number of valid elements of a row; the whole row is written.
__device__ int64_t counted(const AnyInput& lengths, int64_t row, int64_t length) {
  if (!lengths.data) return length;
  const int64_t given = lengths.at<int64_t>(row);
  return given < 0 ? 0 : given < length ? given : length;
}

// In and Out are pointers, or arrays of any type.
template <class C, class In, class Out>
struct SoftmaxForward {
  SoftmaxRows rows;
  In x;
  Out y;
  AnyInput lengths;

  template <class Team, int width>
  __device__ void operator()(int64_t row, int64_t start) const {
    const C factor = static_cast<C>(rows.factor);
    const int64_t count = counted(lengths, row, rows.length);
    C most = Largest<C>::identity();
    each<Team, width>(start, count, [&](int64_t, C* numbers, int present) {
      for (int i = 0; i < present; ++i) most = Largest<C>::combine(most, numbers[i] * factor);
    });
    most = Team::template combined<Largest>(most);
    C sum = 0;
    each<Team, width>(start, count, [&](int64_t, C* numbers, int present) {
      for (int i = 0; i < present; ++i) sum += vector_math::exp(numbers[i] * factor - most);
    });
    sum = Team::template combined<Add>(sum);
    const C scale = C(1) / sum, shift = vector_math::log(sum);
    each<Team, width>(start, rows.length, [&](int64_t k, C* numbers, int) {
#pragma unroll
      for (int i = 0; i < width; ++i) {
        const C above = numbers[i] * factor - most;
        const C result = rows.logarithm ? above - shift : vector_math::exp(above) * scale;
        numbers[i] = k + i < count ? result : C(0);
      }
      write_numbers<C, width>(y, start, k, rows.inner, numbers);
    });
  }

 private:
  // visit(k, numbers from k on, how many of them are below count) for the thread's packs.
  template <class Team, int width, class Visit>
  __device__ void each(int64_t start, int64_t count, const Visit& visit) const {
    for (int64_t k = Team::lane() * width; k < count; k += Team::size() * width) {
      C numbers[width];
      read_numbers<C, width>(x, start, k, rows.inner, numbers);
      visit(k, numbers, static_cast<int>(count - k < width ? count - k : width));
    }
  }
};

// y·(dy - sum of dy·y), and for the logarithm dy - exp(y)·sum of dy.
template <class C, class In, class Out>
struct SoftmaxBackward {
  SoftmaxRows rows;
  In dy, y;
  Out dx;
  AnyInput lengths;

  template <class Team, int width>
  __device__ void operator()(int64_t row, int64_t start) const {
    const int64_t count = counted(lengths, row, rows.length);
    const C factor = static_cast<C>(rows.factor);
    C by[width], at[width];
    C sum = 0;
    for (int64_t k = Team::lane() * width; k < count; k += Team::size() * width) {
      read_numbers<C, width>(dy, start, k, rows.inner, by);
      read_numbers<C, width>(y, start, k, rows.inner, at);
#pragma unroll
      for (int i = 0; i < width; ++i)
        if (k + i < count) sum += rows.logarithm ? by[i] : by[i] * at[i];
    }
    sum = Team::template combined<Add>(sum);
    for (int64_t k = Team::lane() * width; k < rows.length; k += Team::size() * width) {
      read_numbers<C, width>(dy, start, k, rows.inner, by);
      read_numbers<C, width>(y, start, k, rows.inner, at);
#pragma unroll
      for (int i = 0; i < width; ++i) {
        const C gradient = rows.logarithm ? by[i] - vector_math::exp(at[i]) * sum : at[i] * (by[i] - sum);
        by[i] = k + i < count ? factor * gradient : C(0);
      }
      write_numbers<C, width>(dx, start, k, rows.inner, by);
    }
  }
};

SoftmaxRows rows_along(const Shape& shape, int64_t given, std::string_view who) {
  return {view_along(shape, shape.axis(given, who))};
}

template <class T>
void queue_forward(cudaStream_t stream, const T* x, T* y, const SoftmaxRows& rows, const AnyInput& lengths) {
  queue_rows<widest<T>>(stream, rows, aligned_for_packs(x) && aligned_for_packs(y),
                        SoftmaxForward<compute_type<T>, const T*, T*>{rows, x, y, lengths});
}

// ---- The operators --------------------------------------------------------------------------------------------------

std::string refuse(const NodeView& node) {
  if (!is_floating(node.outputs[0].dtype)) return "wants floating numbers";
  for (const Tensor& input : node.inputs)
    if (input.layout != Layout::plain) return "wants plain arrays";
  return "";
}

// Calls function(type_identity<C>) with the type that arrays of two types are computed in.
template <class Function>
auto visit_computed(DType a, DType b, const Function& function) {
  return a == DType::float64 || b == DType::float64 ? function(std::type_identity<double>{})
                                                    : function(std::type_identity<float>{});
}

// The lengths of rows are input `number`, if there is one.
struct Lengths {
  size_t number = 0;
  DType dtype = DType::none;

  Lengths(const NodeView& node, bool use_length, size_t number_)
      : number(number_), dtype(use_length ? node.inputs[number].dtype : DType::none) {}
  AnyInput of(const Args& args) const {
    return dtype == DType::none ? AnyInput{} : AnyInput{args.inputs[number], dtype};
  }
};

std::unique_ptr<Kernel> build_forward(const NodeView& node, const SoftmaxRows& rows, bool use_length) {
  const DType from = node.inputs[0].dtype, to = node.outputs[0].dtype;
  const Lengths lengths(node, use_length, 1);
  if (from == to)
    return visit_floating(to, [&]<class T>(std::type_identity<T>) {
      return make_step(node,
                       [rows, lengths](const Args& args) {
                         queue_forward(stream_of(args), args.in<T>(0), args.out<T>(), rows, lengths.of(args));
                       },
                       {.in_place = {{0, 0}}});
    });
  return visit_computed(from, to, [&]<class C>(std::type_identity<C>) {
    return make_step(node, [=](const Args& args) {
      queue_rows<1>(stream_of(args), rows, false,
                    SoftmaxForward<C, AnyInput, AnyOutput>{
                        rows, {args.inputs[0], from}, {args.outputs[0], to}, lengths.of(args)});
    });
  });
}

std::unique_ptr<Kernel> build_backward(const NodeView& node, const SoftmaxRows& rows, bool use_length) {
  const DType from = node.inputs[0].dtype, of_output = node.inputs[1].dtype, to = node.outputs[0].dtype;
  const Lengths lengths(node, use_length, 3);
  if (from == to && of_output == to)
    return visit_floating(to, [&]<class T>(std::type_identity<T>) {
      return make_step(node,
                       [rows, lengths](const Args& args) {
                         const T *const dy = args.in<T>(0), *const y = args.in<T>(1);
                         T* const dx = args.out<T>();
                         const bool aligned = aligned_for_packs(dy) && aligned_for_packs(y) && aligned_for_packs(dx);
                         queue_rows<widest<T>>(
                             stream_of(args), rows, aligned,
                             SoftmaxBackward<compute_type<T>, const T*, T*>{rows, dy, y, dx, lengths.of(args)});
                       },
                       {.in_place = {{0, 0}, {1, 0}}});
    });
  return visit_computed(from, to, [&]<class C>(std::type_identity<C>) {
    return make_step(node, [=](const Args& args) {
      queue_rows<1>(
          stream_of(args), rows, false,
          SoftmaxBackward<C, AnyInput, AnyOutput>{
              rows, {args.inputs[0], from}, {args.inputs[1], of_output}, {args.outputs[0], to}, lengths.of(args)});
    });
  });
}

enum class Kind { softmax, log_softmax, softmin };
using Build = std::unique_ptr<Kernel> (*)(const NodeView&, const SoftmaxRows&, bool use_length);

template <FixedString name>
void add_one(ImplementationTable& table, Kind kind, Build build) {
  using P = SoftmaxLike<name>;
  table.add<P>({"cuda", refuse, [=](const NodeView& node) {
                  const P& p = node.as<P>();
                  SoftmaxRows rows = rows_along(node.outputs[0].shape, p.axis, node.where());
                  rows.factor = (kind == Kind::softmin ? -1 : 1) / p.temperature.value_or(1);
                  rows.logarithm = kind == Kind::log_softmax;
                  return build(node, rows, p.use_length.value_or(false));
                }});
}

}  // namespace

void queue_softmax(cudaStream_t stream, DType dtype, const void* x, void* y, const SoftmaxRows& rows) {
  visit_floating(dtype, [&]<class T>(std::type_identity<T>) {
    queue_forward(stream, static_cast<const T*>(x), static_cast<T*>(y), rows, {});
  });
}

void add_softmax(ImplementationTable& table) {
  add_one<"softmax">(table, Kind::softmax, build_forward);
  add_one<"log_softmax">(table, Kind::log_softmax, build_forward);
  add_one<"softmin">(table, Kind::softmin, build_forward);
  add_one<"_backward_softmax">(table, Kind::softmax, build_backward);
  add_one<"_backward_log_softmax">(table, Kind::log_softmax, build_backward);
  add_one<"_backward_softmin">(table, Kind::softmin, build_backward);
  table.add<SoftmaxActivation>({"cuda", refuse, [](const NodeView& node) {
                                  const int64_t axis = node.as<SoftmaxActivation>().mode == "channel" ? 1 : -1;
                                  const SoftmaxRows rows = rows_along(node.outputs[0].shape, axis, node.where());
                                  return build_forward(node, rows, false);
                                }});
}

}  // namespace symbind::cuda_backend
