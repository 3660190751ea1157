#include "stage_server/boundary/peers.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/annotated.h"
#include "base/status.h"

namespace thinwire {

absl::Status CarrierPeers::About(int carrier, const MessageKey& wanted,
                                 const absl::Status& status) const {
  return Annotated(
      status, absl::StrCat(what_, ", from carrier ", carrier, ": want the ", wanted.ToString()));
}

void CarrierPeers::Close(const absl::Status& reason) const {
  for (const Peer& peer : peers_) {
    if (peer.link != nullptr) peer.link->Close(reason);
  }
}

void CarrierPeers::Send(int carrier, const Message& message) const {
  peers_[static_cast<size_t>(carrier)].link->Send(message);
}

void CarrierPeers::SendToAll(const Message& message) const {
  for (int carrier = 0; carrier < carriers(); ++carrier) {
    if (carrier != carrier_) Send(carrier, message);
  }
}

absl::StatusOr<Message> CarrierPeers::Next(const Peer& peer) {
  const SteadyTime begin = SteadyTime::Now();
  SteadyTime deadline = patience_->Deadline();
  absl::StatusOr<Message> message = peer.link->Receive(deadline);
  while (absl::IsDeadlineExceeded(message.status()) &&
         patience_->Extend(SteadyTime::Now(), &deadline)) {
    message = peer.link->Receive(deadline);
  }
  wait_seconds_ = wait_seconds_ + SecondsSince(begin);
  return message;
}

absl::Status CarrierPeers::KeepEarly(Peer* peer, const MessageKey& wanted, Message message) const {
  const MessageKey key = message.key;
  if (key.epoch == wanted.epoch && key.step == wanted.step && peer->early.size() < most_early_) {
    const std::tuple place(key.phase, key.cut, key.microbatch);
    if (peer->early.emplace(place, std::move(message)).second) return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("got the ", key.ToString()));
}

absl::StatusOr<Message> CarrierPeers::Receive(int carrier, const MessageKey& wanted) {
  Peer& peer = PeerAt(carrier);
  const std::tuple place(wanted.phase, wanted.cut, wanted.microbatch);
  while (peer.early.count(place) == 0) {
    absl::StatusOr<Message> next = Next(peer);
    if (!next.ok()) return About(carrier, wanted, next.status());
    if (next->key == wanted) return next;
    const absl::Status kept = KeepEarly(&peer, wanted, *std::move(next));
    if (kept.ok()) continue;
    peer.link->Close(kept);
    return About(carrier, wanted, kept);
  }
  Message message = std::move(peer.early.extract(place).mapped());
  if (message.key == wanted) return message;
  // Nobody wanted it in its step.
  const absl::Status met =
      absl::InvalidArgumentError(absl::StrCat("got the ", message.key.ToString()));
  peer.link->Close(met);
  return About(carrier, wanted, met);
}

absl::Status CarrierPeers::Flush() const {
  for (const Peer& peer : peers_) {
    if (peer.link == nullptr || peer.follows) continue;
    SteadyTime deadline = patience_->Deadline();
    absl::Status flushed;
    do {
      flushed = peer.link->Flush(deadline);
    } while (absl::IsDeadlineExceeded(flushed) && patience_->Extend(SteadyTime::Now(), &deadline));
    RETURN_IF_ERROR(flushed);
  }
  return absl::OkStatus();
}

}  // namespace thinwire
