#include "config/codec_pair.h"

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "compress/codecs/plugin.h"
#include "config/codec_config.h"
#include "config/specs.h"
#include "models/frozen.h"

namespace thinwire {
namespace {

// `To` has activations and gradients, those of all cuts or of one.
template <typename To>
absl::Status SetDirections(const std::optional<CodecSpec>& activations,
                           const std::optional<CodecSpec>& gradients, To* to) {
  if (activations) {
    ASSIGN_OR_RETURN(*to->mutable_activations(), ConfigOf(*activations));
  }
  if (gradients) {
    ASSIGN_OR_RETURN(*to->mutable_gradients(), ConfigOf(*gradients));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CodecPair> ParseCodecPair(const std::string& text, const std::string& parameters) {
  const std::vector<std::string> parts = absl::StrSplit(text, '|');
  if (parts.size() > 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", text, "\": ", parts.size(), " codecs, want one or a pair"));
  }
  const auto parsed = [&](const std::string& part) {
    return ParseCodecOrLibrary(std::string(absl::StripAsciiWhitespace(part)), parameters);
  };
  CodecPair pair;
  ASSIGN_OR_RETURN(pair.activations, parsed(parts.front()));
  ASSIGN_OR_RETURN(pair.gradients, parsed(parts.back()));
  pair.is_one = parts.size() == 1;
  if (pair.is_one && pair.gradients.indices == Indices::kShared) {
    return absl::InvalidArgumentError(absl::StrCat(
        CodecText(pair.gradients), ": wants the codec whose indices it shares: \"topk(ratio=0.1, ",
        "scope=sample) | topk(indices=shared)\""));
  }
  if (pair.is_one) pair.activations.support = Support::kAll;
  if (pair.activations.needs_support()) {
    return absl::InvalidArgumentError(absl::StrCat(
        CodecText(pair.activations), " for activations: nothing was received before them"));
  }
  return pair;
}

bool MaySendGradients(const Experiment& experiment) {
  const absl::StatusOr<Partition> partition = PartitionFrom(experiment);
  if (!partition.ok() || partition->cuts.empty()) return true;
  return HasGradients(partition->model, partition->cuts.back());
}

absl::Status SetCodecs(const std::optional<CodecSpec>& activations,
                       const std::optional<CodecSpec>& gradients, const std::string& cut,
                       Experiment* experiment) {
  CompressionConfig* compression = experiment->mutable_compression();
  compression->mutable_activations()->Clear();
  compression->mutable_gradients()->Clear();
  compression->set_warmup_epochs(0);
  compression->set_warmup_steps(0);
  for (auto& [name, own] : *compression->mutable_boundaries()) {
    own.clear_activations();
    own.clear_gradients();
  }
  std::optional<CodecSpec> sent;
  if (MaySendGradients(*experiment)) sent = gradients;
  if (cut.empty()) return SetDirections(activations, sent, compression);
  return SetDirections(activations, sent, &(*compression->mutable_boundaries())[cut]);
}

}  // namespace thinwire
