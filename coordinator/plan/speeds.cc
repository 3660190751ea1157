#include "coordinator/plan/speeds.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "compress/codecs/plugin.h"
#include "config/replicas_spec.h"
#include "models/frozen.h"

namespace thinwire {
namespace {

// Within these bounds all sums of a simulation are finite.
constexpr double kLeastSpeed = 1e-6, kMostSpeed = 1e12;

absl::Status CheckSpeed(const char* flag, double value) {
  if (value >= kLeastSpeed && value <= kMostSpeed) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--", flag, ": ", value, ", want ", kLeastSpeed, " to ", kMostSpeed));
}

}  // namespace

Coding StashCoding(const DirectionSpec& does) {
  return {kStashed, /*gradient=*/false, CodecText(does.codec), FeedbackSpec().ToString()};
}

Coding AverageCoding(const CodecSpec& codec, const FeedbackSpec& feedback,
                     const CodecSpec& contributed, int replicas) {
  return {kReplicas, /*gradient=*/false, CodecText(codec), feedback.ToString(),
          absl::StrCat(replicas, " x ", CodecText(contributed))};
}

const CodingSpeed* KnownSpeed(const Coding& coding, const std::map<Coding, CodingSpeed>& codings) {
  auto found = codings.find(coding);
  if (found == codings.end() && !coding.of.empty()) {
    found = codings.find({coding.cut, coding.gradient, coding.codec, coding.feedback});
  }
  return found == codings.end() ? nullptr : &found->second;
}

const CodingSpeed& SpeedOf(const Coding& coding, const Speeds& speeds) {
  const CodingSpeed* const known = KnownSpeed(coding, speeds.codings);
  return known == nullptr ? speeds.others : *known;
}

absl::StatusOr<std::vector<BlockSeconds>> BlocksAt(const Model& model, double gflops) {
  RETURN_IF_ERROR(CheckSpeed("gflops", gflops));
  std::vector<BlockSeconds> blocks;
  const double flops_per_second = gflops * 1e9;
  for (size_t i = 0; i < model.blocks.size(); ++i) {
    blocks.push_back({ForwardFlops(model.blocks[i]) / flops_per_second,
                      BackwardFlops(model, static_cast<int>(i)) / flops_per_second, /*update=*/0});
  }
  return blocks;
}

void LeaveOutPasses(const Model& model, double layer_seconds, double samples_of_pass,
                    std::vector<BlockSeconds>* blocks) {
  constexpr double kLeastRest = 0.1;  // of the measured time of a sample
  if (samples_of_pass == 0) return;
  for (size_t i = 0; i < blocks->size(); ++i) {
    BlockSeconds& block = (*blocks)[i];
    const double of_sample =
        layer_seconds * static_cast<double>(CountLayers(model.blocks[i])) / samples_of_pass;
    block.forward = std::max(kLeastRest * block.forward, block.forward - of_sample);
    block.backward = std::max(kLeastRest * block.backward, block.backward - 2 * of_sample);
  }
}

absl::StatusOr<CodingSpeed> CodingAt(double gigabytes_per_second) {
  RETURN_IF_ERROR(CheckSpeed("codec_gbps", gigabytes_per_second));
  const double seconds = 1 / (gigabytes_per_second * 1e9);
  return CodingSpeed{seconds, seconds, /*payload_per_byte=*/0};
}

}  // namespace thinwire
