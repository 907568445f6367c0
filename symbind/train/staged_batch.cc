#include "symbind/train/staged_batch.h"

#include <algorithm>

namespace symbind {

size_t StagedBatch::index_of(Device& device) {
  const auto at = static_cast<size_t>(std::ranges::find(devices_, &device, &OnDevice::device) - devices_.begin());
  if (at == devices_.size()) devices_.push_back({&device, make_upload_(device)});
  return at;
}

void StagedBatch::start(std::span<const Input> inputs, std::span<const NDArray> parts) {
  staged_.clear();
  std::map<std::string, Staged> staged;
  std::map<size_t, std::vector<Upload::Source>> sources;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Input& input = inputs[i];
    const Storage& from = input.given.storage();
    Device& device = input.target.storage().device();
    if (device.is_host() || !from.device().is_host() || from.exported()) continue;
    const size_t at = index_of(device);
    if (!devices_[at].upload) continue;
    std::vector<Upload::Source>& here = sources[at];
    staged[input.name] = {input.given, input.slice, parts[i].shape(), from.version(), at, here.size()};
    here.push_back({parts[i].data(), parts[i].bytes()});
  }
  for (const auto& [at, all] : sources) devices_[at].upload->start(all);
  staged_ = std::move(staged);  // nothing is, if a copy could not start
}

std::vector<bool> StagedBatch::deliver(std::span<const Input> inputs) {
  const std::map<std::string, Staged> staged = std::exchange(staged_, {});
  std::vector<bool> delivered;
  std::map<size_t, std::vector<Upload::Target>> targets;
  for (const Input& input : inputs) {
    const auto found = staged.find(input.name);
    delivered.push_back(found != staged.end() && is_in(found->second, input));
    if (!delivered.back()) continue;
    targets[found->second.at].push_back({found->second.source, input.target.mutable_data(), input.target.dtype(),
                                         input.given.dtype(), input.target.size()});
  }
  for (const auto& [at, all] : targets) devices_[at].upload->deliver(all);
  return delivered;
}

bool StagedBatch::is_in(const Staged& staged, const Input& input) const {
  const Storage& from = staged.given.storage();
  return staged.given.same_array(input.given) && staged.slice == input.slice && staged.version == from.version() &&
         !from.exported() && staged.shape == input.target.shape() &&
         devices_[staged.at].device == &input.target.storage().device();
}

}  // namespace symbind
