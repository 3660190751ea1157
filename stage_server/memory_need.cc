#include "stage_server/memory_need.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_format.h"
#include "config/piece_codec.h"
#include "config/stage_memory.h"
#include "models/cost.h"
#include "models/parts.h"
#include "stage_server/stage/batch_parts.h"
#include "transport/shared_memory.h"
#include "wire/frame.h"

namespace thinwire {
namespace {

// Returns the number of copies of a stage's parameters that local steps take: the shared values,
// the outer momentum, and for each of several replicas that are carried here its own values and
// what the optimizer remembers.
double LocalCopies(const StageSpec& spec) {
  const ReplicasSpec& replicas = spec.replicas;
  if (!replicas.trains_locally()) return 0;
  const int carried = spec.carried().size();
  const double remembered =
      std::max(OptimizerBuffers(spec.optimizer, true), OptimizerBuffers(spec.optimizer, false));
  return 1 + (replicas.outer.momentum > 0) + (carried > 1 ? carried * (1 + remembered) : 0);
}

// Returns what replicas take besides: the sum of their gradients, what is kept of each replica that
// is carried here (CopiesOfReplica), and copies of the parameters. Where sums are added up here, a
// carrier's own contributions wait until those of the carriers before are there. They are those of
// all that it carries, to the pieces that its replicas own, or to all where everybody adds up.
double AveragingBytes(const StageSpec& spec, const std::vector<SegmentCost>& costs) {
  if (spec.replicas.count == 1 && !spec.replicas.trains_locally()) return 0;
  const bool gathers = spec.replicas.exchange == ReplicaExchange::kGather;
  double parameters = 0, remembered = 0;
  for (int chunk = 0; chunk < spec.chunks(); ++chunk) {
    const SegmentRange& segments = spec.segments(chunk);
    for (int segment = segments.first; segment < segments.end; ++segment) {
      const auto of_segment = static_cast<double>(costs[segment].parameters);
      parameters += of_segment;
      remembered += of_segment * CopiesOfReplica(spec.replicas, segment);
    }
  }
  const double carried = spec.carried().size();
  const double owned = gathers ? 1 : carried / spec.replicas.count;
  // A server that keeps its state may come to stand in any row.
  const double waiting =
      spec.row() == 0 && !spec.agrees_on_updates ? 0 : std::max(1.0, carried * owned);
  return sizeof(float) * (parameters * (1 + waiting + LocalCopies(spec)) + remembered * carried);
}

static_assert(kReceivingSlots == SharedMemory::kDeviceSlots);
static_assert(kReceivingSlotBytes == kMaxChunkBytes);
static_assert(kReceivingMessages == kEvaluationWindow);

}  // namespace

uint64_t TrainingBytesOf(const StageSpec& spec) {
  const int64_t microbatches = MicrobatchesOf(spec, spec.batch_size);
  Model here = spec.model;
  KeepParts(spec.carried_parts().first, spec.carried_parts().end, &here.blocks);
  const std::vector<SegmentCost> costs = SegmentCosts(here, spec.cuts, spec.keeping);
  const StageMemory memory = {spec,
                              costs,
                              spec.keeping,
                              spec.kept_bits,
                              spec.optimizer,
                              spec.schedule,
                              spec.microbatches,
                              spec.slices(),
                              (spec.batch_size + microbatches - 1) / microbatches,
                              spec.compute};
  const double bytes = memory.FullestBytes(spec.stage) + AveragingBytes(spec, costs);
  return static_cast<uint64_t>(std::min(bytes, 1e18));
}

absl::Status CheckFits(const StageSpec& spec, uint64_t available_bytes) {
  const uint64_t wanted = TrainingBytesOf(spec);
  if (wanted <= available_bytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrFormat(
      "stage %d takes about %.1f GB of memory to train, this machine has %.1f GB left: want more "
      "stages, smaller microbatches, a smaller model, or pipeline.memory, recompute, stash or swap",
      spec.stage, 1e-9 * static_cast<double>(wanted), 1e-9 * static_cast<double>(available_bytes)));
}

}  // namespace thinwire
