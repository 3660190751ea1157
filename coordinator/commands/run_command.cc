#include "coordinator/commands/run_command.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "base/host_port.h"
#include "base/status.h"
#include "base/steady_time.h"
#include "base/text.h"
#include "config/experiment.h"
#include "config/specs.h"
#include "coordinator/files/record.h"
#include "coordinator/files/summary.h"
#include "coordinator/fleet/metrics_target.h"
#include "coordinator/plan/state_plan.h"
#include "coordinator/plan/warnings.h"
#include "coordinator/run/boundary_totals.h"
#include "coordinator/run/metrics.h"
#include "coordinator/run/model_files.h"
#include "coordinator/run/model_shares.h"
#include "coordinator/run/new_course.h"
#include "coordinator/run/progress.h"
#include "coordinator/run/restore.h"
#include "coordinator/run/resumable.h"
#include "coordinator/run/run.h"
#include "coordinator/run/trace_recorder.h"
#include "coordinator/session/exit_code.h"
#include "coordinator/trace/chrome.h"
#include "coordinator/trace/steps.h"
#include "data/vocabulary_files.h"
#include "monitoring/metrics_server.h"

namespace thinwire {
namespace {

std::string UtcNow() {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", absl::Now(), absl::UTCTimeZone());
}

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

void Tell(const std::string& line) {
  std::fprintf(stderr, "thinwire: %s\n", PrintableLine(line).c_str());
}

// Writes the events of a run to its folder.
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

// Prints what runs where before the first step.
class Greeter final : public RunObserver {
 public:
  Greeter(RunPlace place, Progress* progress) : place_(std::move(place)), progress_(*progress) {}
  absl::Status OnStart(const RunPlan& plan) override {
    if (!std::exchange(has_greeted_, true)) progress_.Say(Banner(place_, plan));
    return absl::OkStatus();
  }

 private:
  const RunPlace place_;
  Progress& progress_;
  bool has_greeted_ = false;
};

// Saves the parameters of the last epoch.
class ModelKeeper final : public RunObserver {
 public:
  ModelKeeper(Session* session, SideFiles beside, std::string dir)
      : session_(*session), beside_(std::move(beside)), dir_(std::move(dir)) {}
  absl::Status OnTrained(uint32_t) override { return SaveModel(session_.fleet(), beside_, dir_); }

 private:
  Session& session_;  // its fleet may change after a loss
  const SideFiles beside_;
  const std::string dir_;
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
  absl::Status OnTrained(uint32_t epoch) override { return Tell(&RunObserver::OnTrained, epoch); }
  absl::Status OnEvaluation(uint32_t epoch, Inference inference) override {
    return Tell(&RunObserver::OnEvaluation, epoch, inference);
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

// One `thinwire run`, once the experiment and the folder are accepted.
class RecordedRun {
 public:
  // `from` is where an earlier run ended. `trace` are the steps to trace.
  RecordedRun(const RunFlags& flags, Experiment experiment, std::optional<FoundCheckpoint> from,
              std::optional<TraceSteps> trace, std::unique_ptr<RunRecord> record,
              Interruption* interruption)
      : flags_(flags),
        experiment_(std::move(experiment)),
        trace_(trace),
        from_(std::move(from)),
        record_(std::move(record)),
        interruption_(*interruption),
        progress_({stdout, &TerminalColumns, flags.quiet, &SteadyTime::Now}) {}

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
    SessionOptions options = flags_.session;
    options.logs_dir = record_->logs_dir();
    options.lease_file = record_->lease_path();
    if (!flags_.quiet) options.say_waiting = [this](const auto& line) { progress_.Say(line); };
    ASSIGN_OR_RETURN(session_,
                     Session::Start(experiment_.name(), experiment_, options, &interruption_));
    ASSIGN_OR_RETURN(metrics_server_, MetricsServer::Start(flags_.metrics_listen, {{registry_}}));
    const std::string address = Announced(metrics_server_->address());
    Recorder recorder(record_.get(), address, &has_trained_);
    RunMetrics metrics(session_->run(), CutNames(experiment_), registry_.get());
    Greeter greeter({session_->run(), record_->dir(), address}, &progress_);
    std::vector<RunObserver*> observers = {&recorder, &metrics};
    if (!flags_.quiet) observers.push_back(&greeter);
    observers.push_back(&progress_);
    RunOptions run = OptionsOfRun();
    ASSIGN_OR_RETURN(run.beside, SideFilesOf(WithOwnFiles()));
    RETURN_IF_ERROR(WarnOfNoVocabulary(run.beside));
    ModelKeeper keeper(session_.get(), run.beside, record_->model_dir());
    observers.push_back(&keeper);
    Observers all(observers);
    const absl::Status status = RunExperiment(experiment_, session_->fleet(), &all, &summary_, run);
    if (!status.ok() && !interruption_.seen()) metrics.Failed(status);
    return status;
  }

  // Returns the experiment with the files beside the model taken from the checkpoint it continues
  // from: those of `init` may be gone.
  Experiment WithOwnFiles() const {
    Experiment own = experiment_;
    if (from_) own.set_init(from_->path);
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
    options.from = from_;
    options.trace = trace_;
    options.measure_record = [this](RunProgress* progress) { return record_->Measure(progress); };
    options.cut_record = [this](const RunProgress& progress) { return record_->Cut(progress); };
    options.next_generation = [this](const Failure& loss) {
      return session_->NextGeneration(loss);
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
    if (!status.ok() && from_ && !has_trained_) KeepPast();
    absl::Status written = RecordCausality();
    written.Update(record_->WriteSummary(summary_));
    if (interrupted) {
      progress_.Say(absl::StrCat("interrupted; what was reached is in ", record_->dir(),
                                 ", go on with thinwire run --resume ", record_->dir()));
      if (!absl::IsCancelled(status)) progress_.Say(std::string(status.message()));
    } else if (status.ok() && !flags_.quiet) {
      progress_.Say(Farewell());
    }
    if (!written.ok()) return Complain(written, kExitFailed);
    return status.ok() ? kExitDone : interrupted ? kExitInterrupted : kExitFailed;
  }

  std::string Farewell() const {
    const std::vector<BoundaryRecord> boundaries(summary_.boundaries().begin(),
                                                 summary_.boundaries().end());
    return absl::StrCat(BoundaryTable(boundaries), "summary:  ", record_->dir(),
                        "/summary.json\nmetrics:  ", record_->dir(),
                        "/metrics.jsonl\nmodel:    ", record_->model_dir(),
                        trace_ ? absl::StrCat("\ntrace:    ", record_->dir(), "/trace.json") : "");
  }

  // Waits so that Prometheus can scrape the end of the run.
  void Linger() {
    if (flags_.metrics_linger_seconds <= 0 || metrics_server_ == nullptr) return;
    pollfd end = {interruption_.fd(), POLLIN, 0};
    const double longest = std::numeric_limits<int>::max();
    poll(&end, 1, static_cast<int>(std::min(flags_.metrics_linger_seconds * 1000, longest)));
  }

  const RunFlags& flags_;
  const Experiment experiment_;
  const std::optional<TraceSteps> trace_;
  const std::optional<FoundCheckpoint> from_;
  const std::unique_ptr<RunRecord> record_;
  Interruption& interruption_;
  Progress progress_;
  Summary summary_;
  bool has_trained_ = false;
  const std::shared_ptr<prometheus::Registry> registry_ = std::make_shared<prometheus::Registry>();
  std::unique_ptr<MetricsServer> metrics_server_;
  std::unique_ptr<Session> session_;
};

// A run to continue, from its last checkpoint.
struct Past {
  FoundCheckpoint checkpoint;
  Experiment experiment;
};

absl::StatusOr<Experiment> Load(const std::optional<Past>& past, RunFlags* flags) {
  const absl::Status listen = ParseHostPort(flags->metrics_listen).status();
  if (!listen.ok()) {
    return absl::Status(listen.code(), absl::StrCat("--metrics_listen: ", listen.message()));
  }
  flags->session.takes_spares = true;
  return LoadForStages(flags->experiment, flags->overrides, &flags->session,
                       past ? &past->experiment : nullptr);
}

// Checks the memory for the stages' state. Stages on this machine share it; other machines are
// unknown.
absl::Status CheckState(const RunFlags& flags, const Experiment& experiment) {
  ASSIGN_OR_RETURN(const StatePlan state, PlanState(experiment));
  if (!flags.session.stages.empty()) return absl::OkStatus();
  RETURN_IF_ERROR(CheckFolders(state));
  return CheckMemory(state, MachineMemoryBytes(), /*one_machine=*/true);
}

// Checks `init` early; it is read again when the stages are there.
absl::Status CheckInitial(const Experiment& experiment, bool quiet) {
  if (!experiment.has_init()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const ModelShares initial, ModelShares::Initial(experiment));
  RETURN_IF_ERROR(CheckInitialVocabulary(experiment));
  if (initial.fresh().empty() || quiet) return absl::OkStatus();
  Tell(absl::StrCat("init: ", experiment.init(), " has no bottlenecks for ",
                    absl::StrJoin(initial.fresh(), ", "), ": they start random"));
  return absl::OkStatus();
}

// Checks combinations of flags.
absl::Status CheckUsage(const RunFlags& flags) {
  const bool names_a_folder = !flags.resume.empty() && flags.resume != kFolderOfName;
  if (flags.experiment.empty() && !names_a_folder) {
    return absl::InvalidArgumentError("no experiment, want EXPERIMENT or --resume DIR");
  }
  if (!flags.resume.empty() && (flags.overwrite || !flags.out.empty())) {
    return absl::InvalidArgumentError("--resume with --out or --overwrite, want it alone");
  }
  return absl::OkStatus();
}

// Looks for a run to continue. A folder without one is used for a new run, if an experiment is
// given.
absl::Status FindRun(RunFlags* flags) {
  if (flags->resume.empty() || flags->resume == kFolderOfName) return absl::OkStatus();
  const std::string recorded = flags->resume + "/experiment.yaml";
  const absl::Status is_there = ReadFile(recorded).status();
  if (is_there.ok()) {
    if (flags->experiment.empty()) flags->experiment = recorded;
    return absl::OkStatus();
  }
  if (!absl::IsNotFound(is_there) || flags->experiment.empty()) return CheckRecorded(flags->resume);
  flags->out = std::exchange(flags->resume, "");
  flags->overwrite = true;  // the folder holds the rest of a run that never began
  return absl::OkStatus();
}

std::string FolderOf(const std::string& name) { return "runs/" + name; }

// Derives the folder to continue from the experiment's name.
absl::Status FindRunOfName(RunFlags* flags) {
  if (flags->resume != kFolderOfName) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::string name, NameOfExperiment(flags->experiment, flags->overrides));
  flags->resume = FolderOf(name);
  return FindRun(flags);
}

std::string DirOf(const RunFlags& flags, const Experiment& experiment) {
  return flags.out.empty() ? FolderOf(experiment.name()) : flags.out;
}

// Adds digests to a manifest of an older format, which lacked them, from the run's summary if there
// is one.
void AddDigests(const std::string& dir, CheckpointManifest* manifest) {
  if (!manifest->train_digest().empty()) return;
  const absl::StatusOr<Summary> summary = ReadSummary(dir);
  if (!summary.ok()) return;
  manifest->set_train_digest(summary->provenance().train_digest());
  manifest->set_test_digest(summary->provenance().test_digest());
}

// Returns the past of the run in this folder; none if it was killed before its first checkpoint.
absl::StatusOr<std::optional<Past>> FindPast(const RunRecord& record, bool quiet) {
  absl::StatusOr<FoundCheckpoint> found = NewestCheckpoint(record.checkpoints_dir());
  if (absl::IsNotFound(found.status())) {
    if (!quiet) Tell(absl::StrCat(record.dir(), ": no checkpoint, beginning anew"));
    return std::nullopt;
  }
  RETURN_IF_ERROR(found.status());
  for (const std::string& line : found->skipped) Tell("warning: " + line);
  AddDigests(record.dir(), &found->manifest);
  ASSIGN_OR_RETURN(Experiment then, ExperimentOf(*found));
  return Past{*std::move(found), std::move(then)};
}

// Refuses an experiment that cannot continue the run, and prints what will be different.
absl::Status CheckCourse(const RunFlags& flags, const Past& past, const Experiment& now) {
  RETURN_IF_ERROR(CheckGoesOn(past.experiment, now));
  if (flags.quiet) return absl::OkStatus();
  const CheckpointManifest& manifest = past.checkpoint.manifest;
  ASSIGN_OR_RETURN(const std::vector<std::string> lines,
                   NewCourse(past.experiment, now, manifest.step(), manifest.steps_per_epoch()));
  for (const std::string& line : lines) Tell(absl::StrCat(flags.resume, ": ", line));
  return absl::OkStatus();
}

// Returns whether the run has trained all that `now` asks for and has a summary that says so. A run
// that was killed between its last step and its summary has still to be ended.
bool HasEnded(const CheckpointManifest& reached, const Experiment& now, const RunRecord& record) {
  if (reached.step() < now.epochs() * reached.steps_per_epoch()) return false;
  const absl::StatusOr<Summary> summary = ReadSummary(record.dir());
  return summary.ok() && summary->status() == "completed" &&
         static_cast<uint32_t>(summary->epochs_size()) >= now.epochs();
}

std::string WhatTrainsOn(const RunRecord& record, const CheckpointManifest& reached) {
  const uint64_t epochs = reached.step() / reached.steps_per_epoch();
  return absl::StrCat(record.dir(), ": all ", epochs,
                      " epochs are trained, nothing is left to do; --set epochs=", 2 * epochs,
                      " would train on, --overwrite or another folder anew");
}

// Returns the steps to trace, if the flags name any.
absl::StatusOr<std::optional<TraceSteps>> StepsToTrace(const RunFlags& flags,
                                                       const Experiment& experiment) {
  if (flags.trace.empty()) return std::nullopt;
  ASSIGN_OR_RETURN(const TraceSteps steps, ParseTraceSteps(flags.trace));
  RETURN_IF_ERROR(CheckTraceSize(EmptyTrace(experiment, /*run=*/"", steps)));
  return steps;
}

absl::Status Warn(const Experiment& experiment) {
  ASSIGN_OR_RETURN(const std::vector<std::string> warnings, PlanWarnings(experiment));
  for (const std::string& warning : warnings) Tell(warning);
  return absl::OkStatus();
}

// Checks all of an experiment that can be checked before stages start.
absl::Status Check(const RunFlags& flags, const std::optional<Past>& past,
                   const Experiment& experiment) {
  if (past) RETURN_IF_ERROR(CheckCourse(flags, *past, experiment));
  RETURN_IF_ERROR(CheckState(flags, experiment));
  if (!past) RETURN_IF_ERROR(CheckInitial(experiment, flags.quiet));
  return flags.quiet ? absl::OkStatus() : Warn(experiment);
}

}  // namespace

int RunCommand(RunFlags flags, Interruption* interruption) {
  absl::Status usage = CheckUsage(flags);
  if (usage.ok()) usage = FindRun(&flags);
  if (usage.ok()) usage = FindRunOfName(&flags);
  if (!usage.ok()) return Complain(usage, kExitUsage);
  absl::StatusOr<std::unique_ptr<RunRecord>> record(nullptr);
  absl::StatusOr<std::optional<Past>> past(std::nullopt);
  if (!flags.resume.empty()) {
    record = RunRecord::Open(flags.resume);
    if (!record.ok()) return Complain(record.status(), ExitOfPath(record.status()));
    past = FindPast(**record, flags.quiet);
    if (!past.ok()) return Complain(past.status(), kExitFailed);
  }
  absl::StatusOr<Experiment> experiment = Load(*past, &flags);
  if (!experiment.ok()) return Complain(experiment.status(), kExitUsage);
  const absl::StatusOr<std::optional<TraceSteps>> trace = StepsToTrace(flags, *experiment);
  if (!trace.ok()) return Complain(trace.status(), kExitUsage);
  const absl::Status fits = Check(flags, *past, *experiment);
  if (!fits.ok()) return Complain(fits, kExitUsage);
  if (*past && HasEnded((*past)->checkpoint.manifest, *experiment, **record)) {
    if (!flags.quiet) Tell(WhatTrainsOn(**record, (*past)->checkpoint.manifest));
    return kExitDone;
  }
  if (flags.resume.empty()) {
    record = RunRecord::Create(DirOf(flags, *experiment), flags.overwrite);
    if (!record.ok()) return Complain(record.status(), ExitOfPath(record.status()));
  }
  std::optional<FoundCheckpoint> from;
  if (*past) from = std::move((*past)->checkpoint);
  return RecordedRun(flags, *std::move(experiment), std::move(from), *trace, *std::move(record),
                     interruption)
      .Run();
}

}  // namespace thinwire
