// Counts of what the replicas of a stage exchange: of their contributions and of the sums, each
// where it is encoded.
#pragma once

#include <cstdint>
#include <optional>

#include "proto/boundary.pb.h"
#include "stage_server/boundary/statistics.h"
#include "wire/message.h"
#include "wire/message_kind.h"

namespace thinwire {

// Any thread. The phases are those of an exchange; its messages are of training.
class ExchangeCounts {
 public:
  // Makes counts of frames with that run and generation, whose bytes are counted.
  ExchangeCounts(uint64_t run, uint64_t generation) : run_(run), generation_(generation) {}

  // Returns the counts of all messages of a phase.
  MessageCounts& Of(Phase phase) { return IsOfSum(phase) ? average_ : contributions_; }

  // Numbers that are counted of a message besides its bytes.
  struct Counted {
    int receivers = 0;     // machines to which it goes
    int64_t elements = 0;  // of what it stands for
    std::optional<double> level = {};
    std::optional<MeasuredError> error = {};
  };
  // Adds a message, in its step too, and its loss where that was measured.
  void AddMessage(const Message& message, const Counted& counted);

 private:
  const uint64_t run_, generation_;
  MessageCounts contributions_, average_;
};

}  // namespace thinwire
