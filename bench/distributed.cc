// How long workers take to exchange the gradients of ResNet-50, beside MPI's own allreduce over as many bytes in the
// same run:
//   mpirun -n 4 distributed [rounds]
// The store adds in the order of the workers, updates by SGD with momentum, and copies the weights to the network's
// arrays; the allreduce only adds.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "symbind/kvstore/mpi/functions.h"
#include "symbind/symbind.h"

using namespace symbind;

namespace {

using Clock = std::chrono::steady_clock;

// Convolutions, normalizations and the classifier, in the order of the network.
std::vector<Shape> resnet50() {
  std::vector<Shape> shapes;
  const auto convolution = [&](int64_t out, int64_t in, int64_t kernel) {
    shapes.push_back({out, in, kernel, kernel});
    shapes.push_back({out});
    shapes.push_back({out});
  };
  convolution(64, 3, 7);
  int64_t channels = 64;
  for (const auto& [width, blocks] : {std::pair<int64_t, int>{64, 3}, {128, 4}, {256, 6}, {512, 3}})
    for (int block = 0; block < blocks; ++block) {
      convolution(width, channels, 1);
      convolution(width, width, 3);
      convolution(4 * width, width, 1);
      if (block == 0) convolution(4 * width, channels, 1);
      channels = 4 * width;
    }
  shapes.push_back({1000, 2048});
  shapes.push_back({1000});
  return shapes;
}

template <class Call>
double best_seconds(int rounds, KVStore& store, const Call& call) {
  double best = 1e9;
  for (int round = 0; round < rounds; ++round) {
    store.barrier();
    const auto begin = Clock::now();
    call();
    store.barrier();
    best = std::min(best, std::chrono::duration<double>(Clock::now() - begin).count());
  }
  return best;
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 10;
  if (rounds < 1) {
    std::fprintf(stderr, "usage: mpirun -n N distributed [rounds]\n");
    return 2;
  }
  const KVStorePtr store = KVStore::create("dist_sync");
  KVStore::Keys keys;
  KVStore::Values gradients, weights;
  std::vector<NDArray> initial;
  int64_t elements = 0;
  for (const Shape& shape : resnet50()) {
    keys.emplace_back(keys.size());
    initial.push_back(zeros(shape));
    gradients.push_back({ones(shape)});
    weights.push_back({zeros(shape)});
    elements += shape.size();
  }
  store->set_optimizer(Optimizer::create(optim::Sgd{.learning_rate = 0.1, .momentum = 0.9}));
  store->init(keys, initial);
  const double exchange = best_seconds(rounds, *store, [&] { store->pushpull(keys, gradients, weights); });

  const auto allreduce = reinterpret_cast<decltype(&::MPI_Allreduce)>(mpi::library.address("MPI_Allreduce"));
  const auto real = static_cast<MPI_Datatype>(mpi::library.address("ompi_mpi_float"));
  const auto sum = static_cast<MPI_Op>(mpi::library.address("ompi_mpi_op_sum"));
  std::vector<float> in(static_cast<size_t>(elements), 1), out(in.size());
  const double raw = best_seconds(
      rounds, *store, [&] { allreduce(in.data(), out.data(), static_cast<int>(elements), real, sum, mpi::world()); });
  if (store->rank() == 0)
    std::printf("%d workers, %.1f MB: exchange, update and copy %.1f ms, MPI_Allreduce %.1f ms, ratio %.2f\n",
                store->num_workers(), static_cast<double>(elements) * 4e-6, exchange * 1e3, raw * 1e3, raw / exchange);
}
