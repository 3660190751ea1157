// Trial of a server that wants to join a run: is it there, and can it do the run's work?
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/fleet/stage_client.h"
#include "proto/experiment.pb.h"
#include "proto/stage.pb.h"
#include "security/security.h"

namespace thinwire {

// Answers of a server to a trial.
struct TriedServer {
  BuildInfo build;
  std::vector<ConfigureResponse> ends;  // as first and as last stage, which read data
};

class Trial {
 public:
  // Makes a trial of the server at `address` for the resolved `experiment`.
  Trial(const std::string& address, const Lease& lease, const Experiment* experiment,
        const Security& security);

  // Leases the server, makes it build the first and the last stage, and lets it go. Unavailable if
  // it cannot be reached or had, which may be otherwise later; its own error, as
  // FailedPrecondition, if it cannot build a stage.
  absl::StatusOr<TriedServer> Run();
  // Ends Run. Any thread.
  void Cancel();

 private:
  absl::Status Build(std::vector<ConfigureResponse>* ends);

  Experiment experiment_;
  std::vector<std::unique_ptr<StageClient>> as_ends_;  // the server as first and as last stage
};

}  // namespace thinwire
