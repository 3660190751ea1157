#include "transport/settings.h"

#include <malloc.h>

#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "grpc/grpc.h"
#include "security/security.h"
#include "wire/frame.h"

namespace thinwire {
namespace {

// Streams of a connection at once. A coordinator has few calls under way, and a link is one. gRPC
// holds up to a whole message of each before anybody looks at it.
constexpr int kMaxStreams = 8;

using Setting = std::pair<const char*, int>;

std::vector<Setting> SharedSettings(const std::string& address, std::optional<int> window) {
  constexpr int kSecond = 1000;  // milliseconds
  return {
      {GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, static_cast<int>(kMaxFrameBytes)},
      // Large HTTP/2 frames save system calls, but a PING waits behind them, which must not happen
      // on a real network.
      {GRPC_ARG_HTTP2_MAX_FRAME_SIZE, IsLoopback(address) ? (16 << 20) - 1 : 64 << 10},
      // Window of a stream that has just begun; later gRPC sets it from its own estimates.
      {GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, window.value_or(2 * kMaxChunkBytes)},
      {GRPC_ARG_HTTP2_BDP_PROBE, window ? 0 : 1},
      // A machine that has stopped answers no PING: its streams fail after half a minute.
      {GRPC_ARG_KEEPALIVE_TIME_MS, 10 * kSecond},
      {GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20 * kSecond},
      {GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0},
  };
}

}  // namespace

void PrepareProcess() {
  static const bool prepared = [] {
    grpc_init();
    mallopt(M_MMAP_THRESHOLD, 32 << 20);
    mallopt(M_TRIM_THRESHOLD, 256 << 20);
    return true;
  }();
  static_cast<void>(prepared);
}

bool IsUnixSocket(const std::string& address) { return absl::StartsWith(address, "unix:"); }

grpc::ChannelArguments DataChannelArguments(const std::string& target, std::optional<int> window) {
  grpc::ChannelArguments arguments;
  for (const Setting& setting : SharedSettings(target, window)) {
    arguments.SetInt(setting.first, setting.second);
  }
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  // This also limits how long one attempt to connect may take.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 5000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return arguments;
}

void PrepareDataServer(const std::string& address, grpc::ServerBuilder* builder) {
  for (const Setting& setting : SharedSettings(address, std::nullopt)) {
    builder->AddChannelArgument(setting.first, setting.second);
  }
  builder->SetMaxReceiveMessageSize(static_cast<int>(kMaxFrameBytes));
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 1000);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
  builder->AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxStreams);
  builder->AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, 10'000);
  builder->AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, 120'000);
}

}  // namespace thinwire
