#include "coordinator/probe/configurations.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/status.h"
#include "config/codec_pair.h"
#include "config/resolve.h"

namespace thinwire {

std::string ProbeConfiguration::Directions() const {
  if (activations && gradients) return "both";
  return activations ? "forward" : gradients ? "backward" : "";
}

absl::StatusOr<std::vector<ProbeConfiguration>> ParseProbeCodec(const std::string& text,
                                                                const std::string& parameters) {
  ASSIGN_OR_RETURN(const CodecPair pair, ParseCodecPair(text, parameters));
  const ProbeConfiguration both = {pair.activations, pair.gradients};
  if (pair.gradients.indices == Indices::kShared) return std::vector<ProbeConfiguration>{both};
  std::vector<ProbeConfiguration> all;
  if (!pair.is_one || !pair.gradients.needs_support()) {
    all.push_back({pair.activations, std::nullopt});
  }
  all.push_back({std::nullopt, pair.gradients});
  all.push_back(both);
  return all;
}

absl::StatusOr<std::vector<ProbeConfiguration>> ReadProbeCodecs(const std::string& path,
                                                                const std::string& parameters) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  std::vector<ProbeConfiguration> all;
  int number = 0;
  for (std::string line : std::vector<std::string>(absl::StrSplit(text, '\n'))) {
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

std::vector<ProbeConfiguration> SentBy(const Experiment& experiment,
                                       std::vector<ProbeConfiguration> configurations) {
  if (MaySendGradients(experiment)) return configurations;
  std::vector<ProbeConfiguration> sent;
  for (const ProbeConfiguration& one : configurations) {
    const bool is_known = std::any_of(sent.begin(), sent.end(), [&](const auto& other) {
      return other.activations == one.activations && other.cut == one.cut;
    });
    if (one.activations && !is_known) sent.push_back({one.activations, std::nullopt, one.cut});
  }
  return sent;
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
  RETURN_IF_ERROR(SetCodecs(configuration.activations, configuration.gradients, configuration.cut,
                            &experiment));
  experiment.mutable_metrics()->set_error_every(1);
  experiment.clear_capture();
  RETURN_IF_ERROR(Resolve(&experiment));
  return experiment;
}

}  // namespace thinwire
