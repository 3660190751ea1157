// The stage server as an object: gRPC services, health and /metrics on their addresses.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "security/security.h"
#include "stage_server/allowed_paths.h"
#include "stage_server/log.h"
#include "transport/listener.h"

namespace thinwire {

struct ServerOptions {
  std::string listen = "127.0.0.1:0";          // "unix:/path" or "host:port"; port 0: ephemeral
  std::string metrics_listen = "127.0.0.1:0";  // "host:port"; empty: no /metrics
  std::string cuda_plugin;  // path of the CUDA backend; empty: where backend/load.h looks
  AllowedPaths allowed;     // what a coordinator may name on this machine
  ConnectionLimits connections;
  // Until when an import's first message has to be there, all of it.
  absl::Duration opening_patience = absl::Minutes(1);
  SecurityOptions security;
  bool insecure = false;     // listen where others may call, with neither certificates nor token
  bool leases_last = false;  // the server ends with its coordinator: a pause of that ends no lease
  Log* log = nullptr;        // outlives the server; null: nothing is logged
};

class StageServer {
 public:
  virtual ~StageServer() = default;
  // Where it really listens, ports filled in.
  virtual const std::string& address() const = 0;
  virtual const std::string& metrics_address() const = 0;
  // Tells the run that has the server leased to leave it, and nobody gets it any more. Any thread.
  virtual void AskToLeave() = 0;
  virtual bool IsLeased() const = 0;
  // Ends runs and open calls; returns within about two seconds, later only where an action or the
  // building of a stage takes longer.
  virtual void Shutdown() = 0;
};

// InvalidArgument or Unavailable name the address that cannot be listened on.
absl::StatusOr<std::unique_ptr<StageServer>> StartStageServer(const ServerOptions& options);

}  // namespace thinwire
