#include "nn/sampling.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"

namespace thinwire {
namespace {

// Returns the k most probable tokens in order. If all are candidates and none need come first,
// returns all of them in any order.
std::vector<int32_t> Candidates(absl::Span<const float> logits, const SamplingSpec& spec) {
  std::vector<int32_t> tokens(logits.size());
  std::iota(tokens.begin(), tokens.end(), 0);
  const size_t k = spec.top_k > 0 ? static_cast<size_t>(spec.top_k) : tokens.size();
  if (k >= tokens.size() && spec.top_p == 1) return tokens;
  const auto last = tokens.begin() + static_cast<int64_t>(std::min(k, tokens.size()));
  std::partial_sort(tokens.begin(), last, tokens.end(), [&](int32_t a, int32_t b) {
    return logits[a] > logits[b] || (logits[a] == logits[b] && a < b);
  });
  tokens.erase(last, tokens.end());
  return tokens;
}

}  // namespace

absl::Status CheckSampling(const SamplingSpec& spec) {
  if (!(spec.temperature >= 0 && std::isfinite(spec.temperature))) {
    return absl::InvalidArgumentError(
        absl::StrCat("temperature: ", spec.temperature, ", want a finite number of at least 0"));
  }
  if (spec.top_k < 0) {
    return absl::InvalidArgumentError(absl::StrCat("top_k: ", spec.top_k, ", want at least 0"));
  }
  if (!(spec.top_p > 0 && spec.top_p <= 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("top_p: ", spec.top_p, ", want a number in (0, 1]"));
  }
  return absl::OkStatus();
}

int32_t SampleToken(absl::Span<const float> logits, const SamplingSpec& spec, double uniform) {
  const auto greatest = std::max_element(logits.begin(), logits.end());
  if (spec.temperature == 0) return static_cast<int32_t>(greatest - logits.begin());
  const std::vector<int32_t> tokens = Candidates(logits, spec);
  std::vector<double> sums(tokens.size());  // running sums of values proportional to probabilities
  double sum = 0;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const double above = static_cast<double>(logits[tokens[i]]) - static_cast<double>(*greatest);
    sums[i] = sum += std::exp(above / spec.temperature);
  }
  if (spec.top_p < 1) {
    const auto enough = std::lower_bound(sums.begin(), sums.end(), spec.top_p * sum);
    sum = *enough;
  }
  const auto drawn = std::upper_bound(sums.begin(), sums.end(), uniform * sum);
  return tokens[std::min<size_t>(drawn - sums.begin(), tokens.size() - 1)];
}

}  // namespace thinwire
