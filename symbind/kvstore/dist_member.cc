#include "symbind/kvstore/dist_member.h"

#include <algorithm>
#include <future>
#include <numeric>
#include <utility>

#include "symbind/core/error.h"
#include "symbind/core/log.h"
#include "symbind/files/states.h"
#include "symbind/kvstore/sum.h"

namespace symbind {

std::span<const std::byte> bytes_of(const NDArray& array) {
  return {static_cast<const std::byte*>(array.data()), array.bytes()};
}

std::span<std::byte> mutable_bytes_of(const NDArray& array) {
  return {static_cast<std::byte*>(array.mutable_data()), array.bytes()};
}

const Share* DistEntry::share_of(int process) const {
  for (const Share& share : shares)
    if (share.owner == process) return &share;
  return nullptr;
}

UpdateUnit DistMember::Update::unit() const {
  if (updater) return updater->optimizer()->update_unit();
  return function ? UpdateUnit::parameter : UpdateUnit::element;
}

// ---- keys -----------------------------------------------------------------------------------------------------------

bool DistMember::has(const ParamKey& key) const {
  const auto guard = peers_->lock();
  return entries_.contains(key.str());
}

DistEntry& DistMember::entry_of(const ParamKey& key, const char* call) {
  const auto guard = peers_->lock();
  const auto found = entries_.find(key.str());
  require(found != entries_.end(), "[kvstore] ", call, " of key ", key, ", which was never given to init");
  return found->second;
}

DistEntry& DistMember::entry_named(const std::string& name) { return entry_of(ParamKey(name), "an exchange"); }

// What a process does before it joins a job concerns nobody else: it gets the state of the others when it joins.
void DistMember::require_worker(const char* call) const {
  require(!peers_->joining(), "[kvstore] ", call, " of ", type_, " by a worker that joins a running job: its stores ",
          "exchange nothing before the first epoch of fit()");
}

void DistMember::init(const std::vector<ParamKey>& keys, const std::vector<NDArray>& values) {
  if (keys.empty()) return;
  const bool alone = peers_->joining();
  Ready ready{.store = number_, .kind = ExchangeKind::init, .keys = {}, .bytes = {}, .details = {}};
  std::vector<DistEntry*> made;
  for (size_t i = 0; i < keys.size(); ++i) {
    ready.keys.push_back(keys[i].str());
    ready.bytes.push_back(values[i].bytes());
    ready.steps.push_back(0);
    ready.details.push_back(symbind::join(type_, ", shape ", values[i].shape(), ", type ", values[i].dtype()));
    NDArray copy = values[i].as_copy_in(cpu());
    const auto guard = peers_->lock();
    DistEntry& entry = entries_[keys[i].str()];
    entry.key = keys[i];
    entry.stored = std::move(copy);
    entry.is_on_gpu = false;
    entry.done = alone ? 0 : -1;
    entry.pending = !alone;
    made.push_back(&entry);
  }
  if (alone) return;
  peers_->ready(std::move(ready));
  finish(made);
  keys_were_made(made);
}

// The value of worker 0 goes to all.
void DistMember::exchange_init(const Exchange& exchange) {
  const int tag = static_cast<int>(1 + exchange.number % (largest_tag / 2) * 2);
  auto left = std::make_shared<size_t>(1);
  std::vector<DistEntry*> entries;
  if (in_order_.empty()) division_ = Division(owners());
  // Exchanges start in the same order on all workers, but may end in different orders: values are divided here.
  for (const std::string& name : exchange.keys) {
    DistEntry& entry = entry_named(name);
    entries.push_back(&entry);
    if (std::find(in_order_.begin(), in_order_.end(), &entry) != in_order_.end()) continue;
    in_order_.push_back(&entry);
    entry.shares = divided(entry);
    if (loaded_.contains(name)) peers_->work([this, &entry] { restore_state(entry); }, nullptr);
  }
  const auto done = [this, left, entries] {
    if (--*left > 0) return;
    {
      const auto guard = peers_->lock();
      for (DistEntry* const entry : entries) {
        entry->done = 0;
        entry->pending = false;
      }
    }
    peers_->changed();
  };
  for (DistEntry* const entry : entries) {
    if (peers_->rank() != 0) {
      ++*left;
      peers_->receive(0, tag, mutable_bytes_of(entry->stored), done);
    }
    for (int other = 1; peers_->rank() == 0 && other < peers_->workers(); ++other) {
      ++*left;
      peers_->send(other, tag, bytes_of(entry->stored), done);
    }
  }
  done();
}

// ---- exchanges ------------------------------------------------------------------------------------------------------

void DistMember::exchange(const Exchange& exchange) {
  switch (exchange.kind) {
    case ExchangeKind::init:
      return exchange_init(exchange);
    case ExchangeKind::push:
      return exchange_pushed(exchange);
    case ExchangeKind::barrier:
    case ExchangeKind::vote:
    case ExchangeKind::admission: {
      {
        const auto guard = peers_->lock();
        ++count_of(*this, exchange.kind).finished;
        if (exchange.kind == ExchangeKind::vote) unanimous_ = exchange.unanimous;
      }
      return peers_->changed();
    }
  }
}

void DistMember::synchronize(ExchangeKind kind, std::vector<std::string> keys, bool vote) {
  Count& count = count_of(*this, kind);
  uint64_t mine = 0;
  {
    const auto guard = peers_->lock();
    mine = ++count.announced;
  }
  std::vector<uint64_t> bytes(keys.size());
  peers_->ready({.store = number_,
                 .kind = kind,
                 .keys = std::move(keys),
                 .bytes = std::move(bytes),
                 .details = {},
                 .vote = vote,
                 .steps = {static_cast<int64_t>(mine)}});
  peers_->wait(Peers::Needs::workers, [&] { return count.finished >= mine; });
}

void DistMember::barrier() {
  if (peers_->joining()) return;
  finish_pushes();
  synchronize(ExchangeKind::barrier);
}

bool DistMember::all_agree(const std::string& subject, bool own) {
  if (peers_->joining()) return own;
  {
    const auto guard = peers_->lock();
    subject_ = subject;
  }
  synchronize(ExchangeKind::vote, {subject}, own);
  const auto guard = peers_->lock();
  return unanimous_;
}

void DistMember::finish(const std::vector<DistEntry*>& entries) {
  peers_->wait(Peers::Needs::workers, [&] {
    return std::none_of(entries.begin(), entries.end(), [](const DistEntry* entry) { return entry->pending; });
  });
}

void DistMember::finish_all() {
  std::vector<DistEntry*> all;
  {
    const auto guard = peers_->lock();
    for (auto& [name, entry] : entries_) all.push_back(&entry);
  }
  finish(all);
}

// Called under the lock of Peers.
std::string DistMember::awaited() const {
  const DistEntry* first = nullptr;
  for (const auto& [name, entry] : entries_)
    if (entry.pending && (!first || entry.pushes < first->pushes)) first = &entry;
  if (first && first->pushes == 0) return symbind::join("the initial value of key ", first->key);
  if (first) return symbind::join("key ", first->key, " at step ", first->pushes);
  if (votes_.finished < votes_.announced) return symbind::join(subject_, " at step ", votes_.announced);
  if (admissions_.finished < admissions_.announced) return "the admission of new workers";
  if (!asked_.empty()) return asked_;
  return barriers_.finished < barriers_.announced ? symbind::join("barrier ", barriers_.announced) : "";
}

std::string DistMember::settings() const {
  return symbind::join(
      type_, ", ",
      update_.updater    ? symbind::join("optimizer ", update_.updater->optimizer()->name())
      : update_.function ? "an updater function"
                         : "no optimizer",
      ", optimizer states loaded ", loads_, " times, ",
      compression_ ? symbind::join("2bit compression with threshold ", compression_->threshold()) : "no compression");
}

// ---- updates --------------------------------------------------------------------------------------------------------

void DistMember::update_now(std::vector<Updater::Item> items) {
  if (update_.function)
    for (const Updater::Item& item : items) update_.function(item.key, item.grad, item.weight);
  else if (!items.empty())
    (*update_.updater)(items);
}

// The sum of the workers' pushes, in the order of the workers: without a copy if there is only one, else in `out`.
NDArray DistMember::summed(DistEntry& entry, const Share& share, std::span<const NDArray> inputs, bool words,
                           const NDArray& out) {
  const bool direct = inputs.size() == 1 && !words && !out;
  if (direct) return inputs[0];
  NDArray target = out;
  if (!target) {
    const Shape shape = part_of(entry.stored, share).shape();
    if (!entry.total || entry.total.shape() != shape) entry.total = NDArray(shape, cpu(), entry.stored.dtype());
    target = entry.total;
  }
  if (words) {
    compression_->sum_to(target, inputs);
  } else {
    std::vector<NDArray> no_copies;  // all of them are on the CPU
    sum_to(target, inputs, no_copies);
  }
  return target;
}

Shares DistMember::divided(const DistEntry& entry) { return division_.next(entry.stored.size(), update_.unit()); }

void DistMember::divide() {
  division_ = Division(owners());
  for (DistEntry* const entry : in_order_) {
    entry->shares = divided(*entry);
    entry->received.clear();
  }
}

void DistMember::set_update(Update update) {
  finish_all();
  before_division();
  on_updater([&] {
    for (DistEntry* const entry : in_order_)
      if (std::exchange(entry->is_on_gpu, false)) entry->device_sum.copyto(entry->stored);
    update_ = std::move(update);
    workers_of_update_ = peers_->workers();
    divide();
  });
  update_was_set();
  barrier();
}

void DistMember::set_compression(const GradientCompression& compression) {
  finish_all();
  on_updater([&] {
    compression_ = compression;
    const auto guard = peers_->lock();
    for (auto& [name, entry] : entries_) {
      entry.residual = {};
      entry.words = {};
      entry.received.clear();
    }
  });
  compression_was_set();
}

// Waits even after a failure: the job uses objects of the caller.
void DistMember::on_updater(std::function<void()> job) {
  peers_->check_failure();
  const auto task = std::make_shared<std::packaged_task<void()>>(std::move(job));
  std::future<void> done = task->get_future();
  peers_->work([task] { (*task)(); }, nullptr);
  done.get();
}

// ---- requests between workers ---------------------------------------------------------------------------------------

std::map<int, std::vector<std::byte>> DistMember::ask(MessageType kind,
                                                      const std::map<int, std::vector<std::byte>>& texts,
                                                      const std::string& what) {
  peers_->check_failure();
  const uint64_t request = ++questions_;
  {
    const auto guard = peers_->lock();
    open_[request].missing = texts.size();
    asked_ = what;
  }
  peers_->post([this, kind, request, texts] {
    {
      const auto guard = peers_->lock();
      if (const auto found = open_.find(request); found == open_.end() || found->second.abandoned) return;
    }
    for (const auto& [worker, text] : texts) {
      MessageWriter message;
      message << kind << request;
      message.bytes(text);
      peers_->write(worker, number_, message.take());
    }
  });
  try {
    peers_->wait(Peers::Needs::threads, [&] { return open_.at(request).missing == 0; });
  } catch (...) {  // interrupted, or the job has failed
    const auto guard = peers_->lock();
    open_.erase(request);
    asked_.clear();
    throw;
  }
  const auto guard = peers_->lock();
  const Question answered = std::move(open_.at(request));
  open_.erase(request);
  asked_.clear();
  require(!answered.abandoned, "[kvstore] a worker was lost while this call waited for replies: repeat the call");
  return answered.replies;
}

// The recipients of open requests have new ranks now, or are lost.
void DistMember::regrouped() {
  {
    const auto guard = peers_->lock();
    for (auto& [request, question] : open_) {
      question.abandoned = true;
      question.missing = 0;
    }
  }
  peers_->changed();
}

void DistMember::reply(int to, uint64_t request, std::vector<std::byte> text) {
  MessageWriter message;
  message << MessageType::reply << request;
  message.bytes(text);
  peers_->write(to, number_, message.take());
}

void DistMember::message(int from, MessageReader& text) {
  const auto kind = text.number<MessageType>();
  if (kind == MessageType::reply) {
    {
      const auto guard = peers_->lock();
      const auto found = open_.find(text.number<uint64_t>());
      if (found == open_.end()) return;  // the requesting call was interrupted
      const auto rest = text.rest();
      found->second.replies[from].assign(rest.begin(), rest.end());
      --found->second.missing;
    }
    return peers_->changed();
  }
  if (kind == MessageType::states) return answer_states(from, text.number<uint64_t>());
  if (kind == MessageType::command) {
    const auto request = text.number<uint64_t>();
    const int head = text.number<int>();
    return peers_->work(
        [this, head, body = text.text()] {
          if (handler_)
            handler_(head, body);
          else
            log_warning("[kvstore] command ", head, " arrived, but ", peers_->title(peers_->rank()),
                        " has no handler for commands");
        },
        [this, from, request] { reply(from, request, {}); });
  }
  own_message(from, kind, text);
}

void DistMember::own_message(int from, MessageType, MessageReader&) {
  fail("[kvstore] worker ", from, " sent a message that ", type_, " does not know: do all run the same version?");
}

void DistMember::set_command_handler(KVStore::CommandHandler handler) {
  on_updater([&] { handler_ = std::move(handler); });
}

void DistMember::send_command(int head, const std::string& body) {
  require_worker("send_command_to_servers");
  MessageWriter text;
  text << head << body;
  std::map<int, std::vector<std::byte>> texts;
  const std::vector<std::byte> written = text.take();
  const Owners all_owners = owners();
  for (int owner = all_owners.first; owner < all_owners.end(); ++owner) texts[owner] = written;
  ask(MessageType::command, texts);
}

// ---- states of the optimizer ----------------------------------------------------------------------------------------

void DistMember::answer_states(int from, uint64_t request) {
  auto bytes = std::make_shared<std::string>();
  peers_->work(
      [this, bytes] {
        if (update_.updater) *bytes = update_.updater->get_states();
      },
      [this, from, request, bytes] {
        MessageWriter text;
        text << *bytes;
        reply(from, request, text.take());
      });
}

std::vector<int> DistMember::holders_of_states() const {
  std::vector<int> holders(static_cast<size_t>(owners().count));
  std::iota(holders.begin(), holders.end(), owners().first);
  return holders;
}

SavedStates DistMember::states(bool dump_optimizer) {
  require(update_.updater != nullptr,
          "[kvstore] the store has no optimizer whose states could be saved; call set_optimizer");
  finish_all();
  std::map<int, std::vector<std::byte>> texts;
  for (const int owner : holders_of_states()) texts[owner] = {};
  std::map<int, std::map<ParamKey, StateTree>> of_owner;
  SavedStates all;
  on_updater([&] { all = read_states(update_.updater->get_states(dump_optimizer), "states"); });
  ResumeState& resume = all.resume.value();
  std::map<ParamKey, StateTree> merged;
  for (const auto& [owner, reply] : ask(MessageType::states, texts)) {
    MessageReader text(reply);
    const std::string bytes = text.text();
    require(!bytes.empty(), "[kvstore] ", peers_->title(owner), " on host ", peers_->host(owner),
            " has no optimizer: call set_optimizer on every worker");
    SavedStates part = read_states(bytes, symbind::join("states of ", peers_->title(owner)));
    for (auto& [key, state] : part.states) of_owner[owner].insert_or_assign(key, std::move(state));
    if (!part.resume) continue;
    resume.num_update = std::max(resume.num_update, part.resume->num_update);
    for (const auto& [key, count] : part.resume->index_update_count) {
      int64_t& known = resume.index_update_count[key];
      known = std::max(known, count);
    }
    resume.numbers.merge(part.resume->numbers);
  }
  for (const DistEntry* const entry : in_order_) {
    std::vector<StateTree> parts;
    for (const Share& share : entry->shares)
      if (const auto found = of_owner[share.owner].find(entry->key); found != of_owner[share.owner].end())
        parts.push_back(std::move(found->second));
    if (parts.size() == entry->shares.size())
      merged.insert_or_assign(entry->key, whole_state(parts, entry->stored, entry->shares));
  }
  all.states.assign(merged.begin(), merged.end());
  return all;
}

void DistMember::set_states(const SavedStates& states) {
  require(update_.updater != nullptr,
          "[kvstore] the store has no optimizer whose states could be loaded; call set_optimizer");
  finish_all();
  on_updater([&] { take_states(states); });
  ++loads_;
  states_were_set(states);
}

void DistMember::take_states(const SavedStates& states) {
  SavedStates own = states;
  own.states.clear();
  std::map<std::string, StateTree> later;
  for (const auto& [key, state] : states.states) {
    const DistEntry* const entry = has(key) ? &entry_of(key, "load") : nullptr;
    if (!entry || entry->shares.empty())
      later[key.str()] = state;
    else if (const Share* const share = entry->share_of(peers_->rank()))
      own.states.emplace_back(key, cut_state(state, entry->stored, *share));
  }
  update_.updater->set_states(own);
  loaded_ = std::move(later);
}

void DistMember::take_share(const ParamKey& key, const NDArray& stored, const Share& share) {
  DistEntry* entry = nullptr;
  {
    const auto guard = peers_->lock();
    entry = &entries_[key.str()];
  }
  entry->key = key;
  entry->stored = stored;
  entry->shares = {share};
  entry->total = {};
  restore_state(*entry);
}

// Restores a state that was loaded before the key existed.
void DistMember::restore_state(const DistEntry& entry) {
  const auto found = loaded_.find(entry.key.str());
  if (found == loaded_.end() || !update_.updater) return;
  if (const Share* const share = entry.share_of(peers_->rank()))
    update_.updater->set_state(entry.key, cut_state(found->second, entry.stored, *share));
}

}  // namespace symbind
