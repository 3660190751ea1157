// How a server reads its stage's state from another one of the run that has it.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "base/steady_time.h"
#include "proto/stage.pb.h"
#include "security/security.h"
#include "stage_server/transfers.h"

namespace thinwire {

// A server that has the state: where it is, how it is called, when it must have been reached, and
// whether half of the line's time is left to others.
struct StatePeer {
  std::string address;
  const Security& security;
  SteadyTime deadline;
  bool in_background = false;
};

// Returns the next piece of a part's file; false after the last.
using NextPiece = std::function<bool(std::string_view* piece)>;

// Reads the state from `peer`, and gives `take` one part after the other, which an error of it
// ends. `waits` ends with the run. Unavailable, which names the peer, if it is not there, or goes
// away; its own errors otherwise.
absl::Status ReadPeerState(
    const StatePeer& peer, const ReadStateRequest& request, Transfers* waits,
    const std::function<absl::Status(const StatePart& part, const NextPiece& next)>& take);

}  // namespace thinwire
