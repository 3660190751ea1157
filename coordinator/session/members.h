// The servers of a run whose members come and go: who carries what, who stands by, who is away; and
// how many came and went.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace thinwire {

// Numbers of servers. `joined` counts those that got a stage and were no part of the run before, or
// were lost; `left` those that were lost in order.
struct MemberCounts {
  int carrying = 0, idle = 0, away = 0;
  int joined = 0, left = 0, lost = 0;
};

class Members {
 public:
  // `addresses` are those of `carriers` pipelines, one after the other, which is the most there
  // will be; at least `least` of them are kept. `idle` are servers beside them.
  Members(std::vector<std::string> addresses, int carriers, int least,
          std::vector<std::string> idle);

  // Gives the servers of carrying() these places. A pipeline without guests is the first one, which
  // copies the state for checkpoints and evaluates, if there is one.
  void Place(std::vector<std::string> carrying);
  // Lets there be up to `pipelines`.
  void set_most(int pipelines) { most_ = pipelines; }

  // Returns the addresses of the pipelines, one after the other, and their number.
  const std::vector<std::string>& carrying() const { return carrying_; }
  int carriers() const { return static_cast<int>(carrying_.size()) / stages_; }
  std::vector<std::string> idle() const;
  const std::vector<std::string>& away() const { return away_; }
  bool IsGuest(const std::string& address) const { return guests_.count(address) > 0; }
  MemberCounts counts() const;

  // Takes servers, by their index in carrying(), out of the pipelines. Idle ones take their places:
  // those first whose pipeline has just ended, at the stage that they had; then, unless only
  // `fresh` ones are to, any, which have to fetch that stage's state. Of guests nothing is kept.
  // Where these do not suffice, the rest of the last pipelines does, which end. If then fewer than
  // `least` were left, the last of the lost keep their places, to be waited for; for one that was
  // dismissed a lost one is waited for, if any is.
  void Lose(const std::vector<int>& servers, bool fresh = false);

  // Counts servers, by their index in carrying(), which will be lost, as such that leave in order.
  void CountLeaving(const std::vector<int>& servers);

  // Takes back that a guest, by its index in carrying(), has joined; it will be lost.
  void Dismiss(int server);

  // Takes in a server, which is idle then: one of away() that is there again, or a guest, which
  // comes by itself. Nothing if it is here already.
  void Arrive(const std::string& address);
  // Takes an idle server, which is gone, for one that is away.
  void LoseIdle(const std::string& address);
  // Forgets idle guests that are gone.
  void DropGuests(const std::function<bool(const std::string& address)>& is_there);

  // Returns whether idle servers make up another pipeline.
  bool CanGrow() const { return MoreThanNow() > 0; }
  // Return whether it pays that all wait for servers that fetch a state: to grow, or to fill places
  // for a pipeline's sake. The last such pause is to have made up for itself: the run has trained
  // for so long since then that as many pipelines more would have done what all could have in the
  // pause.
  bool PaysToGrow(absl::Duration trained, absl::Duration pause) const {
    return CanGrow() && trained * MoreThanNow() >= pause * carriers();
  }
  bool PaysToFill(absl::Duration trained, absl::Duration pause) const {
    return trained >= pause * carriers();
  }
  // Makes as many of idle servers as there can be.
  void Grow();
  // Counts who has got a stage, once all who are lost are taken out and idle servers are used.
  void CountJoined();

 private:
  struct Idle {
    std::string address;
    int stage = -1;         // that it had last; -1: none
    bool is_fresh = false;  // its pipeline has just ended, which had the state of that stage
  };

  // Returns how many pipelines idle servers make up besides those that there are.
  int MoreThanNow() const;
  // Returns the best idle server for a stage, of all or of the fresh ones; the end if there is
  // none.
  std::vector<Idle>::iterator IdleFor(int stage, bool fresh);
  // Takes that out.
  std::string TakeIdle(std::vector<Idle>::iterator idle);
  // Lets a server go that is lost.
  void Part(std::string address);
  // Gives a dismissed server's place to one that is awaited.
  void AwaitInPlaceOf(int server);
  bool IsIdle(const std::string& address) const;

  int most_;
  const int least_, stages_;
  std::vector<std::string> carrying_, away_;
  std::vector<Idle> idle_;
  std::set<std::string> guests_;               // of carrying_ and idle_
  std::set<std::string> leaving_, dismissed_;  // of carrying_
  std::set<std::string> known_;  // those that have, or had, a stage, and were not lost since
  int joined_ = 0, left_ = 0, lost_ = 0;
};

}  // namespace thinwire
