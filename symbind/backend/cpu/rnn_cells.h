// The elementwise part of a step of a recurrent layer for one row, forward and backward. Gates are one after the other
// in a row, `hidden` numbers each.
//
// forward: `gates` holds the products and becomes the values of the gates; `state` is assigned.
// backward: from the gradient of the state, that of the gates before activation.
#pragma once

#include "symbind/backend/cpu/loops.h"
#include "symbind/backend/rnn_step.h"
#include "symbind/backend/vector_math.h"

namespace symbind::cpu_backend {

template <class T>
struct PlainCell {
  bool relu;

  void forward(int64_t hidden, T* gates, const T* bias, T* state) const {
    for_range(0, hidden, [=, rectify = relu](int64_t begin, int64_t end) {
      if (rectify)
#pragma GCC ivdep
        for (int64_t j = begin; j < end; ++j) {
          const T x = gates[j] + bias[j];
          gates[j] = state[j] = x < T(0) ? T(0) : x;
        }
      else
#pragma GCC ivdep
        for (int64_t j = begin; j < end; ++j) gates[j] = state[j] = vector_math::tanh(gates[j] + bias[j]);
    });
  }
  void backward(int64_t hidden, const T* gates, const T* state_grad, T* gates_grad) const {
    for_range<InstructionSet::avx2>(0, hidden, [=, rectify = relu](int64_t begin, int64_t end) {
      if (rectify)
#pragma GCC ivdep
        for (int64_t j = begin; j < end; ++j) {
          const T through = state_grad[j];
          gates_grad[j] = gates[j] > T(0) ? through : T(0);
        }
      else
#pragma GCC ivdep
        for (int64_t j = begin; j < end; ++j) gates_grad[j] = state_grad[j] * (T(1) - gates[j] * gates[j]);
    });
  }
};

// gates = sigmoid(gates + bias). Separate loops for each function, which compilers vectorize.
template <class T>
[[gnu::always_inline]] inline void add_and_bend(T* gates, const T* bias, int64_t count) {
#pragma GCC ivdep
  for (int64_t j = 0; j < count; ++j) gates[j] = vector_math::sigmoid(gates[j] + bias[j]);
}

template <class T>
struct LstmCell {
  rnn_step::CellLimits<T> limits;

  void forward(int64_t hidden, T* gates, const T* bias, const T* cell_before, T* cell, T* state) const {
    for_range(0, hidden, [=, limit = limits](int64_t, int64_t count) {
      add_and_bend(gates, bias, 2 * count);
      T *const in = gates, *const forget = gates + count, *const change = gates + 2 * count,
               *const out = gates + 3 * count;
#pragma GCC ivdep
      for (int64_t j = 0; j < count; ++j) change[j] = vector_math::tanh(change[j] + bias[2 * count + j]);
      add_and_bend(out, bias + 3 * count, count);
#pragma GCC ivdep
      for (int64_t j = 0; j < count; ++j) cell[j] = rnn_step::next_cell(in[j], forget[j], change[j], cell_before[j]);
      if (limit.given)
        for (int64_t j = 0; j < count; ++j) cell[j] = limit.clip(cell[j]);
#pragma GCC ivdep
      for (int64_t j = 0; j < count; ++j) state[j] = rnn_step::next_state(out[j], cell[j]);
    });
  }
  // `cell_grad`: of the cell after the step; becomes that of the cell before it.
  void backward(int64_t hidden, const T* gates, const T* cell_before, const T* cell, const T* state_grad, T* cell_grad,
                T* gates_grad) const {
    for_range(0, hidden, [=, limit = limits](int64_t, int64_t count) {
      const T *const in = gates, *const forget = gates + count, *const change = gates + 2 * count,
                     *const out = gates + 3 * count;
      T *const d_in = gates_grad, *const d_forget = gates_grad + count, *const d_change = gates_grad + 2 * count,
               *const d_out = gates_grad + 3 * count;
#pragma GCC ivdep
      for (int64_t j = 0; j < count; ++j) d_out[j] = vector_math::tanh(cell[j]);
#pragma GCC ivdep
      for (int64_t j = 0; j < count; ++j) {
        const auto grads = rnn_step::grads_of_state(state_grad[j], out[j], d_out[j]);
        cell_grad[j] += grads.cell;
        d_out[j] = grads.out;
      }
      if (limit.given)
        for (int64_t j = 0; j < count; ++j) cell_grad[j] = limit.inside(cell[j]) ? cell_grad[j] : T(0);
#pragma GCC ivdep
      for (int64_t j = 0; j < count; ++j) {
        const auto grads = rnn_step::grads_of_cell(cell_grad[j], in[j], forget[j], change[j], cell_before[j]);
        d_in[j] = grads.in;
        d_forget[j] = grads.forget;
        d_change[j] = grads.change;
        cell_grad[j] = grads.cell_before;
      }
    });
  }
};

// The products with the input and with the state are separate: the reset gate multiplies only the latter in the new
// gate. `bias`: those of the input, then those of the state.
template <class T>
struct GruCell {
  // `recurrent`: the products with the state. `for_new`: the part of them stored for backward.
  void forward(int64_t hidden, T* gates, const T* recurrent, const T* bias, const T* state_before, T* for_new,
               T* state) const {
    for_range(0, hidden, [=](int64_t, int64_t count) {
      const T* const more = bias + 3 * count;
      T *const update = gates + count, *const fresh = gates + 2 * count;
#pragma GCC ivdep
      for (int64_t j = 0; j < 2 * count; ++j) gates[j] += recurrent[j] + more[j];
      add_and_bend(gates, bias, 2 * count);
#pragma GCC ivdep
      for (int64_t j = 0; j < count; ++j) {
        for_new[j] = recurrent[2 * count + j] + more[2 * count + j];
        fresh[j] += bias[2 * count + j] + gates[j] * for_new[j];
      }
#pragma GCC ivdep
      for (int64_t j = 0; j < count; ++j) fresh[j] = vector_math::tanh(fresh[j]);
#pragma GCC ivdep
      for (int64_t j = 0; j < count; ++j) state[j] = fresh[j] + update[j] * (state_before[j] - fresh[j]);
    });
  }
  // `recurrent_grad`: of the products with the state; `before_grad` is assigned the direct gradient of the previous
  // state.
  void backward(int64_t hidden, const T* gates, const T* for_new, const T* state_before, const T* state_grad,
                T* gates_grad, T* recurrent_grad, T* before_grad) const {
    for_range<InstructionSet::avx2>(0, hidden, [=](int64_t begin, int64_t end) {
      const T *const reset = gates, *const update = gates + hidden, *const fresh = gates + 2 * hidden;
#pragma GCC ivdep
      for (int64_t j = begin; j < end; ++j) {
        const T r = reset[j], z = update[j], n = fresh[j], dh = state_grad[j];
        const T dn = dh * (T(1) - z) * (T(1) - n * n);
        const T dr = dn * for_new[j] * r * (T(1) - r), dz = dh * (state_before[j] - n) * z * (T(1) - z);
        gates_grad[j] = recurrent_grad[j] = dr;
        gates_grad[hidden + j] = recurrent_grad[hidden + j] = dz;
        gates_grad[2 * hidden + j] = dn;
        recurrent_grad[2 * hidden + j] = dn * r;
        before_grad[j] = dh * z;
      }
    });
  }
};

}  // namespace symbind::cpu_backend
