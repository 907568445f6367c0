// ResNet-50 as the notes on MXNet's module describe it: bound for 128 images on four contexts.
#include <gtest/gtest.h>

#include "symbind/train/module.h"

#include "examples/support/networks.h"

namespace symbind {
namespace {

TEST(ResNet50, BindsABatchOf128OnFourContextsAndRunsSmallerImages) {
  Module module(networks::resnet({.depth = 50}),
                {.context = {cpu(0), cpu(1), cpu(2), cpu(3)}, .work_load_list = {1, 1, 1, 1}});
  EXPECT_EQ(module.param_names().size(), 157u);
  EXPECT_EQ(module.aux_names().size(), 102u);
  module.bind({{"data", {128, 3, 224, 224}}}, {{"softmax_label", {128}}});
  const DataParallelExecutorGroup& group = *module.exec_group();
  for (size_t device = 0; device < 4; ++device) {
    EXPECT_EQ(group.slices()[device].end - group.slices()[device].begin, 32);
    EXPECT_EQ(group.execs()[device]->outputs()[0].shape(), (Shape{32, 1000}));
    for (size_t i = 0; i < 157; ++i)
      EXPECT_TRUE(
          group.grad_arrays()[i][device].same_memory(group.execs()[device]->grad_dict().at(module.param_names()[i])));
  }
  module.init_params({.initializer = std::make_shared<init::Xavier>()});
  const NamedArrays params = module.get_params().arg_params;
  for (size_t device = 0; device < 4; ++device)
    EXPECT_EQ(group.execs()[device]->arg_dict().at("conv0_weight").to_vector<float>(),
              params.at("conv0_weight").to_vector<float>());

  // 64×64 pixels: the module reshapes itself, and keeps its parameters.
  module.init_optimizer();
  const DataBatch batch{.data = {ones({8, 3, 64, 64})}, .label = {zeros({8})}};
  module.forward(batch, true);
  module.backward();
  module.update();
  EXPECT_EQ(module.get_outputs()[0].shape(), (Shape{8, 1000}));
  EXPECT_NE(module.get_params().arg_params.at("fc1_bias").to_vector<float>(), params.at("fc1_bias").to_vector<float>());
}

}  // namespace
}  // namespace symbind
