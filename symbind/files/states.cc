// A .states file is a pickle that MXNet's Updater.set_states loads, {key: None | array | tuple}, or a pair of that and
// the optimizer; after it, ignored by Python, is Symbind's trailer:
//
//   8 bytes "SymbindR", u64 length, the payload, u32 CRC-32 of everything before
//
// The payload: u32 1 (its generation), i64 num_update, i64 begin_num_update, then three lists, each u64 count and
// items: (key, i64 count), (text, f64 number), (text, u64 random key, u64 draw). A text is u64 length and bytes; a key
// is u8 0 and an i64, or u8 1 and a text.
//
// States that are a part of a checkpoint end in a mark of the .params file beside them:
//
//   8 bytes "SymbindP", u64 its size, u32 its CRC-32, u32 CRC-32 of everything before
#include "symbind/files/states.h"

#include <cstring>

#include "symbind/core/atomic_file.h"
#include "symbind/files/byte_reader.h"
#include "symbind/files/checksum.h"
#include "symbind/files/pickle.h"
#include "symbind/files/state_pickle.h"

namespace symbind {
namespace {

constexpr std::string_view trailer_magic = "SymbindR";
constexpr uint32_t payload_generation = 1;

constexpr std::string_view mark_magic = "SymbindP";
constexpr size_t mark_bytes = 24;

uint32_t checksum(std::string_view bytes) { return Checksum().add(bytes).value(); }

template <class Number>
void append_number(std::string& bytes, Number number) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
}

// ---- The trailer

std::string write_payload(const ResumeState& resume) {
  std::string out;
  const auto put = [&](auto number) {
    char raw[sizeof number];
    std::memcpy(raw, &number, sizeof number);
    out.append(raw, sizeof number);
  };
  const auto put_text = [&](const std::string& text) {
    put(uint64_t{text.size()});
    out += text;
  };
  put(payload_generation);
  put(resume.num_update);
  put(resume.begin_num_update);
  put(uint64_t{resume.index_update_count.size()});
  for (const auto& [key, count] : resume.index_update_count) {
    put(static_cast<uint8_t>(!key.is_number()));
    if (key.is_number())
      put(key.number());
    else
      put_text(key.name());
    put(count);
  }
  put(uint64_t{resume.numbers.size()});
  for (const auto& [name, number] : resume.numbers) {
    put_text(name);
    put(number);
  }
  put(uint64_t{resume.random.size()});
  for (const auto& [context, cursor] : resume.random) {
    put_text(context);
    put(cursor.key);
    put(cursor.draw);
  }
  return out;
}

std::string read_text(ByteReader& in) {
  const auto length = in.read<uint64_t>("the length of a text");
  if (length > in.remaining()) in.fail_at(in.offset(), join("a text of ", length, " bytes"), in.remaining(), " more");
  std::string text(length, '\0');
  in.read(text.data(), length, "a text");
  return text;
}

ResumeState read_payload(ByteReader& in) {
  const uint64_t begin = in.offset();
  const auto generation = in.read<uint32_t>("the generation of a trailer");
  if (generation != payload_generation) in.fail_at(begin, "a trailer of generation 1", generation);
  ResumeState resume;
  resume.num_update = in.read<int64_t>("the number of updates");
  resume.begin_num_update = in.read<int64_t>("the number of updates at the beginning");
  for (auto left = in.read<uint64_t>("how many update counts there are"); left > 0; --left) {
    const bool named = in.read<uint8_t>("a key") != 0;
    const ParamKey key = named ? ParamKey(read_text(in)) : ParamKey(in.read<int64_t>("a key"));
    resume.index_update_count[key] = in.read<int64_t>("an update count");
  }
  for (auto left = in.read<uint64_t>("how many numbers there are"); left > 0; --left) {
    const std::string name = read_text(in);
    resume.numbers[name] = in.read<double>("a number");
  }
  for (auto left = in.read<uint64_t>("how many random states there are"); left > 0; --left) {
    const std::string context = read_text(in);
    RandomCursor& cursor = resume.random[context];
    cursor.key = in.read<uint64_t>("a random key");
    cursor.draw = in.read<uint64_t>("a random draw");
  }
  if (in.remaining() != 0) in.fail_at(in.offset(), "the end of a trailer", in.remaining(), " more bytes");
  return resume;
}

std::optional<ResumeState> read_trailer(std::string_view bytes, size_t begin, std::string_view source) {
  if (begin == bytes.size()) return std::nullopt;
  ByteReader in(bytes.substr(begin), source, begin);
  if (!bytes.substr(begin).starts_with(trailer_magic))
    in.fail_at(begin, "the end of the file, or a trailer", "other bytes");
  std::string magic(trailer_magic.size(), '\0');
  in.read(magic.data(), magic.size(), "a trailer");
  const auto length = in.read<uint64_t>("the length of a trailer");
  const uint64_t payload = in.offset();
  if (in.remaining() < sizeof(uint32_t) || in.remaining() - sizeof(uint32_t) != length)
    in.fail_at(payload, join("a trailer of ", length, " bytes and its checksum"), in.remaining(), " more bytes");
  uint32_t expected = 0;
  std::memcpy(&expected, bytes.data() + payload + length, sizeof expected);
  const uint32_t found = checksum(bytes.substr(0, payload + length));
  if (found != expected) in.fail_at(payload + length, join("the checksum ", found, " of the file"), expected);
  ByteReader content(bytes.substr(payload, length), source, payload);
  return read_payload(content);
}

// The mark at the end of a file, from the last bytes of it; none where they are something else.
std::optional<ParamsMark> mark_in(std::string_view last) {
  if (last.size() != mark_bytes || !last.starts_with(mark_magic)) return std::nullopt;
  ParamsMark mark;
  std::memcpy(&mark.bytes, last.data() + mark_magic.size(), sizeof mark.bytes);
  std::memcpy(&mark.checksum, last.data() + mark_magic.size() + sizeof mark.bytes, sizeof mark.checksum);
  return mark;
}

// The bytes before the mark, where one follows the pickle. The mark's own checksum is checked.
std::string_view without_mark(std::string_view bytes, size_t pickle, std::string_view source) {
  if (bytes.size() - pickle < mark_bytes || !mark_in(bytes.substr(bytes.size() - mark_bytes))) return bytes;
  const std::string_view summed = bytes.substr(0, bytes.size() - sizeof(uint32_t));
  uint32_t expected = 0;
  std::memcpy(&expected, summed.data() + summed.size(), sizeof expected);
  if (const uint32_t found = checksum(summed); found != expected)
    ByteReader(bytes, source).fail_at(summed.size(), join("the checksum ", found, " of the file"), expected);
  return bytes.substr(0, bytes.size() - mark_bytes);
}

}  // namespace

std::string with_params_mark(std::string states, const ParamsMark& mark) {
  states += mark_magic;
  append_number(states, mark.bytes);
  append_number(states, mark.checksum);
  append_number(states, checksum(states));
  return states;
}

std::optional<ParamsMark> params_mark_of(const std::string& path) {
  ByteReader in(path);
  if (in.remaining() < mark_bytes) return std::nullopt;
  in.skip(in.remaining() - mark_bytes);
  std::string last(mark_bytes, '\0');
  in.read(last.data(), last.size(), "the end of the file");
  return mark_in(last);
}

std::string write_states(const SavedStates& states) {
  std::string bytes = write_state_pickle(states);
  if (!states.resume) return bytes;
  const std::string payload = write_payload(*states.resume);
  bytes += trailer_magic;
  append_number(bytes, uint64_t{payload.size()});
  bytes += payload;
  append_number(bytes, checksum(bytes));
  return bytes;
}

SavedStates read_states(std::string_view bytes, std::string_view source) {
  const Pickle pickle = read_pickle(bytes, source);
  auto resume = read_trailer(without_mark(bytes, pickle.length, source), pickle.length, source);
  SavedStates saved = states_in(pickle, source);
  saved.resume = std::move(resume);
  return saved;
}

void save_states(const std::string& path, const SavedStates& states) {
  write_file_atomically(path, write_states(states));
}

SavedStates load_states(const std::string& path) {
  ByteReader in(path);
  std::string bytes(in.remaining(), '\0');
  in.read(bytes.data(), bytes.size(), "states of an optimizer");
  return read_states(bytes, path);
}

}  // namespace symbind
