#include "coordinator/run/resumable.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "config/differences.h"
#include "config/specs.h"
#include "coordinator/files/summary.h"
#include "google/protobuf/util/message_differencer.h"
#include "nn/lr_schedule.h"

namespace thinwire {
namespace {

bool HaveEqualSeeds(const Experiment& a, const Experiment& b) {
  const Seeds left = SeedsFrom(a), right = SeedsFrom(b);
  return left.init == right.init && left.data == right.data && left.codec == right.codec &&
         left.dropout == right.dropout;
}

// Returns the fields that the state depends on, and no others, with defaults spelt out.
Experiment Essence(const Experiment& experiment) {
  Experiment essence;
  const absl::StatusOr<ModelConfig> model = ModelInFull(experiment);
  *essence.mutable_model() = model.ok() ? *model : experiment.model();
  *essence.mutable_data() = DataInFull(experiment.data());
  DataConfig* data = essence.mutable_data();
  data->clear_dir();  // these fields say where the data are and how evaluation runs
  data->clear_vocabulary();
  data->clear_file();
  data->clear_train();
  data->clear_test();
  data->clear_type();
  data->clear_verify();
  data->clear_test_limit();
  essence.set_precision(experiment.precision());
  *essence.mutable_freeze() = experiment.freeze();  // what the optimizer remembers
  if (experiment.has_lora()) {
    *essence.mutable_lora() = experiment.lora();
    essence.mutable_lora()->clear_init();
  }
  const bool is_coded = experiment.base().has_weights() && experiment.base().weights() != "fp32";
  if (is_coded) *essence.mutable_base() = experiment.base();
  essence.mutable_optimizer()->set_name(experiment.optimizer().name());
  if (experiment.optimizer().momentum() > 0) essence.mutable_optimizer()->set_momentum(1);
  return essence;
}

using google::protobuf::util::MessageDifferencer;

// Compares paths; recorded ones may be relative.
bool AreTheSame(const std::string& a, const std::string& b) {
  namespace fs = std::filesystem;
  std::error_code error;  // without a working directory, paths stay as they are
  return a == b ||
         fs::absolute(a, error).lexically_normal() == fs::absolute(b, error).lexically_normal();
}

// Returns whether both name the same files, and so the same data.
bool NameTheSame(const DataConfig& a, const DataConfig& b) {
  return AreTheSame(a.dir(), b.dir()) && AreTheSame(a.file(), b.file()) &&
         AreTheSame(a.train(), b.train()) && AreTheSame(a.test(), b.test()) &&
         AreTheSame(a.vocabulary(), b.vocabulary()) && a.verify() == b.verify();
}

// A manifest of before there were digests in it gets those of the run's summary, where there is
// one.
void AddDigests(const std::string& dir, CheckpointManifest* manifest) {
  if (!manifest->train_digest().empty()) return;
  const absl::StatusOr<Summary> summary = ReadSummary(dir);
  if (!summary.ok()) return;
  manifest->set_train_digest(summary->provenance().train_digest());
  manifest->set_test_digest(summary->provenance().test_digest());
}

// Returns the learning rate of a step, counted from 1 through all epochs.
double RateAt(const LrScheduleSpec& schedule, uint64_t step, uint64_t steps_per_epoch) {
  const auto epoch = static_cast<int64_t>((step - 1) / steps_per_epoch) + 1;
  return LearningRate(schedule, epoch, static_cast<int64_t>(step),
                      static_cast<int64_t>(steps_per_epoch));
}

std::string Shown(const std::string& value) { return value.empty() ? "absent" : value; }

std::string ChangedFields(const std::vector<FieldDifference>& differences) {
  return absl::StrCat(
      "goes on with ",
      absl::StrJoin(differences, ", ", [](std::string* out, const FieldDifference& field) {
        absl::StrAppend(out, field.path, " ", Shown(field.right), " (so far ", Shown(field.left),
                        ")");
      }));
}

// Returns "epochs 1 to 4", or "steps 1 to 7" if `step` is within an epoch.
std::string Past(uint64_t step, uint64_t steps_per_epoch) {
  if (step % steps_per_epoch != 0) return absl::StrCat("steps 1 to ", step);
  const uint64_t epochs = step / steps_per_epoch;
  return epochs == 1 ? "epoch 1" : absl::StrCat("epochs 1 to ", epochs);
}

}  // namespace

absl::Status CheckGoesOn(const Experiment& then, const Experiment& now) {
  Experiment was = Essence(then), is = Essence(now);
  // A separator between documents matters only if there is one: the corpus then has another size.
  if (MessageDifferencer::Equals(was.data().corpus(), is.data().corpus())) {
    was.mutable_data()->clear_end_of_text();
    is.mutable_data()->clear_end_of_text();
  }
  std::string differences;
  MessageDifferencer differencer;
  differencer.ReportDifferencesToString(&differences);
  if (!HaveEqualSeeds(then, now)) {
    was.set_seed(then.seed());
    is.set_seed(now.seed());
    *was.mutable_seeds() = then.seeds();
    *is.mutable_seeds() = now.seeds();
  }
  if (differencer.Compare(was, is)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the run cannot go on as another: ",
                   absl::StrReplaceAll(absl::StripSuffix(differences, "\n"), {{"\n", "; "}})));
}

absl::StatusOr<std::string> OtherData(const Experiment& then, const Experiment& now,
                                      const CheckpointManifest& manifest,
                                      const Provenance& provenance) {
  const auto differ = [](const std::string& was, const std::string& is) {
    return !was.empty() && !is.empty() && was != is;
  };
  const bool is_test_limited = then.data().test_limit() != now.data().test_limit();
  std::string what, was, is;
  if (differ(manifest.train_digest(), provenance.train_digest())) {
    what = "training", was = manifest.train_digest(), is = provenance.train_digest();
  } else if (!is_test_limited && differ(manifest.test_digest(), provenance.test_digest())) {
    what = "test", was = manifest.test_digest(), is = provenance.test_digest();
  } else {
    return std::string();
  }
  const std::string line = absl::StrCat("the ", what, " data are others than those that the run ",
                                        "began with (digest ", was, ", now ", is, ")");
  if (!NameTheSame(then.data(), now.data())) return line;
  return absl::InvalidArgumentError(
      absl::StrCat(line,
                   ", though the experiment names the same: want those, or other ones by "
                   "name (--set data.file, data.dir or data.vocabulary)"));
}

absl::StatusOr<std::optional<FoundCheckpoint>> CheckpointToGoOn(const RunRecord& record,
                                                                std::optional<uint64_t> step) {
  const std::string folder = record.checkpoints_dir();
  absl::StatusOr<FoundCheckpoint> found =
      step ? CheckpointOfStep(folder, *step) : NewestCheckpoint(folder);
  if (absl::IsNotFound(found.status()) && !step) return std::nullopt;
  RETURN_IF_ERROR(found.status());
  AddDigests(record.dir(), &found->manifest);
  return *std::move(found);
}

bool HasEnded(const CheckpointManifest& reached, const Experiment& now, const std::string& dir) {
  if (reached.step() < TrainingSteps(now, reached.steps_per_epoch())) return false;
  const absl::StatusOr<Summary> summary = ReadSummary(dir);
  return summary.ok() && summary->status() == "completed" &&
         static_cast<uint32_t>(summary->epochs_size()) >= now.epochs();
}

absl::StatusOr<std::vector<std::string>> NewCourse(const Experiment& then, const Experiment& now,
                                                   uint64_t step, uint64_t steps_per_epoch) {
  std::vector<std::string> lines;
  const std::vector<FieldDifference> differences = Differences(then, now);
  if (!differences.empty()) lines.push_back(ChangedFields(differences));
  ASSIGN_OR_RETURN(const LrScheduleSpec before, LrScheduleFrom(then));
  ASSIGN_OR_RETURN(const LrScheduleSpec after, LrScheduleFrom(now));
  const bool trains_on = step > 0 && step < TrainingSteps(now, steps_per_epoch);
  for (uint64_t i = 1; trains_on && i <= step; ++i) {
    if (RateAt(before, i, steps_per_epoch) == RateAt(after, i, steps_per_epoch)) continue;
    lines.push_back(
        absl::StrCat(Past(step, steps_per_epoch), " had another learning rate schedule; step ",
                     step + 1, ", of epoch ", step / steps_per_epoch + 1, ", trains at ",
                     RateAt(after, step + 1, steps_per_epoch), ", the step before trained at ",
                     RateAt(before, step, steps_per_epoch)));
    break;
  }
  return lines;
}

}  // namespace thinwire
