#include "security/security.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/file.h"
#include "base/host_port.h"
#include "base/path.h"
#include "base/secret.h"
#include "base/status.h"
#include "grpcpp/security/tls_certificate_provider.h"
#include "grpcpp/security/tls_certificate_verifier.h"
#include "grpcpp/security/tls_credentials_options.h"
#include "openssl/crypto.h"

namespace thinwire {
namespace {

constexpr char kTokenMetadata[] = "thinwire-token-bin";
constexpr unsigned kReadAgainSeconds = 1;

const char* NameOf(Role role) {
  return role == Role::kCoordinator ? "coordinator.thinwire" : "stage.thinwire";
}

absl::StatusOr<std::string> Read(const char* what, const std::string& path) {
  absl::StatusOr<std::string> content = ReadFile(WithHome(path));
  if (content.ok()) return content;
  return absl::InvalidArgumentError(absl::StrCat(what, ": ", content.status().message()));
}

absl::Status CheckPem(const char* what, const std::string& path) {
  ASSIGN_OR_RETURN(const std::string pem, Read(what, path));
  if (absl::StrContains(pem, "-----BEGIN ")) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(what, ": ", path, " is no PEM file"));
}

absl::StatusOr<std::string> ReadToken(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string content, Read("token_file", path));
  std::string token(absl::StripAsciiWhitespace(content));
  if (token.size() >= kMinSecretBytes) return token;
  return absl::InvalidArgumentError(absl::StrCat("token_file: ", path, " has ", token.size(),
                                                 " bytes, want at least ", kMinSecretBytes));
}

// Checks the role of a server's certificate, which TLS has found to be signed by the authority.
class RoleVerifier final : public grpc::experimental::ExternalCertificateVerifier {
 public:
  explicit RoleVerifier(Role wanted) : wanted_(NameOf(wanted)) {}
  bool Verify(grpc::experimental::TlsCustomVerificationCheckRequest* request,
              std::function<void(grpc::Status)>, grpc::Status* status) override {
    std::vector<std::string> names;
    for (const grpc::string_ref& name : request->dns_names()) {
      names.emplace_back(name.data(), name.size());
    }
    if (std::count(names.begin(), names.end(), wanted_) == 0) {
      *status = grpc::Status(grpc::StatusCode::UNAUTHENTICATED,
                             absl::StrCat("the server's certificate is for ",
                                          absl::StrJoin(names, ", "), ", want ", wanted_));
    }
    return true;
  }
  void Cancel(grpc::experimental::TlsCustomVerificationCheckRequest*) override {}

 private:
  const std::string wanted_;
};

template <typename Options>
void Watch(Options* options) {
  options->watch_root_certs();
  options->watch_identity_key_cert_pairs();
}

absl::Status CheckRole(const grpc::ServerContextBase& context, Role wanted) {
  std::vector<std::string> names;
  for (const grpc::string_ref& name :
       context.auth_context()->FindPropertyValues(GRPC_PEER_DNS_PROPERTY_NAME)) {
    names.emplace_back(name.data(), name.size());
  }
  if (std::count(names.begin(), names.end(), NameOf(wanted)) > 0) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat("the caller's certificate is for ",
                                                  absl::StrJoin(names, ", "), ", this call wants ",
                                                  NameOf(wanted)));
}

}  // namespace

bool IsLoopback(const std::string& address) {
  for (const char* prefix : {"unix:", "unix-abstract:"}) {
    if (absl::StartsWith(address, prefix)) return true;
  }
  const absl::StatusOr<HostPort> parsed = ParseHostPort(address);
  return parsed.ok() && IsOwnMachine(parsed->host);
}

absl::StatusOr<Security> Security::Load(const SecurityOptions& options) {
  Security security;
  if (!options.token_file.empty()) {
    ASSIGN_OR_RETURN(security.token_, ReadToken(options.token_file));
  }
  const std::pair<const char*, const std::string&> files[] = {
      {"tls_cert", options.tls_cert}, {"tls_key", options.tls_key}, {"tls_ca", options.tls_ca}};
  const auto named = std::count_if(std::begin(files), std::end(files),
                                   [](const auto& file) { return !file.second.empty(); });
  if (named == 0) return security;
  for (const auto& [what, path] : files) {
    if (path.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(what, " is missing: tls_cert, tls_key and tls_ca belong together"));
    }
    RETURN_IF_ERROR(CheckPem(what, path));
  }
  security.provider_ = std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
      options.tls_key, options.tls_cert, options.tls_ca, kReadAgainSeconds);
  return security;
}

absl::Status Security::CheckListen(const std::string& address) const {
  if (has_tls() || has_token() || IsLoopback(address)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "--listen ", address,
      ": whoever reaches that address could use this server. Give certificates (--tls_cert, "
      "--tls_key, --tls_ca; deploy/certs.sh makes them), or a secret (--token_file) where nobody "
      "listens in, or --insecure"));
}

std::shared_ptr<grpc::ServerCredentials> Security::ServerCredentials() const {
  if (!has_tls()) return grpc::InsecureServerCredentials();
  grpc::experimental::TlsServerCredentialsOptions options(provider_);
  Watch(&options);
  options.set_cert_request_type(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  return grpc::experimental::TlsServerCredentials(options);
}

std::shared_ptr<grpc::ChannelCredentials> Security::ChannelCredentials(Role of_server) const {
  if (!has_tls()) return grpc::InsecureChannelCredentials();
  grpc::experimental::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(provider_);
  Watch(&options);
  options.set_verify_server_certs(true);
  options.set_check_call_host(false);
  options.set_certificate_verifier(
      grpc::experimental::ExternalCertificateVerifier::Create<RoleVerifier>(of_server));
  return grpc::experimental::TlsCredentials(options);
}

void Security::Show(grpc::ClientContext* context) const {
  if (has_token()) context->AddMetadata(kTokenMetadata, token_);
}

absl::Status Security::Check(const grpc::ServerContextBase& context, Role wanted) const {
  if (has_token()) {
    const auto shown = context.client_metadata().find(kTokenMetadata);
    const bool is_there = shown != context.client_metadata().end();
    if (!is_there) return absl::UnauthenticatedError("the call shows no token (--token_file)");
    if (!SameSecret({shown->second.data(), shown->second.size()}, token_)) {
      return absl::UnauthenticatedError("the call's token is not this server's (--token_file)");
    }
  }
  return has_tls() ? CheckRole(context, wanted) : absl::OkStatus();
}

void KeepOpenSslToTheEnd() { OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, nullptr); }

}  // namespace thinwire
