// Each worker for itself: a push goes to the owners of its keys, which apply it when it arrives, and a pull asks them
// for their values of that moment. A worker's own pushes are applied before its later pulls are answered. Workers that
// have ended go on serving what they own until all have.
#pragma once

#include "symbind/kvstore/dist_member.h"

namespace symbind {

class AsyncMember final : public DistMember {
 public:
  using DistMember::DistMember;
  void push(const std::vector<DistEntry*>& entries, int priority) override;
  std::vector<NDArray> pull(const std::vector<DistEntry*>& entries) override;

 protected:
  void exchange_pushed(const Exchange& exchange) override;
  void own_letter(int from, Letter kind, LetterReader& text) override;

 private:
  void apply(LetterReader& text);
  void answer_pull(int from, LetterReader& text);
};

}  // namespace symbind
