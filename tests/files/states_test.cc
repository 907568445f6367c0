#include "symbind/files/states.h"

#include <cstring>
#include <limits>

#include <gtest/gtest.h>

#include "tests/support/arrays.h"
#include "tests/support/temp_dir.h"

namespace symbind {
namespace {

using namespace std::string_literals;
using testing::fails_with;
using testing::random_array;
using testing::same_bits;
using testing::TempDir;

SavedStates some_states() {
  SavedStates saved;
  saved.states.emplace_back("fc1_weight", random_array({2, 3}, 1));
  saved.states.emplace_back(1, StateTree());
  saved.states.emplace_back(300, StateTree::of({random_array({2}, 2), StateTree(), random_array({1}, 3)}));
  saved.states.emplace_back(int64_t{1} << 40, StateTree::of({}));
  saved.states.emplace_back(
      -7, StateTree::of({random_array({4}, 4, 0, 1, DType::float16),
                         StateTree::of({random_array({4}, 5), random_array({4}, 6, 0, 9, DType::int64)})}));
  return saved;
}

ResumeState some_resume() {
  ResumeState resume;
  resume.num_update = 12;
  resume.begin_num_update = 3;
  resume.index_update_count = {{0, 12}, {"fc1_weight", 11}};
  resume.numbers = {{"base_lr", 0.1}, {"m_schedule", std::numeric_limits<double>::infinity()}};
  resume.random = {{"cpu(0)", {~uint64_t{0}, 5}}, {"gpu(1)", {7, 8}}};
  return resume;
}

::testing::AssertionResult same(const StateTree& a, const StateTree& b) {
  if (a.is_tuple != b.is_tuple || a.tuple.size() != b.tuple.size() || bool(a.array) != bool(b.array))
    return ::testing::AssertionFailure() << "another structure";
  if (a.array) return same_bits(a.array, b.array);
  for (size_t i = 0; i < a.tuple.size(); ++i)
    if (const auto result = same(a.tuple[i], b.tuple[i]); !result) return result;
  return ::testing::AssertionSuccess();
}

void expect_same(const SavedStates& a, const SavedStates& b) {
  ASSERT_EQ(a.states.size(), b.states.size());
  for (size_t i = 0; i < a.states.size(); ++i) {
    EXPECT_EQ(a.states[i].first, b.states[i].first);
    EXPECT_TRUE(same(a.states[i].second, b.states[i].second)) << a.states[i].first;
  }
}

// Passes when these bytes are refused, with the source and every part in the message.
template <class... Parts>
::testing::AssertionResult refused(const std::string& bytes, const Parts&... parts) {
  return fails_with([&] { read_states(bytes, "x.states"); }, "[x.states] at offset ", "expected ", parts...);
}

TEST(States, ComeBackBitForBit) {
  SavedStates saved = some_states();
  expect_same(read_states(write_states(saved), "x"), saved);
  saved.resume = some_resume();
  const SavedStates again = read_states(write_states(saved), "x");
  expect_same(again, saved);
  ASSERT_TRUE(again.resume);
  EXPECT_EQ(again.resume->num_update, 12);
  EXPECT_EQ(again.resume->begin_num_update, 3);
  EXPECT_EQ(again.resume->index_update_count, saved.resume->index_update_count);
  EXPECT_EQ(again.resume->numbers, saved.resume->numbers);
  ASSERT_EQ(again.resume->random.size(), 2u);
  EXPECT_EQ(again.resume->random.at("cpu(0)").key, ~uint64_t{0});
  EXPECT_EQ(again.resume->random.at("gpu(1)").draw, 8u);
}

TEST(States, NoStatesAtAllAreStates) { EXPECT_TRUE(read_states(write_states({}), "x").states.empty()); }

TEST(States, AnOptimizerComesBackWithItsCounts) {
  SavedStates saved = some_states();
  saved.resume = some_resume();
  saved.optimizer = PickledObject{"mxnet.optimizer.optimizer", "SGD", {}};
  auto& fields = saved.optimizer->fields;
  fields = {{"lr", 0.1},
            {"momentum", 0.9},
            {"lazy_update", true},
            {"clip_gradient", std::monostate{}},
            {"name", "x"},
            {"lr_scheduler", "mxnet.lr_scheduler.MultiFactorScheduler"},
            {"lr_scheduler.count", int64_t{4}},
            {"lr_scheduler.step", "list"},
            {"lr_mult.fc1_weight", 0.5},
            {"idx2name.0", "fc1_weight"}};
  for (int i = 0; i < 12; ++i) fields[join("lr_scheduler.step.", i)] = int64_t{i * 100};
  const SavedStates again = read_states(write_states(saved), "x");
  ASSERT_TRUE(again.optimizer);
  EXPECT_EQ(again.optimizer->name, "SGD");
  for (const auto& [name, value] : fields) EXPECT_EQ(again.optimizer->fields.at(name), value) << name;
  EXPECT_EQ(std::get<int64_t>(again.optimizer->fields.at("num_update")), 12);
  EXPECT_EQ(std::get<int64_t>(again.optimizer->fields.at("_index_update_count.fc1_weight")), 11);
  EXPECT_EQ(std::get<int64_t>(again.optimizer->fields.at("_all_index_update_counts.0.0")), 12);
}

// ---- Pickles as other Pythons wrote them

// V2, dense, shape (2), cpu(0), float32, the numbers 1 and 2; as Latin-1 text in UTF-8, and as protocol 0 escapes it.
const std::string handle =
    "\xc9\xfa\x93\xf9\0\0\0\0\1\0\0\0\2\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\0\0\0\0\0\0\x80\x3f\0\0\0\x40"s;

std::string utf8(const std::string& raw) {
  std::string text;
  for (const char c : raw) {
    const auto byte = static_cast<uint8_t>(c);
    if (byte >= 0x80) text += static_cast<char>(0xc0 | (byte >> 6));
    text += static_cast<char>(byte < 0x80 ? byte : 0x80 | (byte & 0x3f));
  }
  return text;
}

std::string little_endian(uint32_t number) {
  std::string raw(4, '\0');
  std::memcpy(raw.data(), &number, 4);
  return raw;
}

void expect_one_two(const std::string& bytes) {
  const SavedStates saved = read_states(bytes, "x");
  ASSERT_EQ(saved.states.size(), 1u);
  EXPECT_EQ(saved.states[0].first, ParamKey(0));
  EXPECT_TRUE(same_bits(saved.states[0].second.array, array({1, 2})));
}

TEST(States, OfPython2AreRead) {
  // Protocol 2: bytearray(u'…', 'latin-1'), the class under its older path.
  const std::string text = utf8(handle);
  expect_one_two(
      "\x80\x02}q\0K\0cmxnet.ndarray\nNDArray\nq\1N\x85q\2Rq\3}q\4U\6handleq\5c__builtin__\nbytearray\nq\6X"s +
      little_endian(static_cast<uint32_t>(text.size())) + text + "q\7U\7latin-1q\x08\x86q\tRq\nsbs."s);
  // The same with the bytes as a text of Python 2.
  expect_one_two("\x80\x02}K\0cmxnet.ndarray\nNDArray\nN\x85R}U\6handleT"s +
                 little_endian(static_cast<uint32_t>(handle.size())) + handle + "sbs.");
  // Protocol 0: lines, quotes, marks.
  std::string escaped;
  for (const char c : handle) {
    const auto byte = static_cast<uint8_t>(c);
    if (byte == 0)
      escaped += "\\u0000";
    else
      escaped += c;  // Latin-1 stands for itself
  }
  expect_one_two(
      "(dp0\nI0\ncmxnet.ndarray\nNDArray\np1\n(Ntp2\nRp3\n(dp4\nS'handle'\np5\nc__builtin__\nbytearray\np6\n(V"s +
      escaped + "\np7\nS'latin-1'\np8\ntp9\nRp10\nsbs.");
  // A class of Python 2 and its fields.
  const SavedStates dumped = read_states(
      "(dp0\nccopy_reg\n_reconstructor\np1\n(cmxnet.optimizer\nSGD\np2\nc__builtin__\nobject\np3\nNtp4\nRp5\n(dp6\nS'"
      "lr'\n"
      "p7\nF0.10000000000000001\nsS'wd'\nL3L\nsS'on'\nI01\nsS'tab\\t\\x41'\nNsbt."s.insert(0, "("),
      "x");
  ASSERT_TRUE(dumped.optimizer);
  EXPECT_EQ(dumped.optimizer->module, "mxnet.optimizer");
  EXPECT_EQ(std::get<double>(dumped.optimizer->fields.at("lr")), 0.1);
  EXPECT_EQ(std::get<int64_t>(dumped.optimizer->fields.at("wd")), 3);
  EXPECT_TRUE(std::get<bool>(dumped.optimizer->fields.at("on")));
  EXPECT_EQ(dumped.optimizer->fields.count("tab\tA"), 1u);
}

TEST(States, NumPyArraysAreRead) {
  const std::string dtype = "cnumpy\ndtype\n(U\2f4K\0K\1tR(K\3U\1<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\0tb"s;
  expect_one_two("\x80\2}K\0cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(K\0tU\1btR(K\1(K\2t"s + dtype +
                 "\x89U\x08\0\0\x80\x3f\0\0\0\x40tbs."s);
  EXPECT_TRUE(refused("\x80\2}K\0cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(K\0tU\1btR(K\1(K\3t"s +
                          dtype + "\x89U\x08\0\0\x80\x3f\0\0\0\x40tbs."s,
                      "the bytes of a NumPy array (3,) of float32: found 8 bytes"));
}

// ---- What is refused

TEST(States, AnythingForeignInAPickleIsRefusedByName) {
  EXPECT_TRUE(refused("cos\nsystem\n(S'true'\ntR.", "at offset 0 ", "os.system"));
  EXPECT_TRUE(refused("\x80\4\x8c\2os\x8c\6system\x93."s, "os.system"));
  EXPECT_TRUE(refused("c__builtin__\neval\n.", "__builtin__.eval"));
  EXPECT_TRUE(refused("cbuiltins\ngetattr\n.", "builtins.getattr"));
  EXPECT_TRUE(refused("cmxnet.optimizer_evil\nSGD\n.", "mxnet.optimizer_evil.SGD"));
  EXPECT_TRUE(refused("cmxnet.ndarray\nzeros\n.", "mxnet.ndarray.zeros"));
  EXPECT_TRUE(refused("(ios\nsystem\n.", "os.system"));
  EXPECT_TRUE(refused("cmxnet.optimizer\nSGD\n)R.", "a call of mxnet.optimizer.SGD"));
  EXPECT_TRUE(refused("cbuiltins\nbytearray\n)\x81.", "builtins.bytearray"));
  EXPECT_TRUE(refused("P1\n.", "an instruction"));
  EXPECT_TRUE(refused("\x82\1.", "an instruction"));
  EXPECT_TRUE(refused("\x97.", "an instruction"));
  EXPECT_TRUE(refused("\x80\6.", "protocol 0 to 5", "protocol 6"));
}

TEST(States, PicklesOfOtherThingsAreRefused) {
  EXPECT_TRUE(refused("", "an instruction of a pickle"));
  EXPECT_TRUE(refused("K\5."s, "a dictionary of states", "a whole number"));
  EXPECT_TRUE(refused("}K\1K\2s.", "None, an array or a tuple", "a whole number"));
  EXPECT_TRUE(refused("}NNs.", "the number or name of a parameter", "None"));
  EXPECT_TRUE(refused("}K\1U\1as.", "found a text"));
  EXPECT_TRUE(refused("}}\x86.", "an optimizer beside its states", "a dictionary"));
  EXPECT_TRUE(refused("}K\1cmxnet.ndarray\nNDArray\nN\x85R}bs.", "a 'handle'"));
  EXPECT_TRUE(refused("}K\1cmxnet.ndarray\nNDArray\nN\x85R}U\6handleU\3abcsbs.", "the generation of an array"));
  EXPECT_TRUE(
      refused("\x8a\x09"
              "123456789.",
              "64 bits"));
  EXPECT_TRUE(refused("I99999999999999999999\n.", "64 bits"));
  EXPECT_TRUE(refused("t.", "a mark"));
  EXPECT_TRUE(refused("s.", "a value on the stack"));
  EXPECT_TRUE(refused("g7\n.", "nothing at 7"));
  EXPECT_TRUE(refused("}K\1s.", "a value on the stack"));
  EXPECT_TRUE(refused("(K\1d.", "in pairs"));
  EXPECT_TRUE(refused("}}.", "one value"));
  EXPECT_TRUE(refused("X\xff\xff\xff\xff.", "a text of 4294967295 bytes"));
  EXPECT_TRUE(refused("Sabc\n.", "a quoted text"));
  EXPECT_TRUE(refused("V\\u12\n.", "a text with escapes"));
  EXPECT_TRUE(refused("V\\U00110000\n.", "a text with escapes")) << "there is no such character";
  EXPECT_TRUE(refused("}K\1V\\U0010ffff\ns.", "found a text"));
}

TEST(States, ThatContainThemselvesOrGrowBeyondMeasureAreRefused) {
  EXPECT_TRUE(refused("}K\1]q\1h\1as.", "nested so deeply"));
  std::string doubling = "}K\1]q\0"s;  // sixteen levels, each holding the one before a hundred times
  for (int level = 0; level < 14; ++level) {
    doubling += "0("s;
    for (int i = 0; i < 100; ++i) doubling += "h\0"s;
    doubling += "tq\0"s;
  }
  EXPECT_TRUE(refused(doubling + "s.", "a sane size"));
  std::string deep(100'000, ']');
  EXPECT_TRUE(refused("}K\1" + deep + std::string(100'000, 'a') + "s.", ""));
}

TEST(States, AFileCutOrChangedAnywhereIsRefusedOrRead) {
  SavedStates saved = some_states();
  saved.resume = some_resume();
  const std::string whole = write_states(saved);
  const size_t pickle = write_states(some_states()).size();
  for (size_t length = 0; length < whole.size(); ++length) {
    if (length == pickle) continue;  // the pickle alone is a file of MXNet's
    EXPECT_TRUE(refused(whole.substr(0, length))) << "cut to " << length;
  }
  EXPECT_TRUE(refused(whole + "x"));
  // The checksum finds every changed byte.
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string changed = whole;
    changed[i] = static_cast<char>(changed[i] ^ 0x11);
    EXPECT_TRUE(refused(changed)) << "byte " << i;
  }
}

TEST(States, AFailedSaveLeavesTheOldFileAndIsAnError) {
  const TempDir dir;
  const std::string path = dir.file("a.states");
  save_states(path, some_states());
  expect_same(load_states(path), some_states());
  EXPECT_TRUE(fails_with([] { save_states("/dev/full", some_states()); }, "/dev/full", "No space left"));
  EXPECT_TRUE(fails_with([&] { save_states(dir.file("no/such/folder.states"), some_states()); }, "cannot write"));
  EXPECT_TRUE(fails_with([&] { load_states(dir.file("none.states")); }, "none.states", "No such file"));
}

}  // namespace
}  // namespace symbind
