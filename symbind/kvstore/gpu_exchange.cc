#include "symbind/kvstore/gpu_exchange.h"

#include <chrono>
#include <set>
#include <thread>
#include <utility>

#include "symbind/core/error.h"
#include "symbind/core/log.h"
#include "symbind/kvstore/peers.h"

namespace symbind {
namespace {

constexpr int tag = largest_tag;  // no exchange has it

}  // namespace

std::optional<Context> GpuExchange::gpu_for(Context context, DType dtype) {
  if (!connector_ || peers_.elastic() || !connector_->takes(context, dtype)) return std::nullopt;
  const std::lock_guard lock(mutex_);
  if (refused_) return std::nullopt;
  if (!gpu_) gpu_ = context;
  return gpu_;
}

// Exchanges start in the same order on all workers, and so do these: those that wait keep their order.
void GpuExchange::all_reduce(std::vector<WorkerGpus::Sum> sums, std::function<void(bool)> then) {
  Request request{std::move(sums), std::move(then)};
  switch (state_) {
    case State::connected:
      return run(std::move(request));
    case State::refused:
      return request.then(false);
    case State::unconnected:
      state_ = State::connecting;
      send_identity();
      [[fallthrough]];
    case State::connecting:
      waiting_.push_back(std::move(request));
  }
}

void GpuExchange::send_identity() {
  const std::string own = connector_->identity(*gpu_);
  identities_.resize(static_cast<size_t>(peers_.workers()));
  Identity& identity = identities_[static_cast<size_t>(peers_.rank())];
  require(own.size() < identity.size(), "[kvstore] the identity of ", *gpu_, " is too long: ", own);
  own.copy(identity.data(), own.size());
  if (peers_.rank() != 0) {
    peers_.send(0, tag, std::as_bytes(std::span(identity)), [] {});
    peers_.receive(0, tag, std::as_writable_bytes(std::span(&invitation_, 1)), [this] { take_invitation(); });
    return;
  }
  missing_ = identities_.size() - 1;
  const auto arrived = [this] {
    if (--missing_ == 0) send_invitations();
  };
  for (int other = 1; other < peers_.workers(); ++other)
    peers_.receive(other, tag, std::as_writable_bytes(std::span(identities_[static_cast<size_t>(other)])), arrived);
  if (missing_ == 0) send_invitations();
}

void GpuExchange::send_invitations() {
  const std::set<Identity> different(identities_.begin(), identities_.end());
  invitation_.different = different.size() == identities_.size();
  if (invitation_.different)
    invitation_.id = connector_->make_id();
  else
    log_info("[kvstore] two workers use the same GPU: gradients are exchanged through the host, without NCCL");
  for (int other = 1; other < peers_.workers(); ++other)
    peers_.send(other, tag, std::as_bytes(std::span(&invitation_, 1)), [] {});
  take_invitation();
}

void GpuExchange::take_invitation() {
  if (!invitation_.different) return become(State::refused);
  peers_.work([this] { gpus_ = connector_->connect(*gpu_, invitation_.id, peers_.rank(), peers_.workers()); },
              [this] { become(State::connected); });
}

void GpuExchange::become(State state) {
  state_ = state;
  if (state == State::refused) {
    const std::lock_guard lock(mutex_);
    refused_ = true;
  }
  for (Request& request : std::exchange(waiting_, {}))
    state == State::connected ? run(std::move(request)) : request.then(false);
}

void GpuExchange::run(Request request) {
  const auto shared = std::make_shared<const Request>(std::move(request));
  peers_.work([this, shared] { sum(shared->sums); }, [shared] { shared->then(true); });
}

// A sum that fails or waits for a lost worker is aborted: it would occupy the GPU for ever.
void GpuExchange::sum(std::span<const WorkerGpus::Sum> sums) {
  try {
    gpus_->all_reduce(sums);
    while (!gpus_->finished()) {
      if (const std::string failure = peers_.failure(); !failure.empty()) throw Error(failure);
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  } catch (...) {
    gpus_->abort();
    throw;
  }
}

}  // namespace symbind
