// The networks of examples/support: their parameters by name and number, and the shapes they infer.
#include "examples/support/networks.h"

#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

#include "examples/support/network_by_name.h"
#include "tests/support/arrays.h"

namespace symbind::testing {
namespace {

using Names = std::vector<std::string>;

Names parameters_of(const Symbol& net) {
  Names names;
  for (const std::string& name : net.list_arguments())
    if (name != "data" && name != "softmax_label") names.push_back(name);
  return names;
}

// What the pre-activation ResNet-50 is known to hold, written out unit by unit.
struct Expected {
  Names parameters, aux;

  void norm(const std::string& name) {
    parameters.insert(parameters.end(), {name + "_gamma", name + "_beta"});
    aux.insert(aux.end(), {name + "_moving_mean", name + "_moving_var"});
  }
  void weight(const std::string& name) { parameters.push_back(name + "_weight"); }
};

Expected resnet50() {
  Expected all;
  all.norm("bn_data");
  all.weight("conv0");
  all.norm("bn0");
  const int units[] = {3, 4, 6, 3};
  for (int stage = 1; stage <= 4; ++stage)
    for (int unit = 1; unit <= units[stage - 1]; ++unit) {
      const std::string name = join("stage", stage, "_unit", unit, "_");
      for (int layer = 1; layer <= 3; ++layer) {
        all.norm(join(name, "bn", layer));
        all.weight(join(name, "conv", layer));
      }
      if (unit == 1) all.weight(name + "sc");
    }
  all.norm("bn1");
  all.weight("fc1");
  all.parameters.push_back("fc1_bias");
  return all;
}

int64_t count_numbers(const Symbol& net, const Shape& data) {
  const auto inferred = infer_shape(net, {{"data", data}});
  const Names names = net.list_arguments();
  int64_t total = 0;
  for (size_t i = 0; i < names.size(); ++i)
    if (names[i] != "data" && names[i] != "softmax_label")
      total += std::accumulate(inferred.args[i].begin(), inferred.args[i].end(), int64_t{1}, std::multiplies<>());
  return total;
}

TEST(ResNet50, HasItsParametersInTheirOrder) {
  const Symbol net = networks::resnet();
  const Expected expected = resnet50();
  const Names parameters = parameters_of(net), aux = net.list_auxiliary_states();
  EXPECT_EQ(parameters, expected.parameters);
  EXPECT_EQ(aux, expected.aux);
  ASSERT_EQ(parameters.size(), 157u);
  ASSERT_EQ(aux.size(), 102u);
  const std::map<size_t, std::string> known_parameters{{0, "bn_data_gamma"},
                                                       {1, "bn_data_beta"},
                                                       {2, "conv0_weight"},
                                                       {3, "bn0_gamma"},
                                                       {4, "bn0_beta"},
                                                       {5, "stage1_unit1_bn1_gamma"},
                                                       {6, "stage1_unit1_bn1_beta"},
                                                       {7, "stage1_unit1_conv1_weight"},
                                                       {8, "stage1_unit1_bn2_gamma"},
                                                       {9, "stage1_unit1_bn2_beta"},
                                                       {10, "stage1_unit1_conv2_weight"},
                                                       {11, "stage1_unit1_bn3_gamma"},
                                                       {151, "stage4_unit3_bn3_beta"},
                                                       {152, "stage4_unit3_conv3_weight"},
                                                       {153, "bn1_gamma"},
                                                       {154, "bn1_beta"},
                                                       {155, "fc1_weight"},
                                                       {156, "fc1_bias"}};
  for (const auto& [index, name] : known_parameters) EXPECT_EQ(parameters[index], name) << index;
  const std::map<size_t, std::string> known_aux{{0, "bn_data_moving_mean"},
                                                {1, "bn_data_moving_var"},
                                                {2, "bn0_moving_mean"},
                                                {3, "bn0_moving_var"},
                                                {4, "stage1_unit1_bn1_moving_mean"},
                                                {5, "stage1_unit1_bn1_moving_var"},
                                                {6, "stage1_unit1_bn2_moving_mean"},
                                                {7, "stage1_unit1_bn2_moving_var"},
                                                {98, "stage4_unit3_bn3_moving_mean"},
                                                {99, "stage4_unit3_bn3_moving_var"},
                                                {100, "bn1_moving_mean"},
                                                {101, "bn1_moving_var"}};
  for (const auto& [index, name] : known_aux) EXPECT_EQ(aux[index], name) << index;
}

TEST(ResNet50, GivesAThousandProbabilitiesPerImage) {
  const auto inferred = infer_shape(networks::resnet(), {{"data", {32, 3, 224, 224}}});
  ASSERT_EQ(inferred.outputs.size(), 1u);
  EXPECT_EQ(inferred.outputs[0], (std::vector<int64_t>{32, 1000}));
}

TEST(ResNet, HasAsManyParametersAsItsDepthSays) {
  struct Case {
    networks::ResNet network;
    size_t parameters, aux;
    int64_t numbers;
  };
  // Of v1: the published counts. Of v2: those of the form with a normalised input, its shifts and scales included.
  const Case cases[] = {
      {{.depth = 18, .version = 1}, 62, 40, 11689512},    {{.depth = 34, .version = 1}, 110, 72, 21797672},
      {{.depth = 50, .version = 1}, 161, 106, 25557032},  {{.depth = 101, .version = 1}, 314, 208, 44549160},
      {{.depth = 152, .version = 1}, 467, 310, 60192808}, {{.depth = 50, .version = 2}, 157, 102, 25549486},
  };
  for (const Case& each : cases) {
    const Symbol net = networks::resnet(each.network);
    const std::string name = join("ResNet-", each.network.depth, " v", each.network.version);
    EXPECT_EQ(parameters_of(net).size(), each.parameters) << name;
    EXPECT_EQ(net.list_auxiliary_states().size(), each.aux) << name;
    EXPECT_EQ(count_numbers(net, {2, 3, 224, 224}), each.numbers) << name;
  }
}

TEST(ResNet, TakesSmallImagesInEveryForm) {
  for (const int depth : {18, 34, 50, 101, 152})
    for (const int version : {1, 2}) {
      const Symbol net = networks::resnet({.depth = depth, .version = version, .classes = 10});
      const auto inferred = infer_shape(net, {{"data", {4, 3, 32, 32}}});
      EXPECT_EQ(inferred.outputs[0], (std::vector<int64_t>{4, 10})) << depth << " v" << version;
    }
}

TEST(ResNet, RefusesOtherDepthsAndVersions) {
  EXPECT_TRUE(fails_with([] { networks::resnet({.depth = 20}); }, "18, 34, 50, 101 or 152", "20"));
  EXPECT_TRUE(fails_with([] { networks::resnet({.version = 3}); }, "v3"));
}

TEST(Networks, HaveAsManyParametersAsWasPublished) {
  struct Case {
    std::string name;
    Symbol network;
    int64_t image_size, numbers;
  };
  const Case cases[] = {
      // One column of convolutions, and two as first published; on images of 224 pixels the first layer after the
      // convolutions is smaller. (61.1 million are those of a later, narrower form.)
      {"AlexNet", networks::alexnet(), 227, 62378344},
      {"AlexNet in two groups", networks::alexnet({.groups = 2}), 227, 60965224},
      {"AlexNet on 224", networks::alexnet(), 224, 50844008},
      {"VGG-11", networks::vgg({.depth = 11}), 224, 132863336},
      {"VGG-13", networks::vgg({.depth = 13}), 224, 133047848},
      {"VGG-16", networks::vgg(), 224, 138357544},
      {"VGG-16 normalised", networks::vgg({.batch_norm = true}), 224, 138365992},
      {"VGG-19", networks::vgg({.depth = 19}), 224, 143667240},
      {"Inception-BN", networks::inception_bn(), 224, 11295240},
      {"Inception-v3", networks::inception_v3(), 299, 23834568},
      {"MobileNet", networks::mobilenet(), 224, 4231976},
      {"MobileNet 0.25", networks::mobilenet({.multiplier = 0.25}), 224, 470072},
      {"MobileNet v2", networks::mobilenet_v2(), 224, 3504872},
      // The normalised input adds a scale and a shift per colour to the published count.
      {"ResNeXt-50", networks::resnext(), 224, 25028904 + 6},
      {"DenseNet-121", networks::densenet(), 224, 7978856},
      {"DenseNet-169", networks::densenet({.depth = 169}), 224, 14149480},
      {"DenseNet-201", networks::densenet({.depth = 201}), 224, 20013928},
      {"SqueezeNet 1.0", networks::squeezenet(), 224, 1248424},
      {"SqueezeNet 1.1", networks::squeezenet({.version = "1.1"}), 224, 1235496},
  };
  for (const Case& each : cases)
    EXPECT_EQ(count_numbers(each.network, {2, 3, each.image_size, each.image_size}), each.numbers) << each.name;
}

TEST(Networks, GiveOneProbabilityPerClassAtTheirOwnSizeAndTheLeast) {
  for (const networks::NetworkFamily& family : networks::network_families())
    for (const int64_t size : {family.image_size, family.least_size}) {
      const Symbol net = family.build({.classes = 7});
      const auto inferred = infer_shape(net, {{"data", {3, family.channels, size, size}}});
      EXPECT_EQ(inferred.outputs, (std::vector<std::vector<int64_t>>{{3, 7}})) << family.name << " " << size;
    }
}

TEST(Networks, HaveTheNamesThatTheirFilesAreKnownBy) {
  const auto has = [](const Symbol& net, const Names& names) {
    const Names all = net.list_arguments();
    for (const std::string& name : names) EXPECT_NE(std::find(all.begin(), all.end(), name), all.end()) << name;
  };
  has(networks::alexnet(), {"conv1_weight", "conv5_bias", "fc1_weight", "fc3_bias"});
  has(networks::vgg(), {"conv1_1_weight", "conv5_3_bias", "fc6_weight", "fc8_bias"});
  has(networks::inception_bn(), {"conv_1_weight", "bn_1_gamma", "conv_2_red_bias", "conv_3a_3x3_reduce_weight",
                                 "conv_5b_double_3x3_1_weight", "conv_5b_proj_weight", "fc1_weight"});
  has(networks::inception_v3(),
      {"conv_conv2d_weight", "conv_1_conv2d_weight", "mixed_tower_1_conv_2_batchnorm_beta",
       "mixed_7_tower_1_conv_4_conv2d_weight", "mixed_10_tower_mixed_conv_1_conv2d_weight", "fc1_weight"});
  has(networks::mobilenet(), {"conv_1_conv2d_weight", "conv_2_dw_conv2d_weight", "conv_14_batchnorm_gamma", "fc_bias"});
  has(networks::mobilenet_v2(), {"first-3x3-conv-conv2d_weight", "seq-1-block0-exp-conv2d_weight",
                                 "seq-6-block0-linear-batchnorm_gamma", "last-1x1-conv-conv2d_weight", "fc_weight"});
  has(networks::resnext(), {"bn_data_gamma", "conv0_weight", "stage1_unit1_sc_weight", "stage4_unit3_bn3_beta"});
  has(networks::squeezenet(), {"conv1_weight", "fire2_squeeze1x1_weight", "fire9_expand3x3_bias", "conv10_weight"});
}

TEST(Networks, RefuseDepthsVersionsAndNamesThatThereAreNot) {
  EXPECT_TRUE(fails_with([] { networks::vgg({.depth = 12}); }, "11, 13, 16 or 19", "12"));
  EXPECT_TRUE(fails_with([] { networks::resnext({.depth = 18}); }, "50, 101 or 152", "18"));
  EXPECT_TRUE(fails_with([] { networks::densenet({.depth = 120}); }, "121, 169 or 201", "120"));
  EXPECT_TRUE(fails_with([] { networks::squeezenet({.version = "2"}); }, "1.0 and 1.1", "2"));
  EXPECT_TRUE(fails_with([] { networks::network_family("vggg"); }, "unknown network 'vggg'", "squeezenet, vgg"));
}

TEST(SmallNetworks, InferTheirOutputs) {
  EXPECT_EQ(infer_shape(networks::mlp(), {{"data", {5, 784}}}).outputs[0], (std::vector<int64_t>{5, 10}));
  EXPECT_EQ(parameters_of(networks::mlp({.classes = 3, .hidden = {7}})),
            (Names{"fc1_weight", "fc1_bias", "fc2_weight", "fc2_bias"}));
  EXPECT_EQ(infer_shape(networks::lenet(), {{"data", {5, 1, 28, 28}}}).outputs[0], (std::vector<int64_t>{5, 10}));
  EXPECT_EQ(parameters_of(networks::lenet()), (Names{"conv1_weight", "conv1_bias", "conv2_weight", "conv2_bias",
                                                     "fc1_weight", "fc1_bias", "fc2_weight", "fc2_bias"}));
}

}  // namespace
}  // namespace symbind::testing
