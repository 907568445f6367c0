// The names of the library's types, for headers that only pass them on.
#pragma once

#include <cstdint>
#include <memory>

#include "symbind/core/api.h"

namespace SYMBIND_API symbind {

class Error;
class Shape;
enum class DType : int8_t;
struct Context;
class NDArray;
class NamedArrays;
class ParamKey;
struct StateTree;

class Symbol;
class OpDef;
enum class GradReq : uint8_t;

class Executor;
using ExecutorPtr = std::shared_ptr<Executor>;

struct DataDesc;
struct DataBatch;
class DataIter;

class LRScheduler;
using LRSchedulerPtr = std::shared_ptr<LRScheduler>;
class UpdateRule;
class Optimizer;
using OptimizerPtr = std::shared_ptr<Optimizer>;
class KVStore;
using KVStorePtr = std::shared_ptr<KVStore>;

class Initializer;
using InitializerPtr = std::shared_ptr<const Initializer>;
class EvalMetric;
using EvalMetricPtr = std::shared_ptr<EvalMetric>;
class BaseModule;
class BucketingModule;
class LossModule;
class Module;
class Monitor;
class Predictor;
class SequentialModule;

}  // namespace symbind
