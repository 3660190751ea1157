#include "data/learn_word_pieces.h"

#include <algorithm>
#include <map>
#include <queue>
#include <set>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "data/unicode.h"
#include "data/word_piece.h"

namespace thinwire {
namespace {

constexpr size_t kMaxAlphabet = 1000;
constexpr int64_t kLeastOccurrences = 2;  // of a pair that becomes a token

// A token of the vocabulary; the text of one within words is without "##".
struct Piece {
  std::string text;
  bool is_first = false;  // whether it begins words

  friend bool operator<(const Piece& a, const Piece& b) {
    return a.text != b.text ? a.text < b.text : a.is_first > b.is_first;
  }
};

// A word of the texts as it is spelled so far.
struct SpelledWord {
  std::vector<int32_t> pieces;
  int64_t occurrences = 0;
};

using Pair = std::pair<int32_t, int32_t>;

// A pair of neighbours. The most frequent comes first, of equals that of the older tokens.
struct Frequent {
  int64_t occurrences;
  Pair pair;
  friend bool operator<(const Frequent& a, const Frequent& b) {
    return a.occurrences != b.occurrences ? a.occurrences < b.occurrences : a.pair > b.pair;
  }
};

using WordCounts = std::map<std::string, int64_t>;

WordCounts CountWords(const std::vector<std::string_view>& texts, bool lowercase) {
  absl::flat_hash_map<std::string, int64_t> counts;
  for (const std::string_view text : texts) {
    ForEachWord(text, lowercase, [&counts](std::string_view word) { ++counts[std::string(word)]; });
  }
  return {counts.begin(), counts.end()};
}

std::vector<std::string> CharactersOf(const std::string& word) {
  std::vector<std::string> characters;
  for (size_t at = 0; at < word.size();) {
    const size_t bytes = CharacterAt(word, at).bytes;
    characters.push_back(word.substr(at, bytes));
    at += bytes;
  }
  return characters;
}

std::set<std::string> AlphabetOf(const WordCounts& words) {
  std::map<std::string, int64_t> counts;
  for (const auto& [word, occurrences] : words) {
    for (const std::string& character : CharactersOf(word)) counts[character] += occurrences;
  }
  std::vector<std::pair<int64_t, std::string>> ranked;
  for (const auto& [character, occurrences] : counts) ranked.push_back({-occurrences, character});
  std::sort(ranked.begin(), ranked.end());
  ranked.resize(std::min(ranked.size(), kMaxAlphabet));
  std::set<std::string> alphabet;
  for (auto& [rank, character] : ranked) alphabet.insert(std::move(character));
  return alphabet;
}

// Joins pairs of tokens while words are spelled by fewer and longer ones.
class Learner {
 public:
  explicit Learner(const WordCounts& words) {
    const std::set<std::string> alphabet = AlphabetOf(words);
    for (const std::string& character : alphabet) {
      for (const bool is_first : {true, false}) (void)IdOf({character, is_first});
    }
    for (const auto& [word, occurrences] : words) AddWord(word, occurrences, alphabet);
    for (const auto& [pair, occurrences] : occurrences_) frequent_.push({occurrences, pair});
  }

  // Makes one more token, or finds one that there is already, and returns true; false if no pair is
  // frequent enough.
  bool Join() {
    while (!frequent_.empty()) {
      const Frequent best = frequent_.top();
      frequent_.pop();
      if (best.occurrences != occurrences_[best.pair]) continue;  // it has been counted anew since
      if (best.occurrences < kLeastOccurrences) return false;
      const auto [left, right] = best.pair;
      JoinInWords(best.pair,
                  IdOf({pieces_[left].text + pieces_[right].text, pieces_[left].is_first}));
      return true;
    }
    return false;
  }

  const std::vector<Piece>& pieces() const { return pieces_; }

 private:
  int32_t IdOf(const Piece& piece) {
    const auto [at, is_new] = ids_.emplace(piece, static_cast<int32_t>(pieces_.size()));
    if (is_new) pieces_.push_back(piece);
    return at->second;
  }

  void AddWord(const std::string& word, int64_t occurrences,
               const std::set<std::string>& alphabet) {
    SpelledWord spelled{{}, occurrences};
    for (const std::string& character : CharactersOf(word)) {
      if (alphabet.count(character) == 0) return;
      spelled.pieces.push_back(IdOf({character, spelled.pieces.empty()}));
    }
    words_.push_back(std::move(spelled));
    Count(words_.size() - 1, +1);
  }

  // Adds the pairs of a word to the counts, or takes them away.
  void Count(size_t word, int sign) {
    const SpelledWord& spelled = words_[word];
    for (size_t i = 1; i < spelled.pieces.size(); ++i) {
      const Pair pair(spelled.pieces[i - 1], spelled.pieces[i]);
      occurrences_[pair] += sign * spelled.occurrences;
      changed_.insert(pair);
      if (sign > 0) words_of_[pair].insert(word);
    }
  }

  void JoinInWords(const Pair& pair, int32_t product) {
    changed_.clear();
    const std::set<size_t> words = std::exchange(words_of_[pair], {});
    for (const size_t word : words) {
      Count(word, -1);
      std::vector<int32_t>& pieces = words_[word].pieces;
      std::vector<int32_t> joined;
      for (size_t i = 0; i < pieces.size(); ++i) {
        const bool joins = i + 1 < pieces.size() && Pair(pieces[i], pieces[i + 1]) == pair;
        joined.push_back(joins ? product : pieces[i]);
        i += joins;
      }
      pieces = std::move(joined);
      Count(word, +1);
    }
    for (const Pair& other : changed_) frequent_.push({occurrences_[other], other});
  }

  std::vector<Piece> pieces_;  // by age
  std::map<Piece, int32_t> ids_;
  std::vector<SpelledWord> words_;
  absl::flat_hash_map<Pair, int64_t> occurrences_;
  absl::flat_hash_map<Pair, std::set<size_t>> words_of_;  // words that have or had the pair
  std::set<Pair> changed_;  // pairs with other counts since a join began
  std::priority_queue<Frequent> frequent_;
};

}  // namespace

absl::StatusOr<std::string> LearnWordPieces(const std::vector<std::string_view>& texts,
                                            bool lowercase, int64_t size) {
  Learner learner(CountWords(texts, lowercase));
  const auto special = SpecialTokenNames();
  const int64_t room = size - static_cast<int64_t>(special.size());
  const auto learned = [&] { return static_cast<int64_t>(learner.pieces().size()); };
  if (learned() == 0) return absl::InvalidArgumentError("the texts have no words");
  if (room < learned()) {
    return absl::InvalidArgumentError(
        absl::StrCat("size: ", size, ", want at least ", learned() + size - room,
                     ", the special tokens and the characters of the texts"));
  }
  while (learned() < room && learner.Join()) {
  }
  std::string lines;
  for (const std::string_view name : special) absl::StrAppend(&lines, std::string(name), "\n");
  for (const Piece& piece : learner.pieces()) {
    absl::StrAppend(&lines, piece.is_first ? "" : "##", piece.text, "\n");
  }
  return lines;
}

}  // namespace thinwire
