// The servers of a run whose members come and go: who carries what, who stands by, who is away.
#pragma once

#include <string>
#include <vector>

namespace thinwire {

class Members {
 public:
  // `addresses` are those of `carriers` pipelines, one after the other, which is the most there
  // will be; at least `least` of them are kept. `idle` are servers beside them.
  Members(std::vector<std::string> addresses, int carriers, int least,
          std::vector<std::string> idle);

  // Returns the addresses of the pipelines, one after the other, and their number.
  const std::vector<std::string>& carrying() const { return carrying_; }
  int carriers() const { return static_cast<int>(carrying_.size()) / stages_; }
  std::vector<std::string> idle() const;
  const std::vector<std::string>& away() const { return away_; }

  // Takes servers, by their index in carrying(), out of the pipelines. Idle ones take their places,
  // those first that had the same stage.
  // Where these do not suffice, the rest of the last pipelines does, which end. If then fewer than
  // `least` were left, the last of the lost keep their places, to be waited for.
  void Lose(const std::vector<int>& servers);

  // Notes that one of away() is there again.
  void Return(const std::string& address);

  // Returns whether idle servers make up another pipeline.
  bool CanGrow() const;
  // Makes as many of idle servers as there can be.
  void Grow();

 private:
  struct Idle {
    std::string address;
    int stage = -1;  // that it had last; -1: none
  };

  // Takes an idle server for a stage.
  std::string TakeIdle(int stage);

  const int most_, least_, stages_;
  std::vector<std::string> carrying_, away_;
  std::vector<Idle> idle_;
};

}  // namespace thinwire
