#include "symbind/core/update_condition.h"

#include <utility>

namespace symbind {
namespace {

thread_local const float* condition = nullptr;

}  // namespace

UpdateCondition::UpdateCondition(const float* made) : before_(std::exchange(condition, made)) {}
UpdateCondition::~UpdateCondition() { condition = before_; }
const float* UpdateCondition::current() { return condition; }

}  // namespace symbind
