#include "symbind/kvstore/dist_async.h"

#include <cstring>

#include "symbind/core/error.h"

namespace symbind {
namespace {

constexpr int64_t per_word = 16;  // elements of a compressed gradient

}  // namespace

void AsyncMember::push(const std::vector<DistEntry*>& entries, int /*priority*/) {
  peers_->check_failure();
  std::map<int, std::vector<std::pair<DistEntry*, Share>>> of_owner;
  for (DistEntry* const entry : entries) {
    ++entry->pushes;
    for (const Share& share : entry->shares) of_owner[share.owner].emplace_back(entry, share);
  }
  std::map<int, std::vector<std::byte>> letters;
  for (const auto& [owner, shares] : of_owner) {
    LetterWriter letter;
    letter << Letter::push << static_cast<uint64_t>(shares.size());
    for (const auto& [entry, share] : shares) {
      const NDArray part = compression_
                               ? entry->words.slice(share.begin / per_word, GradientCompression::words_for(share.end))
                               : part_of(entry->gradient, share);
      letter << entry->key.str() << compression_.has_value() << static_cast<uint64_t>(part.bytes());
      letter.bytes(bytes_of(part));
    }
    letters[owner] = letter.take();
  }
  for (DistEntry* const entry : entries) entry->gradient = {};
  peers_->post([this, letters = std::move(letters)] {
    for (const auto& [owner, text] : letters) peers_->write(owner, number_, text);
  });
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
    LetterWriter text;
    text << keys;
    questions[owner] = text.take();
  }
  for (const auto& [owner, reply] : ask(Letter::pull, questions)) {
    LetterReader text(reply);
    for (const NDArray& part : parts[owner])
      std::memcpy(part.mutable_data(), text.bytes(part.bytes()).data(), part.bytes());
  }
  std::vector<NDArray> values;
  for (const DistEntry* const entry : entries) values.push_back(entry->pulled);
  return values;
}

void AsyncMember::exchange_pushed(const Exchange&) { fail("[kvstore] ", type_, " exchanges nothing in step"); }

void AsyncMember::own_letter(int from, Letter kind, LetterReader& text) {
  if (kind == Letter::push) return apply(text);
  if (kind == Letter::pull) return answer_pull(from, text);
  DistMember::own_letter(from, kind, text);
}

void AsyncMember::apply(LetterReader& text) {
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

void AsyncMember::answer_pull(int from, LetterReader& text) {
  const auto request = text.number<uint64_t>();
  auto answer = std::make_shared<std::vector<std::byte>>();
  peers_->work(
      [this, keys = text.texts(), answer] {
        LetterWriter values;
        for (const std::string& name : keys) {
          const DistEntry& entry = entry_named(name);
          values.bytes(bytes_of(part_of(entry.stored, *entry.share_of(peers_->rank()))));
        }
        *answer = values.take();
      },
      [this, from, request, answer] { reply(from, request, std::move(*answer)); });
}

}  // namespace symbind
