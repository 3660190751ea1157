// Who may talk to whom: certificates of the run's own authority, a shared token, or neither.
//
// With certificates every connection is mutual TLS 1.2 or 1.3: both sides show a certificate that
// the authority has signed and whose DNS names (SAN) say what they are, coordinator.thinwire or
// stage.thinwire. The names of machines are not compared: rented ones have none to rely on.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "grpcpp/grpcpp.h"

namespace thinwire {

// Paths; empty: none.
struct SecurityOptions {
  std::string tls_cert, tls_key, tls_ca;  // PEM files: all or none
  std::string token_file;                 // a secret that all processes of a run share
};

enum class Role { kCoordinator, kStage };

// Any thread. Certificates are read again within seconds of their files' change and hold from the
// next connection on; the token is read once.
class Security {
 public:
  // No certificates and no token: plaintext, and everybody is let in.
  Security() = default;
  // InvalidArgument names the file that cannot be read or is no PEM file, or a token under
  // kMinSecretBytes.
  static absl::StatusOr<Security> Load(const SecurityOptions& options);

  bool has_tls() const { return provider_ != nullptr; }
  bool has_token() const { return !token_.empty(); }

  // InvalidArgument says what to do, for an address on which others than this machine's users may
  // call a server that has neither certificates nor a token. "host:port" or "unix:/path".
  absl::Status CheckListen(const std::string& address) const;

  std::shared_ptr<grpc::ServerCredentials> ServerCredentials() const;
  // For channels to servers of this role.
  std::shared_ptr<grpc::ChannelCredentials> ChannelCredentials(Role of_server = Role::kStage) const;

  // At each call's start, on its side.
  void Show(grpc::ClientContext* context) const;
  // OK for a caller of this role. Unauthenticated without the token, PermissionDenied for the
  // certificate of another role, which is named.
  absl::Status Check(const grpc::ServerContextBase& context, Role wanted) const;

 private:
  std::shared_ptr<grpc::experimental::CertificateProviderInterface> provider_;
  std::string token_;
};

// Keeps OpenSSL's locks and tables until the process is gone: the first call of main. Otherwise exit()
// frees them while gRPC's threads still take down their channels, which then crash.
void KeepOpenSslToTheEnd();

// "unix:", "127.0.0.1:4700", "localhost:…", "[::1]:…".
bool IsLoopback(const std::string& address);

}  // namespace thinwire
