// Messages that cross between hosts at once and share their interfaces as TCP connections do. Part
// of the simulator; no side effects.
#pragma once

#include <vector>

namespace thinwire {

// The two capacities that a message uses: its sender's and its receiver's.
struct Route {
  int egress = 0, ingress = 0;  // two different indices of capacities
};

// Returns the max-min fair rate of each message, in the order of `routes` and in the unit of
// `capacities`, which are above 0. No capacity is exceeded. A message's rate could only grow at the
// expense of one whose rate is no higher (Bertsekas and Gallager, Data Networks, 2nd edition,
// 6.5.2). TCP connections with equal round-trip times come close to it.
std::vector<double> FairRates(const std::vector<Route>& routes,
                              const std::vector<double>& capacities);

// The messages under way. Not thread-safe. `now` never decreases from call to call.
class Network {
 public:
  explicit Network(std::vector<double> capacities);  // bits per second, above 0

  // Starts a message of `bits`. Share gives it a rate.
  void Start(int message, double bits, const Route& route, double now);
  // Gives all messages their rates. Must be called after the starts and ends of each moment.
  void Share(double now);

  bool empty() const { return messages_.empty(); }
  // Returns when the next message ends. There must be one, and all must have rates.
  double NextEnd() const;
  // Removes and returns all messages that end then, in the order of their starts; at least one.
  std::vector<int> TakeEnded();

 private:
  struct Message {
    int id;
    Route route;
    double bits_left;    // at the time `since`
    double since;        // time at which it got its rate
    double rate;         // 0: none yet
    double end_seconds;  // at this rate
  };

  std::vector<double> capacities_;
  std::vector<Message> messages_;  // in the order of their starts
  bool is_shared_ = true;          // True if the rates are those of all messages present.
};

}  // namespace thinwire
