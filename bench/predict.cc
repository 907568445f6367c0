// Requests per second that one Predictor answers from several threads: LeNet on images of digits. Prints one JSON row.
//
// usage: predict [THREADS] [BATCH] [SECONDS]
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <thread>
#include <vector>

#include "symbind/symbind.h"

#include "examples/support/networks.h"

using namespace symbind;

int main(int argc, char** argv) {
  const auto argument = [&](int index, int usual) { return argc > index ? std::atoi(argv[index]) : usual; };
  const int threads = argument(1, 2), batch = argument(2, 1), seconds = argument(3, 3);

  const Symbol net = networks::lenet();
  const ExecutorPtr shapes = simple_bind(net, cpu(), {{"data", {1, 1, 28, 28}}}, {.grad_req = "null"});
  NamedArrays params;
  const init::Xavier initializer;
  for (const auto& [name, array] : shapes->arg_dict()) {
    if (name == "data" || name == "softmax_label") continue;
    params[name] = zeros(array.shape());
    initializer(InitDesc{name, {}}, params[name]);
  }
  const Predictor predict(net, params);

  std::atomic<bool> stop = false, measure = false;
  std::atomic<int64_t> answered = 0;
  std::vector<std::thread> clients;
  for (int i = 0; i < threads; ++i)
    clients.emplace_back([&] {
      const NDArray image = full({batch, 1, 28, 28}, 0.5);
      int64_t mine = 0;
      for (; !stop; mine += measure) predict(image);
      answered += mine;
    });
  std::this_thread::sleep_for(std::chrono::seconds(1));  // executors are compiled, and cores are awake
  measure = true;
  const auto begin = std::chrono::steady_clock::now();
  std::this_thread::sleep_for(std::chrono::seconds(seconds));
  measure = false;
  const double taken = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  stop = true;
  for (std::thread& client : clients) client.join();
  std::cout << "{\"case\": \"lenet-predict\", \"threads\": " << threads << ", \"batch\": " << batch
            << ", \"requests_per_second\": " << static_cast<double>(answered) / taken << "}" << std::endl;
}
