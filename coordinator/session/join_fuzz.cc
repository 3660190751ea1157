// Fuzz test: any offers of servers to a run, and whatever befalls those that made them. What the
// run then believes of its servers must be possible.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coordinator/session/joins.h"
#include "coordinator/session/members.h"

namespace thinwire {
namespace {

constexpr int kStages = 2, kLeast = 1, kMostPipelines = 4;

BuildInfo BuildOf(const std::string& id) {
  BuildInfo build;
  build.set_build_id(id);
  return build;
}

void Want(bool is_so) {
  if (!is_so) std::abort();
}

// A run that takes servers in, and what befalls it, a byte after the other.
class Run {
 public:
  Run() {
    members_.set_most(kMostPipelines);
    joins_.SetFirst(BuildOf("build"));
    joins_.SetEnds(ConfigureResponse(), ConfigureResponse());
    joins_.SetCarrying(members_.carrying());
  }

  // Reads a length and that many bytes as an offer, or what befalls a server.
  void Play(std::string_view bytes) {
    while (!bytes.empty()) {
      const auto what = static_cast<uint8_t>(bytes.front());
      bytes.remove_prefix(1);
      if (what >= 0x80) {
        const size_t length = std::min<size_t>(what & 0x7f, bytes.size());
        JoinRequest offer;
        if (offer.ParseFromArray(bytes.data(), static_cast<int>(length))) Offer(offer);
        bytes.remove_prefix(length);
      } else {
        Befall(what >> 4, what & 15);
      }
      Check();
    }
  }

 private:
  void Offer(const JoinRequest& offer) {
    if (!CheckOffered(offer.address(), "ipv4:10.0.0.9:5").ok()) return;
    const bool was_connected = connected_.count(offer.address()) > 0;
    const auto has_stage = joins_.Offer(offer);
    if (!has_stage.ok()) return;
    Want(!was_connected);
    connected_.insert(offer.address());
    if (*has_stage) return;
    const TriedServer tried = {offer.build(), {ConfigureResponse(), ConfigureResponse()}};
    if (!joins_.Admit(offer.address(), tried).ok()) Withdraw(offer.address());
  }

  void Withdraw(const std::string& address) {
    joins_.Withdraw(address);
    connected_.erase(address);
  }

  void Befall(int what, int whom) {
    const int server = whom % static_cast<int>(members_.carrying().size());
    const std::string address = members_.carrying()[static_cast<size_t>(server)];
    switch (what) {
      case 0: {  // a server that offers itself as users name it
        JoinRequest offer;
        offer.set_address(absl::StrCat("10.0.0.", whom, ":4700"));
        *offer.mutable_build() = BuildOf("build");
        return Offer(offer);
      }
      case 1:
        return Withdraw(absl::StrCat("10.0.0.", whom, ":4700"));
      case 2:
        return members_.Arrive(absl::StrCat("own", whom % (2 * kStages), ":1"));
      case 3:  // killed
        return Regroup({server}, {address});
      case 4:  // drained
        members_.CountLeaving({server});
        return Regroup({server}, {address});
      case 5:  // it has joined, and cannot do its work
        if (!members_.IsGuest(address)) return;
        members_.Dismiss(server);
        joins_.Dismiss(address, absl::NotFoundError("no file"));
        return Regroup({server}, {address});
      case 6: {  // its neighbour, too
        const int other = (server + 1) % static_cast<int>(members_.carrying().size());
        return Regroup({server, other}, {address, members_.carrying()[static_cast<size_t>(other)]});
      }
      default:
        return Regroup({}, {});
    }
  }

  // Does what a session does between two generations.
  void Regroup(const std::vector<int>& gone, const std::vector<std::string>& lost) {
    for (const std::string& address : joins_.TakeAdmitted()) {
      Want(connected_.count(address) > 0);
      members_.Arrive(address);
    }
    members_.DropGuests([this](const auto& one) { return joins_.IsConnected(one); });
    is_patient_ = !is_patient_;  // whether a pause has still to earn what it took
    members_.Lose(gone, /*fresh=*/is_patient_);
    if (!is_patient_) members_.Grow();
    members_.CountJoined();
    joins_.Lose(lost);
    joins_.SetCarrying(members_.carrying());
    Want(is_patient_ || !members_.CanGrow());
  }

  void Check() const {
    const auto idle = members_.idle();
    std::set<std::string> all;
    for (const auto* list : {&members_.carrying(), &idle, &members_.away()}) {
      for (const std::string& address : *list) Want(all.insert(address).second);
    }
    Want(members_.carrying().size() % kStages == 0);
    Want(members_.carriers() >= kLeast && members_.carriers() <= kMostPipelines);
    Want(connected_.size() <= Joins::kMost);
    const MemberCounts counts = members_.counts();
    Want(counts.joined >= 0 && counts.left >= 0 && counts.lost >= 0);
  }

  Joins joins_{"run", /*takes_others=*/false};
  Members members_{{"own0:1", "own1:1", "own2:1", "own3:1"}, 2, kLeast, {}};
  std::set<std::string> connected_;  // whose calls last
  bool is_patient_ = true;
};

}  // namespace
}  // namespace thinwire

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  thinwire::Run().Play({reinterpret_cast<const char*>(data), size});
  return 0;
}
