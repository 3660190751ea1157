// Authentication between processes: certificates of the run's own authority, a shared token, or
// neither.
//
// With certificates every connection is mutual TLS 1.2 or 1.3. Both sides show a certificate that
// the authority has signed and whose DNS names (SAN) give their role: coordinator.thinwire or
// stage.thinwire. Names of machines are not compared, as rented ones have none to rely on.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "grpcpp/grpcpp.h"

namespace thinwire {

// Paths of files; empty: none.
struct SecurityOptions {
  std::string tls_cert, tls_key, tls_ca;  // PEM files: all or none
  std::string token_file;                 // file with a secret that all processes of a run share
};

enum class Role { kCoordinator, kStage };

// Credentials of this process. Thread-safe. Certificates are read again within seconds after their
// files change and apply from the next connection on; the token is read once.
class Security {
 public:
  // No certificates and no token: connections are plaintext, and everybody is let in.
  Security() = default;
  // Loads the files. InvalidArgument names a file that cannot be read or is no PEM file, or a token
  // shorter than kMinSecretBytes.
  static absl::StatusOr<Security> Load(const SecurityOptions& options);

  bool has_tls() const { return provider_ != nullptr; }
  bool has_token() const { return !token_.empty(); }

  // Returns InvalidArgument, with advice, if others than this machine's users could call a server
  // at `address` that has neither certificates nor a token. `address` is "host:port" or
  // "unix:/path".
  absl::Status CheckListen(const std::string& address) const;

  std::shared_ptr<grpc::ServerCredentials> ServerCredentials() const;
  // Returns the credentials for channels to servers of this role.
  std::shared_ptr<grpc::ChannelCredentials> ChannelCredentials(Role of_server = Role::kStage) const;

  // Adds the token to a call. Called by its client at the start of each call.
  void Show(grpc::ClientContext* context) const;
  // Checks the caller of a call. OK for a caller of the role `wanted`; Unauthenticated without the
  // token; PermissionDenied for a certificate of another role, which it names.
  absl::Status Check(const grpc::ServerContextBase& context, Role wanted) const;

 private:
  std::shared_ptr<grpc::experimental::CertificateProviderInterface> provider_;
  std::string token_;
};

// Keeps OpenSSL's locks and tables until the process has ended; must be the first call of main.
// Otherwise exit() frees them while gRPC's threads still close their channels, and these crash.
void KeepOpenSslToTheEnd();

// Returns true for "unix:", "127.0.0.1:4700", "localhost:…", "[::1]:…".
bool IsLoopback(const std::string& address);

}  // namespace thinwire
