#include "stage_server/joiner.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/host_port.h"
#include "base/status.h"
#include "transport/status.h"

namespace thinwire {
namespace {

constexpr int kKeepaliveMilliseconds = 10000;

// Returns whether the next offer would be refused, too.
bool IsFinal(const absl::Status& refusal) {
  return absl::IsFailedPrecondition(refusal) || absl::IsInvalidArgument(refusal) ||
         absl::IsPermissionDenied(refusal) || absl::IsUnauthenticated(refusal) ||
         absl::IsUnimplemented(refusal);
}

std::unique_ptr<Membership::Stub> StubOf(const JoinOptions& options) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  // A coordinator that is cut off is seen to be.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMilliseconds);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveMilliseconds);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  return Membership::NewStub(grpc::CreateCustomChannel(
      options.coordinator, options.security.ChannelCredentials(Role::kCoordinator), arguments));
}

}  // namespace

absl::StatusOr<std::string> AdvertisedAddress(const std::string& advertise,
                                              const std::string& listening) {
  const std::string& address = advertise.empty() ? listening : advertise;
  const char* const flag = advertise.empty() ? "--listen " : "--advertise ";
  if (absl::StartsWith(address, "unix:")) {
    return absl::InvalidArgumentError(absl::StrCat(
        flag, address, " with --join: want host:port, as other machines reach the server"));
  }
  const absl::StatusOr<HostPort> at = ParseHostPort(address);
  if (!at.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(flag, address, ": ", at.status().message()));
  }
  if (at->host.empty() || IsEveryAddress(at->host) || at->port == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, address,
                     " with --join: it is no address that others can call, want --advertise "
                     "host:port with this machine's name or address"));
  }
  return at->Text();
}

Joiner::Joiner(JoinOptions options, Log* log)
    : options_(std::move(options)), log_(*log), thread_([this] { Loop(); }) {}

Joiner::~Joiner() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
    if (call_ != nullptr) call_->TryCancel();
  }
  changed_.notify_one();
  thread_.join();
}

bool Joiner::Wait(absl::Duration duration) {
  std::unique_lock<std::mutex> lock(mutex_);
  return !changed_.wait_for(lock, absl::ToChronoMilliseconds(duration), [this] { return stop_; });
}

void Joiner::Loop() {
  const std::unique_ptr<Membership::Stub> coordinator = StubOf(options_);
  absl::Duration wait = options_.first_wait;
  do {
    is_member_ = false;
    const absl::Status ended = Offer(coordinator.get());
    options_.on_ended();
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (stop_) return;
    }
    Tell(ended);
    if (IsFinal(ended)) return options_.on_refused();
    wait = is_member_ ? options_.first_wait : std::min(2 * wait, options_.most_wait);
  } while (Wait(wait));
}

absl::Status Joiner::Offer(Membership::Stub* coordinator) {
  JoinRequest request = options_.offer();
  request.set_address(options_.address);
  grpc::ClientContext context;
  options_.security.Show(&context);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (stop_) return absl::CancelledError("withdrawn");
    call_ = &context;
  }
  const auto events = coordinator->Join(&context, request);
  JoinEvent event;
  while (events->Read(&event)) {
    if (event.has_ended()) continue;
    is_member_ = true;
    told_.clear();
    log_.Write(spdlog::level::info, "joined", {event.run(), {}},
               absl::StrCat("run ", event.run(), " of ", options_.coordinator,
                            " has taken this server in, as ", options_.address),
               {{"coordinator", options_.coordinator}, {"address", options_.address}});
  }
  const absl::Status ended = FromGrpcStatus(events->Finish());
  const std::lock_guard<std::mutex> lock(mutex_);
  call_ = nullptr;
  return ended;
}

void Joiner::Tell(const absl::Status& ended) {
  const std::string reason =
      ended.ok() ? "its run has ended" : absl::StrCat("not taken in: ", ended.message());
  if (std::exchange(told_, reason) == reason) return;
  const bool is_final = IsFinal(ended);
  const auto level = is_final     ? spdlog::level::err
                     : ended.ok() ? spdlog::level::info
                                  : spdlog::level::warn;
  log_.Write(level, "join_ended", {},
             absl::StrCat(options_.coordinator, ": ", reason,
                          is_final ? "; the server ends" : "; the next offer follows"),
             {{"coordinator", options_.coordinator}});
}

}  // namespace thinwire
