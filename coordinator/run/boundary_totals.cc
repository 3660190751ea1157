#include "coordinator/run/boundary_totals.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "config/yaml_message.h"
#include "models/tied_weight.h"

namespace thinwire {
namespace {

// Each end fills its own fields and leaves the other's 0, so fields are set by whichever end knows.
void MergeSender(const BoundaryReport& end, DirectionRecord* record) {
  record->set_codec(end.codec().substr(0, end.codec().find('(')));
  record->set_parameters(end.codec());
  record->set_raw_bytes(end.raw_bytes());
  record->set_payload_bytes(end.payload_bytes());
  record->set_wire_bytes(end.wire_bytes());
  record->set_messages(end.messages());
  if (end.elements() > 0) {
    record->set_wire_bits_per_element(8.0 * static_cast<double>(end.wire_bytes()) /
                                      static_cast<double>(end.elements()));
  }
  record->set_encode_seconds(end.encode_seconds());
  record->set_feedback(end.feedback());
  if (end.has_relative_error()) {
    record->set_relative_error(end.relative_error());
    record->set_cosine(end.cosine());
    record->set_nonzero_fraction(end.nonzero_fraction());
  }
  if (end.has_codec_relative_error()) {
    record->set_codec_relative_error(end.codec_relative_error());
    record->set_relative_residual(end.relative_residual());
  }
  record->set_measured_messages(end.measured_messages());
  if (end.has_level()) record->set_level(end.level());
  record->set_socket_bytes(end.socket_bytes());
  record->set_all_wire_bytes(end.all_wire_bytes());
}

EpochDirection Difference(const DirectionRecord& before, const DirectionRecord& after) {
  EpochDirection epoch;
  epoch.set_raw_bytes(after.raw_bytes() - before.raw_bytes());
  epoch.set_wire_bytes(after.wire_bytes() - before.wire_bytes());
  epoch.set_messages(after.messages() - before.messages());
  const uint64_t measured = after.measured_messages() - before.measured_messages();
  if (measured > 0) {
    const auto sum = [](const DirectionRecord& r) {
      return r.relative_error() * static_cast<double>(r.measured_messages());
    };
    // A difference of sums may fall below 0 by a rounding.
    epoch.set_relative_error(std::max(0.0, sum(after) - sum(before)) /
                             static_cast<double>(measured));
  }
  if (after.has_level()) epoch.set_level(after.level());
  return epoch;
}

double Seconds(const StageReport& report, const char* activity) {
  const auto found = report.activity_seconds().find(activity);
  return found == report.activity_seconds().end() ? 0 : found->second;
}

}  // namespace

std::vector<std::string> CutNames(const Experiment& experiment) {
  const auto& cuts = experiment.pipeline().cuts();
  if (cuts.size() == 1 && cuts[0] == kEmptyList) return {};
  std::vector<std::string> names(cuts.begin(), cuts.end());
  // A resolved experiment says what the tied cut does, if there is one.
  const bool is_another = std::find(names.begin(), names.end(), kTiedCut) != names.end();
  const bool has_tied = experiment.compression().boundaries().contains(kTiedCut) && !is_another;
  if (has_tied) names.push_back(kTiedCut);
  return names;
}

BoundaryTotals::BoundaryTotals(std::vector<std::string> cuts, int stages)
    : cuts_(std::move(cuts)), latest_(static_cast<size_t>(stages)) {}

void BoundaryTotals::Update(const StageReport& report) {
  assert(report.stage() < latest_.size());
  latest_[report.stage()] = report;
}

std::vector<BoundaryRecord> BoundaryTotals::Records() const {
  std::vector<BoundaryRecord> records;
  for (const std::string& cut : cuts_) {
    BoundaryRecord record;
    record.set_name(cut);
    record.mutable_activations();
    record.mutable_gradients();
    for (const StageReport& stage : latest_) {
      for (const BoundaryReport& end : stage.boundaries()) {
        if (end.boundary() != cut) continue;
        DirectionRecord* direction =
            end.gradient() ? record.mutable_gradients() : record.mutable_activations();
        if (end.sender()) {
          MergeSender(end, direction);
        } else {
          direction->set_decode_seconds(end.decode_seconds());
        }
      }
    }
    records.push_back(std::move(record));
  }
  return records;
}

double BoundaryTotals::BusySeconds() const {
  double seconds = 0;
  for (const StageReport& stage : latest_) {
    seconds += Seconds(stage, "forward") + Seconds(stage, "backward");
  }
  return seconds;
}

std::vector<EpochBoundary> EpochBoundaries(const std::vector<BoundaryRecord>& before,
                                           const std::vector<BoundaryRecord>& after) {
  std::vector<EpochBoundary> epoch;
  for (size_t i = 0; i < after.size(); ++i) {
    const BoundaryRecord from = i < before.size() ? before[i] : BoundaryRecord();
    EpochBoundary& boundary = epoch.emplace_back();
    boundary.set_name(after[i].name());
    *boundary.mutable_activations() = Difference(from.activations(), after[i].activations());
    *boundary.mutable_gradients() = Difference(from.gradients(), after[i].gradients());
  }
  return epoch;
}

double CompressionRatio(const DirectionRecord& record) {
  if (record.wire_bytes() == 0) return 0;
  return static_cast<double>(record.raw_bytes()) / static_cast<double>(record.wire_bytes());
}

}  // namespace thinwire
