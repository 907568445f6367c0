// Two bits per element, and the rest kept for later.
#include "symbind/kvstore/compression.h"

#include <gtest/gtest.h>

#include "symbind/kvstore/kvstore.h"

#include "tests/support/arrays.h"

namespace symbind::testing {
namespace {

using Floats = std::vector<float>;
using Words = std::vector<int32_t>;

NDArray floats(const Floats& values) { return array(values, {static_cast<int64_t>(values.size())}); }
NDArray words_of(int64_t elements) { return zeros({GradientCompression::words_for(elements)}, cpu(), DType::int32); }

TEST(GradientCompression, SendsTheThresholdAndKeepsTheRest) {
  const GradientCompression half(0.5f);
  const NDArray residual = zeros({5}), words = words_of(5), out = zeros({5});
  const auto sent = [&](const Floats& gradient) {
    half.compress(floats(gradient), residual, words);
    half.sum_to(out, std::vector{words});
    return out.to_vector<float>();
  };
  EXPECT_EQ(sent({0.25f, 0.5f, -0.5f, 1.75f, -0.25f}), (Floats{0, 0.5f, -0.5f, 0.5f, 0}));
  EXPECT_EQ(residual.to_vector<float>(), (Floats{0.25f, 0, 0, 1.25f, -0.25f}));
  EXPECT_EQ(sent({0.25f, 0.25f, -0.75f, 0, 0}), (Floats{0.5f, 0, -0.5f, 0.5f, 0}));
  EXPECT_EQ(residual.to_vector<float>(), (Floats{0, 0.25f, -0.25f, 0.75f, -0.25f}));
  EXPECT_EQ(sent({0, 0, 0, -1.25f, -0.25f}), (Floats{0, 0, 0, -0.5f, -0.5f}));
  EXPECT_EQ(residual.to_vector<float>(), (Floats{0, 0.25f, -0.25f, 0, 0}));
}

TEST(GradientCompression, PacksSixteenElementsIntoAWord) {
  const GradientCompression one(1.0f);
  Floats gradient(19, 0);
  gradient[0] = 1;    // byte 0, highest bits: 11
  gradient[3] = -1;   // byte 0, lowest bits: 10
  gradient[4] = 1;    // byte 1, highest bits
  gradient[15] = 1;   // byte 3, lowest bits
  gradient[17] = -2;  // second word, byte 0, second pair
  const NDArray residual = zeros({19}), words = words_of(19);
  one.compress(floats(gradient), residual, words);
  ASSERT_EQ(words.size(), 2);
  EXPECT_EQ(words.to_vector<int32_t>(), (Words{0x0300c0c2, 0x20}));
}

TEST(GradientCompression, ReadsItsParameters) {
  using Params = std::map<std::string, std::string>;
  EXPECT_EQ(GradientCompression(Params{{"type", "2bit"}}).threshold(), 0.5f);
  EXPECT_EQ(GradientCompression(Params{{"type", "2bit"}, {"threshold", "2"}}).threshold(), 2.0f);
  const auto refused = [](const Params& params, const auto&... parts) {
    return fails_with([&] { GradientCompression{params}; }, parts...);
  };
  EXPECT_TRUE(refused({}, "type", "missing"));
  EXPECT_TRUE(refused({{"type", "1bit"}}, "\"1bit\"", "2bit"));
  EXPECT_TRUE(refused({{"type", "2bit"}, {"treshold", "1"}}, "treshold", "threshold"));
  EXPECT_TRUE(refused({{"type", "2bit"}, {"threshold", "0"}}, "greater than 0"));
  EXPECT_TRUE(refused({{"type", "2bit"}, {"threshold", "-1"}}, "greater than 0", "-1"));
  EXPECT_TRUE(refused({{"type", "2bit"}, {"threshold", "half"}}, "half"));
  EXPECT_TRUE(refused({{"type", "2bit"}, {"threshold", "0.5x"}}, "0.5x"));
  EXPECT_TRUE(refused({{"type", "2bit"}, {"threshold", "nan"}}, "nan"));
}

TEST(CompressedStore, KeepsAResidualPerKeyAndDevice) {
  const auto store = KVStore::create("device");
  store->set_gradient_compression({{"type", "2bit"}});
  store->init({"a", "b"}, {zeros({2}), zeros({2})});
  const NDArray a = zeros({2}), b = zeros({2});
  const auto step = [&] {
    const NDArray first = array({0.25, 0.5}, cpu(0)), second = array({-0.75, 0.5}, cpu(1));
    store->pushpull({"a", "b"}, {{first, second}, {first}}, {{a}, {b}});
  };
  step();
  EXPECT_EQ(a.to_vector<float>(), (Floats{-0.5f, 1}));  // residuals: .25, 0 and -.25, 0
  EXPECT_EQ(b.to_vector<float>(), (Floats{0, 0.5f}));
  step();
  EXPECT_EQ(a.to_vector<float>(), (Floats{0, 1}));  // .5 - .5
  EXPECT_EQ(b.to_vector<float>(), (Floats{0.5f, 0.5f}));
}

TEST(CompressedStore, DropsItsResidualWhenACompressionIsSetAgain) {
  const auto store = KVStore::create("device");
  store->set_gradient_compression({{"type", "2bit"}, {"threshold", "0.5"}});
  store->init({"w"}, {zeros({2})});
  const NDArray out = zeros({2});
  const auto sent = [&](double first, double second) {
    store->pushpull({"w"}, {{array({first, second})}}, {{out}});
    return out.to_vector<float>();
  };
  EXPECT_EQ(sent(0.25, 1.25), (Floats{0, 0.5f}));  // 0.25 and 0.75 are owed
  store->set_gradient_compression({{"type", "2bit"}, {"threshold", "0.25"}});
  EXPECT_EQ(sent(0, 0.125), (Floats{0, 0}));
  EXPECT_EQ(sent(0.25, 0.125), (Floats{0.25f, 0.25f}));
}

TEST(CompressedStore, TakesGradientsOfEveryKindOfDevice) {
  for (const Context context : all_devices()) {
    const auto store = KVStore::create("device");
    store->set_gradient_compression({{"type", "2bit"}});
    store->init({"w"}, {zeros({3})});
    const NDArray out = zeros({3});
    store->pushpull({"w"}, {{array({0.25, 0.5, -3}, context), array({0.5, 0.25, -3}, cpu(1))}}, {{out}});
    EXPECT_EQ(out.to_vector<float>(), (Floats{0.5f, 0.5f, -1})) << context;
    store->pushpull({"w"}, {{array({0.25, 0, 0}, context), array({0, 0.25, 0}, cpu(1))}}, {{out}});
    EXPECT_EQ(out.to_vector<float>(), (Floats{0.5f, 0.5f, -1})) << context;
  }
}

TEST(CompressedStore, LosesNothingInTheLongRun) {
  const auto store = KVStore::create("device");
  store->set_gradient_compression({{"type", "2bit"}, {"threshold", "1"}});
  const Shape shape{1000};
  store->init({"w"}, {zeros(shape)});
  store->set_updater([](const ParamKey&, const NDArray& grad, const NDArray& weight) {
    auto total = weight.to_vector<float>();
    const auto more = grad.to_vector<float>();
    for (size_t i = 0; i < total.size(); ++i) total[i] += more[i];
    weight.copy_from(total);
  });
  const NDArray grad = random_array(shape, 3, -0.5, 0.5);
  for (int i = 0; i < 100; ++i) store->push({"w"}, {{grad}});
  const NDArray out = zeros(shape);
  store->pull({"w"}, {{out}});
  const auto total = out.to_vector<float>(), each = grad.to_vector<float>();
  for (size_t i = 0; i < total.size(); ++i) EXPECT_NEAR(total[i], 100 * each[i], 1.0) << i;
}

TEST(CompressedStore, CompressesTheOnlyGradientOfAnUpdateToo) {
  const auto store = KVStore::create("device");
  store->set_gradient_compression({{"type", "2bit"}, {"threshold", "0.5"}});
  store->init({"w"}, {zeros({3})});
  Floats seen;
  store->set_updater([&](const ParamKey&, const NDArray& grad, const NDArray&) { seen = grad.to_vector<float>(); });
  store->push({"w"}, {{array({0.75, -2, 0.25})}});
  EXPECT_EQ(seen, (Floats{0.5f, -0.5f, 0}));
}

TEST(CompressedStore, IsForTheKindsThatExchangeBetweenDevices) {
  for (const char* name : {"local", "local_update_cpu", "local_allreduce_cpu"})
    EXPECT_TRUE(fails_with(
        [&] {
          KVStore::create(name)->set_gradient_compression({{"type", "2bit"}});
        },
        "gradient compression", name));
  for (const char* name : {"device", "local_allreduce_device"})
    EXPECT_NO_THROW(KVStore::create(name)->set_gradient_compression({{"type", "2bit"}})) << name;
}

TEST(CompressedStore, TakesFloat32Alone) {
  const auto store = KVStore::create("device");
  store->set_gradient_compression({{"type", "2bit"}});
  store->init({"w"}, {zeros({2}, cpu(), DType::float16)});
  EXPECT_TRUE(fails_with([&] { store->push({"w"}, {{ones({2}, cpu(), DType::float16)}}); }, "key w", "float16"));
}

TEST(CompressedStore, TakesNoMemoryAfterTheFirstPush) {
  const auto store = KVStore::create("device");
  store->set_gradient_compression({{"type", "2bit"}});
  store->init({"w"}, {zeros({100})});
  const std::vector<NDArray> arrays{ones({100}, cpu(0)), ones({100}, cpu(1))};
  store->push({"w"}, {arrays});
  Device& device = Device::get(cpu());
  const int64_t before = device.memory().live;
  device.reset_peak();
  for (int i = 0; i < 1000; ++i) store->push({"w"}, {arrays});
  EXPECT_EQ(device.memory().live, before);
  EXPECT_EQ(device.memory().peak, before);
}

}  // namespace
}  // namespace symbind::testing
