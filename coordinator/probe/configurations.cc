#include "coordinator/probe/configurations.h"

#include <fstream>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "compress/plugin.h"
#include "config/codec_config.h"
#include "config/resolve.h"

namespace thinwire {
namespace {

CodecSpec WithoutSupport(CodecSpec codec) {
  codec.support = Support::kAll;
  return codec;
}

absl::StatusOr<std::vector<ProbeConfiguration>> OfOne(const CodecSpec& codec) {
  if (codec.indices == Indices::kShared) {
    return absl::InvalidArgumentError(absl::StrCat(
        CodecText(codec), ": wants the codec whose indices it shares: \"topk(ratio=0.1, ",
        "scope=sample) | topk(indices=shared)\""));
  }
  const CodecSpec plain = WithoutSupport(codec);
  std::vector<ProbeConfiguration> all;
  if (!codec.needs_support()) all.push_back({codec, std::nullopt});
  all.push_back({std::nullopt, codec});
  all.push_back({plain, codec});
  return all;
}

absl::StatusOr<std::vector<ProbeConfiguration>> OfTwo(const CodecSpec& activations,
                                                      const CodecSpec& gradients) {
  if (activations.needs_support()) {
    return absl::InvalidArgumentError(
        absl::StrCat(CodecText(activations), " for activations: nothing was received before them"));
  }
  const ProbeConfiguration both = {activations, gradients};
  if (gradients.indices == Indices::kShared) return std::vector<ProbeConfiguration>{both};
  return std::vector<ProbeConfiguration>{
      {activations, std::nullopt}, {std::nullopt, gradients}, both};
}

// `To` has activations and gradients: of all cuts, or of one.
template <typename To>
absl::Status SetDirections(const ProbeConfiguration& from, To* to) {
  if (from.activations) {
    ASSIGN_OR_RETURN(*to->mutable_activations(), ConfigOf(*from.activations));
  }
  if (from.gradients) {
    ASSIGN_OR_RETURN(*to->mutable_gradients(), ConfigOf(*from.gradients));
  }
  return absl::OkStatus();
}

}  // namespace

std::string ProbeConfiguration::Directions() const {
  if (activations && gradients) return "both";
  return activations ? "forward" : gradients ? "backward" : "";
}

absl::StatusOr<std::vector<ProbeConfiguration>> ParseProbeCodec(const std::string& text,
                                                                const std::string& parameters) {
  const std::vector<std::string> parts = absl::StrSplit(text, '|');
  if (parts.size() > 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", text, "\": ", parts.size(), " codecs, want one or a pair"));
  }
  const auto parsed = [&](const std::string& part) {
    return ParseCodecOrLibrary(std::string(absl::StripAsciiWhitespace(part)), parameters);
  };
  ASSIGN_OR_RETURN(const CodecSpec first, parsed(parts[0]));
  if (parts.size() == 1) return OfOne(first);
  ASSIGN_OR_RETURN(const CodecSpec second, parsed(parts[1]));
  return OfTwo(first, second);
}

absl::StatusOr<std::vector<ProbeConfiguration>> ReadProbeCodecs(const std::string& path,
                                                                const std::string& parameters) {
  std::ifstream file(path);
  if (!file) return absl::NotFoundError(absl::StrCat(path, ": cannot be read"));
  std::vector<ProbeConfiguration> all;
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    line = line.substr(0, line.find('#'));
    if (absl::StripAsciiWhitespace(line).empty()) continue;
    const auto some = ParseProbeCodec(line, parameters);
    if (!some.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ":", number, ": ", some.status().message()));
    }
    all.insert(all.end(), some->begin(), some->end());
  }
  if (all.empty()) return absl::InvalidArgumentError(absl::StrCat(path, ": holds no codec"));
  return all;
}

const std::vector<std::string>& StandardProbeCodecs() {
  static const auto* const codecs = [] {
    auto* all = new std::vector<std::string>;
    for (const char* bits : {"8", "4", "2"}) {
      for (const char* what : {"", ", support=received_nonzero", ", zero=on_grid"}) {
        all->push_back(absl::StrCat("uniform(bits=", bits, what, ")"));
      }
    }
    for (const char* ratio : {"0.5", "0.3", "0.1", "0.05", "0.01"}) {
      for (const char* support : {"all", "received_nonzero"}) {
        all->push_back(
            absl::StrCat("topk(ratio=", ratio, ", scope=sample, support=", support, ")"));
      }
    }
    all->push_back("fp8");
    all->push_back("blockwise8");
    all->push_back("randomk(ratio=0.1, scope=sample)");
    all->push_back("low_rank(rank=4)");
    return all;
  }();
  return *codecs;
}

absl::StatusOr<Experiment> WithCodecs(Experiment experiment,
                                      const ProbeConfiguration& configuration) {
  CompressionConfig* compression = experiment.mutable_compression();
  compression->clear_activations();
  compression->clear_gradients();
  compression->set_warmup_epochs(0);
  compression->set_warmup_steps(0);
  for (auto& [cut, own] : *compression->mutable_boundaries()) {
    own.clear_activations();
    own.clear_gradients();
  }
  const std::string& cut = configuration.cut;
  RETURN_IF_ERROR(cut.empty()
                      ? SetDirections(configuration, compression)
                      : SetDirections(configuration, &(*compression->mutable_boundaries())[cut]));
  experiment.mutable_metrics()->set_error_every(1);
  experiment.clear_capture();
  RETURN_IF_ERROR(Resolve(&experiment));
  return experiment;
}

}  // namespace thinwire
