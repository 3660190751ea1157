#include "stage_server/stage/text_request.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/random.h"
#include "nn/sampling.h"

namespace thinwire {
namespace {

SamplingSpec SamplingFrom(const Sampling& sampling) {
  SamplingSpec spec;
  spec.temperature = sampling.temperature();
  spec.top_k = sampling.top_k();
  spec.top_p = sampling.has_top_p() ? sampling.top_p() : 1;
  return spec;
}

// Returns the logits of the tokens that may be drawn.
absl::Span<const float> Drawable(const std::vector<float>& logits, const Sampling& sampling) {
  const auto all = absl::MakeConstSpan(logits);
  return sampling.vocabulary() > 0 ? all.subspan(0, sampling.vocabulary()) : all;
}

}  // namespace

absl::Status CheckText(const GenerateRequest& request, const Model& model, int64_t positions) {
  if (!model.tokens) {
    return absl::InvalidArgumentError(
        absl::StrCat("model ", model.name, " takes no tokens: there is no text to generate"));
  }
  for (const BlockSpec& block : model.blocks) {
    const LayerSpec* const whole = NeedsWholeSequences(block.layers);
    if (whole == nullptr) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "model ", model.name, ": block ", block.name, " has a layer ", Name(whole->kind),
        " of whole sequences: there is no text to generate token by token"));
  }
  const int64_t first = request.first_position(), room = model.positions - first;
  if (first > positions) {
    return absl::FailedPreconditionError(absl::StrCat("first_position: ", first, ", want 0 to ",
                                                      positions, ", the positions so far"));
  }
  if (request.ids_size() < 1 || request.ids_size() > room) {
    return absl::InvalidArgumentError(absl::StrCat("ids: ", request.ids_size(), " from position ",
                                                   first, ", want 1 to ", room,
                                                   ", for a context of ", model.positions));
  }
  for (const int32_t id : request.ids()) {
    if (id >= 0 && id < model.classes) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("ids: ", id, ", want 0 to ", model.classes - 1, ", the model's vocabulary"));
  }
  if (request.step() < 1) return absl::InvalidArgumentError("step: 0, want tokens from 1");
  return CheckSampling(SamplingFrom(request.sampling()));
}

absl::StatusOr<int32_t> DrawToken(const GenerateRequest& request,
                                  const std::vector<float>& logits) {
  const bool is_finite =
      std::all_of(logits.begin(), logits.end(), [](float logit) { return std::isfinite(logit); });
  if (!is_finite) {
    return absl::OutOfRangeError(
        absl::StrCat("a logit of token ", request.step(), " is no finite number"));
  }
  const Sampling& sampling = request.sampling();
  RandomStream random(RandomKey(RandomKey(sampling.seed(), "sampling"), request.step()));
  return SampleToken(Drawable(logits, sampling), SamplingFrom(sampling), random.NextFloat());
}

}  // namespace thinwire
