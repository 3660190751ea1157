// Measures the link to the next stage: the end that dialled measures, the other answers.
//
// The `step` of each message is the number of floats that its answer must have. So one end measures
// both directions with one clock.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/steady_time.h"
#include "schedule/simulator.h"
#include "wire/link.h"

namespace thinwire {

struct LinkSpeed {
  double round_trip_seconds = 0;     // minimum over several messages of four bytes
  double down_bytes_per_second = 0;  // payload, from this end to the other
  double up_bytes_per_second = 0;
};

// The cut of messages that belong to none.
inline constexpr uint32_t kNoCut = std::numeric_limits<uint32_t>::max();

// Returns random bytes, as a network that compresses must not gain by them.
Payload RandomPayload(size_t floats);

// Returns the options of such a link. It belongs to no cut, has a lease's generation, and both ends
// show `secret`. The measuring end receives gradients, the answering end activations.
LinkOptions MeasuredLink(uint64_t generation, const std::string& secret, const std::string& peer,
                         Direction receives);

// Measures each direction for about `duration`, or for as long as a slow link takes for a few
// messages. Returns errors of the link, DeadlineExceeded, or the error of `stopped`, which is
// called every 100 ms.
absl::StatusOr<LinkSpeed> MeasureLink(Link* link, absl::Duration duration, SteadyTime deadline,
                                      const std::function<absl::Status()>& stopped);

// Answers until the other end has measured and closes the link. InvalidArgument for an answer of
// more bytes than this end accepts itself; other errors as for MeasureLink.
absl::Status AnswerLink(Link* link, SteadyTime deadline,
                        const std::function<absl::Status()>& stopped);

// Measures what messages between processes cost on this machine.

// Measures for about half a second between the two ends of a boundary over TCP in this process,
// while all cores compute. It sends messages of one number and large ones, as stages do; each is
// answered by an empty one. What it measures is processor time, including the waking of threads.
// Returns errors of the sockets or of the boundary.
absl::StatusOr<TransportCost> MeasureTransport();

}  // namespace thinwire
