// Sums over the workers of a job on their GPUs. The first of them connects the GPUs: every worker sends worker 0 which
// GPU it uses, and gets the connection's id, or is told that two workers share a GPU, which NCCL refuses. From then on,
// as without NCCL, arrays are exchanged through the host.
#pragma once

#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "symbind/kvstore/worker_gpus.h"

namespace symbind {

class Peers;

class GpuExchange {
 public:
  GpuExchange(Peers& peers, std::shared_ptr<const GpuConnector> connector)
      : peers_(peers), connector_(std::move(connector)) {}

  // For any thread: the GPU on which this worker sums arrays of this context and type; the first GPU is used for all.
  // None: they are exchanged through the host.
  std::optional<Context> gpu_for(Context context, DType dtype);

  // For the communication thread, in exchanges for which all workers have such arrays. Then calls `then(true)`, or
  // then(false) where the GPUs cannot be connected: nothing was summed.
  void all_reduce(std::vector<WorkerGpus::Sum> sums, std::function<void(bool summed)> then);

 private:
  enum class State { unconnected, connecting, connected, refused };
  struct Request {
    std::vector<WorkerGpus::Sum> sums;
    std::function<void(bool)> then;
  };
  using Identity = std::array<char, 128>;
  struct Invitation {
    bool different;  // does each worker use a GPU of its own?
    GpuConnector::Id id;
  };
  void send_identity();
  void send_invitations();
  void take_invitation();
  void become(State state);
  void run(Request request);
  void sum(std::span<const WorkerGpus::Sum> sums);

  Peers& peers_;
  const std::shared_ptr<const GpuConnector> connector_;
  std::mutex mutex_;
  std::optional<Context> gpu_;  // under mutex_
  bool refused_ = false;        // likewise

  // ---- of the communication thread ----
  State state_ = State::unconnected;
  std::deque<Request> waiting_;  // for the connection
  std::vector<Identity> identities_;
  size_t missing_ = 0;  // identities
  Invitation invitation_ = {};
  std::unique_ptr<WorkerGpus> gpus_;  // used by the thread that updates, once connected
};

}  // namespace symbind
