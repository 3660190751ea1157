#include "coordinator/session/members.h"

#include <algorithm>
#include <utility>

namespace thinwire {

Members::Members(std::vector<std::string> addresses, int carriers, int least,
                 std::vector<std::string> idle)
    : most_(carriers),
      least_(least),
      stages_(static_cast<int>(addresses.size()) / carriers),
      carrying_(std::move(addresses)) {
  for (std::string& address : idle) idle_.push_back({std::move(address)});
  known_ = {carrying_.begin(), carrying_.end()};
}

MemberCounts Members::counts() const {
  return {static_cast<int>(carrying_.size()),
          static_cast<int>(idle_.size()),
          static_cast<int>(away_.size()),
          joined_,
          left_,
          lost_};
}

std::vector<std::string> Members::idle() const {
  std::vector<std::string> addresses;
  for (const Idle& one : idle_) addresses.push_back(one.address);
  return addresses;
}

std::vector<Members::Idle>::iterator Members::IdleFor(int stage, bool fresh) {
  const auto best =
      std::max_element(idle_.begin(), idle_.end(), [stage](const Idle& a, const Idle& b) {
        const auto worth = [stage](const Idle& one) {
          return one.stage == stage ? 1 + static_cast<int>(one.is_fresh) : 0;
        };
        return worth(a) < worth(b);
      });
  const bool is_fresh = best != idle_.end() && best->is_fresh && best->stage == stage;
  return fresh && !is_fresh ? idle_.end() : best;
}

std::string Members::TakeIdle(std::vector<Idle>::iterator idle) {
  std::string address = std::move(idle->address);
  idle_.erase(idle);
  return address;
}

void Members::Lose(const std::vector<int>& servers, bool fresh) {
  for (Idle& one : idle_) one.is_fresh = false;
  std::vector<int> holes = servers;
  while (!holes.empty()) {
    const auto idle = IdleFor(holes.front() % stages_, fresh && carriers() > least_);
    if (idle != idle_.end()) {
      std::string& place = carrying_[static_cast<size_t>(holes.front())];
      Part(std::exchange(place, TakeIdle(idle)));
      holes.erase(holes.begin());
      continue;
    }
    if (carriers() <= least_) {
      for (const int server : holes) AwaitInPlaceOf(server);
      return;
    }
    // The last pipeline ends. What it has lost itself leaves no hole.
    const int end = static_cast<int>(carrying_.size()) - stages_;
    for (int stage = 0; stage < stages_; ++stage) {
      std::string& address = carrying_[static_cast<size_t>(end + stage)];
      const auto hole = std::find(holes.begin(), holes.end(), end + stage);
      if (hole == holes.end()) {
        idle_.push_back({std::move(address), stage, /*is_fresh=*/true});
      } else {
        Part(std::move(address));
        holes.erase(hole);
      }
    }
    carrying_.resize(static_cast<size_t>(end));
  }
}

void Members::Part(std::string address) {
  const bool leaves = leaving_.erase(address) > 0;
  if (known_.erase(address) > 0) ++(leaves ? left_ : lost_);
  if (guests_.erase(address) == 0) away_.push_back(std::move(address));
}

void Members::AwaitInPlaceOf(int server) {
  std::string& place = carrying_[static_cast<size_t>(server)];
  if (dismissed_.count(place) == 0 || away_.empty()) return;
  guests_.erase(place);
  place = std::move(away_.back());
  away_.pop_back();
  known_.insert(place);  // it does not join, but is back
}

void Members::CountLeaving(const std::vector<int>& servers) {
  for (const int server : servers) leaving_.insert(carrying_[static_cast<size_t>(server)]);
}

void Members::Dismiss(int server) {
  const std::string& address = carrying_[static_cast<size_t>(server)];
  if (known_.erase(address) > 0) --joined_;
  dismissed_.insert(address);
}

bool Members::IsIdle(const std::string& address) const {
  return std::any_of(idle_.begin(), idle_.end(),
                     [&](const Idle& one) { return one.address == address; });
}

void Members::Arrive(const std::string& address) {
  const bool is_here =
      IsIdle(address) || std::find(carrying_.begin(), carrying_.end(), address) != carrying_.end();
  if (is_here) return;
  idle_.push_back({address});
  const auto found = std::find(away_.begin(), away_.end(), address);
  if (found != away_.end()) {
    away_.erase(found);
  } else {
    guests_.insert(address);
  }
}

void Members::LoseIdle(const std::string& address) {
  const auto found = std::find_if(idle_.begin(), idle_.end(),
                                  [&](const Idle& one) { return one.address == address; });
  if (found == idle_.end()) return;
  idle_.erase(found);
  Part(address);
}

void Members::DropGuests(const std::function<bool(const std::string&)>& is_there) {
  const auto is_gone = [&](const Idle& one) {
    if (guests_.count(one.address) == 0 || is_there(one.address)) return false;
    guests_.erase(one.address);
    known_.erase(one.address);
    return true;
  };
  idle_.erase(std::remove_if(idle_.begin(), idle_.end(), is_gone), idle_.end());
}

int Members::MoreThanNow() const {
  return std::min(most_ - carriers(), static_cast<int>(idle_.size()) / stages_);
}

void Members::Place(std::vector<std::string> carrying) {
  carrying_ = std::move(carrying);
  for (auto first = carrying_.begin(); first != carrying_.end(); first += stages_) {
    const bool has_guests = std::any_of(first, first + stages_,
                                        [this](const std::string& one) { return IsGuest(one); });
    if (has_guests) continue;
    std::rotate(carrying_.begin(), first, first + stages_);
    return;
  }
}

void Members::Grow() {
  while (CanGrow()) {
    for (int stage = 0; stage < stages_; ++stage) {
      carrying_.push_back(TakeIdle(IdleFor(stage, /*fresh=*/false)));
    }
  }
}

void Members::CountJoined() {
  leaving_.clear();
  dismissed_.clear();
  for (const std::string& address : carrying_) {
    if (known_.insert(address).second) ++joined_;
  }
}

}  // namespace thinwire
