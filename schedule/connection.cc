#include "schedule/connection.h"

namespace thinwire {

std::vector<double> Interfaces::Capacities() const {
  const int stages = simulation_.stages();
  const int interfaces = is_shared()
                             ? carriers() * stages
                             : carriers() * 2 * boundaries() + stages * carriers() * carriers();
  return std::vector<double>(2 * interfaces, simulation_.link.bits_per_second);
}

Route Interfaces::OfCut(int carrier, int boundary, bool gradient) const {
  const int stages = simulation_.stages();
  const int sender = gradient ? boundary + 1 : boundary, receiver = 2 * boundary + 1 - sender;
  if (is_shared()) {
    return Between(carrier * stages + sender % stages, carrier * stages + receiver % stages);
  }
  return Own(2 * (carrier * boundaries() + boundary) + (gradient ? 1 : 0));
}

Route Interfaces::OfStage(int stage, int from, int to) const {
  const int stages = simulation_.stages();
  if (is_shared()) return Between(from * stages + stage, to * stages + stage);
  return Own(carriers() * 2 * boundaries() + (stage * carriers() + from) * carriers() + to);
}

void Connection::Send(double bytes, int made, int taken) {
  const LinkRate& link = simulation_.link;
  cross_ = link.bits_per_second > 0 ? graph_->AddMessage(8 * bytes, route_, cross_)
                                    : graph_->Add(/*seconds=*/0, /*needs_core=*/false, cross_);
  graph_->Follow(cross_, made, 0);
  graph_->Follow(taken, cross_, link.latency_seconds);
  for (int& end : ends_) {
    end = graph_->Add(bytes * simulation_.transport.seconds_per_byte, /*needs_core=*/true, end);
    graph_->Follow(end, made, 0);
    graph_->Follow(taken, end, link.latency_seconds);
  }
}

}  // namespace thinwire
