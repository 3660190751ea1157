// Simulates machines that come and go under three wirings, and prints how much of what the living
// machines could do together each gets done:
//
//   wiring_bench [--hours=H] [--state=SECONDS] [--lives=SECONDS] [--away=SECONDS]
//
// `lives` is the mean time from a machine's coming to its loss, `away` the time until it is back,
// `state` the time in which a machine fetches the state of its stage. A machine of speed 1 computes
// a stage's part of a replica in a tenth of a second. All wirings meet the same losses.
//
// Static: pipelines never change. One that lacks a machine stands still; the others carry equal
// numbers of replicas, so that the slowest of them decides.
// Stochastic (SWARM, Ryabinin et al., ICML 2023): a stage's machines share its microbatches by
// their speed, whatever the others are, so that the stage with the least speed decides. A machine
// that comes goes there. Every 300 s one moves from the stage with most speed to that with least.
// Nothing is lost with a machine, and nobody waits for one that fetches a state. Ours: `Members`
// and `Dealer` as in a run. All wait while the run lays out anew; a loss is noticed after a while.
// "At once": whenever servers make up a pipeline.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/random.h"
#include "coordinator/fleet/dealer.h"
#include "coordinator/session/members.h"

namespace thinwire {
namespace {

constexpr int kStages = 4;
constexpr int kReplicasPerPipeline = 16;
constexpr double kReplicaSeconds = 0.1;  // of a stage's part of a replica, at speed 1
// Measured: docs/benchmarks/recovery.md and replicas.md.
constexpr double kNotice = 0.15, kLayout = 0.1;  // seconds
constexpr double kRebalanceEvery = 300;          // SWARM's, seconds
constexpr double kSlice = 1;                     // seconds

struct Scenario {
  int machines = 0;
  bool unequal = false;  // speeds 1, 1, 2 and 4
  double seconds = 0, lives = 0, away = 0, state = 0;
};

// A machine that is lost, or is back.
struct Change {
  double time = 0;
  int machine = 0;
  bool is_there = false;
};

double SpeedOf(const Scenario& scenario, int machine) {
  constexpr double kSpeeds[] = {1, 1, 2, 4};
  // By pipelines, so that a stage has all speeds.
  return scenario.unequal ? kSpeeds[(machine / kStages + machine) % 4] : 1;
}

std::vector<Change> ChangesOf(const Scenario& scenario) {
  std::vector<Change> changes;
  RandomStream random(RandomKey(1, "losses"));
  for (int machine = 0; machine < scenario.machines; ++machine) {
    for (double time = 0;;) {
      time -= scenario.lives * std::log1p(-random.NextFloat());
      if (time >= scenario.seconds) break;
      changes.push_back({time, machine, false});
      time += scenario.away;
      changes.push_back({time, machine, true});
    }
  }
  std::sort(changes.begin(), changes.end(),
            [](const Change& a, const Change& b) { return a.time < b.time; });
  return changes;
}

// Follows the changes; says at which rate, in replicas a second, the run trains now.
class Wiring {
 public:
  explicit Wiring(const Scenario& scenario)
      : scenario_(scenario), are_there_(static_cast<size_t>(scenario.machines), true) {}
  virtual ~Wiring() = default;

  void Take(const Change& change) {
    are_there_[static_cast<size_t>(change.machine)] = change.is_there;
    Changed(change);
  }
  // Returns the replicas that are done from `now` on, for a slice, in units of kReplicaSeconds.
  virtual double Work(double now) = 0;

 protected:
  virtual void Changed(const Change& change) = 0;
  bool IsThere(int machine) const { return are_there_[static_cast<size_t>(machine)]; }
  double Speed(int machine) const { return SpeedOf(scenario_, machine); }

  const Scenario scenario_;

 private:
  std::vector<bool> are_there_;
};

class Static final : public Wiring {
 public:
  using Wiring::Wiring;
  double Work(double) override {
    double least = HUGE_VAL;
    int pipelines = 0;
    for (int first = 0; first + kStages <= scenario_.machines; first += kStages) {
      double slowest = HUGE_VAL;
      for (int i = first; i < first + kStages; ++i) {
        slowest = std::min(slowest, IsThere(i) ? Speed(i) : 0);
      }
      if (slowest == 0) continue;
      ++pipelines;
      least = std::min(least, slowest);
    }
    return pipelines == 0 ? 0 : kSlice * pipelines * least;
  }

 private:
  void Changed(const Change&) override {}
};

class Stochastic final : public Wiring {
 public:
  explicit Stochastic(const Scenario& scenario) : Wiring(scenario) {
    for (int machine = 0; machine < scenario.machines; ++machine) {
      stages_.push_back(machine % kStages);
      ready_.push_back(0);
    }
  }

  double Work(double now) override {
    if (now >= rebalanced_ + kRebalanceEvery) Rebalance(now);
    return kSlice * SpeedOfStage(Least(now), now);
  }

 private:
  void Changed(const Change& change) override {
    if (change.is_there) Move(change.machine, Least(HUGE_VAL), change.time);
  }

  // Returns what those do that are there and have their state.
  double SpeedOfStage(int stage, double now) const {
    double speed = 0;
    for (int machine = 0; machine < scenario_.machines; ++machine) {
      const auto i = static_cast<size_t>(machine);
      if (stages_[i] == stage && IsThere(machine) && ready_[i] <= now) speed += Speed(machine);
    }
    return speed;
  }
  int Least(double now) const {
    int least = 0;
    for (int stage = 1; stage < kStages; ++stage) {
      if (SpeedOfStage(stage, now) < SpeedOfStage(least, now)) least = stage;
    }
    return least;
  }
  void Move(int machine, int stage, double now) {
    stages_[static_cast<size_t>(machine)] = stage;
    ready_[static_cast<size_t>(machine)] = now + scenario_.state;
  }
  // Moves the machine that makes the two stages most equal, if any does.
  void Rebalance(double now) {
    rebalanced_ = now;
    const int least = Least(HUGE_VAL);
    int most = 0;
    for (int stage = 1; stage < kStages; ++stage) {
      if (SpeedOfStage(stage, HUGE_VAL) > SpeedOfStage(most, HUGE_VAL)) most = stage;
    }
    const double gap = SpeedOfStage(most, HUGE_VAL) - SpeedOfStage(least, HUGE_VAL);
    int best = -1;
    for (int machine = 0; machine < scenario_.machines; ++machine) {
      if (stages_[static_cast<size_t>(machine)] != most || !IsThere(machine)) continue;
      const double left = std::abs(gap - 2 * Speed(machine));
      if (left < (best < 0 ? gap : std::abs(gap - 2 * Speed(best)))) best = machine;
    }
    if (best >= 0) Move(best, least, now);
  }

  std::vector<int> stages_;
  std::vector<double> ready_;  // when each has its state
  double rebalanced_ = 0;
};

class Ours final : public Wiring {
 public:
  Ours(const Scenario& scenario, bool is_patient)
      : Wiring(scenario),
        is_patient_(is_patient),
        members_(Addresses(scenario), scenario.machines / kStages, /*least=*/1, {}),
        dealer_(kReplicasPerPipeline * (scenario.machines / kStages), {1, 1, 1, 1}) {
    for (size_t i = 0; i < members_.carrying().size(); ++i) Have(i);
    Begin();
  }

  double Work(double now) override {
    if (is_lost_) LayOutAfterLoss(now);
    if (now >= trains_since_) GrowIfThatPays(now);
    if (now >= trains_since_ && ++slices_ % 4 == 0) Measure(now);
    const double done = rate_ * std::clamp(now + kSlice - trains_since_, 0.0, kSlice);
    return done - std::exchange(dropped_, 0);
  }

 private:
  static std::vector<std::string> Addresses(const Scenario& scenario) {
    std::vector<std::string> addresses;
    const int carrying = scenario.machines / kStages * kStages;
    for (int i = 0; i < carrying; ++i) addresses.push_back(absl::StrCat(i));
    return addresses;
  }
  static int MachineOf(const std::string& address) {
    int machine = 0;
    return absl::SimpleAtoi(address, &machine) ? machine : -1;
  }

  void Changed(const Change& change) override {
    const std::string address = absl::StrCat(change.machine);
    const auto& carrying = members_.carrying();
    if (change.is_there) {
      members_.Arrive(address);
    } else {
      kept_.erase(address);
      is_lost_ = is_lost_ || std::find(carrying.begin(), carrying.end(), address) != carrying.end();
    }
  }

  // Returns how long it has trained since the last layout, and how long it paused to fetch states.
  std::pair<absl::Duration, absl::Duration> Paused(double now) const {
    return {absl::Seconds(std::max(0.0, now - trains_since_)),
            absl::Seconds(is_patient_ ? pause_ : 0)};
  }

  void GrowIfThatPays(double now) {
    const auto [trained, pause] = Paused(now);
    if (members_.PaysToGrow(trained, pause)) LayOut(0, now);
  }

  // Lays out the others, who drop the step that they are in.
  void LayOutAfterLoss(double now) {
    if (now > trains_since_ && step_ > 0) dropped_ += std::fmod(now - trains_since_, step_) * rate_;
    LayOut(kNotice, now);
  }

  // Lays out who is there, until nobody of them is lost; all others wait.
  void LayOut(double seconds, double now, bool moves = false) {
    is_lost_ = false;
    const auto [trained, pause] = Paused(now);
    const bool fills = members_.PaysToFill(trained, pause);
    for (;;) {
      std::vector<int> lost;
      for (size_t i = 0; i < members_.carrying().size(); ++i) {
        if (!IsThere(MachineOf(members_.carrying()[i]))) lost.push_back(static_cast<int>(i));
      }
      if (lost.empty()) break;
      if (members_.carriers() == 1 && members_.idle().empty()) {
        rate_ = 0;  // it waits for the lost one
        is_lost_ = true;
        trains_since_ = now + kSlice;
        return;
      }
      members_.Lose(lost, /*fresh=*/!fills);
      if (fills || members_.PaysToGrow(trained, pause)) members_.Grow();
    }
    if (fills || members_.PaysToGrow(trained, pause)) members_.Grow();
    members_.Place(dealer_.Placed(members_.carrying(), moves));
    const double fetching = FetchSeconds();
    trains_since_ = now + seconds + kLayout + fetching;
    if (fetching > 0) pause_ = trains_since_ - now;
    Begin();
  }

  // Lets all have the state of their stage; returns what that takes, as each who has it gives it to
  // one after the other.
  double FetchSeconds() {
    int lacking[kStages] = {}, having[kStages] = {};
    for (size_t i = 0; i < members_.carrying().size(); ++i)
      ++(Have(i) ? lacking : having)[i % kStages];
    double most = 0;
    for (int stage = 0; stage < kStages; ++stage) {
      most = std::max(most,
                      std::ceil(static_cast<double>(lacking[stage]) / std::max(1, having[stage])));
    }
    return most * scenario_.state;
  }

  // Lets a server have the state of its stage; returns whether it lacked that.
  bool Have(size_t i) {
    const auto stage = static_cast<int>(i % kStages);
    const auto [place, is_new] = kept_.try_emplace(members_.carrying()[i], stage);
    return is_new || std::exchange(place->second, stage) != stage;
  }

  void Begin() {
    const std::vector<std::string>& carrying = members_.carrying();
    // What stands by falls behind.
    std::map<std::string, int> kept;
    for (const std::string& address : carrying) kept[address] = kept_[address];
    kept_ = std::move(kept);
    deal_ = dealer_.BestFor(carrying);
    dealer_.Begin(carrying, deal_);
    double step = 0;
    int replicas = 0;
    for (size_t pipeline = 0; pipeline < deal_.size(); ++pipeline) {
      double slowest = HUGE_VAL;
      for (int stage = 0; stage < kStages; ++stage) {
        slowest = std::min(slowest, Speed(MachineOf(carrying[pipeline * kStages + stage])));
      }
      step = std::max(step, deal_[pipeline] / slowest);
      replicas += deal_[pipeline];
    }
    step_ = kReplicaSeconds * step;
    rate_ = replicas / step;
    steps_ = 0;
  }

  // Tells the dealer what machines would report.
  void Measure(double now) {
    ++steps_;
    const std::vector<std::string>& carrying = members_.carrying();
    bool deals = false;
    for (size_t i = 0; i < carrying.size(); ++i) {
      const double busy = steps_ * deal_[i / kStages] / Speed(MachineOf(carrying[i]));
      const SteadyTime time = SteadyTime() + absl::Seconds(now);
      deals = dealer_.Add(static_cast<int>(i), steps_, busy, time) || deals;
    }
    if (deals) LayOut(0, now, /*moves=*/true);
  }

  const bool is_patient_;
  Members members_;
  Dealer dealer_;
  Deal deal_;
  std::map<std::string, int> kept_;  // the stage whose state each server has
  bool is_lost_ = false;
  double trains_since_ = 0, pause_ = 0, rate_ = 0, step_ = 0;
  double dropped_ = 0;  // work of a step that is done again
  uint64_t steps_ = 0, slices_ = 0;
};

// Returns the share of what all that are there could do.
double ShareOf(const Scenario& scenario, const std::vector<Change>& changes, Wiring* wiring) {
  double done = 0, possible = 0, there = 0;
  for (int machine = 0; machine < scenario.machines; ++machine) {
    there += SpeedOf(scenario, machine);
  }
  auto next = changes.begin();
  for (double now = 0; now < scenario.seconds; now += kSlice) {
    for (; next != changes.end() && next->time <= now; ++next) {
      there += (next->is_there ? 1 : -1) * SpeedOf(scenario, next->machine);
      wiring->Take(*next);
    }
    possible += kSlice * there / kStages;
    done += wiring->Work(now);
  }
  return done / possible;
}

void PrintRow(const Scenario& scenario) {
  const std::vector<Change> changes = ChangesOf(scenario);
  Static as_they_are(scenario);
  Stochastic stochastic(scenario);
  Ours at_once(scenario, /*is_patient=*/false), ours(scenario, /*is_patient=*/true);
  std::printf("| %d | %s | %.1f | %.1f %% | %.1f %% | %.1f %% | %.1f %% |\n", scenario.machines,
              scenario.unequal ? "1, 1, 2, 4" : "1", scenario.lives / scenario.machines,
              100 * ShareOf(scenario, changes, &as_they_are),
              100 * ShareOf(scenario, changes, &stochastic),
              100 * ShareOf(scenario, changes, &at_once), 100 * ShareOf(scenario, changes, &ours));
  std::fflush(stdout);
}

// Returns whether the flag was one of ours, with a number.
bool TakeFlag(absl::string_view flag, Scenario* scenario) {
  double hours = 0;
  if (absl::ConsumePrefix(&flag, "--hours=")) {
    if (!absl::SimpleAtod(flag, &hours)) return false;
    scenario->seconds = 3600 * hours;
    return hours > 0;
  }
  for (const auto& [name, seconds] :
       {std::pair{"--state=", &scenario->state}, std::pair{"--lives=", &scenario->lives},
        std::pair{"--away=", &scenario->away}}) {
    if (absl::ConsumePrefix(&flag, name)) return absl::SimpleAtod(flag, seconds) && *seconds > 0;
  }
  return false;
}

int Run(int argc, char** argv) {
  // Meta's report on torchft: 300 machines, of which one is lost every 15 s.
  Scenario scenario;
  scenario.seconds = 4 * 3600;
  scenario.lives = 4500;
  scenario.away = 120;
  scenario.state = 2;
  for (int i = 1; i < argc; ++i) {
    if (TakeFlag(argv[i], &scenario)) continue;
    std::fprintf(stderr, "wiring_bench: %s: want --hours, --state, --lives or --away, =NUMBER\n",
                 argv[i]);
    return 2;
  }
  std::printf(
      "%d stages, %d replicas a pipeline; a machine is lost after %g s, back after %g s, "
      "and fetches a state in %g s; %g hours\n",
      kStages, kReplicasPerPipeline, scenario.lives, scenario.away, scenario.state,
      scenario.seconds / 3600);
  std::printf(
      "| machines | speeds | s between losses | static | stochastic | ours, at once | ours |\n"
      "|---|---|---|---|---|---|---|\n");
  for (const bool unequal : {false, true}) {
    for (const int machines : {8, 64, 300, 1000}) {
      scenario.unequal = unequal;
      scenario.machines = machines;
      PrintRow(scenario);
    }
  }
  return 0;
}

}  // namespace
}  // namespace thinwire

int main(int argc, char** argv) { return thinwire::Run(argc, argv); }
