#include "coordinator/run/carrier_reports.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "coordinator/run/tally.h"

namespace thinwire {
namespace {

// Returns whether it is of what replicas exchange. A cut's directions have other names.
bool IsOfReplicas(const TrafficRecord& traffic) {
  return traffic.direction() == "contributions" || traffic.direction() == "average";
}

// Adds the traffic of another server. The error is the mean over messages.
void AddTo(const TrafficRecord& other, TrafficRecord* sum) {
  if (sum->has_relative_error() && other.has_relative_error()) {
    const double messages = static_cast<double>(sum->messages() + other.messages());
    sum->set_relative_error((sum->relative_error() * static_cast<double>(sum->messages()) +
                             other.relative_error() * static_cast<double>(other.messages())) /
                            messages);
  } else if (other.has_relative_error()) {
    sum->set_relative_error(other.relative_error());
  }
  if (other.has_level()) sum->set_level(other.level());
  sum->set_raw_bytes(sum->raw_bytes() + other.raw_bytes());
  sum->set_wire_bytes(sum->wire_bytes() + other.wire_bytes());
  sum->set_messages(sum->messages() + other.messages());
}

// Adds up in the order of the servers.
TrafficRecord SumOf(const std::map<int, TrafficRecord>& parts) {
  TrafficRecord sum = parts.begin()->second;
  for (auto part = std::next(parts.begin()); part != parts.end(); ++part) AddTo(part->second, &sum);
  return sum;
}

// Returns the report of the step whose parts these are, in order of carriers.
StepReport Whole(const std::map<int, StepReport>& parts) {
  StepReport whole = parts.begin()->second;
  whole.set_correct(0);
  whole.set_labels(0);
  whole.clear_replica_losses();
  double loss = 0;
  for (const auto& [carrier, part] : parts) {
    for (const double of_replica : part.replica_losses()) loss += of_replica;
    whole.set_correct(whole.correct() + part.correct());
    whole.set_labels(whole.labels() + part.labels());
    whole.set_seconds(std::max(whole.seconds(), part.seconds()));
  }
  whole.set_loss(whole.labels() == 0 ? 0 : loss / static_cast<double>(whole.labels()));
  return whole;
}

}  // namespace

std::optional<StepReport> CarrierReports::Add(int carrier, const StepReport& step) {
  if (pipelines_.carriers == 1) return step;
  std::map<int, StepReport>& parts = steps_[step.step()];
  parts[carrier] = step;
  if (static_cast<int>(parts.size()) < pipelines_.carriers) return std::nullopt;
  StepReport whole = Whole(parts);
  steps_.erase(step.step());
  return whole;
}

std::vector<TrafficRecord> CarrierReports::Add(int server,
                                               const std::vector<TrafficRecord>& traffic) {
  std::vector<TrafficRecord> whole;
  for (const TrafficRecord& one : traffic) {
    const Place place(one.step(), one.boundary(), one.direction());
    std::map<int, TrafficRecord>& parts = traffic_[place];
    parts[server] = one;
    const int all = IsOfReplicas(one) ? pipelines_.servers() : pipelines_.carriers;
    if (static_cast<int>(parts.size()) < all) continue;
    whole.push_back(SumOf(parts));
    traffic_.erase(place);
  }
  return whole;
}

std::vector<TrafficRecord> CarrierReports::Rest() {
  std::vector<TrafficRecord> rest;
  for (const auto& [place, parts] : traffic_) rest.push_back(SumOf(parts));
  traffic_.clear();
  return rest;
}

void CarrierReports::Clear() {
  steps_.clear();
  traffic_.clear();
}

}  // namespace thinwire
