#include "symbind/exec/gradient_watch.h"

namespace symbind {
namespace {

thread_local const GradientWatch::Report* watching = nullptr;

}  // namespace

GradientWatch::GradientWatch(Report report) : report_(std::move(report)), before_(watching) { watching = &report_; }

GradientWatch::~GradientWatch() { watching = before_; }

const GradientWatch::Report* GradientWatch::current() { return watching; }

}  // namespace symbind
