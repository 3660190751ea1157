// The gRPC service at which upstream stages dial in: hands each accepted stream to the stage that
// waits for it.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/grpcpp.h"
#include "security/security.h"
#include "wire/link.h"

namespace thinwire {

class BoundaryService {
 public:
  virtual ~BoundaryService() = default;

  // Registers the service and sets the limits, windows and keepalive that the data plane needs of a
  // server which will listen at `address` ("unix:/path", "host:port"). This object outlives the
  // server.
  virtual void Configure(const std::string& address, grpc::ServerBuilder* builder) = 0;

  // `on_refused` is called with the peer of every call that is refused, as ServerContext::peer()
  // names it, on gRPC's threads. Before the server is built.
  virtual void OnRefused(std::function<void(const std::string& peer)> on_refused) = 0;
  // Likewise of every call that is accepted.
  virtual void OnAccepted(std::function<void(const std::string& peer)> on_accepted) = 0;
  // Before Configure: how this server's stages dial (DialLink), and who may dial them; the guard's
  // error ends a call. Without it anybody may, and in plaintext. `security` outlives the service.
  using Guard = std::function<absl::Status(const grpc::ServerContextBase&)>;
  virtual void Secure(const Security* security, Guard guard) = 0;
  virtual const Security& security() const = 0;

  // From now on one upstream stage may dial this cut. It must show the options' secret: who does
  // not is refused with PERMISSION_DENIED, before anything else of the call is looked at. It must
  // bring their run, generation and cut, others are refused with FAILED_PRECONDITION naming both.
  // InvalidArgument for a secret under kMinSecretBytes. Returns the link at
  // once; its Receive waits for the peer like for any message, and what is sent before the peer
  // has come is queued. FailedPrecondition while the cut has a link whose stream has not ended. The
  // link must be destroyed before this service.
  virtual absl::StatusOr<std::unique_ptr<Link>> Listen(const LinkOptions& options) = 0;
};

std::unique_ptr<BoundaryService> NewBoundaryService();

}  // namespace thinwire
