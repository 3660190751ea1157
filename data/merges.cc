#include "data/merges.h"

#include <functional>
#include <queue>

namespace thinwire {
namespace {

// A token of a word during its merges. Tokens are a linked list; a merge unlinks the right token.
struct Symbol {
  int32_t id;
  int32_t previous, next;  // -1: none
  int32_t rank;            // rank of its pair with the next token; kNoRank: none
  int32_t product;         // token that the pair becomes
};
constexpr int32_t kNoRank = INT32_MAX;

// A pair to merge. The lowest rank comes first; of equals the leftmost.
struct Candidate {
  int32_t rank, left;
  friend bool operator>(const Candidate& a, const Candidate& b) {
    return a.rank != b.rank ? a.rank > b.rank : a.left > b.left;
  }
};
using Candidates = std::priority_queue<Candidate, std::vector<Candidate>, std::greater<Candidate>>;

}  // namespace

bool Merges::Add(int32_t left, int32_t right, int32_t product) {
  const auto rank = static_cast<int32_t>(merges_.size());
  return merges_.try_emplace({left, right}, Merge{rank, product}).second;
}

// A heap gives the next pair to merge. A pair that has changed since it was pushed is recognised by
// its rank and skipped.
void Merges::Apply(size_t first, std::vector<int32_t>* ids) const {
  const auto size = static_cast<int32_t>(ids->size() - first);
  if (size < 2) return;
  std::vector<Symbol> symbols;
  symbols.reserve(static_cast<size_t>(size));
  for (int32_t i = 0; i < size; ++i) {
    symbols.push_back({(*ids)[first + i], i - 1, i + 1 < size ? i + 1 : -1, kNoRank, 0});
  }
  Candidates candidates;
  const auto pair_up = [&](int32_t left) {
    Symbol& symbol = symbols[left];
    symbol.rank = kNoRank;
    if (symbol.next < 0) return;
    const auto found = merges_.find({symbol.id, symbols[symbol.next].id});
    if (found == merges_.end()) return;
    symbol.rank = found->second.rank;
    symbol.product = found->second.product;
    candidates.push({symbol.rank, left});
  };
  for (int32_t i = 0; i < size; ++i) pair_up(i);
  while (!candidates.empty()) {
    const auto [rank, left] = candidates.top();
    candidates.pop();
    Symbol& symbol = symbols[left];
    if (symbol.rank != rank) continue;  // one of its tokens has been merged since
    Symbol& unlinked = symbols[symbol.next];
    symbol.id = symbol.product;
    symbol.next = unlinked.next;
    unlinked.rank = kNoRank;
    if (symbol.next >= 0) symbols[symbol.next].previous = left;
    pair_up(left);
    if (symbol.previous >= 0) pair_up(symbol.previous);
  }
  ids->resize(first);
  for (int32_t i = 0; i >= 0; i = symbols[i].next) ids->push_back(symbols[i].id);
}

}  // namespace thinwire
