#include "schedule/network.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <utility>

namespace thinwire {

// Progressive filling: all rates grow equally until a capacity is used up. Its messages keep their
// rates, and the others grow on.
std::vector<double> FairRates(const std::vector<Route>& routes,
                              const std::vector<double>& capacities) {
  std::vector<double> rates(routes.size(), 0), left = capacities;
  std::vector<int> growing(capacities.size(), 0);  // number of messages
  for (const Route& route : routes) {
    ++growing[route.egress];
    ++growing[route.ingress];
  }
  std::vector<bool> is_growing(routes.size(), true), is_full(capacities.size());
  for (size_t remaining = routes.size(); remaining > 0;) {
    const auto share = [&](size_t i) { return left[i] / growing[i]; };
    double least = std::numeric_limits<double>::infinity();
    for (size_t i = 0; i < capacities.size(); ++i) {
      if (growing[i] > 0) least = std::min(least, share(i));
    }
    for (size_t i = 0; i < capacities.size(); ++i) {
      is_full[i] = growing[i] > 0 && share(i) <= least;
    }
    for (size_t m = 0; m < routes.size(); ++m) {
      const Route& route = routes[m];
      if (!is_growing[m] || (!is_full[route.egress] && !is_full[route.ingress])) continue;
      is_growing[m] = false;
      rates[m] = least;
      --remaining;
      for (const int i : {route.egress, route.ingress}) {
        left[i] = std::max(0.0, left[i] - least);
        --growing[i];
      }
    }
  }
  return rates;
}

Network::Network(std::vector<double> capacities) : capacities_(std::move(capacities)) {}

void Network::Start(int message, double bits, const Route& route, double now) {
  messages_.push_back({message, route, bits, now, /*rate=*/0, /*end_seconds=*/now});
  is_shared_ = false;
}

void Network::Share(double now) {
  if (is_shared_) return;
  is_shared_ = true;
  std::vector<Route> routes;
  for (const Message& message : messages_) routes.push_back(message.route);
  const std::vector<double> rates = FairRates(routes, capacities_);
  for (size_t i = 0; i < messages_.size(); ++i) {
    Message& message = messages_[i];
    if (message.rate == rates[i]) continue;  // its end then stays the same to the last bit
    message.bits_left = std::max(0.0, message.bits_left - message.rate * (now - message.since));
    message.since = now;
    message.rate = rates[i];
    message.end_seconds = now + message.bits_left / message.rate;
  }
}

double Network::NextEnd() const {
  assert(!messages_.empty() && is_shared_);
  return std::min_element(
             messages_.begin(), messages_.end(),
             [](const Message& a, const Message& b) { return a.end_seconds < b.end_seconds; })
      ->end_seconds;
}

std::vector<int> Network::TakeEnded() {
  const double now = NextEnd();
  std::vector<int> ended;
  std::vector<Message> under_way;
  for (const Message& message : messages_) {
    if (message.end_seconds > now) {
      under_way.push_back(message);
    } else {  // also if one of them is NaN, so that the loop ends
      ended.push_back(message.id);
    }
  }
  messages_ = std::move(under_way);
  is_shared_ = false;
  return ended;
}

}  // namespace thinwire
