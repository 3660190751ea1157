// What a server tells those of its run that have the same stage: the state that all of them share.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "proto/stage.grpc.pb.h"
#include "stage_server/guarded_service.h"
#include "stage_server/journal.h"
#include "stage_server/run.h"

namespace thinwire {

// Answers the servers that have the stage of this one's run. Who does not show the secret of its
// links is refused in words that tell nothing of it.
class PeerStateService final : public GuardedService {
 public:
  // `run` returns the server's run, null while it has none; `on_call` gets the peer of each call,
  // as ServerContext::peer() names it, and whether it was accepted. Both run on gRPC's threads.
  using Run = std::function<std::shared_ptr<StageRun>()>;
  using OnCall = std::function<void(const std::string& peer, bool is_accepted)>;
  PeerStateService(Guard guard, Run run, Journal* journal);

  // Called before the server is built.
  void set_on_call(OnCall on_call) { on_call_ = std::move(on_call); }

 private:
  absl::StatusOr<std::shared_ptr<StageRun>> Asked(const ReadStateRequest& request) const;

  const Run run_;
  OnCall on_call_ = [](const std::string&, bool) {};
};

}  // namespace thinwire
