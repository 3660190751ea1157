#include "stage_server/peer_state.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/annotated.h"
#include "base/status.h"
#include "proto/stage.grpc.pb.h"
#include "transport/settings.h"
#include "transport/status.h"

namespace thinwire {
namespace {

constexpr absl::Duration kStoppedCheckEvery = absl::Milliseconds(100);

// In the background: for how long the line is used, and then left to others; and how much may be
// under way, as that is what others' messages queue behind.
constexpr absl::Duration kTurn = absl::Milliseconds(100);
constexpr int kMostUnderWay = 256 << 10;

// Waits until the channel is connected: gRPC's own waits follow the time of day.
bool Connects(grpc::Channel* channel, SteadyTime deadline, const std::function<bool()>& is_over) {
  while (channel->GetState(/*try_to_connect=*/true) != GRPC_CHANNEL_READY) {
    if (is_over() || SteadyTime::Now() > deadline) return false;
    channel->WaitForConnected(absl::ToChronoTime(absl::Now() + kStoppedCheckEvery));
  }
  return true;
}

// The stream of a peer's state, divided into parts.
class Parts {
 public:
  explicit Parts(std::function<bool(StateChunk*)> read) : read_(std::move(read)) { Read(); }

  // Returns whether the stream has not ended. Then the chunk at hand begins a part.
  bool IsThere() const { return is_there_; }

  // Hands the part at hand to `take`, and skips what that leaves of it.
  absl::Status Hand(
      const std::function<absl::Status(const StatePart& part, const NextPiece& next)>& take) {
    if (!chunk_.has_part()) return absl::DataLossError("a piece of no part of the state came");
    const StatePart part = chunk_.part();
    bool has_begun = false, is_over = false;
    const NextPiece next = [&](std::string_view* piece) {
      if (!is_over && std::exchange(has_begun, true)) {
        Read();
        is_over = !is_there_ || chunk_.has_part();
      }
      *piece = chunk_.data();
      return !is_over;
    };
    RETURN_IF_ERROR(take(part, next));
    for (std::string_view rest; next(&rest);) continue;
    return absl::OkStatus();
  }

 private:
  void Read() { is_there_ = read_(&chunk_); }

  const std::function<bool(StateChunk*)> read_;
  StateChunk chunk_;
  bool is_there_ = false;
};

}  // namespace

absl::Status ReadPeerState(
    const StatePeer& peer, const ReadStateRequest& request, Transfers* waits,
    const std::function<absl::Status(const StatePart& part, const NextPiece& next)>& take) {
  const auto window = peer.in_background ? std::optional<int>(kMostUnderWay) : std::nullopt;
  const auto channel = grpc::CreateCustomChannel(peer.address, peer.security.ChannelCredentials(),
                                                 DataChannelArguments(peer.address, window));
  if (!Connects(channel.get(), peer.deadline, [waits] { return waits->ended(); })) {
    return absl::UnavailableError(absl::StrCat("the server at ", peer.address,
                                               ", which has the stage's state, is not there, or "
                                               "does not take this server's certificate"));
  }
  grpc::ClientContext context;
  peer.security.Show(&context);
  const auto stub = StagePeer::NewStub(channel);
  const auto reader = stub->ReadState(&context, request);
  SteadyTime begin = SteadyTime::Now();  // of this turn
  Parts parts([&](StateChunk* chunk) {
    if (peer.in_background && SteadyTime::Now() - begin >= kTurn) {
      absl::SleepFor(kTurn);
      begin = SteadyTime::Now();
    }
    return waits->Make([&] { return reader->Read(chunk); }, [&] { context.TryCancel(); });
  });
  absl::Status status;
  while (status.ok() && parts.IsThere()) status = parts.Hand(take);
  if (parts.IsThere() || waits->ended()) context.TryCancel();
  const absl::Status ended = FromGrpcStatus(reader->Finish());
  // A part that was cut off follows from the end of the call.
  if (!parts.IsThere() && !ended.ok()) {
    return Annotated(ended, absl::StrCat("the state from ", peer.address));
  }
  return status;
}

}  // namespace thinwire
