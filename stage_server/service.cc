#include "stage_server/service.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/cores.h"
#include "base/resources.h"
#include "base/status.h"
#include "base/steady_clock_id.h"
#include "base/steady_time.h"
#include "config/devices.h"
#include "config/resolve.h"
#include "stage_server/event_queue.h"
#include "stage_server/provenance.h"
#include "stage_server/read_within.h"
#include "transport/status.h"

namespace thinwire {
namespace {

constexpr std::chrono::milliseconds kLeaseCheckEvery{500};
constexpr std::chrono::milliseconds kCancelCheckEvery{100};

// Replaces paths by this machine's and checks the experiment again; both may read files.
absl::StatusOr<Experiment> ResolvedHere(const Experiment& experiment, const AllowedPaths& allowed) {
  return ReadWithin<Experiment>(
      kReadingPatience, DataNames(experiment),
      [here = experiment, allowed]() mutable -> absl::StatusOr<Experiment> {
        RETURN_IF_ERROR(ConfinePaths(allowed, &here));
        RETURN_IF_ERROR(Resolve(&here));
        return here;
      });
}

// Reads or writes with a client that may have gone silent, for a call that is then cancelled.
bool WithClient(StageRun* run, grpc::ServerContext* context,
                const std::function<bool()>& transfer) {
  return run->transfers().Make(transfer, [context] { context->TryCancel(); });
}

using Sink = std::function<absl::Status(std::string_view)>;

// Sends a file's pieces one by one.
Sink ChunksTo(StageRun* run, grpc::ServerContext* context, grpc::ServerWriter<FileChunk>* writer) {
  return [=](std::string_view bytes) {
    FileChunk chunk;
    chunk.set_data(bytes.data(), bytes.size());
    return WithClient(run, context, [&] { return writer->Write(chunk); })
               ? absl::OkStatus()
               : absl::CancelledError("the coordinator ended the call or its run");
  };
}

}  // namespace

StageService::StageService(Guard guard, BackendFactory backend, BoundaryService* boundaries,
                           Journal* journal)
    : GuardedService(Stage::service_full_name(), std::move(guard)),
      backend_(std::move(backend)),
      boundaries_(boundaries),
      journal_(*journal),
      meter_(boundaries),
      watcher_([this] { Watch(); }) {
  Add("Acquire", &StageService::Acquire);
  Add("Renew", &StageService::Renew);
  Add("Configure", &StageService::Configure);
  Add("Connect", &StageService::Connect);
  Add("Train", &StageService::Train);
  Add("EndTraining", &StageService::EndTraining);
  Add("TakeSnapshot", &StageService::TakeSnapshot);
  Add("ReadSnapshot", &StageService::ReadSnapshot);
  Add("Restore", &StageService::Restore);
  Add("Evaluate", &StageService::Evaluate);
  Add("ExportParameters", &StageService::ExportParameters);
  Add("ImportParameters", &StageService::ImportParameters);
  Add("Gradients", &StageService::Gradients);
  Add("Generate", &StageService::Generate);
  Add("ExportCapture", &StageService::ExportCapture);
  Add("AnswerLink", &StageService::AnswerLink);
  Add("MeasureLink", &StageService::MeasureLink);
  Add("Release", &StageService::Release);
}

StageService::~StageService() {
  Stop();
  watcher_.join();
}

void StageService::Stop() {
  {
    const std::lock_guard<std::mutex> lock(watcher_mutex_);
    watcher_ends_ = true;
    changed_.notify_all();
  }
  uploads_.Stop();
  leased_.Stop();
}

void StageService::Watch() {
  for (;;) {
    {
      std::unique_lock<std::mutex> lock(watcher_mutex_);
      if (changed_.wait_for(lock, kLeaseCheckEvery, [this] { return watcher_ends_; })) return;
    }
    uploads_.CancelLate(SteadyTime::Now());
    const std::optional<LogSubject> expired = leased_.TakeExpired();
    if (expired) journal_.LeaseExpired(*expired);
  }
}

absl::Status StageService::ForRun(const char* call, const Lease& lease,
                                  const std::function<absl::Status(StageRun&)>& work) {
  const absl::StatusOr<std::shared_ptr<StageRun>> run = leased_.Of(lease);
  if (!run.ok()) return Refuse(call, lease, run.status());
  const LogSubject& subject = (*run)->subject();
  const absl::Status status = work(**run);
  if (status.ok()) return status;
  if (status == (*run)->stopped() || absl::IsCancelled(status)) {
    journal_.Stopped(subject, call, status);
  } else {
    journal_.Failed(subject, call, status);
  }
  return status;
}

absl::Status StageService::Refuse(const char* call, const Lease& lease, const absl::Status& error) {
  journal_.Failed({lease.run(), {}}, call, error);
  return error;
}

absl::Status StageService::Acquire(grpc::ServerContext* context, const AcquireRequest* request,
                                   AcquireResponse* response) {
  const std::string holder = absl::StrCat(request->holder(), " at ", context->peer());
  const LeasedRun::Answer answer =
      leased_.Acquire(request->lease(), holder, request->lease_seconds());
  if (!answer.status.ok()) {
    if (answer.is_news) journal_.LeaseRefused(*request, holder, answer.in_force, answer.status);
    return answer.status;
  }
  journal_.LeaseTaken(*request, holder);
  on_holder_(context->peer());
  *response->mutable_build() = ThisBuild();
  response->set_cores(static_cast<uint32_t>(UsableCores()));
  response->set_metrics_address(metrics_address_);
  response->set_memory_bytes(AvailableMemoryBytes());
  return absl::OkStatus();
}

absl::Status StageService::Renew(grpc::ServerContext* context, const RenewRequest* request,
                                 RenewResponse* response) {
  const absl::Status status = leased_.Renew(*request, response);
  if (!status.ok()) return Refuse("Renew", request->lease(), status);
  on_holder_(context->peer());
  response->set_clock(SteadyClockId());
  response->set_steady_nanoseconds(SteadyTime::Now().nanoseconds());
  response->set_unix_nanoseconds(absl::ToUnixNanos(absl::Now()));
  return absl::OkStatus();
}

absl::Status StageService::Configure(grpc::ServerContext*, const ConfigureRequest* request,
                                     ConfigureResponse* response) {
  absl::MutexLock one_at_a_time(&build_mutex_);
  const absl::Status status = Build(*request, response);
  if (!status.ok()) {
    journal_.Failed({request->lease().run(), static_cast<int>(request->stage())}, "Configure",
                    status);
  }
  return status;
}

absl::Status StageService::Build(const ConfigureRequest& request, ConfigureResponse* response) {
  RETURN_IF_ERROR(leased_.Clear(request.lease()));
  ConfigureRequest checked = request;
  ASSIGN_OR_RETURN(*checked.mutable_experiment(), ResolvedHere(request.experiment(), allowed_));
  ASSIGN_OR_RETURN(Backend backend, OpenBackendOf(checked));
  const LogSubject subject{request.lease().run(), static_cast<int>(request.stage())};
  backend.on_note = [this, subject](const std::string& note) {
    journal_.Note("link", subject, note);
  };
  backend.on_trace_note = [this, subject](const std::string& note) {
    journal_.Note("trace", subject, note);
  };
  ASSIGN_OR_RETURN(const std::shared_ptr<StageRun> run,
                   StageRun::New(checked, backend, boundaries_, response));
  RETURN_IF_ERROR(leased_.Begin(request.lease(), run));
  journal_.DeviceTaken(run->subject(), backend.note);
  journal_.Configured(run->subject(), run->spec(), checked, *response);
  return absl::OkStatus();
}

absl::StatusOr<Backend> StageService::OpenBackendOf(const ConfigureRequest& request) const {
  BackendRequest wanted;
  ASSIGN_OR_RETURN(wanted.device,
                   DeviceOf(request.experiment(), static_cast<int>(request.stage())));
  wanted.ops = OpsOptionsFrom(request.experiment());
  wanted.threads = static_cast<int>(request.threads());
  return backend_(wanted);
}

absl::Status StageService::Connect(grpc::ServerContext*, const ConnectRequest* request,
                                   ConnectResponse*) {
  return ForRun("Connect", request->lease(), [&](StageRun& run) -> absl::Status {
    RETURN_IF_ERROR(run.Connect(*request));
    journal_.Connected(run.subject(), request->downstream());
    return absl::OkStatus();
  });
}

absl::Status StageService::Stream(
    grpc::ServerContext* context, StageRun* run, grpc::ServerWriter<StageEvent>* writer,
    const std::function<absl::Status(const StageRun::OnEvent&)>& work) {
  EventQueue queue;
  std::thread worker(
      [&] { queue.Finish(work([&queue](const StageEvent& event) { queue.Push(event); })); });
  std::optional<absl::Status> result;
  while (!result) {
    auto [events, finished] = queue.Take(kCancelCheckEvery);
    bool reachable = !context->IsCancelled();
    for (const StageEvent& event : events) {
      reachable = reachable && WithClient(run, context, [&] { return writer->Write(event); });
    }
    if (!reachable) run->Stop(absl::CancelledError("the coordinator ended the call"));
    result = std::move(finished);
  }
  worker.join();
  return *result;
}

absl::Status StageService::Train(grpc::ServerContext* context, const TrainRequest* request,
                                 grpc::ServerWriter<StageEvent>* writer) {
  return ForRun("Train", request->lease(), [&](StageRun& run) -> absl::Status {
    journal_.EpochBegins(run.subject(), *request);
    const SteadyTime start = SteadyTime::Now();
    RETURN_IF_ERROR(Stream(context, &run, writer, [&](const StageRun::OnEvent& on_event) {
      return run.Train(*request, on_event);
    }));
    journal_.EpochEnds(run.subject(), *request, SecondsSince(start));
    return absl::OkStatus();
  });
}

absl::Status StageService::EndTraining(grpc::ServerContext*, const EndTrainingRequest* request,
                                       EndTrainingResponse* response) {
  return ForRun("EndTraining", request->lease(), [&](StageRun& run) {
    if (!request->has_last_step()) {
      response->set_begun_step(run.gate().Hold());
      return absl::OkStatus();
    }
    return run.gate().EndAfter(request->last_step())
               ? absl::OkStatus()
               : absl::FailedPreconditionError(
                     absl::StrCat("last_step: ", request->last_step(), ", a later one has begun"));
  });
}

absl::Status StageService::Evaluate(grpc::ServerContext* context, const EvaluateRequest* request,
                                    grpc::ServerWriter<StageEvent>* writer) {
  return ForRun("Evaluate", request->lease(), [&](StageRun& run) -> absl::Status {
    const SteadyTime start = SteadyTime::Now();
    std::optional<EvaluationReport> report;
    RETURN_IF_ERROR(Stream(context, &run, writer, [&](const StageRun::OnEvent& on_event) {
      return run.Evaluate(*request, [&](const StageEvent& event) {
        if (event.has_evaluation()) report = event.evaluation();
        on_event(event);
      });
    }));
    journal_.Evaluated(run.subject(), *request, report, SecondsSince(start));
    return absl::OkStatus();
  });
}

absl::Status StageService::Gradients(grpc::ServerContext* context, const GradientsRequest* request,
                                     grpc::ServerWriter<StageEvent>* writer) {
  return ForRun("Gradients", request->lease(), [&](StageRun& run) {
    return Stream(context, &run, writer, [&](const StageRun::OnEvent& on_event) {
      return run.Gradients(*request, on_event);
    });
  });
}

absl::Status StageService::Generate(grpc::ServerContext*, const GenerateRequest* request,
                                    GenerateResponse* response) {
  return ForRun("Generate", request->lease(), [&](StageRun& run) -> absl::Status {
    ASSIGN_OR_RETURN(*response, run.Generate(*request));
    return absl::OkStatus();
  });
}

absl::Status StageService::TakeSnapshot(grpc::ServerContext*, const TakeSnapshotRequest* request,
                                        TakeSnapshotResponse* response) {
  return ForRun("TakeSnapshot", request->lease(), [&](StageRun& run) -> absl::Status {
    ASSIGN_OR_RETURN(*response, run.TakeSnapshot(request->codec_state()));
    return absl::OkStatus();
  });
}

absl::Status StageService::ReadSnapshot(grpc::ServerContext* context,
                                        const ReadSnapshotRequest* request,
                                        grpc::ServerWriter<FileChunk>* writer) {
  return ForRun("ReadSnapshot", request->lease(), [&](StageRun& run) {
    return run.ReadSnapshot(request->file(), ChunksTo(&run, context, writer));
  });
}

absl::Status StageService::ExportParameters(grpc::ServerContext* context,
                                            const ExportParametersRequest* request,
                                            grpc::ServerWriter<FileChunk>* writer) {
  return ForRun("ExportParameters", request->lease(), [&](StageRun& run) {
    return run.ExportParameters(ChunksTo(&run, context, writer));
  });
}

absl::Status StageService::ExportCapture(grpc::ServerContext* context,
                                         const ExportCaptureRequest* request,
                                         grpc::ServerWriter<FileChunk>* writer) {
  return ForRun("ExportCapture", request->lease(), [&](StageRun& run) {
    return run.ExportCapture(request->step(), ChunksTo(&run, context, writer));
  });
}

template <typename Request>
absl::Status StageService::Upload(const char* call, grpc::ServerContext* context,
                                  grpc::ServerReader<Request>* reader, const Take<Request>& take) {
  const auto upload = uploads_.Begin([context] { context->TryCancel(); }, SteadyTime::Now());
  if (!upload.ok()) return Refuse(call, {}, upload.status());
  Request first;
  if (!reader->Read(&first)) {
    return Refuse(call, {}, absl::InvalidArgumentError("no lease and no file came"));
  }
  (*upload)->HasOpened();
  return ForRun(call, first.lease(), [&](StageRun& run) {
    Request request;
    bool is_first = true;  // which is there already
    const absl::Status status = take(run, first, [&](std::string_view* piece) {
      if (std::exchange(is_first, false)) {
        *piece = first.data();
        return true;
      }
      if (!WithClient(&run, context, [&] { return reader->Read(&request); })) return false;
      *piece = request.data();
      return true;
    });
    // The end of a lease cuts the file off.
    const absl::Status lost = leased_.Of(first.lease()).status();
    return lost.ok() ? status : lost;
  });
}

absl::Status StageService::ImportParameters(grpc::ServerContext* context,
                                            grpc::ServerReader<ImportParametersRequest>* reader,
                                            ImportParametersResponse*) {
  return Upload<ImportParametersRequest>(
      "ImportParameters", context, reader,
      [](StageRun& run, const ImportParametersRequest& first, const Next& next) {
        return run.ImportParameters({first.kept().begin(), first.kept().end()}, next);
      });
}

absl::Status StageService::Restore(grpc::ServerContext* context,
                                   grpc::ServerReader<RestoreRequest>* reader, RestoreResponse*) {
  return Upload<RestoreRequest>("Restore", context, reader,
                                [](StageRun& run, const RestoreRequest& first, const Next& next) {
                                  return run.Restore(first.part(), first.step(), next);
                                });
}

LinkMeter::Stopped StageService::StopsMeasurement(const Lease& lease,
                                                  const grpc::ServerContext* context) const {
  return [this, &lease, context]() -> absl::Status {
    RETURN_IF_ERROR(leased_.CheckMeasures(lease));
    return context->IsCancelled() ? absl::CancelledError("the measurement was ended")
                                  : absl::OkStatus();
  };
}

absl::Status StageService::AnswerLink(grpc::ServerContext* context,
                                      const AnswerLinkRequest* request,
                                      grpc::ServerWriter<AnswerLinkResponse>* writer) {
  const absl::Status status = meter_.Answer(
      *request, [&] { return writer->Write({}); }, StopsMeasurement(request->lease(), context));
  return status.ok() ? status : Refuse("AnswerLink", request->lease(), status);
}

absl::Status StageService::MeasureLink(grpc::ServerContext* context,
                                       const MeasureLinkRequest* request,
                                       MeasureLinkResponse* response) {
  const absl::Status status =
      meter_.Measure(*request, StopsMeasurement(request->lease(), context), response);
  return status.ok() ? status : Refuse("MeasureLink", request->lease(), status);
}

absl::Status StageService::Release(grpc::ServerContext*, const ReleaseRequest* request,
                                   ReleaseResponse*) {
  const absl::StatusOr<LogSubject> subject = leased_.Release(request->lease());
  if (!subject.ok()) return Refuse("Release", request->lease(), subject.status());
  journal_.LeaseReleased(*subject);
  return absl::OkStatus();
}

std::optional<StageSnapshot> StageService::Snapshot() const {
  const std::shared_ptr<StageRun> run = leased_.run();
  if (run == nullptr) return std::nullopt;
  return run->Snapshot();
}

}  // namespace thinwire
