#include "coordinator/fleet/fleet.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace thinwire {
namespace {

constexpr absl::Duration kFirst = absl::Seconds(3);
constexpr absl::Duration kEvery = absl::Seconds(10);
constexpr int kMostNamed = 4;

// Returns the end of gRPC's message, which is the cause: "failed to connect to all addresses; …:
// Connection refused".
std::string Cause(const std::string& reason) {
  const size_t colon = reason.rfind(": ");
  return colon == reason.npos ? reason : reason.substr(colon + 2);
}

// Returns whether this says that a stage is not there, whatever else went wrong.
bool SaysLost(const Failure& failure) {
  return failure.kind == Failure::Kind::kDead || failure.kind == Failure::Kind::kSilent;
}

// Activities of a stage that take a slow machine longer.
constexpr const char* kComputing[] = {"forward", "backward", "core_wait", "data", "stash", "swap"};

// Returns whether a stage may be lost. What a stage says of a lost neighbour looks like what gRPC
// says of a lost stage.
bool MayMeanLost(const Failure& failure) {
  const bool may =
      failure.kind == Failure::Kind::kError || failure.kind == Failure::Kind::kInterrupted;
  return may && failure.stage != Failure::kCoordinator &&
         (absl::IsUnavailable(failure.status) || absl::IsDeadlineExceeded(failure.status) ||
          absl::IsCancelled(failure.status));
}

Pipelines PipelinesOf(const std::vector<std::string>& addresses, const FleetOptions& options) {
  const int stages = options.stage_carriers.empty()
                         ? static_cast<int>(addresses.size()) / options.grid.count()
                         : static_cast<int>(options.stage_carriers.size());
  return {stages, options.grid, options.stage_carriers};
}

// Runs work(i) for i in [0, count), each on its own thread.
void OnThreads(int count, const std::function<void(int)>& work) {
  std::vector<std::thread> threads;
  threads.reserve(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) threads.emplace_back(work, i);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

Arrivals::Arrivals(int stages, Say say, std::function<SteadyTime()> now)
    : stages_(stages), say_(std::move(say)), now_(std::move(now)), next_(now_() + kFirst) {}

void Arrivals::Missing(int i, const std::string& name, const std::string& reason) {
  absl::MutexLock lock(&mutex_);
  missing_[i] = absl::StrCat(name, ": ", Cause(reason));
  if (!say_ || now_() < next_) return;
  next_ = now_() + kEvery;
  say_(Text());
}

void Arrivals::Arrived(int i) {
  absl::MutexLock lock(&mutex_);
  missing_.erase(i);
}

std::string Arrivals::Text() const {
  std::string text = absl::StrCat("waiting for ", missing_.size(), " of ", stages_, " stages: ");
  int named = 0;
  for (const auto& [i, what] : missing_) {
    if (named++ == kMostNamed) return absl::StrCat(text, "; …");
    absl::StrAppend(&text, named == 1 ? "" : "; ", what);
  }
  return text;
}

Fleet::Fleet(const std::vector<std::string>& addresses, const std::string& run,
             const FleetOptions& options)
    : options_(options),
      pipelines_(PipelinesOf(addresses, options)),
      carrying_(options.stage_carriers.empty() ? pipelines_.stages * options.grid.Carrying().count()
                                               : pipelines_.servers()),
      in_epoch_(options.in_epoch) {
  Lease lease;
  lease.set_run(run);
  lease.set_generation(options.generation);
  lease.set_secret(options.lease_secret.empty() ? NewSecret() : options.lease_secret);
  for (int i = 0; i < static_cast<int>(addresses.size()); ++i) {
    const auto [stage, carrier] = pipelines_.PlaceOf(i);
    const StagePlace place{
        i, stage, carrier, pipelines_.CarriersOf(stage), options.grid.deal, options.stage_carriers};
    clients_.push_back(std::make_unique<StageClient>(place, addresses[static_cast<size_t>(i)],
                                                     lease, options.security));
  }
}

Fleet::~Fleet() { heartbeats_.clear(); }

absl::Status Fleet::Acquire(std::vector<AcquireResponse>* answers) {
  answers->resize(clients_.size());
  heartbeats_.resize(clients_.size());
  Arrivals arrivals(size(), options_.say_waiting);
  const absl::Status status = OnAll([&](StageClient& client) {
    auto answer = client.Acquire(options_.lease_seconds, options_.patience, options_.keeps_state,
                                 [&](const std::string& reason) {
                                   arrivals.Missing(client.server(), client.Name(), reason);
                                 });
    if (!answer.ok()) return answer.status();
    arrivals.Arrived(client.server());
    const size_t i = static_cast<size_t>(client.server());
    RETURN_IF_ERROR(CheckBuild(client, answer->build()));
    (*answers)[i] = *std::move(answer);
    // The heartbeat starts at once: other stages may come later than this lease lasts.
    heartbeats_[i] =
        std::make_unique<Heartbeat>(&client, options_.heartbeat, &pulse_, [this](Failure failure) {
          failure.kind == Failure::Kind::kEnds ? Leave(std::move(failure))
                                               : Fail(std::move(failure));
        });
    return absl::OkStatus();
  });
  acquired_ = status.ok();
  if (acquired_ && options_.on_acquired) options_.on_acquired(*answers);
  return status;
}

absl::Status Fleet::CheckBuild(const StageClient& client, const BuildInfo& build) const {
  if (options_.build.empty() || build.build_id() == options_.build) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      client.Name(), " is of build \"", build.build_id(), "\", this program of build \"",
      options_.build, "\"; make them of one build, or give --allow_other_build"));
}

absl::Status Fleet::OnAll(const std::function<absl::Status(StageClient&)>& work) {
  const int count = called();
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    running_ = count;
  }
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) {
    threads.emplace_back([this, &work, stage = &server(i)] {
      absl::Status status = work(*stage);
      if (!status.ok()) Fail({stage->server(), Failure::Kind::kError, std::move(status)});
      const std::lock_guard<std::mutex> lock(mutex_);
      --running_;
      changed_.notify_all();
    });
  }
  AwaitAll();
  for (std::thread& thread : threads) thread.join();
  const std::lock_guard<std::mutex> lock(mutex_);
  if (interrupted_) return absl::CancelledError("interrupted");
  return failures_.empty() ? absl::OkStatus() : RootCause(failures_);
}

absl::Status Fleet::OnFirstRow(const std::function<absl::Status(StageClient&)>& work) {
  return OnAll([&](StageClient& stage) {
    return grid().RowOf(stage.carrier()) == 0 ? work(stage) : absl::OkStatus();
  });
}

absl::Status Fleet::TrainOnAll(const std::function<absl::Status(StageClient&)>& work) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (leaving_ || ends_step_) {
      ends_step_ = true;  // set for a training that did not begin, too
      NoteEnd();
      return absl::CancelledError(leaving_ ? leaving_->status.message() : "interrupted");
    }
    trains_ = true;
    if (!trains_since_) trains_since_ = SteadyTime::Now();
  }
  pulse_.set_trains(true);
  const absl::Status status = OnAll(work);
  pulse_.set_trains(false);
  const std::lock_guard<std::mutex> lock(mutex_);
  trains_ = false;
  NoteEnd();
  return status.ok() && ends_step_ ? absl::CancelledError("interrupted") : status;
}

void Fleet::NoteEnd() {
  const bool is_left = leaving_ && !asked_to_end_;
  if (options_.hands_over_interruptions && (is_left || !failures_.empty())) is_followed_up_ = true;
}

std::optional<SteadyTime> Fleet::trains_since() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return trains_since_;
}

bool Fleet::IsGuest(int server) const {
  const size_t i = static_cast<size_t>(server);
  return i < options_.are_guests.size() && options_.are_guests[i];
}

bool Fleet::TakesOtherDeal(int server, const absl::Status& error) {
  const bool may_pass = error.ok() || absl::IsUnavailable(error) ||
                        absl::IsDeadlineExceeded(error) || absl::IsCancelled(error);
  if (may_pass || options_.dealer == nullptr) return false;
  const bool takes = options_.dealer->RefuseMove(server) ||
                     (absl::IsResourceExhausted(error) && options_.dealer->Limit(server));
  if (!takes) return false;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!overdealt_) overdealt_ = Failure{server, Failure::Kind::kSpeeds, error};
  return true;
}

absl::Status Fleet::CheckDeal() {
  std::optional<Failure> overdealt;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    overdealt = overdealt_;
  }
  if (!overdealt) return absl::OkStatus();
  Fail(*overdealt);
  return overdealt->status;
}

absl::Status Fleet::OfGuest(int server, absl::Status error) {
  if (error.ok() || !IsGuest(server)) return error;
  // A server that has lost its lease, as one that was started anew, says so by FailedPrecondition.
  const bool is_loss = absl::IsUnavailable(error) || absl::IsDeadlineExceeded(error) ||
                       absl::IsCancelled(error) ||
                       (absl::IsFailedPrecondition(error) && !Renew(server, kAnswer).ok());
  if (!is_loss) Fail({server, Failure::Kind::kUnfit, error});
  return error;
}

void Fleet::set_in_epoch(bool in_epoch) {
  const std::lock_guard<std::mutex> lock(mutex_);
  in_epoch_ = in_epoch;
}

bool Fleet::ended_after_step() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return ends_step_ && !interrupted_ && failures_.empty();
}

void Fleet::SetApart() {
  const std::lock_guard<std::mutex> lock(mutex_);
  are_apart_ = true;
}

void Fleet::SetCaughtUp() {
  const std::lock_guard<std::mutex> lock(mutex_);
  have_caught_up_ = true;
}

bool Fleet::have_caught_up() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return have_caught_up_ || carrying_ == size();
}

bool Fleet::is_interruption_handed_over() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return is_handed_over_;
}

bool Fleet::has_failed() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return !failures_.empty();
}

int Fleet::called() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return are_apart_ ? carrying_ : size();
}

// Ends training after one step for all. Stages are not at the same step, so all continue to the
// latest that one of them has begun.
bool Fleet::EndTraining() {
  const int count = called();
  std::vector<absl::StatusOr<uint64_t>> begun(static_cast<size_t>(count));
  OnThreads(count, [&](int i) { begun[i] = server(i).HoldTraining(); });
  uint64_t last_step = 0;
  for (const absl::StatusOr<uint64_t>& step : begun) {
    if (!step.ok()) return false;
    last_step = std::max(last_step, *step);
  }
  std::vector<absl::Status> ended(begun.size());
  OnThreads(count, [&](int i) { ended[i] = server(i).EndTraining(last_step); });
  return std::all_of(ended.begin(), ended.end(), [](const auto& status) { return status.ok(); });
}

void Fleet::AwaitAll() {
  {
    std::unique_lock<std::mutex> lock(mutex_);
    const auto over = [this] { return running_ == 0 || interrupted_; };
    changed_.wait(lock, [&] { return over() || !failures_.empty(); });
    if (failures_.empty() && !interrupted_) return;
    // A stage that is silent will not report, and its neighbours wait for it.
    const SteadyTime now = SteadyTime::Now();
    const bool all_wait = std::any_of(failures_.begin(), failures_.end(), [&](const Failure& f) {
      return f.kind == Failure::Kind::kSilent &&
             pulse_.StandsStill(now, std::min(options_.grace, Patience(f.stage)));
    });
    if (!all_wait) {
      changed_.wait_until(lock, (SteadyTime::Now() + options_.grace).chrono(), over);
    }
  }
  FindLost();
  CancelAll();
}

void Fleet::CancelAll() {
  for (auto& client : clients_) client->Cancel();
}

void Fleet::FindLost() {
  if (AskWhoIsLost() && options_.are_watched) AwaitDeath();
}

absl::StatusOr<RenewResponse> Fleet::Renew(int server, absl::Duration patience) {
  return clients_[static_cast<size_t>(server)]->Renew(patience, pulse_.advances());
}

// Asks every stage whether it is there: a neighbour of a lost stage fails before the heartbeat sees
// it.
bool Fleet::AskWhoIsLost() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const bool suspicion = std::any_of(failures_.begin(), failures_.end(), MayMeanLost);
    const bool is_found = std::any_of(failures_.begin(), failures_.end(), SaysLost);
    if (interrupted_ || !suspicion || is_found) return false;
  }
  if (!acquired_) return false;  // not all are leased yet
  std::atomic<bool> any_is_gone = false;
  OnThreads(size(), [this, &any_is_gone](int i) {
    const absl::Status answer = Renew(i, Patience(i)).status();
    if (absl::IsUnavailable(answer)) {
      any_is_gone = true;
      Fail({i, Failure::Kind::kSilent,
            absl::UnavailableError(absl::StrCat(server(i).Name(), " is gone"))});
    } else if (absl::IsDeadlineExceeded(answer)) {
      Fail({i, Failure::Kind::kSilent,
            absl::UnavailableError(absl::StrCat(server(i).Name(), " does not answer"))});
    }
  });
  return any_is_gone;
}

absl::Duration Fleet::Patience(int server) const {
  const AnswerTimes* const times = options_.heartbeat.answer_times;
  if (times == nullptr) return kAnswer;
  return std::min(kAnswer, times->Patience(clients_[static_cast<size_t>(server)]->address()));
}

bool Fleet::IsKnownLost(int server) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return std::any_of(failures_.begin(), failures_.end(),
                     [server](const Failure& f) { return f.stage == server && SaysLost(f); });
}

// Waits for the watcher: a killed process's sockets close before its end can be seen.
void Fleet::AwaitDeath() {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait_until(lock, (SteadyTime::Now() + options_.grace).chrono(), [this] {
    return interrupted_ || std::any_of(failures_.begin(), failures_.end(), [](const Failure& f) {
             return f.kind == Failure::Kind::kDead;
           });
  });
}

void Fleet::Measure(int server, const StageReport& report) {
  if (options_.dealer == nullptr) return;
  double busy = 0;
  for (const char* const activity : kComputing) {
    const auto found = report.activity_seconds().find(activity);
    if (found != report.activity_seconds().end()) busy += found->second;
  }
  if (!options_.dealer->Add(server, report.step(), busy, SteadyTime::Now())) return;
  EndAfterStep(
      {server, Failure::Kind::kSpeeds, absl::UnavailableError("pipelines are of unequal speed")});
}

void Fleet::Fail(Failure failure) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (interrupted_ && absl::IsCancelled(failure.status)) return;  // follows from Interrupt
  failures_.push_back(std::move(failure));
  changed_.notify_all();
  // A snapshot that is being fetched is useless without all stages.
  for (auto& client : clients_) client->CancelSnapshot();
}

void Fleet::Leave(Failure stage) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    // A server that ends matters more than a run's speed.
    const bool is_lesser =
        leaving_ && leaving_->kind != Failure::Kind::kEnds && stage.kind == Failure::Kind::kEnds;
    if ((leaving_ && !is_lesser) || !failures_.empty()) return;
    leaving_ = stage;
    if (!trains_ || ends_step_) return;  // no training, or it ends already
    ends_step_ = true;
  }
  if (!EndTraining()) Fail(std::move(stage));
}

std::optional<Failure> Fleet::leaving() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return asked_to_end_ ? std::nullopt : leaving_;
}

void Fleet::Interrupt() {
  bool ends_step;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    is_handed_over_ = is_followed_up_;
    if (is_followed_up_) return;
    asked_to_end_ = true;
    ends_step = trains_;
    ends_step_ = trains_ || in_epoch_;
    if (in_epoch_ && !trains_) return;
  }
  // If the training has ended meanwhile, EndTraining changes nothing.
  if (ends_step && EndTraining()) return;
  if (ends_step && options_.hands_over_interruptions) {
    // Whoever does not answer is lost, and the others go on without it as far as they have to.
    return Fail({0, Failure::Kind::kInterrupted, absl::CancelledError("interrupted")});
  }
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    interrupted_ = true;
    changed_.notify_all();
  }
  CancelAll();
}

bool Fleet::interrupted() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return interrupted_;
}

std::optional<Failure> Fleet::cause() {
  FindLost();
  const std::lock_guard<std::mutex> lock(mutex_);
  if (failures_.empty()) return std::nullopt;
  return CauseOf(failures_);
}

std::vector<Fleet::Parted> Fleet::Gone() {
  std::vector<std::optional<Parted>> of_each(clients_.size());
  OnThreads(size(), [this, &of_each](int i) {
    std::optional<Parted>& parted = of_each[static_cast<size_t>(i)];
    if (IsKnownLost(i)) {
      parted = Parted{i};
      return;
    }
    const absl::StatusOr<RenewResponse> answer = Renew(i, Patience(i));
    const absl::Status& status = answer.status();
    const bool ends = status.ok() && answer->ends();
    if (ends || absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status)) {
      parted = Parted{i, ends};
    }
  });
  std::vector<Parted> gone;
  for (const std::optional<Parted>& one : of_each) {
    if (one) gone.push_back(*one);
  }
  return gone;
}

void Fleet::Abandon() { heartbeats_.clear(); }

void Fleet::Release() {
  heartbeats_.clear();
  OnThreads(size(), [this](int i) { server(i).Release().IgnoreError(); });
}

}  // namespace thinwire
