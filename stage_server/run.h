// One configured run of this server: its stage, data and executor, on its own thread. It owns
// everything that a lease gives, so a lease is ended by destroying this object.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "config/local_paths.h"
#include "proto/stage.pb.h"
#include "stage_server/device_trace.h"
#include "stage_server/log.h"
#include "stage_server/metrics.h"
#include "stage_server/run_data.h"
#include "stage_server/stage/executor.h"
#include "stage_server/stage/stage_state.h"
#include "stage_server/transfers.h"
#include "transport/boundary_service.h"

namespace thinwire {

class StageRun {
 public:
  // Builds the segments, loads data if the stage reads any, and listens for the upstream stage.
  // `kept` is the stage's state after request.standing.step, which a stage without parameters has
  // none of; nothing: it begins anew. `read` holds what the run's stages have read here.
  // `boundaries` outlives the run.
  using Kept = std::optional<std::vector<StateFile>>;
  static absl::StatusOr<std::unique_ptr<StageRun>> New(const ConfigureRequest& request,
                                                       const Backend& backend, const Kept& kept,
                                                       RunData* read, BoundaryService* boundaries,
                                                       ConfigureResponse* response);
  ~StageRun();

  // Dials the downstream stage, the last one if that has the copy of a tied weight, and this stage
  // of the carriers behind. FailedPrecondition if all are connected already.
  absl::Status Connect(const ConnectRequest& request);

  // These run on the executor's thread, one at a time, while the caller waits. `on_event` is called
  // on that thread.
  using OnEvent = std::function<void(const StageEvent&)>;
  absl::Status Train(const TrainRequest& request, const OnEvent& on_event);
  absl::Status Evaluate(const EvaluateRequest& request, const OnEvent& on_event);
  absl::Status Gradients(const GradientsRequest& request, const OnEvent& on_event);
  // Do what LocalStage's functions of these names do.
  absl::Status ImportParameters(const std::vector<std::string>& kept,
                                const std::function<bool(std::string_view* piece)>& next);
  absl::Status ExportParameters(ExportParametersRequest::Which which,
                                const std::function<absl::Status(std::string_view)>& sink);
  // Copies the stage's state; see CopyState.
  absl::StatusOr<TakeSnapshotResponse> TakeSnapshot(const CopiedState& what);
  // Hands out a file of that copy and forgets it. NotFound if there is no file of that number. Any
  // thread, whatever else runs.
  absl::Status ReadSnapshot(uint32_t file,
                            const std::function<absl::Status(std::string_view)>& sink);
  // Copies what all carriers of the stage share, as it is after `step`, and holds it until it has
  // been read `readers` times. FailedPrecondition if the stage stands elsewhere.
  absl::Status HoldState(uint64_t step, int readers);
  // Hands it out part by part; each piece comes with its part, of which `is_first` begins the file.
  // FailedPrecondition if that is not held. Any thread, whatever else runs.
  using OnPiece =
      std::function<absl::Status(const StatePart& part, bool is_first, std::string_view piece)>;
  absl::Status ReadState(uint64_t step, const OnPiece& on_piece);
  // Takes over what another carrier's server holds of a step.
  absl::Status FetchState(const FetchStateRequest& request);
  // See RestoreState.
  absl::Status Restore(const StatePart& part, uint64_t step,
                       const std::function<bool(std::string_view* piece)>& next,
                       const std::vector<std::string>& kept = {});
  // List, and read, this machine's folder of `init`. FailedPrecondition unless stages read it.
  absl::StatusOr<ListInitialResponse> ListInitial() const;
  absl::StatusOr<ReadInitialResponse> ReadInitial(const ReadInitialRequest& request);
  absl::Status ExportCapture(uint64_t step,
                             const std::function<absl::Status(std::string_view)>& sink);
  absl::StatusOr<GenerateResponse> Generate(const GenerateRequest& request);

  // Return how far training had come, and the state after a step that the stage can reach
  // (Executor::Reach). For a run that was stopped; they wait until its last call has ended.
  std::optional<StageStanding> standing();
  absl::StatusOr<std::vector<StateFile>> KeptState(const StageStanding& wanted);

  // Ends training between two steps. Any thread.
  StepGate& gate() { return executor_->gate(); }

  // Ends the current call. Any thread.
  void Stop(const absl::Status& reason) { executor_->Stop(reason); }

  // Returns the first reason of Stop; OK before it. Any thread.
  absl::Status stopped() const { return executor_->Stopped(); }

  // Returns the count of its progress. Any thread.
  Patience& patience() const { return *spec_.patience; }

  // Returns the waits of its calls for their clients, which the end of the run ends. Any thread.
  Transfers& transfers() { return transfers_; }

  // Any thread.
  StageSnapshot Snapshot() const;

  const StageSpec& spec() const { return spec_; }
  const LogSubject& subject() const { return subject_; }

 private:
  struct TrimDevice {
    void operator()(Device* device) const;
  };

  StageRun(const ConfigureRequest& request, const Backend& backend, const Security& security)
      : memory_(backend.device),
        backend_(backend),
        security_(security),
        subject_{request.lease().run(), static_cast<int>(request.stage())},
        generates_(request.generates()),
        initial_(StagesReadInit(request.experiment()) ? request.experiment().init() : "") {}
  absl::Status LoadFeed(const ConfigureRequest& request, RunData* read,
                        ConfigureResponse* response);
  // Notes what a copy of the state takes beside what training does.
  void AllowCopy(const std::vector<StateFile>& files);
  // Copies the state of a connected stage; on the executor's thread.
  absl::StatusOr<std::vector<StateFile>> Copied(const CopiedState& what);
  absl::Status TakeKept(const StageStanding& standing, const std::vector<StateFile>& kept);
  // Listens for the upstream stage, for the first one if a tied weight has its copy here, and for
  // this stage of the carriers before.
  absl::Status Listen(BoundaryService* boundaries);
  absl::Status DialDownstream(const ConnectRequest& request, std::vector<NeighbourEnd> dialled);
  absl::Status Dial(const CutEndSpec& end, const std::string& target);
  absl::Status DialPeer(int carrier, const std::string& target);
  absl::Status CheckReadsInitial() const;
  absl::Status CheckSamples(int64_t samples, bool training) const;
  // Hands on the slices that were traced since the last time.
  void ReportTrace(const OnEvent& on_event);
  // Begins or ends the trace of the device behind a step, where that is due.
  void TraceDeviceBehind(uint64_t step, const OnEvent& on_event);
  // Ends the trace of the device, if one goes on, and hands on its slices.
  void ReportDeviceTrace(const OnEvent& on_event);
  absl::Status CheckRecalibration(const EvaluateRequest& request) const;
  absl::Status CheckCalibration(const EvaluateRequest& request) const;
  // Runs `task` on the executor's thread and waits for it.
  absl::Status OnExecutor(const std::function<absl::Status()>& task);
  void ExecutorLoop();

  // first: trims the device when all else has been freed.
  std::unique_ptr<Device, TrimDevice> memory_;
  const Backend backend_;
  const Security& security_;  // used by the boundaries
  const LogSubject subject_;
  const bool generates_;       // generates texts only, and reads no data
  const std::string initial_;  // folder of `init` here; empty: the coordinator sends parameters
  StageSpec spec_;
  std::unique_ptr<DeviceTrace> device_trace_;  // null: nothing is traced, or not the device
  RunData::Splits data_;                       // null: the stage reads none
  std::optional<Feed> feed_;
  std::unique_ptr<LocalStage> stage_;
  std::unique_ptr<Executor> executor_;

  Transfers transfers_;
  // A copy of the stage's state for other carriers.
  struct Held {
    std::shared_ptr<const std::vector<StateFile>> files;  // null: none is held
    uint64_t step = 0;
    int readers = 0;  // that have yet to come
  };

  absl::Mutex snapshot_mutex_;
  // A file that was read is empty.
  std::vector<StateFile> snapshot_ ABSL_GUARDED_BY(snapshot_mutex_);
  Held held_ ABSL_GUARDED_BY(snapshot_mutex_);

  absl::Mutex mutex_;
  const std::function<absl::Status()>* task_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::optional<absl::Status> result_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace thinwire
