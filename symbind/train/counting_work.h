// Updates of metrics as work of the device that has the arrays.
#pragma once

#include <vector>

#include "symbind/exec/following_work.h"
#include "symbind/train/metric.h"

namespace symbind {

// The work that counts these for the metric on the GPU they are on, a piece for each metric that counts (a Composite
// has those of its parts). Empty: update_dict_later() counts them in another way, or fails. `last` is what the call
// before returned; pieces that would be the same work are returned again as the same objects. A piece holds its arrays,
// and after the end of the metric it counts for nobody.
std::vector<FollowingWorkPtr> counting_work(EvalMetric& metric, const NamedList& labels, const NamedList& preds,
                                            const std::vector<FollowingWorkPtr>& last);
// The same for arrays on any one context.
std::vector<FollowingWorkPtr> counting_work_on(Context context, EvalMetric& metric, const NamedList& labels,
                                               const NamedList& preds, const std::vector<FollowingWorkPtr>& last);

// metric.update_dict_later(labels, preds), where the device of the predictions may have the same labels: the metrics
// that count there read `device_labels`.
void update_on_device(EvalMetric& metric, const NamedList& labels, const NamedList& device_labels,
                      const NamedList& preds);

}  // namespace symbind
