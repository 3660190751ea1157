#include "schedule/stage_exchange.h"

#include <algorithm>
#include <numeric>

namespace thinwire {
namespace {

std::vector<PieceCost> PiecesAt(const Exchange& exchange, int stage) {
  return exchange.pieces.empty() ? std::vector<PieceCost>() : exchange.pieces[stage];
}

}  // namespace

std::vector<int> Exchange::CarriedBy(int carrier) const {
  std::vector<int> carried;
  for (int replica = 0; replica < replicas(); ++replica) {
    if (carrier_of[replica] == carrier) carried.push_back(replica);
  }
  return carried;
}

double SentBytes(const Exchange& exchange, int stage, int carrier) {
  const std::vector<int> carried = exchange.CarriedBy(carrier);
  const int others = exchange.carriers() - 1;
  double bytes = 0;
  for (const PieceCost& piece : exchange.pieces[stage]) {
    const bool owns = exchange.carrier_of[piece.owner] == carrier;
    const int receivers = piece.gathers ? others : (owns ? 0 : 1);
    for (const int replica : carried) {
      bytes += receivers * piece.contributions[replica].wire_bytes;
      if (piece.has_second()) bytes += receivers * piece.second_contributions[replica].wire_bytes;
    }
    if (piece.gathers || !owns) continue;
    bytes += others * piece.sum.wire_bytes;
    if (piece.has_second()) bytes += others * piece.second_sum.wire_bytes;
  }
  return bytes;
}

double ExposedSeconds(double with, double without, int fragments, int64_t overlap) {
  const double of_fragment = std::max(0.0, with - without) / fragments;
  return fragments * std::max(0.0, of_fragment - static_cast<double>(overlap) * without);
}

StageExchange::StageExchange(const Simulation& simulation, int stage, TaskGraph* graph)
    : simulation_(simulation),
      exchange_(simulation.exchange),
      pieces_(PiecesAt(simulation.exchange, stage)),
      graph_(graph),
      carriers_(simulation.exchange.carriers()),
      connections_(simulation.exchange.carriers()),
      contributions_(pieces_.size(), std::vector<std::vector<int>>(exchange_.replicas())),
      sums_(pieces_.size()),
      second_contributions_(contributions_),
      second_sums_(pieces_.size()) {
  std::iota(carriers_.begin(), carriers_.end(), 0);
  const Interfaces interfaces(simulation);
  for (const int from : carriers_) {
    for (const int to : carriers_) {
      connections_[from].emplace_back(simulation, interfaces.OfStage(stage, from, to), graph);
    }
  }
}

bool StageExchange::AddsAt(int carrier, const PieceCost& piece) const {
  return piece.gathers || exchange_.carrier_of[piece.owner] == carrier;
}

int StageExchange::Contribute(int replica, int last) {
  const int carrier = exchange_.carrier_of[replica];
  for (size_t i = 0; i < pieces_.size(); ++i) {
    const PieceCost& piece = pieces_[i];
    const std::vector<int> owner = {exchange_.carrier_of[piece.owner]};
    const TransferCost& cost = piece.contributions[replica];
    last =
        Encode(cost, carrier, piece.gathers ? carriers_ : owner, last, &contributions_[i][replica]);
    if (!AddsAt(carrier, piece) || !piece.decodes_own) continue;
    last = Decode(cost, /*has_crossed=*/false, last, last);
  }
  return last;
}

int StageExchange::AddUp(int carrier, int last) {
  for (size_t i = 0; i < pieces_.size(); ++i) {
    const PieceCost& piece = pieces_[i];
    if (!AddsAt(carrier, piece)) continue;
    for (int replica = 0; replica < exchange_.replicas(); ++replica) {
      if (exchange_.carrier_of[replica] == carrier) continue;
      last = Decode(piece.contributions[replica], /*has_crossed=*/true,
                    contributions_[i][replica][carrier], last);
    }
    if (piece.gathers) continue;
    last = Encode(piece.sum, carrier, carriers_, last, &sums_[i]);
    if (piece.has_second()) continue;
    last = Decode(piece.sum, /*has_crossed=*/false, sums_[i][carrier], last);
  }
  return last;
}

int StageExchange::ContributeSecond(int carrier, int last) {
  for (size_t i = 0; i < pieces_.size(); ++i) {
    const PieceCost& piece = pieces_[i];
    if (!piece.has_second()) continue;
    if (!AddsAt(carrier, piece)) {
      last = Decode(piece.sum, /*has_crossed=*/true, sums_[i][carrier], last);
    }
    for (const int replica : exchange_.CarriedBy(carrier)) {
      last = Encode(piece.second_contributions[replica], carrier,
                    {exchange_.carrier_of[piece.owner]}, last, &second_contributions_[i][replica]);
    }
  }
  return last;
}

int StageExchange::AddUpSecond(int carrier, int last) {
  for (size_t i = 0; i < pieces_.size(); ++i) {
    const PieceCost& piece = pieces_[i];
    if (!piece.has_second() || !AddsAt(carrier, piece)) continue;
    for (int replica = 0; replica < exchange_.replicas(); ++replica) {
      if (exchange_.carrier_of[replica] == carrier) continue;
      last = Decode(piece.second_contributions[replica], /*has_crossed=*/true,
                    second_contributions_[i][replica][carrier], last);
    }
    last = Encode(piece.second_sum, carrier, carriers_, last, &second_sums_[i]);
    last = Decode(piece.second_sum, /*has_crossed=*/false, second_sums_[i][carrier], last);
  }
  return last;
}

int StageExchange::TakeSums(int carrier, int last) {
  for (size_t i = 0; i < pieces_.size(); ++i) {
    const PieceCost& piece = pieces_[i];
    if (AddsAt(carrier, piece)) continue;
    const bool second = piece.has_second();
    last = Decode(second ? piece.second_sum : piece.sum, /*has_crossed=*/true,
                  (second ? second_sums_ : sums_)[i][carrier], last);
  }
  return last;
}

int StageExchange::Encode(const TransferCost& cost, int carrier, const std::vector<int>& receivers,
                          int last, std::vector<int>* arrivals) {
  int messages = 0;
  for (const int receiver : receivers) messages += receiver != carrier;
  last = graph_->Add(cost.encode_seconds + messages * simulation_.transport.seconds_per_message,
                     /*needs_core=*/true, last);
  arrivals->assign(exchange_.carriers(), -1);
  for (const int receiver : receivers) {
    int& arrival = (*arrivals)[receiver];
    arrival = last;
    if (receiver == carrier) continue;
    arrival = graph_->Add(/*seconds=*/0, /*needs_core=*/false, /*before=*/-1);
    connections_[carrier][receiver].Send(cost.wire_bytes, last, arrival);
  }
  return last;
}

int StageExchange::Decode(const TransferCost& cost, bool has_crossed, int arrival, int last) {
  const double message = has_crossed ? simulation_.transport.seconds_per_message : 0;
  const int task = graph_->Add(cost.decode_seconds + message, /*needs_core=*/true, last);
  graph_->Follow(task, arrival, 0);
  return task;
}

}  // namespace thinwire
