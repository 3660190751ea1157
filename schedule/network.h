// Messages under way between hosts, whose interfaces they share as TCP connections do. Part of the
// simulator; pure.
#pragma once

#include <vector>

namespace thinwire {

// Which two capacities a message takes part in: what its sender sends and what its receiver takes.
struct Route {
  int egress = 0, ingress = 0;  // indices of capacities, different
};

// The rate of each message, in the order of `routes`, in the unit of `capacities` (above 0): the
// max-min fair one. No capacity is exceeded, and none can have more but at the expense of one that
// has no more than it (Bertsekas and Gallager, Data Networks, 2nd edition, 6.5.2). TCP connections
// of one round-trip time come close to it.
std::vector<double> FairRates(const std::vector<Route>& routes,
                              const std::vector<double>& capacities);

// Not thread-safe. Times never fall.
class Network {
 public:
  explicit Network(std::vector<double> capacities);  // bits per second, above 0

  // A message starts, of so many bits. It has a rate once Share is called.
  void Start(int message, double bits, const Route& route, double now);
  // Gives all messages their rates; needed after starts and ends, once those of a moment are known.
  void Share(double now);

  bool empty() const { return messages_.empty(); }
  // When the next message ends. There is one, and all have rates.
  double NextEnd() const;
  // Takes out all that end then, in the order of their starts; at least one.
  std::vector<int> TakeEnded();

 private:
  struct Message {
    int id;
    Route route;
    double bits_left;    // at `since`
    double since;        // when it got its rate
    double rate;         // 0: none yet
    double end_seconds;  // if it keeps the rate
  };

  std::vector<double> capacities_;
  std::vector<Message> messages_;  // by their starts
  bool is_shared_ = true;          // among all that are there
};

}  // namespace thinwire
