#include "coordinator/speeds/plan_speeds.h"

#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/annotated.h"
#include "base/status.h"
#include "config/specs.h"
#include "coordinator/plan/codec_speeds.h"
#include "coordinator/plan/run_speeds.h"
#include "coordinator/session/exit_code.h"
#include "coordinator/speeds/compute_speed.h"
#include "transport/speed.h"

namespace thinwire {
namespace {

// Measures how fast layers compute, unless a run has told. It also measures the fixed cost of
// passes, which no run tells; it is used for a run only if that ran on a machine like this one.
absl::Status MeasureCompute(const SpeedFlags& flags, const Experiment& experiment,
                            const std::string& threads, const SessionOptions& session,
                            Interruption* interruption, Speeds* speeds) {
  if (flags.gflops) return absl::OkStatus();
  const bool is_told = !speeds->blocks.empty();
  const auto speed = MeasureComputeSpeed(experiment, threads, session, interruption);
  if (is_told && !absl::IsCancelled(speed.status())) {
    // The run may have used a device that is not here.
    if (!speed.ok() || speed->machine != speeds->machine) return absl::OkStatus();
  }
  RETURN_IF_ERROR(speed.status());
  ASSIGN_OR_RETURN(const Partition partition, PartitionFrom(experiment));
  if (!is_told) {
    ASSIGN_OR_RETURN(speeds->blocks, BlocksAt(partition.model, speed->gflops));
    speeds->compute_source =
        absl::StrFormat("%.3g GFLOP/s, as training %s on this machine now took (--from, --gflops)",
                        speed->gflops, speed->by);
  }
  speeds->layer_seconds = speed->layer_seconds;
  AddPasses(partition.model, speed->layer_seconds, speeds->samples_of_pass, &speeds->blocks);
  return absl::OkStatus();
}

absl::Status MeasureCodecs(const SpeedFlags& flags,
                           const std::vector<const Experiment*>& experiments, Speeds* speeds) {
  if (flags.codec_gbps) return absl::OkStatus();
  const char* const kMeasured =
      "measured now, on one thread of this machine, on random tensors like those that cross";
  const size_t known = speeds->codings.size();
  for (const Experiment* const experiment : experiments) {
    RETURN_IF_ERROR(MeasureCodings(*experiment, &speeds->codings));
  }
  if (ReplicasOf(*experiments.front()) > 1) speeds->digest_seconds_per_byte = MeasureDigest();
  if (flags.from.empty()) {
    speeds->codec_source = kMeasured;
  } else if (speeds->codings.size() > known) {
    absl::StrAppend(&speeds->codec_source, ", others ", kMeasured);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Speeds> GivenSpeeds(const SpeedFlags& flags, const Experiment& experiment) {
  Speeds speeds;
  if (!flags.from.empty()) {
    ASSIGN_OR_RETURN(speeds, Annotated(SpeedsOfRun(flags.from, experiment), "--from"));
  }
  if (flags.gflops) {
    ASSIGN_OR_RETURN(const Partition partition, PartitionFrom(experiment));
    ASSIGN_OR_RETURN(speeds.blocks, BlocksAt(partition.model, *flags.gflops));
    speeds.compute_source = absl::StrFormat("%g GFLOP/s (--gflops)", *flags.gflops);
  }
  if (flags.codec_gbps) {
    ASSIGN_OR_RETURN(speeds.others, CodingAt(*flags.codec_gbps));
    speeds.codings.clear();
    speeds.codec_source =
        absl::StrFormat("%g GB/s to encode, and to decode (--codec_gbps)", *flags.codec_gbps);
  }
  return speeds;
}

absl::Status MeasureSpeeds(const SpeedFlags& flags,
                           const std::vector<const Experiment*>& experiments,
                           const std::string& threads, const SessionOptions& session,
                           Interruption* interruption, Speeds* speeds) {
  RETURN_IF_ERROR(
      MeasureCompute(flags, *experiments.front(), threads, session, interruption, speeds));
  interruption->OnFirst([] { _exit(kExitInterrupted); });
  RETURN_IF_ERROR(MeasureCodecs(flags, experiments, speeds));
  if (flags.gflops && flags.codec_gbps) return absl::OkStatus();  // all speeds are given
  ASSIGN_OR_RETURN(speeds->transport, MeasureTransport());
  return absl::OkStatus();
}

}  // namespace thinwire
