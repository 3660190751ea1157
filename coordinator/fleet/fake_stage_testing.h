// A stage server in the test's own process, which gives scripted answers and trains nothing.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "grpcpp/grpcpp.h"
#include "proto/stage.grpc.pb.h"

namespace thinwire {

class FakeStage final : public Stage::Service {
 public:
  using Writer = grpc::ServerWriter<StageEvent>;

  // Serves on 127.0.0.1, on a port that the system chooses.
  FakeStage();
  ~FakeStage() override;

  const std::string& address() const { return address_; }
  // Returns the last lease that was taken.
  Lease lease() const;
  // Returns the names of the calls received, without Renew.
  std::vector<std::string> calls() const;
  // Return what was restored, parts with their files in order of arrival, and of which step.
  std::vector<std::pair<StatePart, std::string>> restored() const;
  uint64_t restored_step() const;
  // Return the safetensors file that was imported last, and the parameters to keep unchanged.
  std::string imported() const;
  std::vector<std::string> kept() const;
  // Returns what was read last of the folder of `init`, and the names left out of a snapshot.
  ReadInitialRequest read_initial() const;
  std::vector<std::string> left_out() const;
  bool released() const;

  // Answers of the calls; set before the first call.
  BuildInfo build;  // its build_id is the test's own
  std::string metrics_address;
  ConfigureResponse configured;
  ListInitialResponse initial;
  // Digest of a tensor of that list, by its name there.
  std::function<std::string(const std::string& name)> digest;
  std::string exported;   // safetensors file of ExportParameters
  std::string frozen;     // that of what is frozen
  std::string captured;   // safetensors file of ExportCapture, the same for every step
  std::string gradients;  // safetensors file of Gradients, the same for every batch
  std::vector<std::pair<StatePart, std::string>> state;  // the files of a snapshot
  std::function<grpc::Status(const TrainRequest&, grpc::ServerContext*, Writer*)> train;
  std::function<grpc::Status(const EvaluateRequest&, grpc::ServerContext*, Writer*)> evaluate;
  std::function<grpc::Status()> acquire, renew;
  std::atomic<bool> ends{false};  // answered by Renew, like `advances`; both may change at any time
  std::atomic<uint64_t> advances{0};
  std::atomic<uint64_t> run_advances{0};  // what the last Renew was told
  std::atomic<double> renew_seconds{0};   // for which its caller waited at most
  std::string clock = "the stage's";      // clock's name in the answer of Renew
  int64_t clock_offset = 0;               // nanoseconds that its clock is ahead of this process's
  std::function<grpc::Status(const GenerateRequest&, GenerateResponse*)> generate;
  // Unimplemented unless set.
  std::function<grpc::Status(const EndTrainingRequest&, EndTrainingResponse*)> end_training;
  std::function<grpc::Status(const FetchStateRequest&)> fetch_state;

  // Waits like a stage whose neighbour does not send, until the call is cancelled.
  static grpc::Status Hang(grpc::ServerContext* context);

  grpc::Status Acquire(grpc::ServerContext*, const AcquireRequest*, AcquireResponse*) override;
  grpc::Status Renew(grpc::ServerContext*, const RenewRequest*, RenewResponse*) override;
  grpc::Status Configure(grpc::ServerContext*, const ConfigureRequest*,
                         ConfigureResponse*) override;
  grpc::Status Connect(grpc::ServerContext*, const ConnectRequest*, ConnectResponse*) override;
  grpc::Status Train(grpc::ServerContext*, const TrainRequest*, Writer*) override;
  grpc::Status EndTraining(grpc::ServerContext*, const EndTrainingRequest*,
                           EndTrainingResponse*) override;
  grpc::Status TakeSnapshot(grpc::ServerContext*, const TakeSnapshotRequest*,
                            TakeSnapshotResponse*) override;
  grpc::Status ReadSnapshot(grpc::ServerContext*, const ReadSnapshotRequest*,
                            grpc::ServerWriter<FileChunk>*) override;
  grpc::Status Restore(grpc::ServerContext*, grpc::ServerReader<RestoreRequest>*,
                       RestoreResponse*) override;
  grpc::Status FetchState(grpc::ServerContext*, const FetchStateRequest*,
                          FetchStateResponse*) override;
  grpc::Status Evaluate(grpc::ServerContext*, const EvaluateRequest*, Writer*) override;
  grpc::Status ExportParameters(grpc::ServerContext*, const ExportParametersRequest*,
                                grpc::ServerWriter<FileChunk>*) override;
  grpc::Status ImportParameters(grpc::ServerContext*, grpc::ServerReader<ImportParametersRequest>*,
                                ImportParametersResponse*) override;
  grpc::Status ListInitial(grpc::ServerContext*, const ListInitialRequest*,
                           ListInitialResponse*) override;
  grpc::Status ReadInitial(grpc::ServerContext*, const ReadInitialRequest*,
                           ReadInitialResponse*) override;
  grpc::Status Gradients(grpc::ServerContext*, const GradientsRequest*, Writer*) override;
  grpc::Status Generate(grpc::ServerContext*, const GenerateRequest*, GenerateResponse*) override;
  grpc::Status ExportCapture(grpc::ServerContext*, const ExportCaptureRequest*,
                             grpc::ServerWriter<FileChunk>*) override;
  grpc::Status Release(grpc::ServerContext*, const ReleaseRequest*, ReleaseResponse*) override;

 private:
  void Note(std::string call);

  mutable absl::Mutex mutex_;
  std::vector<std::string> calls_ ABSL_GUARDED_BY(mutex_);
  Lease lease_ ABSL_GUARDED_BY(mutex_);
  std::string imported_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> kept_ ABSL_GUARDED_BY(mutex_), left_out_ ABSL_GUARDED_BY(mutex_);
  ReadInitialRequest read_initial_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::pair<StatePart, std::string>> restored_ ABSL_GUARDED_BY(mutex_);
  uint64_t restored_step_ ABSL_GUARDED_BY(mutex_) = 0;
  std::string address_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace thinwire
