#include "stage_server/journal.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compress/codecs/plugin.h"

namespace thinwire {
namespace {

using Json = nlohmann::ordered_json;
using spdlog::level::err;
using spdlog::level::info;
using spdlog::level::warn;

std::string DirectionText(const DirectionSpec& direction) {
  std::string text = CodecText(direction.codec);
  if (direction.feedback.kind != FeedbackKind::kNone) {
    absl::StrAppend(&text, " with ", direction.feedback.ToString());
  }
  return text;
}

// Returns the cuts at which this stage is or that it has inside, including the tied one.
std::vector<int> CutsOf(const StageSpec& spec) {
  std::vector<int> cuts;
  for (int cut = 0; cut < static_cast<int>(spec.cuts.size()); ++cut) {
    const int before = spec.placement.StageOf(cut), behind = spec.placement.StageOf(cut + 1);
    if (before == spec.stage || behind == spec.stage) cuts.push_back(cut);
  }
  if (spec.has_tied_cut() && (spec.first() || spec.last())) cuts.push_back(spec.tied_cut());
  return cuts;
}

const char* InferenceOf(const EvaluateRequest& request) {
  if (request.calibrates()) return "to calibrate the codecs";
  if (request.compressed()) return "with the codecs";
  return request.recalibration_samples() > 0 ? "without codecs, recalibrated" : "without codecs";
}

}  // namespace

void Journal::LeaseTaken(const AcquireRequest& request, const std::string& holder) {
  const uint64_t generation = request.lease().generation();
  log_.Write(
      info, "lease_taken", {request.lease().run(), {}},
      absl::StrCat("leased to ", holder, " for ", request.lease_seconds(),
                   " s from each renewal, generation ", generation),
      {{"holder", holder}, {"lease_seconds", request.lease_seconds()}, {"generation", generation}});
}

void Journal::LeaseRefused(const AcquireRequest& request, const std::string& holder,
                           const std::string& in_force, const absl::Status& why) {
  // Unavailable means here that the server has another holder or is about to end; no peer is gone.
  const ErrorKind kind = absl::IsUnavailable(why) ? ErrorKind::kFailedPrecondition : KindOf(why);
  errors_.Count(kind);
  const std::string against = in_force.empty() ? "" : absl::StrCat("; it is of ", in_force);
  log_.Write(
      warn, "lease_refused", {request.lease().run(), {}},
      absl::StrCat("a lease is refused to ", holder, ": ", std::string(why.message()), against),
      {{"holder", holder}, {"in_force", in_force}, {"kind", Name(kind)}});
}

void Journal::CallerRefused(const std::string& peer, const absl::Status& why) {
  const ErrorKind kind = KindOf(why);
  errors_.Count(kind);
  log_.Write(warn, "caller_refused", {},
             absl::StrCat("a call of ", peer, " is refused: ", std::string(why.message())),
             {{"peer", peer}, {"kind", Name(kind)}});
}

void Journal::Drained(const std::string& peer, const std::string& run) {
  log_.Write(
      info, "drain", {run, {}},
      absl::StrCat(peer, " asks the server to end", run.empty() ? "" : ", and to leave run ", run),
      {{"peer", peer}});
}

void Journal::LeaseExpired(const LogSubject& subject) {
  errors_.Count(ErrorKind::kLeaseExpired);
  log_.Write(err, "lease_expired", subject,
             "the coordinator stopped renewing its lease; the run ends here and the server is free",
             {{"kind", Name(ErrorKind::kLeaseExpired)}});
}

void Journal::LeaseReleased(const LogSubject& subject) {
  log_.Write(info, "lease_released", subject, "released by its coordinator; the server is free");
}

void Journal::DeviceTaken(const LogSubject& subject, const std::string& note) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (note.empty() || note == told_note_) return;
    told_note_ = note;
  }
  log_.Write(info, "device", subject, note);
}

void Journal::Note(const char* event, const LogSubject& subject, const std::string& note) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!told_notes_.insert(note).second) return;
  }
  log_.Write(info, event, subject, note);
}

void Journal::Configured(const LogSubject& subject, const StageSpec& spec,
                         const ConfigureRequest& request, const ConfigureResponse& response) {
  const DeviceInfo& device = response.device();
  std::string message =
      absl::StrCat("configured as stage ", spec.stage, " of ", spec.stages(), ": ", spec.model.name,
                   ", ", response.parameters(), " parameters here, on ", device.name(),
                   device.model().empty() ? "" : " ", device.model(), " with ", request.threads(),
                   request.threads() == 1 ? " thread" : " threads");
  Json cuts = Json::array();
  for (const int i : CutsOf(spec)) {
    const std::string activations = DirectionText(spec.activations[i]);
    const std::string gradients = DirectionText(spec.gradients[i]);
    absl::StrAppend(&message, "; cut ", spec.CutName(i), ": activations ", activations,
                    ", gradients ", gradients);
    cuts.push_back(
        {{"name", spec.CutName(i)}, {"activations", activations}, {"gradients", gradients}});
  }
  log_.Write(info, "configured", subject, message,
             {{"stages", spec.stages()},
              {"model", spec.model.name},
              {"parameters", response.parameters()},
              {"device", device.name()},
              {"device_model", device.model()},
              {"threads", request.threads()},
              {"cuts", std::move(cuts)}});
}

void Journal::Connected(const LogSubject& subject, const std::string& downstream) {
  log_.Write(info, "connected", subject,
             downstream.empty() ? "last stage, nothing to connect to"
                                : absl::StrCat("connected to the next stage at ", downstream),
             {{"downstream", downstream}});
}

void Journal::StateFetched(const LogSubject& subject, const std::string& from, double seconds) {
  log_.Write(info, "state", subject,
             absl::StrFormat("has its stage's state from %s, in %.3f s", from, seconds),
             {{"from", from}, {"seconds", seconds}});
}

void Journal::EpochBegins(const LogSubject& subject, const TrainRequest& request) {
  log_.Write(info, "epoch_begin", subject,
             absl::StrCat("epoch ", request.epoch(), " begins: ", request.samples(), " samples"),
             {{"epoch", request.epoch()}, {"samples", request.samples()}});
}

void Journal::EpochEnds(const LogSubject& subject, const TrainRequest& request, double seconds) {
  const double rate = seconds > 0 ? static_cast<double>(request.samples()) / seconds : 0;
  log_.Write(info, "epoch_end", subject,
             absl::StrFormat("epoch %d is trained: %d samples in %.3f s, %.0f samples/s",
                             request.epoch(), request.samples(), seconds, rate),
             {{"epoch", request.epoch()},
              {"samples", request.samples()},
              {"seconds", seconds},
              {"samples_per_second", rate}});
}

void Journal::Evaluated(const LogSubject& subject, const EvaluateRequest& request,
                        const std::optional<EvaluationReport>& report, double seconds) {
  std::string message =
      absl::StrFormat("evaluated in epoch %d %s: %d samples in %.3f s", request.epoch(),
                      InferenceOf(request), request.samples(), seconds);
  Json fields = {{"epoch", request.epoch()},
                 {"inference", InferenceOf(request)},
                 {"samples", request.samples()},
                 {"seconds", seconds}};
  if (report && report->samples() > 0) {
    absl::StrAppendFormat(&message, ", loss %.4f", report->loss());
    fields["loss"] = report->loss();
  }
  if (report && report->samples() > 0 && report->has_correct()) {
    const double accuracy =
        static_cast<double>(report->correct()) / static_cast<double>(report->samples());
    absl::StrAppendFormat(&message, ", accuracy %.1f %%", 100 * accuracy);
    fields["accuracy"] = accuracy;
  }
  log_.Write(info, "evaluation", subject, message, fields);
}

void Journal::Stopped(const LogSubject& subject, const char* call, const absl::Status& reason) {
  log_.Write(info, "stopped", subject,
             absl::StrCat(call, " ends early: ", std::string(reason.message())), {{"call", call}});
}

void Journal::Failed(const LogSubject& subject, const char* call, const absl::Status& error) {
  const ErrorKind kind = KindOf(error);
  errors_.Count(kind);
  log_.Write(err, "failed", subject,
             absl::StrCat(call, " failed (", Name(kind), "): ", std::string(error.message())),
             {{"call", call}, {"kind", Name(kind)}});
}

}  // namespace thinwire
