#include "symbind/kvstore/dist_async.h"

#include <cstring>
#include <utility>

#include "symbind/core/error.h"
#include "symbind/files/states.h"
#include "symbind/kvstore/optimizer_text.h"

namespace symbind {
namespace {

constexpr int64_t per_word = 16;  // elements of a compressed gradient

}  // namespace

Owners AsyncMember::owners() const {
  if (peers_->servers() > 0) return {peers_->workers(), peers_->servers()};
  return {0, peers_->workers()};
}

void AsyncMember::push(const std::vector<DistEntry*>& entries, int /*priority*/, const DeviceEventPtr& /*complete*/) {
  peers_->check_failure();
  std::map<int, std::vector<std::pair<DistEntry*, Share>>> of_owner;
  for (DistEntry* const entry : entries) {
    ++entry->pushes;
    for (const Share& share : entry->shares) of_owner[share.owner].emplace_back(entry, share);
  }
  std::map<int, std::vector<std::byte>> messages;
  for (const auto& [owner, shares] : of_owner) {
    MessageWriter message;
    message << MessageType::push << static_cast<uint64_t>(shares.size());
    for (const auto& [entry, share] : shares) {
      const NDArray part = compression_
                               ? entry->words.slice(share.begin / per_word, GradientCompression::words_for(share.end))
                               : part_of(entry->gradient, share);
      message << entry->key.str() << compression_.has_value() << static_cast<uint64_t>(part.bytes());
      message.bytes(bytes_of(part));
    }
    messages[owner] = message.take();
  }
  has_pushed_ = true;
  for (DistEntry* const entry : entries) entry->gradient = {};
  peers_->post([this, messages = std::move(messages)] {
    for (const auto& [owner, text] : messages) peers_->write(owner, number_, text);
  });
}

void AsyncMember::ask_owners(MessageType kind, const std::vector<std::byte>& text) {
  std::map<int, std::vector<std::byte>> texts;
  const Owners all_owners = owners();
  for (int owner = all_owners.first; owner < all_owners.end(); ++owner) texts[owner] = text;
  ask(kind, texts);
}

std::vector<NDArray> AsyncMember::pull(const std::vector<DistEntry*>& entries) {
  std::map<int, std::vector<std::string>> of_owner;
  std::map<int, std::vector<NDArray>> parts;
  for (DistEntry* const entry : entries) {
    if (!entry->pulled) entry->pulled = NDArray(entry->stored.shape(), cpu(), entry->stored.dtype());
    for (const Share& share : entry->shares) {
      of_owner[share.owner].push_back(entry->key.str());
      parts[share.owner].push_back(part_of(entry->pulled, share));
    }
  }
  std::map<int, std::vector<std::byte>> questions;
  for (const auto& [owner, keys] : of_owner) {
    MessageWriter text;
    text << keys;
    questions[owner] = text.take();
  }
  if (entries.empty()) return {};
  const std::string what = symbind::join("a pull of key ", entries[0]->key, " after step ", entries[0]->pushes);
  for (const auto& [owner, reply] : ask(MessageType::pull, questions, what)) {
    MessageReader text(reply);
    for (const NDArray& part : parts[owner])
      std::memcpy(part.mutable_data(), text.bytes(part.bytes()).data(), part.bytes());
  }
  std::vector<NDArray> values;
  for (const DistEntry* const entry : entries) values.push_back(entry->pulled);
  return values;
}

// An owner replies in order: the reply to an empty pull means that earlier pushes are applied.
void AsyncMember::finish_pushes() {
  if (!std::exchange(has_pushed_, false)) return;
  MessageWriter text;
  text << std::vector<std::string>();
  ask_owners(MessageType::pull, text.take());
}

void AsyncMember::exchange_pushed(const Exchange&) {
  fail("[kvstore] ", type_, " does not exchange gradients synchronously");
}

void AsyncMember::own_message(int from, MessageType kind, MessageReader& text) {
  if (kind == MessageType::push) return apply(text);
  if (kind == MessageType::pull) return answer_pull(from, text);
  if (kind == MessageType::keys) return take_keys(from, text);
  if (kind == MessageType::optimizer) return take_optimizer(from, text);
  if (kind == MessageType::compression) return take_compression(from, text);
  if (kind == MessageType::loaded) return take_loaded(from, text);
  DistMember::own_message(from, kind, text);
}

void AsyncMember::apply(MessageReader& text) {
  struct Pushed {
    DistEntry* entry;
    NDArray part;
    bool words;
  };
  auto pushed = std::make_shared<std::vector<Pushed>>();
  for (auto count = text.number<uint64_t>(); count > 0; --count) {
    DistEntry& entry = entry_named(text.text());
    const bool words = text.number<bool>();
    const auto bytes = text.bytes(text.number<uint64_t>());
    const Share* const share = entry.share_of(peers_->rank());
    require(share != nullptr, "[kvstore] key ", entry.key, " was pushed to a worker that does not own it");
    const NDArray value = part_of(entry.stored, *share);
    NDArray part = words ? NDArray(Shape{GradientCompression::words_for(share->size())}, cpu(), DType::int32)
                         : NDArray(value.shape(), cpu(), value.dtype());
    require(part.bytes() == bytes.size(), "[kvstore] a push of key ", entry.key, " has ", bytes.size(), " bytes, not ",
            part.bytes());
    std::memcpy(part.mutable_data(), bytes.data(), bytes.size());
    pushed->push_back({&entry, std::move(part), words});
  }
  peers_->work(
      [this, pushed] {
        std::vector<Updater::Item> items;
        for (const Pushed& each : *pushed) {
          const Share& share = *each.entry->share_of(peers_->rank());
          const NDArray stored = part_of(each.entry->stored, share);
          items.push_back(
              {each.entry->key, summed(*each.entry, share, {&each.part, 1}, each.words, NDArray()), stored});
        }
        update_now(std::move(items));
      },
      nullptr);
}

void AsyncMember::answer_pull(int from, MessageReader& text) {
  const auto request = text.number<uint64_t>();
  auto answer = std::make_shared<std::vector<std::byte>>();
  peers_->work(
      [this, keys = text.texts(), answer] {
        MessageWriter values;
        for (const std::string& name : keys) {
          const DistEntry& entry = entry_named(name);
          values.bytes(bytes_of(part_of(entry.stored, *entry.share_of(peers_->rank()))));
        }
        *answer = values.take();
      },
      [this, from, request, answer] { reply(from, request, std::move(*answer)); });
}

// ---- state that all owners need before the first push ---------------------------------------------------------------

// Keys get new owners, which start with the current values: these include all pushes so far.
void AsyncMember::before_division() {
  const std::vector<DistEntry*>& entries = entries_in_order();
  if (entries.empty()) return;
  MessageWriter nothing;
  nothing << std::vector<std::string>();
  ask_owners(MessageType::pull, nothing.take());  // answered when this worker's pushes are applied
  barrier();
  pull(entries);
  barrier();
  on_updater([&] {
    for (DistEntry* const entry : entries) entry->pulled.copyto(entry->stored);
  });
}

void AsyncMember::keys_were_made(const std::vector<DistEntry*>& entries) {
  if (informs_servers()) send_shares(entries);
  barrier();  // before the first push comes
}

void AsyncMember::update_was_set() {
  if (!informs_servers()) return;
  MessageWriter text;
  text << write_optimizer(update_.updater->optimizer());
  ask_owners(MessageType::optimizer, text.take());
  send_shares(entries_in_order());
}

void AsyncMember::compression_was_set() {
  if (informs_servers()) {
    MessageWriter text;
    text << compression_->threshold();
    ask_owners(MessageType::compression, text.take());
  }
  barrier();
}

void AsyncMember::states_were_set(const SavedStates& states) {
  if (peers_->servers() == 0) return;
  if (informs_servers()) {
    MessageWriter text;
    text << write_states(states);
    ask_owners(MessageType::loaded, text.take());
  }
  barrier();
}

// ---- worker 0, to the servers ---------------------------------------------------------------------------------------

// Each server gets its share of the values.
void AsyncMember::send_shares(const std::vector<DistEntry*>& entries) {
  std::map<int, std::vector<std::pair<const DistEntry*, Share>>> of_server;
  for (const DistEntry* const entry : entries)
    for (const Share& share : entry->shares) of_server[share.owner].emplace_back(entry, share);
  std::map<int, std::vector<std::byte>> texts;
  for (const auto& [server, shares] : of_server) {
    MessageWriter text;
    text << static_cast<uint64_t>(shares.size());
    for (const auto& [entry, share] : shares) {
      const std::vector<int64_t> shape(entry->stored.shape().begin(), entry->stored.shape().end());
      text << entry->key.is_number() << entry->key.str() << shape << entry->stored.dtype() << share.begin << share.end;
      text.bytes(bytes_of(part_of(entry->stored, share)));
    }
    texts[server] = text.take();
  }
  ask(MessageType::keys, texts);
}

// ---- a server, of worker 0 ------------------------------------------------------------------------------------------

void AsyncMember::do_for(int from, uint64_t request, std::function<void()> job) {
  peers_->work(std::move(job), [this, from, request] { reply(from, request, {}); });
}

void AsyncMember::take_keys(int from, MessageReader& text) {
  struct Given {
    ParamKey key;
    NDArray stored;  // only the share has values
    Share share;
  };
  const auto request = text.number<uint64_t>();
  std::vector<Given> all;
  for (auto left = text.number<uint64_t>(); left > 0; --left) {
    const bool is_number = text.number<bool>();
    const std::string name = text.text();
    const auto shape = text.numbers<int64_t>();
    const auto dtype = text.number<DType>();
    Share share{.owner = peers_->rank()};
    share.begin = text.number<int64_t>();
    share.end = text.number<int64_t>();
    const NDArray stored(Shape(shape), cpu(), dtype);
    const NDArray part = part_of(stored, share);
    std::memcpy(part.mutable_data(), text.bytes(part.bytes()).data(), part.bytes());
    all.push_back({is_number ? ParamKey(static_cast<int64_t>(std::stoll(name))) : ParamKey(name), stored, share});
  }
  do_for(from, request, [this, all = std::move(all)] {
    for (const Given& each : all) take_share(each.key, each.stored, each.share);
  });
}

void AsyncMember::take_optimizer(int from, MessageReader& text) {
  const auto request = text.number<uint64_t>();
  do_for(from, request, [this, optimizer = text.text()] {
    update_ = {std::make_shared<Updater>(read_optimizer(optimizer)), nullptr};
  });
}

void AsyncMember::take_compression(int from, MessageReader& text) {
  const auto request = text.number<uint64_t>();
  do_for(from, request, [this, threshold = text.number<float>()] { compression_.emplace(threshold); });
}

void AsyncMember::take_loaded(int from, MessageReader& text) {
  const auto request = text.number<uint64_t>();
  do_for(from, request, [this, states = text.text()] { take_states(read_states(states, "states of worker 0")); });
}

}  // namespace symbind
