#include "bench/support/operator_class.h"

#include <regex>
#include <set>

#include <gtest/gtest.h>

#include "symbind/graph/op.h"

namespace bench {
namespace {

TEST(OperatorClass, IsThatOfTheFamilyForEveryInternalOperator) {
  const std::regex in_family("_(backward_)?(BatchNorm|Convolution|Pooling|FullyConnected)(_.*)?");
  const std::set<std::string> classes = {"convolution forward",       "convolution forward with statistics",
                                         "convolution data gradient", "convolution weight gradient",
                                         "BatchNorm forward",         "BatchNorm forward, given statistics",
                                         "BatchNorm backward",        "pooling forward",
                                         "pooling backward",          "products"};
  std::set<std::string> found;
  for (const symbind::OpDef* op : symbind::OpRegistry::get().all()) {
    if (!std::regex_match(op->name, in_family)) continue;
    found.insert(class_of(op->name));
    EXPECT_TRUE(classes.contains(class_of(op->name))) << op->name << " is in class " << class_of(op->name);
  }
  EXPECT_EQ(found, classes);
}

TEST(OperatorClass, DistinguishesTheGradientsOfConvolutions) {
  EXPECT_EQ(class_of("Convolution"), "convolution forward");
  EXPECT_EQ(class_of("_Convolution_Fused"), "convolution forward");
  EXPECT_EQ(class_of("_backward_Convolution_data"), "convolution data gradient");
  EXPECT_EQ(class_of("_backward_Convolution_Add_Relu"), "convolution data gradient");
  EXPECT_EQ(class_of("_backward_Convolution_weight"), "convolution weight gradient");
}

TEST(OperatorClass, OfUpdatesAndConversionsIsShared) {
  for (const char* op : {"sgd_mom_update", "multi_mp_sgd_mom_update", "_multi_adamw_update", "lamb_update_phase1"})
    EXPECT_EQ(class_of(op), "update") << op;
  EXPECT_EQ(class_of("_convert_arrays"), "copies, reorders and casts");
}

TEST(OperatorClass, IsTheNameWithoutAFamily) {
  for (const char* op : {"Deconvolution", "_backward_Deconvolution_data", "ROIPooling", "softmax", "_mean"})
    EXPECT_EQ(class_of(op), op);
}

}  // namespace
}  // namespace bench
