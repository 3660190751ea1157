#include "coordinator/fleet/dealer.h"

#include <algorithm>
#include <utility>

namespace thinwire {
namespace {

// Time over which a server is measured, how often, and the share of the last time in the result.
constexpr absl::Duration kMeasured = absl::Seconds(3);
constexpr int kMeasurements = 2;
constexpr double kNewest = 0.5;
// Time between two deals by speed: at least this, and so many times what the first one took.
constexpr absl::Duration kBetween = absl::Seconds(20);
constexpr int kEarned = 20;
// Servers of which anything is remembered.
constexpr size_t kMostKnown = 4096;

// Returns the time of the pipeline that is done last.
double SlowestOf(const std::vector<DealtTo>& pipelines, const Deal& deal) {
  double slowest = 0;
  for (size_t i = 0; i < deal.size(); ++i) {
    slowest = std::max(slowest, pipelines[i].seconds * deal[i]);
  }
  return slowest;
}

Deal EqualDeal(size_t pipelines, int replicas) {
  Deal deal;
  const auto count = static_cast<int>(pipelines);
  for (int i = 0; i < count; ++i) deal.push_back(CarriedBy(i, count, replicas).size());
  return deal;
}

}  // namespace

Deal DealBySpeed(const std::vector<DealtTo>& pipelines, int replicas) {
  Deal deal(pipelines.size(), 1);
  for (int left = replicas - static_cast<int>(pipelines.size()); left > 0; --left) {
    // Each further one goes where it is done first, of those that may carry it.
    const auto is_before = [&](size_t a, size_t b) {
      const auto is_full = [&](size_t i) {
        return pipelines[i].most > 0 && deal[i] >= pipelines[i].most;
      };
      if (is_full(a) != is_full(b)) return is_full(b);
      return pipelines[a].seconds * (deal[a] + 1) < pipelines[b].seconds * (deal[b] + 1);
    };
    size_t best = 0;
    for (size_t i = 1; i < deal.size(); ++i) {
      if (is_before(i, best)) best = i;
    }
    ++deal[best];
  }
  return deal;
}

void Dealer::Begin(std::vector<std::string> addresses, Deal deal) {
  absl::MutexLock lock(&mutex_);
  addresses_ = std::move(addresses);
  deal_ = std::move(deal);
  last_.assign(addresses_.size(), std::nullopt);
  if (seconds_.size() > kMostKnown) seconds_.clear();
  if (limits_.size() > kMostKnown) limits_.clear();
  has_begun_ = true;
}

void Dealer::set_may_move(bool may_move) {
  absl::MutexLock lock(&mutex_);
  may_move_ = may_move && !is_refused_;
}

bool Dealer::RefuseMove(int server) {
  absl::MutexLock lock(&mutex_);
  if (moved_.count(addresses_[static_cast<size_t>(server)]) == 0) return false;
  may_move_ = false;
  is_refused_ = tells_refusal_ = true;
  return true;
}

bool Dealer::TakeRefusal() {
  absl::MutexLock lock(&mutex_);
  return std::exchange(tells_refusal_, false);
}

bool Dealer::Add(int server, uint64_t step, double busy, SteadyTime now) {
  absl::MutexLock lock(&mutex_);
  if (decided_ && has_begun_) {
    earliest_ = now + std::max(kBetween, kEarned * (now - *decided_));
    decided_.reset();
  }
  const auto index = static_cast<size_t>(server);
  std::optional<Measured>& last = last_[index];
  // A stage that is configured, or trained, anew counts from 0.
  if (!last || step < last->step || busy < last->busy) {
    last = Measured{step, busy, now};
    return false;
  }
  if (now - last->since < kMeasured || step == last->step) return false;
  const double parts = static_cast<double>(step - last->step) * deal_[index / stages_];
  const double seconds = (busy - last->busy) / parts;
  const auto known = seconds_.try_emplace({addresses_[index], index % stages_}, seconds).first;
  known->second += kNewest * (seconds - known->second);
  last = Measured{step, busy, now, last->times + 1};
  const bool are_measured = std::all_of(last_.begin(), last_.end(), [](const auto& one) {
    return one && one->times >= kMeasurements;
  });
  if (!are_measured || now < earliest_ || decided_ || now - looked_ < kMeasured) return false;
  looked_ = now;  // looking takes a while with a thousand servers
  if (!IsWorthIt()) return false;
  decided_ = now;
  has_begun_ = false;
  return true;
}

bool Dealer::Limit(int server) {
  absl::MutexLock lock(&mutex_);
  const auto index = static_cast<size_t>(server);
  const size_t pipeline = index / stages_;
  const Deal equal = EqualDeal(deal_.size(), replicas_);
  if (deal_[pipeline] <= *std::max_element(equal.begin(), equal.end())) return false;
  // If it was dealt more than its limit, then because all together may not carry the replicas.
  const auto known = limits_.try_emplace(addresses_[index], deal_[pipeline]).first;
  if (known->second < deal_[pipeline]) return false;
  known->second = deal_[pipeline] - 1;
  return true;
}

bool Dealer::CanCarry(const std::vector<std::string>& addresses) const {
  absl::MutexLock lock(&mutex_);
  int most = 0;
  for (const DealtTo& pipeline : PipelinesOf(addresses)) {
    most += pipeline.most == 0 ? replicas_ : pipeline.most;
  }
  return most >= replicas_;
}

bool Dealer::IsWorthIt() const {
  return StepOf(PlacedHere(addresses_, may_move_)) <=
         (1 - kLeastGain) * SlowestOf(PipelinesOf(addresses_), deal_);
}

std::optional<double> Dealer::SlownessOf(const std::string& address) const {
  double sum = 0;
  int count = 0;
  for (size_t stage = 0; stage < stages_; ++stage) {
    const auto found = seconds_.find({address, stage});
    if (found == seconds_.end()) continue;
    sum += found->second / work_[stage];
    ++count;
  }
  if (count == 0) return std::nullopt;
  return sum / count;
}

double Dealer::SecondsOf(const Place& place) const {
  const auto found = seconds_.find(place);
  if (found != seconds_.end()) return found->second;
  const std::optional<double> slowness = SlownessOf(place.first);
  if (slowness) return *slowness * work_[place.second];
  double sum = 0;
  int count = 0;
  for (const auto& [other, seconds] : seconds_) {
    if (other.second != place.second) continue;
    sum += seconds;
    ++count;
  }
  return count == 0 ? 0 : sum / count;
}

std::vector<DealtTo> Dealer::PipelinesOf(const std::vector<std::string>& addresses) const {
  std::vector<DealtTo> pipelines(addresses.size() / stages_);
  for (size_t i = 0; i < addresses.size(); ++i) {
    DealtTo& pipeline = pipelines[i / stages_];
    pipeline.seconds = std::max(pipeline.seconds, SecondsOf({addresses[i], i % stages_}));
    const auto limit = limits_.find(addresses[i]);
    if (limit == limits_.end()) continue;
    pipeline.most = pipeline.most == 0 ? limit->second : std::min(pipeline.most, limit->second);
  }
  return pipelines;
}

double Dealer::StepOf(const std::vector<std::string>& addresses) const {
  const std::vector<DealtTo> pipelines = PipelinesOf(addresses);
  return SlowestOf(pipelines, DealBySpeed(pipelines, replicas_));
}

std::vector<std::string> Dealer::ByStages(const std::vector<std::string>& own) const {
  std::vector<std::string> addresses = own;
  for (size_t stage = 0; stage < stages_; ++stage) {
    std::vector<std::pair<double, std::string>> servers;
    for (size_t i = stage; i < addresses.size(); i += stages_) {
      servers.emplace_back(SecondsOf({addresses[i], stage}), addresses[i]);
    }
    std::stable_sort(servers.begin(), servers.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (size_t i = 0; i < servers.size(); ++i) {
      addresses[i * stages_ + stage] = std::move(servers[i].second);
    }
  }
  return addresses;
}

bool Dealer::Exchange(const std::vector<size_t>& stages, const std::vector<std::string>& own,
                      std::vector<std::string>* addresses) const {
  std::vector<std::pair<double, size_t>> servers;  // how slow each is, and its place
  for (size_t first = 0; first < own.size(); first += stages_) {
    for (const size_t stage : stages) {
      const std::optional<double> slowness = SlownessOf(own[first + stage]);
      if (!slowness) return false;
      servers.emplace_back(*slowness, first + stage);
    }
  }
  std::sort(servers.begin(), servers.end());
  std::set<size_t> kept;  // stages at which a server stays
  for (size_t i = 0; i < servers.size(); i += stages.size()) {
    const size_t first = i / stages.size() * stages_;
    // One of each stage stays there; the others go where a place is left.
    std::vector<size_t> moved;
    for (size_t j = i; j < i + stages.size(); ++j) {
      const size_t place = servers[j].second, stage = place % stages_;
      std::string& stays = (*addresses)[first + stage];
      if (!stays.empty()) {
        moved.push_back(place);
        continue;
      }
      stays = own[place];
      kept.insert(stage);
    }
    for (const size_t stage : stages) {
      if (!(*addresses)[first + stage].empty()) continue;
      (*addresses)[first + stage] = own[moved.back()];
      moved.pop_back();
    }
  }
  return kept.size() == stages.size();
}

std::vector<std::string> Dealer::ByMoves(const std::vector<std::string>& own) const {
  std::vector<size_t> ends, middle;
  for (size_t stage = 0; stage < stages_; ++stage) {
    (stage == 0 || stage + 1 == stages_ ? ends : middle).push_back(stage);
  }
  std::vector<std::string> addresses(own.size());
  const bool are_kept =
      Exchange(ends, own, &addresses) && (middle.empty() || Exchange(middle, own, &addresses));
  return are_kept ? addresses : std::vector<std::string>();
}

std::vector<std::string> Dealer::PlacedHere(const std::vector<std::string>& own, bool moves) const {
  if (seconds_.empty()) return own;
  std::vector<std::string> best = own;
  double step = StepOf(own);
  const auto offer = [&](std::vector<std::string> other, double least_gain) {
    if (other.empty() || StepOf(other) > (1 - least_gain) * step) return;
    step = StepOf(other);
    best = std::move(other);
  };
  offer(ByStages(own), kLeastGain);
  if (moves) offer(ByMoves(own), kLeastGainOfMoves);
  return best;
}

std::vector<std::string> Dealer::Placed(const std::vector<std::string>& addresses, bool moves) {
  absl::MutexLock lock(&mutex_);
  std::vector<std::string> placed = PlacedHere(addresses, moves && may_move_);
  moved_.clear();
  std::map<std::string, size_t> stage_of;
  for (size_t i = 0; i < addresses.size(); ++i) stage_of[addresses[i]] = i % stages_;
  for (size_t i = 0; i < placed.size(); ++i) {
    if (stage_of[placed[i]] != i % stages_) moved_.insert(placed[i]);
  }
  return placed;
}

Deal Dealer::BestFor(const std::vector<std::string>& addresses) const {
  absl::MutexLock lock(&mutex_);
  if (seconds_.empty()) return EqualDeal(addresses.size() / stages_, replicas_);
  return DealBySpeed(PipelinesOf(addresses), replicas_);
}

}  // namespace thinwire
