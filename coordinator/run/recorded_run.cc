#include "coordinator/run/recorded_run.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/steady_time.h"
#include "config/boundaries.h"
#include "config/experiment.h"
#include "config/specs.h"
#include "coordinator/files/summary.h"
#include "coordinator/fleet/stage_addresses.h"
#include "coordinator/plan/warnings.h"
#include "coordinator/run/adapter_files.h"
#include "coordinator/run/boundary_totals.h"
#include "coordinator/run/members_recorder.h"
#include "coordinator/run/metrics.h"
#include "coordinator/run/model_files.h"
#include "coordinator/run/progress.h"
#include "coordinator/run/run.h"
#include "coordinator/session/exit_code.h"
#include "coordinator/trace/chrome.h"
#include "data/vocabulary_files.h"
#include "monitoring/metrics_server.h"

namespace thinwire {
namespace {

// Returns where others find a server of ours: if it listens at all addresses, under this machine's
// name.
std::string Announced(const std::string& listening) {
  char host[256] = "";
  gethostname(host, sizeof(host) - 1);
  const std::string target = MetricsTarget(absl::StrCat(host, ":0"), listening);
  return target.empty() ? listening : target;  // only this machine can reach it
}

// Returns 0 if stdout is no terminal.
int TerminalColumns() {
  winsize size;
  if (isatty(STDOUT_FILENO) == 0 || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return 0;
  return size.ws_col == 0 ? 80 : size.ws_col;
}

// Writes what it hears to the run's folder.
class Recorder final : public RunObserver {
 public:
  // `metrics` is the coordinator's own address, host:port. `has_trained` is set at the first step.
  Recorder(RunRecord* record, std::string metrics, bool* has_trained)
      : record_(*record), metrics_(std::move(metrics)), has_trained_(*has_trained) {}
  absl::Status OnStart(const RunPlan& plan) override {
    std::vector<std::string> stages;
    for (const RunPlan::Stage& stage : plan.stages) stages.push_back(stage.metrics);
    return record_.WriteTargets(metrics_, stages);
  }
  absl::Status OnStep(const StepRecord& step) override {
    has_trained_ = true;
    return record_.Append(step);
  }
  absl::Status OnTraffic(const std::vector<TrafficRecord>& traffic) override {
    return record_.Append(traffic);
  }
  absl::Status OnEvaluated(const EvaluationRecord& evaluation) override {
    return record_.Append(evaluation);
  }
  absl::Status OnEpoch(const EpochRecord& epoch) override { return record_.Append(epoch); }
  absl::Status OnCapture(uint64_t step, const std::vector<std::string>& files) override {
    return record_.WriteCapture(step, files);
  }
  absl::Status OnTrace(const RunTrace& trace) override {
    return record_.WriteTrace([&trace](const FileSink& sink) { return WriteChrome(trace, sink); });
  }

 private:
  RunRecord& record_;
  const std::string metrics_;
  bool& has_trained_;
};

// Passes every event to several observers, in order, until one returns an error.
class Observers final : public RunObserver {
 public:
  explicit Observers(std::vector<RunObserver*> observers) : observers_(std::move(observers)) {}
  absl::Status OnStart(const RunPlan& plan) override { return Tell(&RunObserver::OnStart, plan); }
  absl::Status OnStep(const StepRecord& step) override { return Tell(&RunObserver::OnStep, step); }
  absl::Status OnTotals(const RunTotals& totals) override {
    return Tell(&RunObserver::OnTotals, totals);
  }
  absl::Status OnTraffic(const std::vector<TrafficRecord>& traffic) override {
    return Tell(&RunObserver::OnTraffic, traffic);
  }
  absl::Status OnEvaluation(uint32_t epoch, Inference inference) override {
    return Tell(&RunObserver::OnEvaluation, epoch, inference);
  }
  absl::Status OnEvaluated(const EvaluationRecord& evaluation) override {
    return Tell(&RunObserver::OnEvaluated, evaluation);
  }
  absl::Status OnEpoch(const EpochRecord& epoch) override {
    return Tell(&RunObserver::OnEpoch, epoch);
  }
  absl::Status OnCapture(uint64_t step, const std::vector<std::string>& files) override {
    return Tell(&RunObserver::OnCapture, step, files);
  }
  absl::Status OnTrace(const RunTrace& trace) override {
    return Tell(&RunObserver::OnTrace, trace);
  }
  absl::Status OnCheckpoint(const CheckpointManifest& manifest) override {
    return Tell(&RunObserver::OnCheckpoint, manifest);
  }
  absl::Status OnEvent(const RunEvent& event) override {
    return Tell(&RunObserver::OnEvent, event);
  }
  absl::Status OnWarning(const std::string& line) override {
    return Tell(&RunObserver::OnWarning, line);
  }

 private:
  template <typename Method, typename... Arguments>
  absl::Status Tell(Method method, const Arguments&... arguments) {
    for (RunObserver* observer : observers_) RETURN_IF_ERROR((observer->*method)(arguments...));
    return absl::OkStatus();
  }

  std::vector<RunObserver*> observers_;
};

class RecordedRun {
 public:
  RecordedRun(Experiment experiment, RecordedRunOptions options, std::unique_ptr<RunRecord> record,
              Interruption* interruption)
      : options_(std::move(options)),
        experiment_(std::move(experiment)),
        record_(std::move(record)),
        interruption_(*interruption),
        progress_({stdout, &TerminalColumns, options_.quiet, &SteadyTime::Now}) {}

  int Run() {
    summary_.set_name(experiment_.name());
    summary_.set_status("failed");
    summary_.mutable_provenance()->set_started(UtcNow());
    absl::Status status = Train();
    if (session_) session_->Release();
    const int exit_code = Conclude(std::move(status));
    Linger();
    return exit_code;
  }

 private:
  absl::Status Train() {
    RETURN_IF_ERROR(record_->WriteExperiment(ToYaml(experiment_)));
    SessionOptions options = options_.session;
    options.logs_dir = record_->logs_dir();
    options.lease_file = record_->lease_path();
    if (!options_.quiet) options.say_waiting = [this](const auto& line) { progress_.Say(line); };
    ASSIGN_OR_RETURN(session_,
                     Session::Start(experiment_.name(), experiment_, options, &interruption_));
    ASSIGN_OR_RETURN(metrics_server_, MetricsServer::Start(options_.metrics_listen, {{registry_}}));
    const std::string address = Announced(metrics_server_->address());
    Recorder recorder(record_.get(), address, &has_trained_);
    RunMetrics metrics(session_->run(), BoundaryNames(experiment_), registry_.get());
    MembersRecorder members(
        session_->run(), [this] { return session_->member_counts(); }, registry_.get(), &summary_);
    progress_.set_place({session_->run(), record_->dir(), address});
    Observers all({&recorder, &metrics, &members, &progress_});
    TellWhereToJoin();
    RunOptions run = OptionsOfRun();
    ASSIGN_OR_RETURN(run.beside, SideFilesOf(WithOwnFiles()));
    RETURN_IF_ERROR(WarnOfNoVocabulary(run.beside));
    const bool has_frozen = experiment_.freeze_size() > 0 || experiment_.has_lora();
    SavedModel model(record_->model_dir(), run.beside, has_frozen);
    run.save_model = [this, &model]() -> absl::Status {
      RETURN_IF_ERROR(model.Save(session_->fleet()));
      if (!experiment_.has_lora()) return absl::OkStatus();
      return SaveAdapter(experiment_, record_->model_dir(), record_->adapter_dir());
    };
    const absl::Status status = RunExperiment(experiment_, session_->fleet(), &all, &summary_, run);
    if (!status.ok() && !interruption_.seen()) metrics.Failed(status);
    return status;
  }

  void TellWhereToJoin() {
    const std::string address = session_->listen_address();
    if (address.empty() || options_.quiet) return;
    progress_.Say(absl::StrCat("servers may join: stage_server --join ", Announced(address)));
  }

  // Returns the experiment with the files beside the model taken from the checkpoint it continues
  // from: those of `init` may be gone.
  Experiment WithOwnFiles() const {
    Experiment own = experiment_;
    if (options_.from) own.set_init(options_.from->path);
    return own;
  }

  absl::Status WarnOfNoVocabulary(const SideFiles& beside) {
    ASSIGN_OR_RETURN(const KnownDataset data, KnownDatasetOf(experiment_.data()));
    if (!data.is_text || beside.count(kVocabularyFile) > 0) return absl::OkStatus();
    return progress_.OnWarning(
        "the text or its vocabulary is not on this machine, so the model is kept without: "
        "thinwire generate will want it");
  }

  RunOptions OptionsOfRun() {
    RunOptions options;
    options.run = session_->run();
    options.checkpoints = record_->checkpoints_dir();
    options.from = options_.from;
    options.trace = options_.trace;
    options.measure_record = [this](RunProgress* progress) { return record_->Measure(progress); };
    options.cut_record = [this](const RunProgress& progress) { return record_->Cut(progress); };
    options.next_generation = [this](const Failure& loss) -> absl::StatusOr<Fleet*> {
      ASSIGN_OR_RETURN(Fleet* const fleet, session_->NextGeneration(loss));
      const std::string members = session_->MembersText();
      if (!members.empty() && !options_.quiet) progress_.Say(members);
      return fleet;
    };
    return options;
  }

  absl::Status RecordCausality() {
    ASSIGN_OR_RETURN(const std::vector<Causality> cuts, CausalityOf(experiment_));
    for (BoundaryRecord& boundary : *summary_.mutable_boundaries()) {
      for (const auto& [cut, is_causal] : cuts) {
        if (cut == boundary.name()) boundary.mutable_activations()->set_causal(is_causal);
      }
    }
    return absl::OkStatus();
  }

  // Keeps what was reached before in the summary of a run that could not continue.
  void KeepPast() {
    const absl::StatusOr<Summary> past = ReadSummary(record_->dir());
    if (!past.ok()) return;
    *summary_.mutable_epochs() = past->epochs();
    *summary_.mutable_boundaries() = past->boundaries();
    if (past->has_replicas()) *summary_.mutable_replicas() = past->replicas();
  }

  // Writes the summary and tells the user the outcome.
  int Conclude(absl::Status status) {
    const bool interrupted = !status.ok() && interruption_.seen();
    summary_.set_status(status.ok() ? "completed" : interrupted ? "interrupted" : "failed");
    if (!status.ok() && !interrupted) summary_.set_error(std::string(status.message()));
    summary_.mutable_provenance()->set_finished(UtcNow());
    if (!status.ok() && !interrupted) {  // first of all, as writing may fail as well
      progress_.Break();
      Complain(status, kExitFailed);
    }
    if (!status.ok() && options_.from && !has_trained_) KeepPast();
    if (ReplicasOf(experiment_) == 1) summary_.clear_replicas();
    if (summary_.has_replicas()) {
      summary_.mutable_replicas()->set_count(ReplicasOf(experiment_));
      const bool are_pipelines = options_.session.stage_carriers.empty();
      summary_.mutable_replicas()->set_carriers(
          are_pipelines ? static_cast<uint32_t>(std::max(1, options_.session.carriers)) : 0);
    }
    absl::Status written = RecordCausality();
    written.Update(record_->WriteSummary(summary_));
    if (interrupted) {
      progress_.Say(absl::StrCat("interrupted; what was reached is in ", record_->dir(),
                                 ", go on with thinwire run --resume ", record_->dir()));
      if (!absl::IsCancelled(status)) progress_.Say(std::string(status.message()));
    } else if (status.ok() && !options_.quiet) {
      progress_.Say(Farewell());
    }
    if (!written.ok()) return Complain(written, kExitFailed);
    return status.ok() ? kExitDone : interrupted ? kExitInterrupted : kExitFailed;
  }

  std::string Farewell() const {
    const std::vector<BoundaryRecord> boundaries(summary_.boundaries().begin(),
                                                 summary_.boundaries().end());
    return absl::StrCat(
        BoundaryTable(boundaries, summary_.replicas(), summary_.stash()), SwapLine(summary_.swap()),
        "summary:  ", record_->dir(), "/summary.json\nmetrics:  ", record_->dir(),
        "/metrics.jsonl\nmodel:    ", record_->model_dir(),
        options_.trace ? absl::StrCat("\ntrace:    ", record_->dir(), "/trace.json") : "");
  }

  // Waits so that Prometheus can scrape the end of the run.
  void Linger() {
    if (options_.metrics_linger_seconds <= 0 || metrics_server_ == nullptr) return;
    pollfd end = {interruption_.fd(), POLLIN, 0};
    const double longest = std::numeric_limits<int>::max();
    poll(&end, 1, static_cast<int>(std::min(options_.metrics_linger_seconds * 1000, longest)));
  }

  const RecordedRunOptions options_;
  const Experiment experiment_;
  const std::unique_ptr<RunRecord> record_;
  Interruption& interruption_;
  Progress progress_;
  Summary summary_;
  bool has_trained_ = false;
  const std::shared_ptr<prometheus::Registry> registry_ = std::make_shared<prometheus::Registry>();
  std::unique_ptr<MetricsServer> metrics_server_;
  std::unique_ptr<Session> session_;
};

}  // namespace

int RunRecorded(Experiment experiment, RecordedRunOptions options,
                std::unique_ptr<RunRecord> record, Interruption* interruption) {
  return RecordedRun(std::move(experiment), std::move(options), std::move(record), interruption)
      .Run();
}

}  // namespace thinwire
