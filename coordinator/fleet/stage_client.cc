#include "coordinator/fleet/stage_client.h"

#include <unistd.h>

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status.h"
#include "base/steady_time.h"

namespace thinwire {
namespace {

constexpr absl::Duration kNextTry = absl::Milliseconds(200);
constexpr absl::Duration kShortCall = absl::Seconds(15);
// Configure reads the whole data set and its checksum.
constexpr absl::Duration kConfigure = absl::Minutes(10);
constexpr absl::Duration kConnect = absl::Seconds(60);
constexpr absl::Duration kExport = absl::Minutes(10);
constexpr absl::Duration kEndTraining = absl::Seconds(3);  // a user has pressed Ctrl-C and waits
constexpr absl::Duration kRelease = absl::Seconds(3);

// Makes a connection of its own, directly to the stage.
std::shared_ptr<grpc::Channel> NewChannel(const std::string& address, const Security& security) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // A server that comes later is seen within a second, once its name can be resolved.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  arguments.SetInt(GRPC_ARG_DNS_MIN_TIME_BETWEEN_RESOLUTIONS_MS, 1000);
  // This is also the longest that one attempt to connect may take.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 5000);
  return grpc::CreateCustomChannel(address, security.ChannelCredentials(), arguments);
}

// Recognises gRPC's message when either end refuses TLS. A server that refuses our certificate, or
// wants one, just closes the connection.
bool IsHandshake(const absl::Status& error) {
  return absl::StrContains(error.message(), "andshake failed");
}
bool IsClosed(const absl::Status& error) {
  return absl::StrContains(error.message(), "Socket closed") ||
         absl::StrContains(error.message(), "Connection reset");
}

absl::Status AskForCertificate(const absl::Status& error, bool has_tls) {
  return absl::UnavailableError(
      absl::StrCat(error.message(), "; the server ends the connection: ",
                   has_tls ? "does it take this program's certificate (--tls_cert)?"
                           : "does it want a certificate (--tls_cert, --tls_key, --tls_ca)?"));
}

std::string Holder() {
  char host[256] = "";
  gethostname(host, sizeof(host) - 1);
  return absl::StrCat(host, ", process ", getpid());
}

// A call that `calls` can cancel, from construction to destruction.
class Call {
 public:
  Call(CallSet* calls, absl::Duration timeout, const Security& security) : calls_(calls) {
    security.Show(&context_);
    if (timeout < absl::InfiniteDuration()) {
      context_.set_deadline(absl::ToChronoTime(absl::Now() + timeout));
    }
    admitted_ = calls_->Add(&context_);
  }
  ~Call() {
    if (admitted_) calls_->Remove(&context_);
  }

  bool admitted() const { return admitted_; }
  grpc::ClientContext* context() { return &context_; }

 private:
  CallSet* calls_;
  grpc::ClientContext context_;
  bool admitted_;
};

grpc::Status Cancelled() { return grpc::Status(grpc::StatusCode::CANCELLED, "cancelled"); }

}  // namespace

bool CallSet::Add(grpc::ClientContext* call) {
  absl::MutexLock lock(&mutex_);
  if (!cancelled_) calls_.insert(call);
  return !cancelled_;
}

void CallSet::Remove(grpc::ClientContext* call) {
  absl::MutexLock lock(&mutex_);
  calls_.erase(call);
}

bool CallSet::cancelled() const {
  absl::MutexLock lock(&mutex_);
  return cancelled_;
}

void CallSet::Cancel() {
  absl::MutexLock lock(&mutex_);
  cancelled_ = true;
  for (grpc::ClientContext* call : calls_) call->TryCancel();
}

StageClient::StageClient(const StagePlace& place, std::string address, Lease lease,
                         const Security& security)
    : place_(place),
      address_(std::move(address)),
      lease_(std::move(lease)),
      security_(security),
      channel_(NewChannel(address_, security_)),
      stub_(Stage::NewStub(channel_)),
      renewal_stub_(Stage::NewStub(NewChannel(address_, security_))) {}

std::string StageClient::Name() const {
  const std::string of =
      place_.carriers > 1 ? absl::StrCat(" of carrier ", place_.carrier) : std::string();
  return absl::StrCat("stage ", place_.stage, of, " (", address_, ")");
}

absl::Status StageClient::Error(const Method& method, const grpc::Status& status) const {
  if (status.ok()) return absl::OkStatus();
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                      absl::StrCat(Name(), ": ", method.name, ": ", status.error_message()));
}

template <typename Request, typename Response>
absl::StatusOr<Response> StageClient::Unary(
    const Method& method,
    grpc::Status (Stage::Stub::*function)(grpc::ClientContext*, const Request&, Response*),
    Request request) {
  Call call(method.calls, method.timeout, security_);
  if (!call.admitted()) return Error(method, Cancelled());
  *request.mutable_lease() = lease_;
  Response response;
  const grpc::Status status = (method.stub->*function)(call.context(), request, &response);
  if (!status.ok()) return Error(method, status);
  return response;
}

template <typename Request, typename Response>
absl::Status StageClient::Stream(const Method& method,
                                 std::unique_ptr<grpc::ClientReader<Response>> (
                                     Stage::Stub::*function)(grpc::ClientContext*, const Request&),
                                 Request request,
                                 const std::function<absl::Status(const Response&)>& handle) {
  Call call(method.calls, method.timeout, security_);
  if (!call.admitted()) return Error(method, Cancelled());
  *request.mutable_lease() = lease_;
  const auto reader = (method.stub->*function)(call.context(), request);
  Response response;
  absl::Status handled;
  while (handled.ok() && reader->Read(&response)) handled = handle(response);
  if (!handled.ok()) {
    call.context()->TryCancel();
    while (reader->Read(&response)) continue;
  }
  const absl::Status status = Error(method, reader->Finish());
  return handled.ok() ? status : handled;
}

absl::StatusOr<AcquireResponse> StageClient::Acquire(
    double lease_seconds, absl::Duration patience, bool keeps_state,
    const std::function<void(const std::string& reason)>& on_missing) {
  AcquireRequest request;
  request.set_lease_seconds(lease_seconds);
  request.set_holder(Holder());
  request.set_keeps_state(keeps_state);
  const SteadyTime deadline = SteadyTime::Now() + patience;
  for (int closed = 0;;) {
    auto answer = Unary(Control("Acquire", kShortCall), &Stage::Stub::Acquire, request);
    // A server that ends cancels the calls that it has begun.
    const bool is_missing = absl::IsUnavailable(answer.status()) ||
                            (absl::IsCancelled(answer.status()) && !calls_.cancelled());
    if (!is_missing || IsHandshake(answer.status())) return answer;
    const bool is_closed = IsClosed(answer.status()), has_tls = security_.has_tls();
    const bool is_over = SteadyTime::Now() + kNextTry > deadline;
    // A proxy whose server is not there yet closes connections, too. With certificates a second
    // close counts as a refusal; without them none does until the time is over.
    if (is_closed && (is_over || (has_tls && ++closed == 2))) {
      return AskForCertificate(answer.status(), has_tls);
    }
    if (is_over) return answer;
    on_missing(std::string(answer.status().message()));
    AwaitNextTry();  // the next try notices Cancel
  }
}

// Waits for the connection rather than asleep: gRPC continues a handshake only while somebody
// waits. A call that fails at once, as all do after a failed attempt, is too short for a handshake.
// Asleep between such calls, we would let it time out again and again.
void StageClient::AwaitNextTry() {
  if (channel_->GetState(/*try_to_connect=*/true) == GRPC_CHANNEL_READY) {
    absl::SleepFor(kNextTry);
  } else {
    channel_->WaitForConnected(absl::ToChronoTime(absl::Now() + kNextTry));
  }
}

absl::StatusOr<ConfigureResponse> StageClient::Configure(const Experiment& experiment, int threads,
                                                         const std::string& link_secret,
                                                         const StagePurpose& purpose) {
  ConfigureRequest request;
  *request.mutable_experiment() = experiment;
  request.set_stage(static_cast<uint32_t>(place_.stage));
  request.set_carrier(static_cast<uint32_t>(place_.carrier));
  request.set_carriers(static_cast<uint32_t>(place_.carriers));
  *request.mutable_deal() = {place_.deal.begin(), place_.deal.end()};
  *request.mutable_stage_carriers() = {place_.stage_carriers.begin(), place_.stage_carriers.end()};
  request.set_threads(static_cast<uint32_t>(threads));
  request.set_link_secret(link_secret);
  if (purpose.trace != nullptr) *request.mutable_trace() = *purpose.trace;
  request.set_generates(purpose.generates);
  if (purpose.standing != nullptr) *request.mutable_standing() = *purpose.standing;
  return Unary(Control("Configure", kConfigure), &Stage::Stub::Configure, std::move(request));
}

absl::Status StageClient::Connect(const std::vector<std::string>& downstream,
                                  const std::vector<std::string>& last,
                                  const std::vector<std::string>& carriers) {
  ConnectRequest request;
  *request.mutable_downstream() = {downstream.begin(), downstream.end()};
  *request.mutable_last() = {last.begin(), last.end()};
  *request.mutable_carriers() = {carriers.begin(), carriers.end()};
  return Unary(Control("Connect", kConnect), &Stage::Stub::Connect, std::move(request)).status();
}

// Has no deadline, as an epoch may take days. Renewals notice a stage that hangs, and the stage
// itself waits for its neighbours with deadlines.
absl::Status StageClient::Train(TrainRequest request, const OnEvent& on_event) {
  return Stream(Control("Train", absl::InfiniteDuration()), &Stage::Stub::Train, std::move(request),
                on_event);
}

absl::StatusOr<uint64_t> StageClient::HoldTraining() {
  ASSIGN_OR_RETURN(
      const EndTrainingResponse response,
      Unary(Control("EndTraining", kEndTraining), &Stage::Stub::EndTraining, EndTrainingRequest()));
  return response.begun_step();
}

absl::Status StageClient::EndTraining(uint64_t last_step) {
  EndTrainingRequest request;
  request.set_last_step(last_step);
  return Unary(Control("EndTraining", kEndTraining), &Stage::Stub::EndTraining, request).status();
}

absl::Status StageClient::Evaluate(EvaluateRequest request, const OnEvent& on_event) {
  return Stream(Control("Evaluate", absl::InfiniteDuration()), &Stage::Stub::Evaluate,
                std::move(request), on_event);
}

absl::Status StageClient::ExportParameters(ExportParametersRequest::Which which,
                                           const OnChunk& on_chunk) {
  ExportParametersRequest request;
  request.set_which(which);
  return Stream(Control("ExportParameters", absl::InfiniteDuration()),
                &Stage::Stub::ExportParameters, std::move(request), on_chunk);
}

absl::Status StageClient::Gradients(GradientsRequest request, const OnEvent& on_event) {
  return Stream(Control("Gradients", absl::InfiniteDuration()), &Stage::Stub::Gradients,
                std::move(request), on_event);
}

template <typename Request, typename Response>
absl::Status StageClient::Upload(const Method& method,
                                 std::unique_ptr<grpc::ClientWriter<Request>> (
                                     Stage::Stub::*function)(grpc::ClientContext*, Response*),
                                 Request first, const Write& write) {
  Call call(method.calls, method.timeout, security_);
  if (!call.admitted()) return Error(method, Cancelled());
  Response response;
  const auto writer = (method.stub->*function)(call.context(), &response);
  Request request = std::move(first);
  *request.mutable_lease() = lease_;
  bool is_open = true;
  const absl::Status written = write([&](std::string_view piece) {
    request.set_data(piece.data(), piece.size());
    is_open = writer->Write(request);
    request.Clear();
    return is_open ? absl::OkStatus() : absl::CancelledError("the stage ended the call");
  });
  const bool is_own_error = is_open && !written.ok();
  if (is_own_error) call.context()->TryCancel();
  writer->WritesDone();
  const absl::Status status = Error(method, writer->Finish());
  return is_own_error ? written : status;
}

absl::Status StageClient::ImportParameters(const std::vector<std::string>& kept,
                                           const Write& write) {
  ImportParametersRequest first;
  *first.mutable_kept() = {kept.begin(), kept.end()};
  return Upload<ImportParametersRequest, ImportParametersResponse>(
      Control("ImportParameters", absl::InfiniteDuration()), &Stage::Stub::ImportParameters,
      std::move(first), write);
}

absl::StatusOr<ListInitialResponse> StageClient::ListInitial() {
  return Unary(Control("ListInitial", kConfigure), &Stage::Stub::ListInitial, ListInitialRequest());
}

absl::StatusOr<ReadInitialResponse> StageClient::ReadInitial(ReadInitialRequest request) {
  return Unary(Control("ReadInitial", absl::InfiniteDuration()), &Stage::Stub::ReadInitial,
               std::move(request));
}

absl::Status StageClient::Restore(const StatePart& part, uint64_t step, const Write& write,
                                  const std::vector<std::string>& kept) {
  RestoreRequest first;
  *first.mutable_part() = part;
  first.set_step(step);
  *first.mutable_kept() = {kept.begin(), kept.end()};
  return Upload<RestoreRequest, RestoreResponse>(Control("Restore", absl::InfiniteDuration()),
                                                 &Stage::Stub::Restore, std::move(first), write);
}

absl::StatusOr<TakeSnapshotResponse> StageClient::TakeSnapshot(const SnapshotOf& what) {
  TakeSnapshotRequest request;
  request.set_codec_state(what.codec_state);
  *request.mutable_left_out() = {what.left_out.begin(), what.left_out.end()};
  return Unary(Control("TakeSnapshot", kExport), &Stage::Stub::TakeSnapshot, request);
}

// Has no deadline, like Train: its time depends on the link.
absl::Status StageClient::ReadSnapshot(uint32_t file, const OnChunk& on_chunk) {
  ReadSnapshotRequest request;
  request.set_file(file);
  const Method method = {"ReadSnapshot", stub_.get(), &snapshots_, absl::InfiniteDuration()};
  return Stream(method, &Stage::Stub::ReadSnapshot, std::move(request), on_chunk);
}

absl::Status StageClient::HoldState(uint64_t step, int readers) {
  HoldStateRequest request;
  request.set_step(step);
  request.set_readers(static_cast<uint32_t>(readers));
  return Unary(Control("HoldState", kExport), &Stage::Stub::HoldState, request).status();
}

// Has no deadline, for the same reason.
absl::Status StageClient::FetchState(const std::string& from, uint64_t step, bool in_background) {
  FetchStateRequest request;
  request.set_from(from);
  request.set_step(step);
  request.set_in_background(in_background);
  return Unary(Control("FetchState", absl::InfiniteDuration()), &Stage::Stub::FetchState,
               std::move(request))
      .status();
}

absl::Status StageClient::ExportCapture(uint64_t step, const OnChunk& on_chunk) {
  ExportCaptureRequest request;
  request.set_step(step);
  return Stream(Control("ExportCapture", kExport), &Stage::Stub::ExportCapture, std::move(request),
                on_chunk);
}

// Has no deadline, like Train: a long prompt may take its time.
absl::StatusOr<GenerateResponse> StageClient::Generate(GenerateRequest request) {
  return Unary(Control("Generate", absl::InfiniteDuration()), &Stage::Stub::Generate,
               std::move(request));
}

absl::Status StageClient::AnswerLink(const std::string& link_secret,
                                     const std::function<void()>& measure) {
  AnswerLinkRequest request;
  request.set_link_secret(link_secret);
  const std::function<absl::Status(const AnswerLinkResponse&)> listens = [&](const auto&) {
    measure();
    return absl::OkStatus();
  };
  return Stream(Control("AnswerLink", kConnect), &Stage::Stub::AnswerLink, request, listens);
}

absl::StatusOr<MeasureLinkResponse> StageClient::MeasureLink(const std::string& downstream,
                                                             const std::string& link_secret) {
  MeasureLinkRequest request;
  request.set_downstream(downstream);
  request.set_link_secret(link_secret);
  return Unary(Control("MeasureLink", kConnect), &Stage::Stub::MeasureLink, request);
}

absl::StatusOr<RenewResponse> StageClient::Renew(absl::Duration timeout, uint64_t advances) {
  const Method method = {"Renew", renewal_stub_.get(), &renewals_, timeout};
  RenewRequest request;
  request.set_advances(advances);
  return Unary(method, &Stage::Stub::Renew, std::move(request));
}

absl::StatusOr<std::string> StageClient::Drain() {
  Call call(&calls_, kShortCall, security_);
  DrainResponse response;
  const grpc::Status status = stub_->Drain(call.context(), DrainRequest(), &response);
  if (status.ok()) return response.run();
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                      absl::StrCat(address_, ": ", status.error_message()));
}

absl::Status StageClient::Release() {
  CallSet never_cancelled;
  const Method method = {"Release", stub_.get(), &never_cancelled, kRelease};
  return Unary(method, &Stage::Stub::Release, ReleaseRequest()).status();
}

}  // namespace thinwire
