#include "data/sentences.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "base/digest.h"

namespace thinwire {
namespace {

struct Lengths {
  int64_t first, second;
};

// Returns how much of two sentences is kept so that they have at most `room` tokens.
Lengths Truncated(int64_t first, int64_t second, int64_t room) {
  if (first + second <= room) return {first, second};
  int64_t shorter = std::min(first, second);
  int64_t longer = std::max(shorter, room - shorter);
  if (shorter + longer > room) {
    shorter = room / 2;
    longer = room - shorter;
  }
  return first <= second ? Lengths{shorter, longer} : Lengths{longer, shorter};
}

}  // namespace

std::vector<int32_t> Framed(const Sentences& sentences, bool is_pair, int64_t context,
                            const SpecialTokens& special) {
  const int64_t room = context - SpecialIn(is_pair);
  assert(room >= 0);
  const auto first = static_cast<int64_t>(sentences.first.size());
  const auto second = static_cast<int64_t>(sentences.second.size());
  const Lengths kept = is_pair ? Truncated(first, second, room) : Lengths{std::min(first, room), 0};
  std::vector<int32_t> ids = {special.start};
  ids.insert(ids.end(), sentences.first.begin(), sentences.first.begin() + kept.first);
  ids.push_back(special.separator);
  if (is_pair) {
    ids.insert(ids.end(), sentences.second.begin(), sentences.second.begin() + kept.second);
    ids.push_back(special.separator);
  }
  ids.resize(static_cast<size_t>(context), special.pad);
  return ids;
}

SentenceDataset::SentenceDataset(std::vector<int32_t> ids, std::vector<int32_t> labels,
                                 int64_t context, int64_t classes)
    : ids_(std::move(ids)), labels_(std::move(labels)), context_(context), classes_(classes) {
  assert(ids_.size() == labels_.size() * static_cast<size_t>(context_));
  Digest digest;
  digest.Add(ids_.data(), ids_.size() * sizeof(int32_t));
  digest.Add(labels_.data(), labels_.size() * sizeof(int32_t));
  for (const int64_t word : {context_, classes_}) digest.AddWord(static_cast<uint64_t>(word));
  digest_ = digest.value();
}

void SentenceDataset::Labels(int64_t sample, const Augmentation& /*augmentation*/,
                             absl::Span<int32_t> out) const {
  out[0] = labels_[static_cast<size_t>(sample)];
}

void SentenceDataset::LoadTokens(int64_t sample, const Augmentation& /*augmentation*/,
                                 absl::Span<int32_t> out) const {
  std::copy_n(ids_.begin() + sample * context_, context_, out.begin());
}

}  // namespace thinwire
