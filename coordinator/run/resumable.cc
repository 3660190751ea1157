#include "coordinator/run/resumable.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "google/protobuf/util/message_differencer.h"

namespace thinwire {
namespace {

// What the state is about, and nothing else.
Experiment Essence(const Experiment& experiment) {
  Experiment essence;
  essence.set_seed(experiment.seed());
  *essence.mutable_seeds() = experiment.seeds();
  *essence.mutable_model() = experiment.model();
  *essence.mutable_data() = experiment.data();
  DataConfig* data = essence.mutable_data();
  data->clear_dir();  // these say where it lies, and what evaluation runs through
  data->clear_vocabulary();
  data->clear_file();
  data->clear_verify();
  data->clear_test_limit();
  essence.set_precision(experiment.precision());
  essence.mutable_optimizer()->set_name(experiment.optimizer().name());
  if (experiment.optimizer().momentum() > 0) essence.mutable_optimizer()->set_momentum(1);
  return essence;
}

}  // namespace

absl::Status CheckGoesOn(const Experiment& then, const Experiment& now) {
  std::string differences;
  google::protobuf::util::MessageDifferencer differencer;
  differencer.ReportDifferencesToString(&differences);
  if (differencer.Compare(Essence(then), Essence(now))) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the run cannot go on as another: ",
                   absl::StrReplaceAll(absl::StripSuffix(differences, "\n"), {{"\n", "; "}})));
}

}  // namespace thinwire
