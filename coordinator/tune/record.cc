#include "coordinator/tune/record.h"

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "config/differences.h"
#include "config/experiment.h"
#include "coordinator/files/json.h"
#include "coordinator/files/summary.h"

namespace thinwire {
namespace {

namespace fs = std::filesystem;

std::string PathOf(const std::string& dir) { return dir + "/tune.json"; }

absl::Status Differs(const std::string& dir, const std::string& what, const std::string& there,
                     const std::string& wanted) {
  return absl::InvalidArgumentError(absl::StrCat(dir, ": another tune stands here: ", what, " is ",
                                                 there, ", want ", wanted,
                                                 "; give another --out, or remove this folder"));
}

absl::Status CheckExperiment(const std::string& dir, const TuneTask& there,
                             const TuneTask& wanted) {
  ASSIGN_OR_RETURN(const Experiment left, ParseExperiment(there.experiment(), PathOf(dir), {}));
  ASSIGN_OR_RETURN(const Experiment right, ParseExperiment(wanted.experiment(), "experiment", {}));
  const std::vector<FieldDifference> differences = Differences(left, right);
  if (differences.empty()) return absl::OkStatus();
  const FieldDifference& first = differences.front();
  return Differs(dir, first.path, first.left.empty() ? "nothing" : first.left,
                 first.right.empty() ? "nothing" : first.right);
}

absl::Status CheckTask(const std::string& dir, const TuneTask& there, const TuneTask& wanted) {
  RETURN_IF_ERROR(CheckExperiment(dir, there, wanted));
  const nlohmann::ordered_json left = ToJson(there), right = ToJson(wanted);
  for (const auto& [field, value] : right.items()) {
    if (field == "experiment" || left.at(field) == value) continue;
    return Differs(dir, absl::StrCat("--", field), left.at(field).dump(), value.dump());
  }
  return absl::OkStatus();
}

// True if `dir` holds at most what a tune that was killed early leaves: a lock, and perhaps a
// half-written file.
bool IsFree(const std::string& dir) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(dir, error)) {
    const std::string name = entry.path().filename();
    if (name != ".tune.lock" && name != "tune.json.tmp") return false;
  }
  return true;
}

}  // namespace

absl::StatusOr<TuneReport> OpenTune(const std::string& dir, const TuneTask& task) {
  TuneReport report;
  const absl::StatusOr<std::string> text = ReadFile(PathOf(dir));
  if (absl::IsNotFound(text.status())) {
    if (!IsFree(dir)) {
      return absl::InvalidArgumentError(
          absl::StrCat(dir, ": holds something else than a tune; give another --out"));
    }
    *report.mutable_task() = task;
    return report;
  }
  RETURN_IF_ERROR(text.status());
  RETURN_IF_ERROR(FromJson(*text, PathOf(dir), &report));
  RETURN_IF_ERROR(CheckTask(dir, report.task(), task));
  return report;
}

absl::Status WriteTune(const std::string& dir, const TuneReport& report) {
  return ReplaceFile(PathOf(dir), JsonText(ToJson(report), 2) + "\n");
}

TuneSpeeds RecordOf(const Speeds& speeds) {
  TuneSpeeds record;
  for (const BlockSeconds& block : speeds.blocks) {
    TuneBlock* const one = record.add_blocks();
    one->set_forward(block.forward);
    one->set_backward(block.backward);
    one->set_update(block.update);
  }
  const auto fill = [](const CodingSpeed& speed, TuneCoding* one) {
    one->set_encode_seconds_per_byte(speed.encode_seconds_per_byte);
    one->set_decode_seconds_per_byte(speed.decode_seconds_per_byte);
    one->set_payload_per_byte(speed.payload_per_byte);
  };
  for (const auto& [coding, speed] : speeds.codings) {
    TuneCoding* const one = record.add_codings();
    one->set_cut(coding.cut);
    one->set_gradient(coding.gradient);
    one->set_codec(coding.codec);
    one->set_feedback(coding.feedback);
    fill(speed, one);
  }
  fill(speeds.others, record.mutable_others());
  record.set_compute(speeds.compute_source);
  record.set_codecs(speeds.codec_source);
  return record;
}

Speeds SpeedsFrom(const TuneSpeeds& record) {
  Speeds speeds;
  for (const TuneBlock& block : record.blocks()) {
    speeds.blocks.push_back({block.forward(), block.backward(), block.update()});
  }
  const auto speed = [](const TuneCoding& one) {
    return CodingSpeed{one.encode_seconds_per_byte(), one.decode_seconds_per_byte(),
                       one.payload_per_byte()};
  };
  for (const TuneCoding& one : record.codings()) {
    speeds.codings[{one.cut(), one.gradient(), one.codec(), one.feedback()}] = speed(one);
  }
  speeds.others = speed(record.others());
  speeds.compute_source = record.compute();
  speeds.codec_source = record.codecs();
  return speeds;
}

}  // namespace thinwire
