// The same requests answered by libtorch: one frozen, optimised module that several threads call in inference mode.
// Built and run by predict.py.
//
// usage: libtorch_predict MODEL [THREADS] [BATCH] [SECONDS]
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <thread>
#include <vector>

#include <ATen/Parallel.h>
#include <torch/script.h>

int main(int argc, char** argv) {
  const auto argument = [&](int index, int usual) { return argc > index ? std::atoi(argv[index]) : usual; };
  const char* const path = argv[1];
  const int threads = argument(2, 2), batch = argument(3, 1), seconds = argument(4, 3);
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  at::set_num_threads(std::max(1, cores / threads));  // each caller has its share
  at::set_num_interop_threads(1);
  torch::jit::script::Module module = torch::jit::load(path);
  module.eval();
  module = torch::jit::optimize_for_inference(module);  // freezes it, and chooses oneDNN's kernels

  std::atomic<bool> stop = false, measure = false;
  std::atomic<int64_t> answered = 0;
  std::vector<std::thread> clients;
  for (int i = 0; i < threads; ++i)
    clients.emplace_back([&] {
      at::set_num_threads(std::max(1, cores / threads));
      const c10::InferenceMode inference;
      const at::Tensor image = torch::full({batch, 1, 28, 28}, 0.5);
      int64_t mine = 0;
      for (; !stop; mine += measure) module.forward({image});
      answered += mine;
    });
  std::this_thread::sleep_for(std::chrono::seconds(1));
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
