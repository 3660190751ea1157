#include <algorithm>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "base/status.h"
#include "transport/speed.h"

namespace thinwire {
namespace {

constexpr absl::Duration kLook = absl::Milliseconds(100);
constexpr int kPings = 11;
constexpr size_t kMostFloats = size_t{1} << 18;  // 1 MiB
constexpr size_t kFirstFloats = size_t{1} << 10;
// Messages under way. As a message takes an eighth of the round trip, this many fill the link.
constexpr int kInFlight = 16;
constexpr int kRoundTripsOfMessage = 8;
constexpr absl::Duration kLeastOfMessage = absl::Milliseconds(20);

Message Asking(Direction direction, const Payload& payload, size_t floats_back) {
  Message message;
  message.key = {PHASE_TRAIN, direction, kNoCut, /*epoch=*/1, /*step=*/floats_back, 0};
  message.dtype = DType::kF32;
  message.shape = Shape{static_cast<int64_t>(payload.bytes.size() / 4)};
  message.payload = payload;
  return message;
}

absl::StatusOr<Message> Next(Link* link, SteadyTime deadline,
                             const std::function<absl::Status()>& stopped) {
  while (true) {
    RETURN_IF_ERROR(stopped());
    const SteadyTime look = SteadyTime::Now() + kLook;
    absl::StatusOr<Message> message = link->Receive(look < deadline ? look : deadline);
    const bool is_over = SteadyTime::Now() >= deadline;
    if (!absl::IsDeadlineExceeded(message.status()) || is_over) return message;
  }
}

class Measurement {
 public:
  Measurement(Link* link, absl::Duration duration, SteadyTime deadline,
              const std::function<absl::Status()>& stopped)
      : link_(*link), duration_(duration), deadline_(deadline), stopped_(stopped) {}

  absl::StatusOr<LinkSpeed> Make() {
    const Payload small = RandomPayload(1);
    round_trip_ = absl::InfiniteDuration();
    for (int i = 0; i < kPings; ++i) {
      ASSIGN_OR_RETURN(const absl::Duration took, Exchange(small, 1));
      round_trip_ = std::min(round_trip_, took);
    }
    LinkSpeed speed;
    speed.round_trip_seconds = absl::ToDoubleSeconds(round_trip_);
    ASSIGN_OR_RETURN(speed.down_bytes_per_second, Rate(/*down=*/true));
    ASSIGN_OR_RETURN(speed.up_bytes_per_second, Rate(/*down=*/false));
    return speed;
  }

 private:
  absl::StatusOr<absl::Duration> Exchange(const Payload& payload, size_t floats_back) {
    const SteadyTime start = SteadyTime::Now();
    link_.Send(Asking(DIRECTION_ACTIVATION, payload, floats_back));
    RETURN_IF_ERROR(Next(&link_, deadline_, stopped_).status());
    return SteadyTime::Now() - start;
  }

  // Returns the number of floats of a message that takes long enough to be measured.
  absl::StatusOr<size_t> FloatsFor(bool down) {
    const absl::Duration wanted = std::max(kLeastOfMessage, round_trip_ / kRoundTripsOfMessage);
    for (size_t floats = kFirstFloats; floats < kMostFloats; floats *= 4) {
      ASSIGN_OR_RETURN(const absl::Duration took,
                       Exchange(RandomPayload(down ? floats : 1), down ? 1 : floats));
      if (took - round_trip_ >= wanted) return floats;
    }
    return kMostFloats;
  }

  absl::StatusOr<double> Rate(bool down) {
    ASSIGN_OR_RETURN(const size_t floats, FloatsFor(down));
    const Payload payload = RandomPayload(down ? floats : 1);
    const SteadyTime start = SteadyTime::Now();
    int sent = 0;
    for (; sent < kInFlight || SteadyTime::Now() - start < duration_; ++sent) {
      if (sent >= kInFlight) RETURN_IF_ERROR(Next(&link_, deadline_, stopped_).status());
      link_.Send(Asking(DIRECTION_ACTIVATION, payload, down ? 1 : floats));
    }
    for (int i = 0; i < kInFlight; ++i) RETURN_IF_ERROR(Next(&link_, deadline_, stopped_).status());
    const double seconds = absl::ToDoubleSeconds(SteadyTime::Now() - start - round_trip_);
    return 4.0 * static_cast<double>(floats) * sent / std::max(seconds, 1e-9);
  }

  Link& link_;
  const absl::Duration duration_;
  const SteadyTime deadline_;
  const std::function<absl::Status()>& stopped_;
  absl::Duration round_trip_;
};

}  // namespace

Payload RandomPayload(size_t floats) {
  const auto words = std::make_shared<std::vector<uint64_t>>((floats + 1) / 2);
  for (size_t i = 0; i < words->size(); ++i) (*words)[i] = RandomKey(1, i);
  return {words, {reinterpret_cast<const uint8_t*>(words->data()), 4 * floats}};
}

LinkOptions MeasuredLink(uint64_t generation, const std::string& secret, const std::string& peer,
                         Direction receives) {
  LinkOptions options;
  options.name = "that is measured";
  options.peer = peer;
  options.generation = generation;
  options.secret = secret;
  options.cut = kNoCut;
  options.receives = receives;
  options.max_payload_bytes = 4 * kMostFloats;
  options.queue_capacity = kInFlight + 1;
  return options;
}

absl::StatusOr<LinkSpeed> MeasureLink(Link* link, absl::Duration duration, SteadyTime deadline,
                                      const std::function<absl::Status()>& stopped) {
  return Measurement(link, duration, deadline, stopped).Make();
}

absl::Status AnswerLink(Link* link, SteadyTime deadline,
                        const std::function<absl::Status()>& stopped) {
  Payload payload = RandomPayload(1);
  while (true) {
    const absl::StatusOr<Message> message = Next(link, deadline, stopped);
    if (absl::IsUnavailable(message.status())) return absl::OkStatus();  // it has measured
    RETURN_IF_ERROR(message.status());
    const uint64_t floats = message->key.step;
    if (floats < 1 || floats > kMostFloats) {
      return absl::InvalidArgumentError(
          absl::StrCat("an answer of ", floats, " floats is asked for, want 1 to ", kMostFloats));
    }
    if (payload.bytes.size() != 4 * floats) payload = RandomPayload(floats);
    link->Send(Asking(DIRECTION_GRADIENT, payload, 1));
  }
}

}  // namespace thinwire
