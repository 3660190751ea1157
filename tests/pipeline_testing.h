// Runs the stage servers of one test and makes the calls that a coordinator would make: whole
// servers over real sockets, without processes of their own.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/experiment.pb.h"
#include "proto/stage.grpc.pb.h"
#include "stage_server/server.h"

namespace thinwire {

// Results of a run. They must not depend on how the segments were spread over servers.
struct Trained {
  std::vector<double> step_losses;
  double compressed_loss = 0, uncompressed_loss = 0, recalibrated_loss = 0;
  uint64_t compressed_correct = 0, uncompressed_correct = 0;
  std::map<std::string, std::string> parameters;  // name -> raw bytes
  // Counts of the senders in training, by "cut/gradient" or "cut/activation".
  std::map<std::string, BoundaryReport> boundaries;
  uint64_t exchanged_bytes = 0;  // of replicas in training, as all stages counted them
};

// Stage servers of one run and their calls.
class Pipeline {
 public:
  // Starts one server per stage, on Unix sockets in `folder` or on TCP. `experiment` must be
  // resolved. `cuda_plugin` is the servers' flag of that name.
  static absl::StatusOr<std::unique_ptr<Pipeline>> Start(const Experiment& experiment, bool tcp,
                                                         const std::string& folder,
                                                         const std::string& cuda_plugin);
  ~Pipeline();

  // Calls Acquire, Configure and Connect at every server.
  absl::Status SetUp();
  // Runs all epochs of the experiment, then the three evaluations and the export.
  absl::StatusOr<Trained> Run();

 private:
  struct Member {
    std::unique_ptr<StageServer> server;
    std::unique_ptr<Stage::Stub> stub;
    std::string address;
  };
  using Events = std::vector<StageEvent>;

  Pipeline() = default;
  // Makes one streaming call at every stage at once and returns each stage's events.
  template <typename Call>
  absl::StatusOr<std::vector<Events>> AtEveryStage(const Call& call);
  absl::Status Export(Trained* outcome);
  absl::StatusOr<EvaluationReport> Evaluate(bool compressed, uint64_t recalibration_samples);

  Experiment experiment_;
  Lease lease_;
  std::vector<Member> members_;
  uint64_t train_samples_ = 0, test_samples_ = 0;
};

// Runs `experiment`, the text of a file, on a pipeline of its own, on TCP or on Unix sockets.
// Whatever goes wrong fails the test; the result may then be empty.
Trained TrainPipeline(const std::string& experiment, const std::vector<std::string>& overrides,
                      bool tcp = false, const std::string& cuda_plugin = "");

}  // namespace thinwire
