// The gRPC service that upstream stages dial. It hands each accepted stream to the stage that waits
// for it.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "grpcpp/grpcpp.h"
#include "security/security.h"
#include "wire/link.h"

namespace thinwire {

class BoundaryService {
 public:
  virtual ~BoundaryService() = default;

  // Registers the service with `builder` and sets the limits, windows and keepalive of the data
  // plane. The server will listen at `address` ("unix:/path", "host:port"). This object outlives
  // the server.
  virtual void Configure(const std::string& address, grpc::ServerBuilder* builder) = 0;

  // Sets a function that is called for each call, accepted or refused, on gRPC's threads, with the
  // peer as ServerContext::peer() names it. Called before the server is built.
  using CallListener = std::function<void(const std::string& peer, bool is_accepted)>;
  virtual void OnCall(CallListener on_call) = 0;
  // Decides who may dial; an error is the answer to the call.
  using Guard = std::function<absl::Status(const grpc::ServerContextBase&)>;
  // Sets how this server's stages dial (DialLink) and who may dial them. Without it anybody may, in
  // plaintext. `security` outlives the service. Called before Configure.
  virtual void Secure(const Security* security, Guard guard) = 0;
  // Returns how this server's stages dial; plaintext without Secure.
  virtual const Security& security() const = 0;

  // Lets one upstream stage dial this cut from now on. Returns the link at once: Receive waits for
  // the peer as for any message, and what is sent before the peer comes is queued. The link must be
  // destroyed before this service. A caller that does not show the options' secret is refused with
  // PERMISSION_DENIED before anything else of the call is read. One with another run, generation or
  // cut is refused with FAILED_PRECONDITION, which names both. InvalidArgument for a secret shorter
  // than kMinSecretBytes. FailedPrecondition while the cut has a link whose stream has not ended.
  virtual absl::StatusOr<std::unique_ptr<Link>> Listen(const LinkOptions& options) = 0;
};

std::unique_ptr<BoundaryService> NewBoundaryService();

}  // namespace thinwire
