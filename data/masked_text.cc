#include "data/masked_text.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/digest.h"
#include "base/random.h"

namespace thinwire {
namespace {

constexpr int64_t kFrame = 2;  // [CLS] and [SEP]

// Numbers of a hundred hidden tokens that become [MASK], or another token.
constexpr uint32_t kMasked = 80, kReplaced = 10;

std::vector<int32_t> Ordinary(int64_t vocabulary, const SpecialTokens& special) {
  std::vector<int32_t> ids;
  for (int32_t id = 0; id < vocabulary; ++id) {
    if (!special.has(id)) ids.push_back(id);
  }
  return ids;
}

}  // namespace

int64_t HiddenTokens(int64_t context, double rate) {
  const auto tokens = static_cast<double>(context - kFrame);
  return std::max<int64_t>(1, std::llround(rate * tokens));
}

MaskedText::MaskedText(TokenRange tokens, const Options& options)
    : text_(std::move(tokens), options.vocabulary, options.context - kFrame, options.windows,
            options.limit),
      context_(options.context),
      rate_(options.rate),
      special_(options.special),
      ordinary_(Ordinary(options.vocabulary, options.special)) {
  assert(context_ > kFrame && HiddenTokens(context_, rate_) <= context_ - kFrame);
  Digest digest;
  digest.AddWord(text_.digest());
  digest.AddWord(static_cast<uint64_t>(HiddenTokens(context_, rate_)));
  for (const int32_t id : {special_.start, special_.separator, special_.mask}) {
    digest.AddWord(static_cast<uint64_t>(id));
  }
  digest_ = digest.value();
}

std::vector<int32_t> MaskedText::Whole(int64_t sample, const Augmentation& augmentation) const {
  std::vector<int32_t> ids(static_cast<size_t>(context_));
  ids.front() = special_.start;
  ids.back() = special_.separator;
  text_.LoadTokens(sample, augmentation,
                   absl::MakeSpan(ids).subspan(1, static_cast<size_t>(context_ - kFrame)));
  return ids;
}

std::vector<MaskedText::Hidden> MaskedText::HiddenIn(const std::vector<int32_t>& ids,
                                                     int64_t sample,
                                                     const Augmentation& augmentation) const {
  RandomStream random(RandomKey(augmentation.mask, static_cast<uint64_t>(sample)));
  std::vector<size_t> positions(ids.size() - kFrame);
  std::iota(positions.begin(), positions.end(), 1);
  for (size_t i = positions.size(); i > 1; --i) {  // Fisher-Yates
    std::swap(positions[i - 1], positions[random.Below(static_cast<uint32_t>(i))]);
  }
  std::stable_partition(positions.begin(), positions.end(),
                        [&](size_t position) { return !special_.has(ids[position]); });
  std::vector<Hidden> hidden;
  for (int64_t i = 0; i < HiddenTokens(context_, rate_); ++i) {
    const size_t position = positions[static_cast<size_t>(i)];
    const uint32_t fate = random.Below(100);
    int32_t shown = ids[position];
    if (fate < kMasked) {
      shown = special_.mask;
    } else if (fate < kMasked + kReplaced && !ordinary_.empty()) {
      shown = ordinary_[random.Below(static_cast<uint32_t>(ordinary_.size()))];
    }
    hidden.push_back({position, shown});
  }
  return hidden;
}

void MaskedText::Labels(int64_t sample, const Augmentation& augmentation,
                        absl::Span<int32_t> out) const {
  const std::vector<int32_t> ids = Whole(sample, augmentation);
  std::fill(out.begin(), out.end(), kNoLabel);
  for (const Hidden& hidden : HiddenIn(ids, sample, augmentation)) {
    out[hidden.position] = ids[hidden.position];
  }
}

void MaskedText::LoadTokens(int64_t sample, const Augmentation& augmentation,
                            absl::Span<int32_t> out) const {
  const std::vector<int32_t> ids = Whole(sample, augmentation);
  std::copy(ids.begin(), ids.end(), out.begin());
  for (const Hidden& hidden : HiddenIn(ids, sample, augmentation)) {
    out[hidden.position] = hidden.shown;
  }
}

}  // namespace thinwire
