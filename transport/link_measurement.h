// How fast the way to the next stage is: the end that dialled measures, the other answers.
//
// Each message says in its `step` how many floats its answer is to have, so that both directions
// are measured from one end, with one clock.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/steady_time.h"
#include "wire/link.h"

namespace thinwire {

struct LinkSpeed {
  double round_trip_seconds = 0;     // the least of several, of messages of four bytes
  double down_bytes_per_second = 0;  // payload, from this end to the other
  double up_bytes_per_second = 0;
};

// The options of such a link: of no cut, for a lease's generation and a secret that both ends show.
// `receives`: gradients at the end that measures, activations at the one that answers.
LinkOptions MeasuredLink(uint64_t generation, const std::string& secret, const std::string& peer,
                         Direction receives);

// For about `duration` in each direction, or as long as a slow link needs for a few messages.
// Errors of the link; DeadlineExceeded; that of `stopped`, which is asked every 100 ms.
absl::StatusOr<LinkSpeed> MeasureLink(Link* link, absl::Duration duration, SteadyTime deadline,
                                      const std::function<absl::Status()>& stopped);

// Answers until the other end has measured and closes. InvalidArgument for an answer of more bytes
// than this end accepts itself; errors as above.
absl::Status AnswerLink(Link* link, SteadyTime deadline,
                        const std::function<absl::Status()>& stopped);

}  // namespace thinwire
