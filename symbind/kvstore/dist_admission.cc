// How a new worker's store takes over the state of worker 0's.
#include <algorithm>

#include "symbind/files/states.h"
#include "symbind/kvstore/dist_elastic.h"

namespace symbind {
namespace {

constexpr int tag = 1;  // nothing else is exchanged meanwhile

std::string description(const Shape& shape, DType dtype) { return symbind::join("shape ", shape, ", type ", dtype); }

void write_key(MessageWriter& out, const DistEntry& entry) {
  out << entry.key.str() << entry.key.is_number() << entry.pushes
      << std::vector(entry.stored.shape().begin(), entry.stored.shape().end()) << entry.stored.dtype();
}

// With the shape and type of another worker's, and its number of steps.
DistEntry read_key(MessageReader& in) {
  DistEntry entry;
  const std::string name = in.text();
  entry.key = in.number<bool>() ? ParamKey(int64_t{std::stoll(name)}) : ParamKey(name);
  entry.pushes = entry.done = in.number<int64_t>();
  const auto dims = in.numbers<int64_t>();
  entry.stored = NDArray(Shape(dims), cpu(), in.number<DType>());
  return entry;
}

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }
std::span<std::byte> mutable_bytes_of(std::string& text) { return std::as_writable_bytes(std::span(text)); }

}  // namespace

// What is sent: a message that describes it all, the values, and the bytes of the optimizer's and the program's states.
struct ElasticMember::State {
  Progress progress;
  std::vector<DistEntry*> entries;
  std::map<std::string, int64_t> steps;
  int workers_of_update = 1;
  std::string optimizer, program;
};

// ---- what programs call ---------------------------------------------------------------------------------------------

int ElasticMember::begin_epoch(int epoch, const std::function<std::string()>& write,
                               const std::function<void(const std::string&)>& read) {
  if (peers_->joining()) {
    peers_->ask_to_join(number_);
    {
      const auto guard = peers_->lock();
      admissions_.announced = admissions_.finished;
    }
    read(program_state_);
    return epoch_;
  }
  peers_->finish_stores();
  const bool complete = peers_->rank() != 0 || !peers_->needs_workers();
  const bool all_there = all_agree("the beginning of an epoch", complete);
  peers_->begin_epoch();
  if (all_there) return epoch;
  if (peers_->rank() == 0 && peers_->await_replacements()) {
    epoch_ = epoch;
    program_state_ = write();
    peers_->admit_workers();
  }
  synchronize(ExchangeKind::admission);
  return epoch;
}

// ---- worker 0 -------------------------------------------------------------------------------------------------------

// Values and states stay as they are until the new workers push, too: they are sent from where they are.
void ElasticMember::send_state(const std::vector<int>& to) {
  MessageWriter text;
  text << MessageType::joined << settings() << loads_ << workers_of_update_ << epoch_;
  write(text, progress());
  const auto state = std::make_shared<State>();
  {
    const auto guard = peers_->lock();
    for (auto& [name, entry] : entries_)
      if (entry.done >= 0) state->entries.push_back(&entry);
    text << static_cast<uint64_t>(state->entries.size());
    for (const DistEntry* const entry : state->entries) write_key(text, *entry);
  }
  state->program = std::move(program_state_);
  program_state_.clear();
  peers_->work(
      [this, state] {
        if (update_.updater) state->optimizer = update_.updater->get_states(/*dump_optimizer=*/true);
      },
      [this, state, to, written = text.take()] {
        for (const int worker : to) {
          MessageWriter message;
          message.bytes(written) << static_cast<uint64_t>(state->optimizer.size())
                                 << static_cast<uint64_t>(state->program.size());
          peers_->write(worker, number_, message.take());
          const auto send = [&](std::span<const std::byte> data) {
            if (!data.empty()) peers_->send(worker, tag, data, [state] {});
          };
          for (const DistEntry* const entry : state->entries) send(symbind::bytes_of(entry->stored));
          send(bytes_of(state->optimizer));
          send(bytes_of(state->program));
        }
      });
}

// ---- a new worker ---------------------------------------------------------------------------------------------------

void ElasticMember::own_message(int from, MessageType kind, MessageReader& text) {
  if (kind != MessageType::joined || !peers_->joining()) return SyncMember::own_message(from, kind, text);
  receive_state(from, text);
}

// The keys of worker 0, which are those of this worker, too.
void ElasticMember::take_keys(State& state, MessageReader& text) {
  for (auto count = text.number<uint64_t>(); count > 0; --count) {
    DistEntry theirs = read_key(text);
    const std::string name = theirs.key.str();
    require(!keys_need_init_ || has(theirs.key), "[kvstore] this worker cannot join the job: worker 0 has key ", name,
            " in store ", number_, ", and this worker does not");
    const auto guard = peers_->lock();
    const auto [found, is_new] = entries_.try_emplace(name, theirs);
    DistEntry& own = found->second;
    const std::string expected = description(theirs.stored.shape(), theirs.stored.dtype());
    const std::string given = description(own.stored.shape(), own.stored.dtype());
    require(given == expected, "[kvstore] this worker cannot join the job: its key ", name, " has ", given,
            ", that of worker 0 ", expected);
    state.entries.push_back(&own);
    state.steps[name] = theirs.pushes;
  }
  const auto guard = peers_->lock();
  for (const auto& [name, entry] : entries_)
    require(state.steps.contains(name), "[kvstore] this worker cannot join the job: it has key ", name, " in store ",
            number_, ", and worker 0 does not");
}

void ElasticMember::receive_state(int from, MessageReader& text) {
  const auto state = std::make_shared<State>();
  const std::string expected = text.text();
  loads_ = text.number<int>();
  require(settings() == expected, "[kvstore] this worker cannot join the job: its store ", number_, " has ", settings(),
          ", that of worker 0 ", expected);
  state->workers_of_update = text.number<int>();
  epoch_ = text.number<int>();
  state->progress = read_progress(text);
  take_keys(*state, text);
  state->optimizer.resize(text.number<uint64_t>());
  state->program.resize(text.number<uint64_t>());

  const auto left = std::make_shared<size_t>(1);
  const auto received = [this, state, left] {
    if (--*left > 0) return;
    peers_->work([this, state] { take_state(*state); }, [this] { peers_->state_arrived(); });
  };
  const auto receive = [&](std::span<std::byte> into) {
    if (into.empty()) return;
    ++*left;
    peers_->receive(from, tag, into, received);
  };
  for (const DistEntry* const entry : state->entries) receive(symbind::mutable_bytes_of(entry->stored));
  receive(mutable_bytes_of(state->optimizer));
  receive(mutable_bytes_of(state->program));
  received();
}

// Random streams stay this worker's own.
void ElasticMember::take_state(const State& state) {
  if (update_.updater) {
    SavedStates saved = read_states(state.optimizer, "the states of worker 0");
    if (saved.resume) saved.resume->random.clear();
    update_.updater->set_states(saved);
  }
  program_state_ = state.program;
  const auto guard = peers_->lock();
  workers_of_update_ = state.workers_of_update;
  barriers_ = {state.progress.barriers, state.progress.barriers};
  votes_ = {state.progress.votes, state.progress.votes};
  unanimous_ = state.progress.unanimous;
  admissions_ = {state.progress.admissions, state.progress.admissions};
  for (DistEntry* const entry : state.entries) entry->pushes = entry->done = state.steps.at(entry->key.str());
}

}  // namespace symbind
