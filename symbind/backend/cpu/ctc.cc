// Each thread computes whole sequences. See backend/ctc.h for the method.
#include "symbind/ops/ctc.h"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "symbind/backend/cpu/convert_array.h"
#include "symbind/backend/cpu/loops.h"
#include "symbind/backend/cpu/plain.h"
#include "symbind/backend/ctc.h"
#include "symbind/core/error.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {
namespace {

using ctc::impossible;

// The labels of all sequences and how many there are of each, and of steps: read in every run and checked.
class Labels {
 public:
  Labels(const NodeView& node, const ctc::Size& size)
      : size_(size), data_lengths_(node.as<CTCLoss>().use_data_lengths), where_(node.where()) {
    for (size_t i = 1; i < node.inputs.size(); ++i) types_.push_back(node.inputs[i].dtype);
  }

  // Numbers in scratch: the labels, the lengths of data, those of labels.
  int64_t numbers() const { return size_.batch * (size_.longest + 2); }

  void read(const Args& args, int64_t* numbers) {
    convert_array(numbers, DType::int64, args.inputs[1], types_[0], size_.batch * size_.longest);
    labels_ = numbers;
    steps_ = numbers + size_.batch * size_.longest;
    counts_ = steps_ + size_.batch;
    size_t next = 1;
    if (data_lengths_)
      read_lengths(args, next++, steps_, size_.steps, "data_lengths");
    else
      std::fill_n(steps_, size_.batch, size_.steps);
    if (next < types_.size())
      read_lengths(args, next, counts_, size_.longest, "label_lengths");
    else
      for (int64_t n = 0; n < size_.batch; ++n) counts_[n] = ctc::count_labels(size_, of(n));
    for (int64_t n = 0; n < size_.batch; ++n) check_labels(n);
  }

  const int64_t* of(int64_t sequence) const { return labels_ + sequence * size_.longest; }
  int64_t steps(int64_t sequence) const { return steps_[sequence]; }
  int64_t count(int64_t sequence) const { return counts_[sequence]; }

 private:
  void read_lengths(const Args& args, size_t which, int64_t* lengths, int64_t most, const char* name) const {
    convert_array(lengths, DType::int64, args.inputs[which + 1], types_[which], size_.batch);
    for (int64_t n = 0; n < size_.batch; ++n)
      require(lengths[n] >= 0 && lengths[n] <= most, where_, " ", name, " ", lengths[n], " of sequence ", n,
              " is not between 0 and ", most);
  }
  void check_labels(int64_t sequence) const {
    const int64_t first = size_.blank_first ? 1 : 0;
    for (int64_t i = 0; i < count(sequence); ++i)
      require(size_.is_label(of(sequence)[i]), where_, " label ", of(sequence)[i], " at position ", i, " of sequence ",
              sequence, " is not between ", first, " and ", size_.classes - 2 + first, "; the blank is class ",
              size_.blank(), " of ", size_.classes);
  }

  ctc::Size size_;
  bool data_lengths_;
  std::vector<DType> types_;
  std::string where_;
  int64_t* labels_ = nullptr;
  int64_t *steps_ = nullptr, *counts_ = nullptr;
};

// log Σ e^x over a row of scores.
template <class C, class T>
double log_of_sum(const T* scores, int64_t classes) {
  constexpr int64_t lanes = 16;
  C largest = -std::numeric_limits<C>::infinity();
  for (int64_t k = 0; k < classes; ++k) {
    const C x = static_cast<C>(scores[k]);
    largest = largest > x ? largest : x;
  }
  const C base = largest > -std::numeric_limits<C>::infinity() ? largest : C(0);
  C sums[lanes] = {};
  int64_t k = 0;
  for (; k + lanes <= classes; k += lanes)
    for (int64_t i = 0; i < lanes; ++i) sums[i] += vector_math::exp(static_cast<C>(scores[k + i]) - base);
  for (; k < classes; ++k) sums[0] += vector_math::exp(static_cast<C>(scores[k]) - base);
  C sum = 0;
  for (const C part : sums) sum += part;
  return static_cast<double>(base) + static_cast<double>(vector_math::log(sum));
}

// One sequence and its working memory. Rows of states are padded with two impossible states on each side.
template <class T>
class Alignment {
 public:
  using C = compute_type<T>;
  static constexpr int64_t margin = 2;

  static int64_t doubles(const ctc::Size& size) {
    const int64_t row = size.states() + 2 * margin;
    return size.steps * (row + 1) + 4 * row + size.classes;
  }

  Alignment(const ctc::Size& size, double* memory, const T* data, int64_t sequence, const Labels& labels)
      : size_(size),
        data_(data),
        sequence_(sequence),
        steps_(labels.steps(sequence)),
        states_(2 * labels.count(sequence) + 1),
        row_(size.states() + 2 * margin),
        of_states_{labels.of(sequence), size.blank()} {
    log_sums_ = memory;
    reaches_ = log_sums_ + size.steps + margin;
    skips_ = reaches_ + size.steps * row_;
    emits_ = skips_ + row_;
    remains_ = emits_ + row_;
    leaves_ = remains_ + row_;
    gradient_ = reinterpret_cast<C*>(leaves_ + row_ - margin);
    for (double* row : {skips_, emits_, remains_, leaves_}) std::fill_n(row - margin, row_, impossible);
    for (int64_t s = 0; s < states_; ++s) skips_[s] = of_states_.skips(s) ? 0.0 : impossible;
  }

  // The logarithm of the probability of the labels.
  double forward() {
    if (steps_ == 0) return impossible;
    for (int64_t t = 0; t < steps_; ++t) {
      double* const here = reaches_ + t * row_;
      std::fill_n(here - margin, row_, impossible);
      log_sums_[t] = log_of_sum<C>(scores(t), size_.classes);
      read_emits(t);
      if (t == 0) {
        std::copy_n(emits_, std::min<int64_t>(2, states_), here);
        continue;
      }
      const double* const before = here - row_;
      const double *const skips = skips_, *const emits = emits_;
      for (int64_t s = 0; s < states_; ++s)
        here[s] = ctc::log_sum<C>(before[s], before[s - 1], before[s - 2] + skips[s]) + emits[s];
    }
    const double* const last = reaches_ + (steps_ - 1) * row_;
    return ctc::log_sum<C>(last[states_ - 1], last[states_ - 2], impossible);
  }

  // The gradient of -total: the softmax of a class minus the probability that a path is in one of its states.
  void backward(double total, T* gradient) {
    const int64_t known = total == impossible ? 0 : steps_;
    for (int64_t t = known; t < size_.steps; ++t) std::fill_n(gradient + size_.row(t, sequence_), size_.classes, T(0));
    for (int64_t t = known - 1; t >= 0; --t) {
      step_back(t);
      write_gradient(t, total, gradient + size_.row(t, sequence_));
      read_emits(t);
      for (int64_t s = 0; s < states_; ++s) leaves_[s] = remains_[s] + emits_[s];
    }
  }

 private:
  const T* scores(int64_t step) const { return data_ + size_.row(step, sequence_); }

  // The logarithm of each state's probability of its class.
  void read_emits(int64_t step) {
    const T* const row = scores(step);
    for (int64_t s = 0; s < states_; ++s)
      emits_[s] = static_cast<double>(static_cast<C>(row[of_states_.class_of(s)])) - log_sums_[step];
  }

  // Log probabilities. remains: of everything after the step; leaves: of the later steps, starting in their states.
  void step_back(int64_t step) {
    if (step == steps_ - 1) {
      std::fill_n(remains_, states_, impossible);
      for (int64_t s = std::max<int64_t>(0, states_ - 2); s < states_; ++s) remains_[s] = 0;
      return;
    }
    double* const remains = remains_;
    const double *const leaves = leaves_, *const skips = skips_;
    for (int64_t s = 0; s < states_; ++s)
      remains[s] = ctc::log_sum<C>(leaves[s], leaves[s + 1], leaves[s + 2] + skips[s + 2]);
  }

  void write_gradient(int64_t step, double total, T* out) {
    const T* const row = scores(step);
    const double log_sum = log_sums_[step];
    C* const gradient = gradient_;
    for (int64_t k = 0; k < size_.classes; ++k)
      gradient[k] = ctc::probability<C>(static_cast<double>(static_cast<C>(row[k])) - log_sum);
    const double* const reach = reaches_ + step * row_;
    for (int64_t s = 0; s < states_; ++s) emits_[s] = reach[s] + remains_[s] - total;
    for (int64_t s = 0; s < states_; ++s) gradient[of_states_.class_of(s)] -= ctc::probability<C>(emits_[s]);
    for (int64_t k = 0; k < size_.classes; ++k) out[k] = T(gradient[k]);
  }

  const ctc::Size& size_;
  const T* data_;
  int64_t sequence_, steps_, states_, row_;
  ctc::States of_states_;
  double *log_sums_, *reaches_, *skips_, *emits_, *remains_, *leaves_;
  C* gradient_;
};

// Each thread has the memory of one sequence.
template <class T>
void align(const ctc::Size& size, const Labels& labels, const T* data, T* losses, T* gradient) {
  const int64_t work = size.steps * (size.classes + 8 * size.states());
  parallel_for(size.batch, element_grain / 8 / (work + 1) + 1, [&](int64_t first, int64_t last) {
    std::vector<double> memory(static_cast<size_t>(Alignment<T>::doubles(size)));
    for_range(first, last, [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) {
        Alignment<T> alignment(size, memory.data(), data, n, labels);
        const double total = alignment.forward();
        losses[n] = total == impossible ? T(0) : T(static_cast<compute_type<T>>(-total));
        if (gradient) alignment.backward(total, gradient);
      }
    });
  });
}

std::unique_ptr<Kernel> build(const NodeView& node) {
  const Shape &data = node.inputs[0].shape, &label = node.inputs[1].shape;
  const ctc::Size size{data[0], data[1], data[2], label[1], node.as<CTCLoss>().blank_label == "first"};
  const Labels labels(node, size);
  return visit_floating(node.inputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    return make_kernel(
        [=](const Args& args) {
          Labels read = labels;
          read.read(args, static_cast<int64_t*>(args.scratch));
          align<T>(size, read, args.in<T>(0), args.out<T>(0), args.out<T>(1));
        },
        {.scratch_bytes = static_cast<size_t>(labels.numbers()) * sizeof(int64_t)});
  });
}

}  // namespace

void add_ctc(ImplementationTable& table) { add_plain<CTCLoss>(table, build); }

}  // namespace symbind::cpu_backend
