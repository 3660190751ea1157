#include "transport/status.h"

#include "base/text.h"

namespace thinwire {
namespace {

// Returns the bytes that `c` takes in a header: gRPC writes what is not printable ASCII as "%1b".
size_t WireBytes(char c) { return c < ' ' || c > '~' || c == '%' ? 3 : 1; }

bool ContinuesCharacter(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

std::string Shortened(absl::string_view message) {
  size_t wire_bytes = 0;
  for (size_t at = 0; at < message.size(); ++at) {
    wire_bytes += WireBytes(message[at]);
    if (wire_bytes <= kMaxMessageBytes) continue;
    while (at > 0 && ContinuesCharacter(message[at])) --at;
    return std::string(message.substr(0, at)) + " ... (" + std::to_string(message.size() - at) +
           " more bytes)";
  }
  return std::string(message);
}

}  // namespace

grpc::Status ToGrpcStatus(const absl::Status& status) {
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), Shortened(status.message()));
}

absl::Status FromGrpcStatus(const grpc::Status& status) {
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                      Printable(status.error_message()));
}

}  // namespace thinwire
