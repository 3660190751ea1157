// The stage server as an object: gRPC services, health service and /metrics, each at its address.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/members.pb.h"
#include "security/security.h"
#include "stage_server/allowed_paths.h"
#include "stage_server/log.h"
#include "transport/listener.h"

namespace thinwire {

struct ServerOptions {
  std::string listen = "127.0.0.1:0";          // "unix:/path" or "host:port"; port 0: ephemeral
  std::string metrics_listen = "127.0.0.1:0";  // "host:port"; empty: no /metrics
  std::string cuda_plugin;   // path of the CUDA backend; empty: backend/load.h says where
  bool device_slots = true;  // links between GPUs of this machine take the way through their memory
  AllowedPaths allowed;      // files that a coordinator may name on this machine
  // Folder of the file of runs with pipeline.swap: disk, and its most bytes; absent: allowed.state,
  // and what its disk has free, less a margin.
  std::optional<std::string> swap_dir;
  std::optional<uint64_t> swap_bytes;
  ConnectionLimits connections;
  // Longest time that the first message of an import may take to arrive completely.
  absl::Duration opening_patience = absl::Minutes(1);
  SecurityOptions security;
  bool insecure = false;     // listen where others may call without certificates and token
  bool leases_last = false;  // leases do not expire: the server ends with its coordinator
  // Makes the process end as SIGTERM does, for Stage.Drain; null: that is refused. Any thread.
  std::function<void()> on_drain;
  Log* log = nullptr;  // outlives the server; null: nothing is logged
};

class StageServer {
 public:
  virtual ~StageServer() = default;
  // Return the addresses with the ports in use; metrics_address is that of /metrics.
  virtual const std::string& address() const = 0;
  virtual const std::string& metrics_address() const = 0;
  // Tells the run that holds the lease to leave, and grants no lease any more. Any thread.
  virtual void AskToLeave() = 0;
  virtual bool IsLeased() const = 0;
  // See StageService.
  virtual JoinRequest Offer() = 0;
  virtual void OfferHasEnded() = 0;
  // Ends runs and open calls. Returns within about two seconds, or later if an action or the
  // building of a stage takes longer.
  virtual void Shutdown() = 0;
};

// Starts a server. InvalidArgument and Unavailable name the address that cannot be listened on.
absl::StatusOr<std::unique_ptr<StageServer>> StartStageServer(const ServerOptions& options);

}  // namespace thinwire
