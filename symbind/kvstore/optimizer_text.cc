#include "symbind/kvstore/optimizer_text.h"

#include <optional>
#include <type_traits>

#include "symbind/core/error.h"
#include "symbind/files/states.h"
#include "symbind/kvstore/message.h"

namespace symbind {
namespace {

std::string text_of(MessageWriter& out) {
  const std::vector<std::byte> bytes = out.take();
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

template <class T>
void write(MessageWriter& out, const std::optional<T>& value) {
  out << value.has_value();
  if (value) out << *value;
}

std::optional<double> read_optional(MessageReader& in) {
  if (!in.number<bool>()) return std::nullopt;
  return in.number<double>();
}

void write(MessageWriter& out, const ParamKey& key) { out << key.is_number() << key.str(); }

ParamKey read_key(MessageReader& in) {
  const bool is_number = in.number<bool>();
  std::string name = in.text();
  if (is_number) return static_cast<int64_t>(std::stoll(name));
  return name;
}

void write(MessageWriter& out, const std::map<ParamKey, double>& multipliers) {
  out << static_cast<uint64_t>(multipliers.size());
  for (const auto& [key, value] : multipliers) {
    write(out, key);
    out << value;
  }
}

std::map<ParamKey, double> read_multipliers(MessageReader& in) {
  std::map<ParamKey, double> multipliers;
  for (auto left = in.number<uint64_t>(); left > 0; --left) {
    const ParamKey key = read_key(in);
    multipliers[key] = in.number<double>();
  }
  return multipliers;
}

// ---- schedules ------------------------------------------------------------------------------------------------------

enum class Schedule : uint8_t { none, factor, multi_factor, poly, cosine };

// Its state is among the counts of the optimizer.
void write(MessageWriter& out, const LRScheduler& schedule) {
  if (const auto* const factor = dynamic_cast<const FactorScheduler*>(&schedule)) {
    const FactorSchedule& given = factor->options();
    out << Schedule::factor << given.step << given.factor << given.stop_factor_lr << given.base_lr;
  } else if (const auto* const multi = dynamic_cast<const MultiFactorScheduler*>(&schedule)) {
    const MultiFactorSchedule& given = multi->options();
    out << Schedule::multi_factor << given.step << given.factor << given.base_lr;
  } else if (const auto* const poly = dynamic_cast<const PolyScheduler*>(&schedule)) {
    const PolySchedule& given = poly->options();
    out << Schedule::poly << given.max_update << given.base_lr << given.pwr << given.final_lr;
  } else if (const auto* const cosine = dynamic_cast<const CosineScheduler*>(&schedule)) {
    const CosineSchedule& given = cosine->options();
    out << Schedule::cosine << given.max_update << given.base_lr << given.final_lr;
  } else {
    fail(
        "[kvstore] a schedule that is not of the library's classes cannot be sent to servers: start the job without "
        "servers (-s 0)");
  }
  const WarmUp& warm_up = schedule.warm_up();
  out << warm_up.steps << warm_up.begin_lr << warm_up.mode << schedule.warm_up_final_lr();
}

LRSchedulerPtr read_schedule(MessageReader& in) {
  LRSchedulerPtr schedule;
  switch (in.number<Schedule>()) {
    case Schedule::none:
      return nullptr;
    case Schedule::factor: {
      FactorSchedule given;
      for (double* const value : {&given.step, &given.factor, &given.stop_factor_lr, &given.base_lr})
        *value = in.number<double>();
      schedule = factor_scheduler(given);
      break;
    }
    case Schedule::multi_factor: {
      MultiFactorSchedule given;
      given.step = in.numbers<int64_t>();
      given.factor = in.number<double>();
      given.base_lr = in.number<double>();
      schedule = multi_factor_scheduler(given);
      break;
    }
    case Schedule::poly: {
      PolySchedule given;
      given.max_update = in.number<int64_t>();
      for (double* const value : {&given.base_lr, &given.pwr, &given.final_lr}) *value = in.number<double>();
      schedule = poly_scheduler(given);
      break;
    }
    case Schedule::cosine: {
      CosineSchedule given;
      given.max_update = in.number<int64_t>();
      for (double* const value : {&given.base_lr, &given.final_lr}) *value = in.number<double>();
      schedule = cosine_scheduler(given);
      break;
    }
  }
  require(schedule != nullptr, "[kvstore] an optimizer has a schedule of an unknown kind");
  WarmUp warm_up;
  warm_up.steps = in.number<int64_t>();
  warm_up.begin_lr = in.number<double>();
  warm_up.mode = in.text();
  schedule->set_warm_up(std::move(warm_up), in.number<double>());
  return schedule;
}

// ---- arguments ------------------------------------------------------------------------------------------------------

void write_arguments(MessageWriter& out, const Optimizer& optimizer) {
  const std::vector<std::string> names = optimizer.argument_names();
  out << static_cast<uint64_t>(names.size());
  for (const std::string& name : names) {
    const auto value = optimizer.argument(name).get();
    out << name << static_cast<uint8_t>(value.index());
    std::visit(
        [&]<class T>(const T& held) {
          if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, double> || std::is_same_v<T, std::string>)
            out << held;
          else
            fail("[kvstore] the argument ", name, " of ", optimizer.name(), " cannot be sent to servers");
        },
        value);
  }
}

OptimizerParams read_arguments(MessageReader& in) {
  OptimizerParams params;
  for (auto left = in.number<uint64_t>(); left > 0; --left) {
    const std::string name = in.text();
    const auto kind = in.number<uint8_t>();
    if (kind == 0)
      params.emplace(name, in.number<bool>());
    else if (kind == 1)
      params.emplace(name, in.number<double>());
    else
      params.emplace(name, in.text());
  }
  return params;
}

void write_names(MessageWriter& out, const Optimizer& optimizer) {
  out << static_cast<uint64_t>(optimizer.idx2name().size());
  for (const auto& [number, name] : optimizer.idx2name()) out << number << name;
  out << static_cast<uint64_t>(optimizer.attributes().size());
  for (const auto& [name, attributes] : optimizer.attributes()) {
    out << name << static_cast<uint64_t>(attributes.size());
    for (const auto& [attribute, value] : attributes) out << attribute << value;
  }
}

void read_names(MessageReader& in, Optimizer& optimizer) {
  std::map<int64_t, std::string> idx2name;
  for (auto left = in.number<uint64_t>(); left > 0; --left) {
    const auto number = in.number<int64_t>();
    idx2name[number] = in.text();
  }
  std::map<std::string, Attributes> all;
  for (auto left = in.number<uint64_t>(); left > 0; --left) {
    Attributes& attributes = all[in.text()];
    for (auto own = in.number<uint64_t>(); own > 0; --own) {
      const std::string attribute = in.text();
      attributes[attribute] = in.text();
    }
  }
  optimizer.set_names(std::move(idx2name), std::move(all));
}

std::string write_own(const OptimizerPtr& optimizer) {
  MessageWriter out;
  out << optimizer->name();
  write_arguments(out, *optimizer);
  if (optimizer->lr_scheduler)
    write(out, *optimizer->lr_scheduler);
  else
    out << Schedule::none;
  out << optimizer->own_lr() << optimizer->rescale_grad << optimizer->wd << optimizer->multi_precision;
  write(out, optimizer->clip_gradient);
  write(out, optimizer->clip_global_norm);
  write(out, optimizer->lr_mult());
  write(out, optimizer->wd_mult());
  write_names(out, *optimizer);
  out << write_states({.states = {}, .optimizer = std::nullopt, .resume = optimizer->resume_state()});
  return text_of(out);
}

OptimizerPtr read_own(const std::string& text) {
  MessageReader in(std::as_bytes(std::span(text)));
  const std::string name = in.text();
  OptimizerPtr optimizer = Optimizer::create(name, read_arguments(in));
  optimizer->lr_scheduler = read_schedule(in);
  optimizer->set_own_lr(in.number<double>());
  optimizer->rescale_grad = in.number<double>();
  optimizer->wd = in.number<double>();
  optimizer->multi_precision = in.number<bool>();
  optimizer->clip_gradient = read_optional(in);
  optimizer->clip_global_norm = read_optional(in);
  optimizer->set_lr_mult(read_multipliers(in));
  optimizer->set_wd_mult(read_multipliers(in));
  read_names(in, *optimizer);
  optimizer->restore(read_states(in.text(), "optimizer").resume.value());
  return optimizer;
}

OptimizerTexts& texts() {
  static OptimizerTexts all{&write_own, &read_own};
  return all;
}

}  // namespace

std::string write_optimizer(const OptimizerPtr& optimizer) { return texts().write(optimizer); }

OptimizerPtr read_optimizer(const std::string& text) { return texts().read(text); }

void set_optimizer_texts(OptimizerTexts given) { texts() = std::move(given); }

}  // namespace symbind
