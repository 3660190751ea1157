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
}

std::vector<std::string> Members::idle() const {
  std::vector<std::string> addresses;
  for (const Idle& one : idle_) addresses.push_back(one.address);
  return addresses;
}

std::string Members::TakeIdle(int stage) {
  const auto same = std::find_if(idle_.begin(), idle_.end(),
                                 [stage](const Idle& one) { return one.stage == stage; });
  const auto taken = same == idle_.end() ? idle_.begin() : same;
  std::string address = std::move(taken->address);
  idle_.erase(taken);
  return address;
}

void Members::Lose(const std::vector<int>& servers) {
  std::vector<int> holes = servers;
  while (!holes.empty()) {
    if (!idle_.empty()) {
      std::string& place = carrying_[static_cast<size_t>(holes.front())];
      away_.push_back(std::exchange(place, TakeIdle(holes.front() % stages_)));
      holes.erase(holes.begin());
      continue;
    }
    if (carriers() <= least_) return;
    // The last pipeline ends. What it has lost itself leaves no hole.
    const int end = static_cast<int>(carrying_.size()) - stages_;
    for (int stage = 0; stage < stages_; ++stage) {
      std::string& address = carrying_[static_cast<size_t>(end + stage)];
      const auto hole = std::find(holes.begin(), holes.end(), end + stage);
      if (hole == holes.end()) {
        idle_.push_back({std::move(address), stage});
      } else {
        away_.push_back(std::move(address));
        holes.erase(hole);
      }
    }
    carrying_.resize(static_cast<size_t>(end));
  }
}

void Members::Return(const std::string& address) {
  const auto found = std::find(away_.begin(), away_.end(), address);
  if (found == away_.end()) return;
  idle_.push_back({address});
  away_.erase(found);
}

bool Members::CanGrow() const {
  return carriers() < most_ && static_cast<int>(idle_.size()) >= stages_;
}

void Members::Grow() {
  while (CanGrow()) {
    for (int stage = 0; stage < stages_; ++stage) carrying_.push_back(TakeIdle(stage));
  }
}

}  // namespace thinwire
