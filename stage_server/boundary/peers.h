// The links of one machine of a stage to those that carry other replicas of the stage, or other
// tensor-parallel parts of the same replicas.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/steady_time.h"
#include "stage_server/boundary/patience.h"
#include "wire/link.h"
#include "wire/message.h"

namespace thinwire {

// For one thread at a time, except that any may call Close.
class CarrierPeers {
 public:
  // Makes the place of the links at carrier `carrier` of `carriers`, without any. `patience` bounds
  // every wait. `most_early` is the largest number of messages that one peer sends in a step.
  // Errors begin with `what` is exchanged.
  CarrierPeers(std::string what, int carrier, int carriers, size_t most_early,
               std::shared_ptr<Patience> patience)
      : what_(std::move(what)),
        carrier_(carrier),
        most_early_(most_early),
        patience_(std::move(patience)),
        peers_(static_cast<size_t>(carriers)) {}

  int carrier() const { return carrier_; }
  int carriers() const { return static_cast<int>(peers_.size()); }

  void Attach(int carrier, std::unique_ptr<Link> link) { PeerAt(carrier).link = std::move(link); }
  // Sets that nothing waits for that carrier: it follows, may be far behind, and may go.
  void SetFollows(int carrier) { PeerAt(carrier).follows = true; }
  bool IsAttached(int carrier) const {
    return carrier == carrier_ || peers_[static_cast<size_t>(carrier)].link != nullptr;
  }
  // Ends every wait with `reason`, and the links.
  void Close(const absl::Status& reason) const;

  // Queues the message for another carrier; never waits. Its payload is shared, not copied.
  void Send(int carrier, const Message& message) const;
  void SendToAll(const Message& message) const;

  // Returns the message `wanted` of another carrier, of which those of the same step may come in
  // any order. InvalidArgument names a message of another step, or one too many. DeadlineExceeded
  // names the peer and what is waited for. Other errors are the link's.
  absl::StatusOr<Message> Receive(int carrier, const MessageKey& wanted);

  // Returns how long Receive has waited so far, seconds. Any thread.
  double wait_seconds() const { return wait_seconds_; }

  // Waits until everything queued has been handed to the transport, but for those that follow.
  absl::Status Flush() const;

 private:
  struct Peer {
    std::unique_ptr<Link> link;  // null: not attached, or this carrier itself
    bool follows = false;
    // Messages of the step that came before they were wanted, by phase, piece and replica.
    std::map<std::tuple<Phase, uint32_t, uint32_t>, Message> early;
  };

  Peer& PeerAt(int carrier) { return peers_[static_cast<size_t>(carrier)]; }
  absl::StatusOr<Message> Next(const Peer& peer);

  absl::Status KeepEarly(Peer* peer, const MessageKey& wanted, Message message) const;

  absl::Status About(int carrier, const MessageKey& wanted, const absl::Status& status) const;

  const std::string what_;
  const int carrier_;
  const size_t most_early_;
  const std::shared_ptr<Patience> patience_;
  std::vector<Peer> peers_;               // by carrier
  std::atomic<double> wait_seconds_ = 0;  // written by the receiving thread
};

}  // namespace thinwire
