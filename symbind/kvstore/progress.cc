#include "symbind/kvstore/progress.h"

#include <algorithm>

namespace symbind {

CatchUp plan_catch_up(const std::vector<Progress>& of_workers) {
  CatchUp plan;
  std::map<std::string, int64_t> furthest;
  for (const Progress& each : of_workers) {
    plan.barriers = std::max(plan.barriers, each.barriers);
    if (each.votes > plan.votes) plan.unanimous = each.unanimous;
    plan.votes = std::max(plan.votes, each.votes);
    plan.admissions = std::max(plan.admissions, each.admissions);
    for (const auto& [key, step] : each.done) {
      const auto [known, is_new] = furthest.try_emplace(key, step);
      known->second = std::max(known->second, step);
    }
  }
  for (const auto& [key, step] : furthest) {
    CatchUp::Transfer transfer{.key = key, .step = step, .source = -1, .behind = {}};
    for (size_t worker = 0; worker < of_workers.size(); ++worker) {
      const auto found = of_workers[worker].done.find(key);
      if (found == of_workers[worker].done.end()) continue;  // it does not know the key, so no worker has its value
      if (found->second < step)
        transfer.behind.push_back(static_cast<int>(worker));
      else if (transfer.source < 0)
        transfer.source = static_cast<int>(worker);
    }
    if (!transfer.behind.empty()) plan.transfers.push_back(std::move(transfer));
  }
  return plan;
}

void write(MessageWriter& out, const Progress& progress) {
  out << progress.barriers << progress.votes << progress.unanimous << progress.admissions
      << static_cast<uint64_t>(progress.done.size());
  for (const auto& [key, step] : progress.done) out << key << step;
}

Progress read_progress(MessageReader& in) {
  Progress progress;
  progress.barriers = in.number<uint64_t>();
  progress.votes = in.number<uint64_t>();
  progress.unanimous = in.number<bool>();
  progress.admissions = in.number<uint64_t>();
  for (auto count = in.number<uint64_t>(); count > 0; --count) {
    const std::string key = in.text();
    progress.done[key] = in.number<int64_t>();
  }
  return progress;
}

void write(MessageWriter& out, const CatchUp& what) {
  out << what.barriers << what.votes << what.unanimous << what.admissions
      << static_cast<uint64_t>(what.transfers.size());
  for (const CatchUp::Transfer& each : what.transfers) out << each.key << each.step << each.source << each.behind;
}

CatchUp read_catch_up(MessageReader& in) {
  CatchUp what;
  what.barriers = in.number<uint64_t>();
  what.votes = in.number<uint64_t>();
  what.unanimous = in.number<bool>();
  what.admissions = in.number<uint64_t>();
  for (auto count = in.number<uint64_t>(); count > 0; --count) {
    CatchUp::Transfer each;
    each.key = in.text();
    each.step = in.number<int64_t>();
    each.source = in.number<int>();
    for (auto workers = in.number<uint64_t>(); workers > 0; --workers) each.behind.push_back(in.number<int>());
    what.transfers.push_back(std::move(each));
  }
  return what;
}

}  // namespace symbind
