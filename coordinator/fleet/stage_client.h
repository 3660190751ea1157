// The coordinator's calls to one stage server.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "config/replicas_spec.h"
#include "grpcpp/grpcpp.h"
#include "proto/stage.grpc.pb.h"
#include "security/security.h"

namespace thinwire {

// Calls in flight that any thread can cancel together.
class CallSet {
 public:
  // Returns false once cancelled: the call must then not be made.
  bool Add(grpc::ClientContext* call);
  void Remove(grpc::ClientContext* call);
  // Cancels the calls in flight and all later ones.
  void Cancel();
  bool cancelled() const;

 private:
  mutable absl::Mutex mutex_;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  std::set<grpc::ClientContext*> calls_ ABSL_GUARDED_BY(mutex_);
};

// Place of a server among those of a run: stage by stage of the first pipeline, then of the next
// that carries replicas.
struct StagePlace {
  int server = 0;  // index among all servers
  int stage = 0;
  int carrier = 0, carriers = 1;
  Deal deal = {};                        // of the replicas to the carriers' rows
  std::vector<int> stage_carriers = {};  // numbers of carriers of all stages, if they differ
};

// Purpose that a stage is configured for, besides the experiment.
struct StagePurpose {
  const TraceSteps* trace = nullptr;  // steps to trace; null: none
  // Where it is to go on with what it kept of the generation before; null: it begins anew.
  const StageStanding* standing = nullptr;
  bool generates = false;  // True if it only generates text: then it reads no data.
};

// Parts of a stage's state that it copies, besides those that it has for itself.
struct SnapshotOf {
  bool codec_state = false;                // of the ends of cuts
  std::vector<std::string> left_out = {};  // frozen parameters that no file is to have
};

// Blocking calls; any thread, several at once. Errors keep the server's code and read "stage 2
// (127.0.0.1:4711): Train: what the server said". Renewals have their own channel, so that no other
// call delays them.
class StageClient {
 public:
  using OnEvent = std::function<absl::Status(const StageEvent&)>;
  using OnChunk = std::function<absl::Status(const FileChunk&)>;

  // `address` is "unix:/path" or "host:port". Does not connect yet.
  StageClient(const StagePlace& place, std::string address, Lease lease, const Security& security);

  int server() const { return place_.server; }
  int stage() const { return place_.stage; }
  int carrier() const { return place_.carrier; }
  const std::string& address() const { return address_; }
  // Returns "stage 2 (127.0.0.1:4711)", or "stage 2 of carrier 1 (127.0.0.1:4711)" of several.
  std::string Name() const;

  // Tries until `patience` is over, while the server is not there or belongs to another run.
  // `on_missing` gets the reason of each failed try, from the server or from gRPC, a name that does
  // not resolve included. With `keeps_state` a server that is taken over from an earlier generation
  // keeps its stage's state.
  absl::StatusOr<AcquireResponse> Acquire(
      double lease_seconds, absl::Duration patience, bool keeps_state,
      const std::function<void(const std::string& reason)>& on_missing);
  absl::StatusOr<ConfigureResponse> Configure(const Experiment& experiment, int threads,
                                              const std::string& link_secret,
                                              const StagePurpose& purpose);
  // Takes the addresses of the next and of the last stage, and those of this stage by carrier;
  // `downstream` is empty for the last stage.
  absl::Status Connect(const std::vector<std::string>& downstream,
                       const std::vector<std::string>& last,
                       const std::vector<std::string>& carriers);

  // Trains. This and the other streams return when the stream has ended. An error of the callback
  // ends the call and is returned. They fill in the lease of the request.
  absl::Status Train(TrainRequest request, const OnEvent& on_event);
  // Holds training before its next step; returns the last step that has begun.
  absl::StatusOr<uint64_t> HoldTraining();
  // Lets a held training continue to the end of `last_step`.
  absl::Status EndTraining(uint64_t last_step);
  absl::Status Evaluate(EvaluateRequest request, const OnEvent& on_event);
  absl::Status ExportParameters(ExportParametersRequest::Which which, const OnChunk& on_chunk);
  absl::Status Gradients(GradientsRequest request, const OnEvent& on_event);
  absl::StatusOr<GenerateResponse> Generate(GenerateRequest request);
  absl::Status ExportCapture(uint64_t step, const OnChunk& on_chunk);

  // Makes the stage listen for the previous one. Once it listens, `measure` is called and has to
  // make the previous stage measure. Returns when the measurement has ended.
  absl::Status AnswerLink(const std::string& link_secret, const std::function<void()>& measure);
  // Makes this stage measure the way to the one that listens at `downstream`.
  absl::StatusOr<MeasureLinkResponse> MeasureLink(const std::string& downstream,
                                                  const std::string& link_secret);

  // Makes the stage copy its state. The files in the answer can then be read, each once.
  absl::StatusOr<TakeSnapshotResponse> TakeSnapshot(const SnapshotOf& what);
  absl::Status ReadSnapshot(uint32_t file, const OnChunk& on_chunk);
  // Makes the stage copy its state after `step`, for so many other carriers.
  absl::Status HoldState(uint64_t step, int readers);
  // Makes the stage take over the state after `step` that the carrier at `from` holds.
  // `in_background`: while others train.
  absl::Status FetchState(const std::string& from, uint64_t step, bool in_background);

  // Sends the safetensors file that `write` hands to its sink, in pieces of at most kPieceBytes. It
  // must hold all parameters of the stage but those in `kept`, which stay unchanged. An error of
  // `write` ends the call and is returned, unless it comes from the sink.
  static constexpr size_t kPieceBytes = size_t{1} << 20;
  using Sink = std::function<absl::Status(std::string_view)>;
  absl::Status ImportParameters(const std::vector<std::string>& kept,
                                const std::function<absl::Status(const Sink&)>& write);
  // Lists what the stage's own folder of `init` has, and makes it read some of that in place of
  // parameters that are sent.
  absl::StatusOr<ListInitialResponse> ListInitial();
  absl::StatusOr<ReadInitialResponse> ReadInitial(ReadInitialRequest request);
  // Does the same for one part of the stage's state, as it was after `step`.
  absl::Status Restore(const StatePart& part, uint64_t step,
                       const std::function<absl::Status(const Sink&)>& write,
                       const std::vector<std::string>& kept = {});

  // Renews the lease. `advances` is that of RenewRequest.
  absl::StatusOr<RenewResponse> Renew(absl::Duration timeout, uint64_t advances);

  // Asks the server, whoever has it leased, to leave its run and to end. Returns the run's id;
  // empty: it has none. Errors name the address alone.
  absl::StatusOr<std::string> Drain();

  // Ends the lease; works after Cancel too. Waits up to 3 s.
  absl::Status Release();

  // Ends the calls in flight; later ones return Cancelled. Renewals and the fetch of a snapshot go
  // on.
  void Cancel() { calls_.Cancel(); }
  void CancelSnapshot() { snapshots_.Cancel(); }
  void CancelRenewals() { renewals_.Cancel(); }

 private:
  using Write = std::function<absl::Status(const Sink&)>;
  // A method of the stub, with its name and the way to call it.
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
  // Waits until Acquire may try again: for the connection, or a short while.
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

  // Sends what `write` hands out in the `data` field of requests, starting with `first`.
  template <typename Request, typename Response>
  absl::Status Upload(const Method& method,
                      std::unique_ptr<grpc::ClientWriter<Request>> (Stage::Stub::*function)(
                          grpc::ClientContext*, Response*),
                      Request first, const Write& write);

  const StagePlace place_;
  const std::string address_;
  const Lease lease_;
  const Security security_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<Stage::Stub> stub_;
  std::unique_ptr<Stage::Stub> renewal_stub_;
  CallSet calls_, snapshots_, renewals_;
};

}  // namespace thinwire
