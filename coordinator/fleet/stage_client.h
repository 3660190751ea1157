// The calls of one stage server, as the coordinator makes them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "grpcpp/grpcpp.h"
#include "proto/stage.grpc.pb.h"
#include "security/security.h"

namespace thinwire {

// Calls in flight that can be cancelled together, from any thread.
class CallSet {
 public:
  // False once cancelled: the call must then not be made.
  bool Add(grpc::ClientContext* call);
  void Remove(grpc::ClientContext* call);
  // Cancels the calls in flight and, for good, later ones.
  void Cancel();
  bool cancelled() const;

 private:
  mutable absl::Mutex mutex_;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  std::set<grpc::ClientContext*> calls_ ABSL_GUARDED_BY(mutex_);
};

// What a stage is configured for, besides the experiment.
struct StagePurpose {
  const TraceSteps* trace = nullptr;  // steps that are traced; null: none
  bool generates = false;             // texts alone: no data are read
};

// Blocking calls; any thread, several at once. Errors keep the server's code and read
// "stage 2 (127.0.0.1:4711): Train: what the server said". Renewals have a channel of their own,
// so that no other call delays them.
class StageClient {
 public:
  using OnEvent = std::function<absl::Status(const StageEvent&)>;
  using OnChunk = std::function<absl::Status(const FileChunk&)>;

  // `address`: "unix:/path" or "host:port". Does not connect yet.
  StageClient(int stage, std::string address, Lease lease, const Security& security);

  int stage() const { return stage_; }
  const std::string& address() const { return address_; }
  std::string Name() const;  // "stage 2 (127.0.0.1:4711)"

  // Tries again, until `patience` is over, while the server is not there or another run's;
  // `on_missing` gets what it, or gRPC, says of each try, a name that does not resolve included.
  absl::StatusOr<AcquireResponse> Acquire(
      double lease_seconds, absl::Duration patience,
      const std::function<void(const std::string& reason)>& on_missing);
  absl::StatusOr<ConfigureResponse> Configure(const Experiment& experiment, int threads,
                                              const std::string& link_secret,
                                              const StagePurpose& purpose);
  // Addresses of the next and of the last stage; the next one's is empty for the last stage.
  absl::Status Connect(const std::string& downstream, const std::string& last);

  // Return when the stream has ended. An error of the callback ends the call and is returned. The
  // lease of the request is filled in here.
  absl::Status Train(TrainRequest request, const OnEvent& on_event);
  // Holds training before its next step; returns the last one that has begun.
  absl::StatusOr<uint64_t> HoldTraining();
  // Lets a held training go on to the end of that step.
  absl::Status EndTraining(uint64_t last_step);
  absl::Status Evaluate(EvaluateRequest request, const OnEvent& on_event);
  absl::Status ExportParameters(const OnChunk& on_chunk);
  absl::Status Gradients(GradientsRequest request, const OnEvent& on_event);
  absl::StatusOr<GenerateResponse> Generate(GenerateRequest request);
  absl::Status ExportCapture(uint64_t step, const OnChunk& on_chunk);

  // Has the stage listen for the one before, which `measure` is to let measure; it is called once
  // the stage listens. Returns when the measurement has ended.
  absl::Status AnswerLink(const std::string& link_secret, const std::function<void()>& measure);
  // Between these two: measures the way to the stage that listens at `downstream`.
  absl::StatusOr<MeasureLinkResponse> MeasureLink(const std::string& downstream,
                                                  const std::string& link_secret);

  // Copies the stage's state; the answer's files are then there to be read, each once.
  absl::StatusOr<TakeSnapshotResponse> TakeSnapshot(bool codec_state);
  absl::Status ReadSnapshot(uint32_t file, const OnChunk& on_chunk);

  // Sends the safetensors file that `write` hands to its sink, in pieces of at most kPieceBytes. It
  // has all parameters of the stage but those in `kept`, which stay as they are. An error of
  // `write` ends the call and is returned, unless it is the sink's.
  static constexpr size_t kPieceBytes = size_t{1} << 20;
  using Sink = std::function<absl::Status(std::string_view)>;
  absl::Status ImportParameters(const std::vector<std::string>& kept,
                                const std::function<absl::Status(const Sink&)>& write);
  // The same for one part of the stage's state, as it was left with `step`.
  absl::Status Restore(const StatePart& part, uint64_t step,
                       const std::function<absl::Status(const Sink&)>& write);

  // `advances`: see RenewRequest.
  absl::StatusOr<RenewResponse> Renew(absl::Duration timeout, uint64_t advances);

  // Ends the lease; also after Cancel. Waits up to 3 s.
  absl::Status Release();

  // Ends the calls in flight; later ones return Cancelled. Renewals, and the fetch of a snapshot,
  // are not touched.
  void Cancel() { calls_.Cancel(); }
  void CancelSnapshot() { snapshots_.Cancel(); }
  void CancelRenewals() { renewals_.Cancel(); }

 private:
  using Write = std::function<absl::Status(const Sink&)>;
  // A method of the stub, and how its calls are made and named.
  struct Method {
    const char* name;
    Stage::Stub* stub;
    CallSet* calls;
    absl::Duration timeout;
  };
  Method Control(const char* name, absl::Duration timeout) {
    return {name, stub_.get(), &calls_, timeout};
  }
  absl::Status Error(const Method& method, const grpc::Status& status) const;
  // Until Acquire may try again: for the connection, or a short while.
  void AwaitNextTry();
  template <typename Request, typename Response>
  absl::StatusOr<Response> Unary(const Method& method,
                                 grpc::Status (Stage::Stub::*function)(grpc::ClientContext*,
                                                                       const Request&, Response*),
                                 Request request);
  template <typename Request, typename Response>
  absl::Status Stream(const Method& method,
                      std::unique_ptr<grpc::ClientReader<Response>> (Stage::Stub::*function)(
                          grpc::ClientContext*, const Request&),
                      Request request, const std::function<absl::Status(const Response&)>& handle);

  // Sends what `write` hands out in the `data` of requests, of which `first` is the first.
  template <typename Request, typename Response>
  absl::Status Upload(const Method& method,
                      std::unique_ptr<grpc::ClientWriter<Request>> (Stage::Stub::*function)(
                          grpc::ClientContext*, Response*),
                      Request first, const Write& write);

  const int stage_;
  const std::string address_;
  const Lease lease_;
  const Security security_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<Stage::Stub> stub_;
  std::unique_ptr<Stage::Stub> renewal_stub_;
  CallSet calls_, snapshots_, renewals_;
};

}  // namespace thinwire
