#include "coordinator/session/session.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/annotated.h"
#include "base/build_info.h"
#include "base/file.h"
#include "base/host_port.h"
#include "base/secret.h"
#include "base/status.h"
#include "base/text.h"
#include "config/boundaries.h"
#include "config/derived.h"
#include "config/experiment.h"
#include "config/local_paths.h"
#include "config/sections.h"
#include "config/specs.h"
#include "config/tensor_parts.h"
#include "config/yaml_tree.h"
#include "coordinator/fleet/stage_addresses.h"

namespace thinwire {
namespace {

// How long to wait for a lost stage to come back.
constexpr absl::Duration kReturnPatience = absl::Minutes(5);

// Longest wait for servers with which an interruption may wait, too.
constexpr absl::Duration kSoon = absl::Seconds(30);

constexpr int kRestartTries = 3;

// Bytes of a stage's state that a newcomer fetches while others train: a line of 100 Mbit/s takes a
// second for them.
constexpr double kLargeState = 12.5e6;

// Returns an id that is unique among the runs of one name.
std::string NewRunId(const std::string& name) {
  std::random_device random;
  return absl::StrFormat("%s-%08x", name, random());
}

// Returns the options of the command's flags and, where they are empty, those of the experiment.
SecurityOptions SecurityOf(const SecurityConfig& config, SecurityOptions flags) {
  const auto take = [](const std::string& path, std::string* to) {
    if (to->empty()) *to = path;
  };
  take(config.tls_cert(), &flags.tls_cert);
  take(config.tls_key(), &flags.tls_key);
  take(config.tls_ca(), &flags.tls_ca);
  take(config.token_file(), &flags.token_file);
  return flags;
}

// Refuses flags without effect: stages that the command starts itself need no secret.
absl::Status CheckWanted(const SecurityOptions& flags) {
  const std::pair<const char*, const std::string&> files[] = {{"--tls_cert", flags.tls_cert},
                                                              {"--tls_key", flags.tls_key},
                                                              {"--tls_ca", flags.tls_ca},
                                                              {"--token_file", flags.token_file}};
  for (const auto& [flag, path] : files) {
    if (path.empty()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(flag, " is ", path,
                     " without --stages: it is for servers that run already, want their addresses "
                     "or none of these files"));
  }
  return absl::OkStatus();
}

// Sets the number of carriers to that of the addresses, where the options do not have it.
absl::Status FindCarriers(const StageAddresses& named, SessionOptions* options) {
  if (!options->stage_carriers.empty() && named.grid()) {
    return absl::InvalidArgumentError(
        "--stages: two ranges name as many machines for every stage, want the addresses of one "
        "stage after those of the other");
  }
  const int in_addresses = named.grid() ? named.grid()->carriers : 0;
  if (options->carriers == 0) options->carriers = std::max(1, in_addresses);
  if (in_addresses == 0 || in_addresses == options->carriers) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--carriers ", options->carriers,
                                                 ": --stages names those of ", in_addresses,
                                                 ", want one number"));
}

// Checks that the experiment can have its stages on different numbers of machines.
absl::Status CheckStageCarriers(const Experiment& experiment, const SessionOptions& options) {
  if (options.stage_carriers.empty()) return absl::OkStatus();
  const auto refuse = [&](const std::string& with, const std::string& want) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--carriers ", absl::StrJoin(options.stage_carriers, ","), with, ", want ", want));
  };
  if (options.stage_carriers.size() != experiment.pipeline().stages()) {
    return refuse("", absl::StrCat("one number, or one for each of ",
                                   experiment.pipeline().stages(), " stages"));
  }
  if (HasOpenMembership(experiment)) return refuse(" with membership.open", "one number");
  if (PartsOf(experiment) > 1) return refuse(" with tensor.parts", "one number");
  return absl::OkStatus();
}

// Checks that there are as many addresses as machines, or spares where they may be.
absl::Status CheckSum(const StageAddresses& named, int machines, const SessionOptions& options) {
  const int count = named.count().value_or(machines);
  if (count == machines || (count > machines && options.takes_spares)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--stages: ", count, " addresses, want ", machines,
                                                 ", the sum of --carriers ",
                                                 absl::StrJoin(options.stage_carriers, ",")));
}

// Puts addresses that are named stage by stage in the order of servers.
std::vector<std::string> InOrder(const std::vector<std::string>& named,
                                 const std::vector<int>& stage_carriers) {
  Pipelines pipelines{static_cast<int>(stage_carriers.size()), {}, stage_carriers};
  std::vector<std::string> ordered(named.size());
  size_t next = 0;
  for (int stage = 0; stage < pipelines.stages; ++stage) {
    for (int carrier = 0; carrier < pipelines.CarriersOf(stage); ++carrier) {
      ordered[static_cast<size_t>(pipelines.ServerAt(stage, carrier))] = named[next++];
    }
  }
  return ordered;
}

// Checks that each carrier has something to carry, and that it can do what the experiment wants.
absl::Status CheckCarriers(const Experiment& experiment, int carriers) {
  RETURN_IF_ERROR(GridOf(experiment, carriers).status());
  if (carriers == 1 || experiment.capture().steps().empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--carriers ", carriers,
                   " with capture.steps: each carrier has a part of a "
                   "step's tensors, want one carrier or no capture"));
}

// Checks that addresses which say how many stages there are say it without a rest.
absl::Status CheckDivision(const Experiment& experiment, const StageAddresses& named,
                           int carriers) {
  const int count = named.count().value_or(0);
  const bool decides = IsDerived(experiment, "pipeline.stages") && !named.grid() &&
                       static_cast<int>(experiment.pipeline().stages()) == count / carriers;
  if (!decides || count % carriers == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--stages: ", count, " addresses, want a multiple of --carriers ", carriers,
                   "; if further ones are to be spares, want pipeline.stages"));
}

}  // namespace

absl::Status CheckListen(const Experiment& experiment, const SessionOptions& options) {
  if (options.listen.empty()) {
    if (!options.insecure) return absl::OkStatus();
    return absl::InvalidArgumentError("--insecure without --listen, want both or neither");
  }
  RETURN_IF_ERROR(Annotated(ParseHostPort(options.listen).status(), "--listen"));
  if (options.stages.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--listen ", options.listen,
                     " without --stages: servers that join reach no stage that is started here, "
                     "want the addresses of at least one pipeline"));
  }
  if (!HasOpenMembership(experiment)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--listen ", options.listen,
                     ": membership.open is false, want true, so that servers may join"));
  }
  if (options.insecure) return absl::OkStatus();
  ASSIGN_OR_RETURN(const Security security,
                   Security::Load(SecurityOf(experiment.security(), options.security)));
  return security.CheckListen(options.listen);
}

absl::StatusOr<Experiment> LoadForStages(const std::string& path,
                                         const std::vector<std::string>& overrides,
                                         SessionOptions* options, const Experiment* past) {
  ASSIGN_OR_RETURN(const std::string text, ReadYamlFile(path));
  return ParseForStages(text, path, overrides, options, past);
}

absl::StatusOr<Experiment> ParseForStages(const std::string& text, const std::string& source,
                                          const std::vector<std::string>& overrides,
                                          SessionOptions* options, const Experiment* past) {
  ASSIGN_OR_RETURN(const StageAddresses named,
                   Annotated(StageAddresses::Parse(options->stages), "--stages"));
  RETURN_IF_ERROR(FindCarriers(named, options));
  const int carriers = options->carriers;
  const std::vector<int>& of_stages = options->stage_carriers;
  int stages = named.grid() ? named.grid()->stages : named.count().value_or(0) / carriers;
  if (!of_stages.empty()) stages = static_cast<int>(of_stages.size());
  ASSIGN_OR_RETURN(Experiment experiment,
                   ParseExperiment(text, source, overrides, {static_cast<uint32_t>(stages), past}));
  RETURN_IF_ERROR(CheckCarriers(experiment, carriers));
  RETURN_IF_ERROR(CheckStageCarriers(experiment, *options));
  if (of_stages.empty()) RETURN_IF_ERROR(CheckDivision(experiment, named, carriers));
  if (named.empty()) {
    RETURN_IF_ERROR(CheckWanted(options->security));
    MakeStagePathsAbsolute(&experiment);
    return experiment;
  }
  StageAddresses::Grid grid{carriers, static_cast<int>(experiment.pipeline().stages())};
  if (!of_stages.empty()) {
    grid = {1, std::accumulate(of_stages.begin(), of_stages.end(), 0)};
    RETURN_IF_ERROR(CheckSum(named, grid.stages, *options));
  }
  absl::StatusOr<std::vector<std::string>> all =
      named.For(grid, options->takes_spares ? &options->spares : nullptr);
  if (!all.ok()) return Annotated(all.status(), "--stages");
  if (!of_stages.empty()) all = InOrder(*all, of_stages);
  RETURN_IF_ERROR(Security::Load(SecurityOf(experiment.security(), options->security)).status());
  options->stages = *std::move(all);
  return experiment;
}

absl::StatusOr<std::unique_ptr<Session>> Session::Start(const std::string& name,
                                                        const Experiment& experiment,
                                                        const SessionOptions& options,
                                                        Interruption* interruption) {
  std::unique_ptr<Session> session(new Session(NewRunId(name), interruption));
  session->addresses_ = options.stages;
  session->spares_ = options.spares;
  const int carriers = std::max(1, options.carriers);
  // The servers that are looked after may be those of an experiment that is not known.
  const absl::StatusOr<CarrierGrid> grid = GridOf(experiment, carriers);
  session->fleet_options_.grid = grid.ok() ? *grid : CarrierGrid{carriers, 1};
  FleetOptions& fleet_options = session->fleet_options_;
  fleet_options.stage_carriers = options.stage_carriers;
  fleet_options.keeps_state = KeepsStates(experiment);
  if (!options.allow_other_build) fleet_options.build = BuildId();
  fleet_options.patience = session->patience_ = absl::Seconds(options.wait_seconds);
  fleet_options.say_waiting = options.say_waiting;
  fleet_options.lease_secret = NewSecret();
  if (options.stages.empty()) {
    RETURN_IF_ERROR(CheckWanted(options.security));
    RETURN_IF_ERROR(session->Launch(name, experiment, options));
    if (HasOpenMembership(experiment)) {
      session->SetCounts({static_cast<int>(session->local_->addresses().size())});
    }
    fleet_options.are_watched = true;
  } else {
    ASSIGN_OR_RETURN(fleet_options.security,
                     Security::Load(SecurityOf(experiment.security(), options.security)));
    session->lease_file_ = options.lease_file;
    RETURN_IF_ERROR(session->ReadLease());
    RETURN_IF_ERROR(session->OpenMembership(experiment, options));
  }
  RETURN_IF_ERROR(session->MakeFleet());
  return session;
}

absl::Status Session::OpenMembership(const Experiment& experiment, const SessionOptions& options) {
  if (!HasOpenMembership(experiment)) return absl::OkStatus();
  members_.emplace(options.stages, fleet_options_.grid.count(),
                   static_cast<int>(experiment.membership().least()), options.spares);
  are_losses_cheap_ = KeepsStates(experiment);
  // With a limit of memory, blocks are kept as nearly equal numbers of replicas fit.
  if (are_losses_cheap_ && !experiment.pipeline().has_memory()) {
    ASSIGN_OR_RETURN(std::vector<double> work, WorkOfStages(experiment));
    ASSIGN_OR_RETURN(const double bytes, LargestSharedState(experiment));
    are_states_large_ = bytes > kLargeState;
    dealer_.emplace(static_cast<int>(ReplicasOf(experiment)), std::move(work));
    fleet_options_.dealer = &*dealer_;
  }
  fleet_options_.on_acquired = [this](const auto& answers) { TakeBuilds(answers); };
  fleet_options_.on_configured = [this](const auto& answers) { TakeDevices(answers); };
  SetCounts(members_->counts());
  if (options.listen.empty()) return absl::OkStatus();
  members_->set_most(static_cast<int>(ReplicasOf(experiment)));
  joins_ = std::make_unique<Joins>(run_, options.allow_other_build);
  const auto say = [is_quiet = !options.say_waiting](const std::string& line) {
    if (!is_quiet) std::fprintf(stderr, "thinwire: %s\n", PrintableLine(line).c_str());
  };
  ASSIGN_OR_RETURN(joining_, MembersServer::Start(options.listen, fleet_options_.security,
                                                  experiment, joins_.get(), say));
  return absl::OkStatus();
}

void Session::TakeBuilds(const std::vector<AcquireResponse>& answers) {
  const BuildInfo& first = answers.front().build();
  are_alike_ = std::all_of(answers.begin(), answers.end(), [&first](const auto& answer) {
    const BuildInfo& build = answer.build();
    return build.build_id() == first.build_id() && build.onednn_isa() == first.onednn_isa() &&
           build.simd_target() == first.simd_target();
  });
  if (joins_) joins_->SetFirst(first);
}

void Session::TakeDevices(const std::vector<ConfigureResponse>& answers) {
  const DeviceInfo& first = answers.front().device();
  const bool are_alike =
      are_alike_ && std::all_of(answers.begin(), answers.end(), [&first](const auto& answer) {
        const DeviceInfo& device = answer.device();
        return device.model() == first.model() && device.libraries() == first.libraries();
      });
  if (dealer_) dealer_->set_may_move(are_alike);
  if (joins_) {
    joins_->SetEnds(answers.front(), answers[static_cast<size_t>(fleet_->stages() - 1)]);
  }
}

std::optional<MemberCounts> Session::member_counts() const {
  absl::MutexLock lock(&returned_mutex_);
  return counts_;
}

void Session::SetCounts(const MemberCounts& counts) {
  absl::MutexLock lock(&returned_mutex_);
  counts_ = counts;
}

void Session::CountRestarted() {
  absl::MutexLock lock(&returned_mutex_);
  if (!counts_) return;
  ++counts_->lost;
  ++counts_->joined;
}

std::string Session::MembersText() const {
  if (!members_) return "";
  std::string text = "pipelines";
  const size_t stages = addresses_.size() / static_cast<size_t>(members_->carriers());
  for (size_t i = 0; i < addresses_.size(); ++i) {
    absl::StrAppend(&text, i > 0 && i % stages == 0 ? " | " : " ", addresses_[i]);
    if (dealer_ && (i + 1) % stages == 0) {
      absl::StrAppend(&text, " (", fleet_options_.grid.deal[i / stages], ")");
    }
  }
  const auto add = [&text](const char* what, const std::vector<std::string>& addresses) {
    if (!addresses.empty()) absl::StrAppend(&text, "; ", what, ": ", absl::StrJoin(addresses, " "));
  };
  add("standing by", members_->idle());
  add("away", members_->away());
  return text;
}

absl::Status Session::MakeFleet() {
  RETURN_IF_ERROR(WriteLease());
  if (local_) addresses_ = local_->addresses();
  if (joins_) {
    joins_->SetLease(CurrentLease());
    joins_->SetCarrying(addresses_);
  }
  if (dealer_) {
    const size_t pipelines = static_cast<size_t>(fleet_options_.grid.count());
    const size_t carry = pipelines - static_cast<size_t>(follows_);
    Deal& deal = fleet_options_.grid.deal;
    deal = dealer_->BestFor(
        {addresses_.begin(),
         addresses_.begin() + static_cast<std::ptrdiff_t>(addresses_.size() / pipelines * carry)});
    deal.resize(pipelines);
    dealer_->Begin(addresses_, deal);
  }
  // A single pipeline goes back to its checkpoint after a loss.
  const bool loses_little = are_losses_cheap_ && fleet_options_.grid.replicas > 1;
  fleet_options_.heartbeat.answer_times = loses_little ? &answer_times_ : nullptr;
  fleet_options_.hands_over_interruptions = are_losses_cheap_;
  fleet_ = std::make_unique<Fleet>(addresses_, run_, fleet_options_);
  Fleet* fleet = fleet_.get();
  interruption_.OnFirst([fleet] { fleet->Interrupt(); });
  if (local_) local_->Watch([fleet](Failure failure) { fleet->Fail(std::move(failure)); });
  WatchReturns();
  return absl::OkStatus();
}

absl::StatusOr<Fleet*> Session::NextGeneration(const Failure& loss) {
  interruption_.OnFirst(nullptr);
  if (local_) local_->Unwatch();
  returns_.reset();
  // Asked before the heartbeats end, after which no lease is renewed.
  const auto gone = members_ ? fleet_->Gone() : std::vector<Fleet::Parted>();
  fleet_->Abandon();
  if (loss.kind == Failure::Kind::kEnds) fleet_->server(loss.stage).Release().IgnoreError();
  if (members_) Regroup(loss, gone);
  fleet_.reset();
  // The others' state is written once they are laid out, unless that may take minutes.
  fleet_options_.in_epoch = are_losses_cheap_ && fleet_options_.patience <= kSoon;
  if (interruption_.seen()) {
    if (!fleet_options_.in_epoch) return absl::CancelledError("interrupted");
    if (fleet_options_.say_waiting) {
      fleet_options_.say_waiting("interrupted, and ends once the others are laid out anew");
    }
  }
  if (local_) RETURN_IF_ERROR(RestartLostLocals(loss));
  if (!local_ && !members_) MoveToSpare(loss);
  ++fleet_options_.generation;
  RETURN_IF_ERROR(MakeFleet());
  return fleet_.get();
}

absl::Status Session::RestartLostLocals(const Failure& loss) {
  for (int i = 0; i < static_cast<int>(addresses_.size()); ++i) {
    const bool hangs = i == loss.stage && loss.kind == Failure::Kind::kSilent;
    if (!hangs && local_->IsThere(i)) continue;
    RETURN_IF_ERROR(RestartLocal(i));
    CountRestarted();
  }
  return absl::OkStatus();
}

void Session::MoveToSpare(const Failure& loss) {
  fleet_options_.patience = kReturnPatience;
  const bool moves = loss.kind == Failure::Kind::kSilent || loss.kind == Failure::Kind::kEnds;
  if (!moves || spares_.empty()) return;
  std::swap(addresses_[static_cast<size_t>(loss.stage)], spares_.front());
  // The lost server goes to the end of the spares, as it may come back.
  std::rotate(spares_.begin(), spares_.begin() + 1, spares_.end());
}

Session::Paused Session::PausedLast(const Fleet& fleet) const {
  const std::optional<SteadyTime> since = fleet.trains_since();
  if (!since) return {absl::ZeroDuration(), pause_};
  return {SteadyTime::Now() - *since, takes_in_since_ ? *since - *takes_in_since_ : pause_};
}

std::vector<bool> Session::HaveNewcomers() const {
  const auto stages = static_cast<size_t>(fleet_->stages());
  std::map<std::string, size_t> stage_of;
  for (size_t i = 0; i < trained_.size(); ++i) stage_of[trained_[i]] = i % stages;
  const std::vector<std::string>& carrying = members_->carrying();
  std::vector<bool> have(carrying.size() / stages);
  for (size_t i = 0; i < carrying.size() && !trained_.empty(); ++i) {
    const auto found = stage_of.find(carrying[i]);
    if (found == stage_of.end() || found->second != i % stages) have[i / stages] = true;
  }
  return have;
}

void Session::LetFollow() {
  follows_ = 0;
  if (!dealer_ || !are_states_large_) return;
  std::vector<bool> have = HaveNewcomers();
  const auto following = std::count(have.begin(), have.end(), true);
  if (following == static_cast<std::ptrdiff_t>(have.size())) return;  // nobody to be followed
  const std::vector<std::string> carrying = members_->carrying();
  std::vector<std::string> ordered;
  for (const bool follows : {false, true}) {
    for (size_t i = 0; i < carrying.size(); ++i) {
      if (have[i / static_cast<size_t>(fleet_->stages())] == follows) {
        ordered.push_back(carrying[i]);
      }
    }
  }
  const auto carry = static_cast<std::ptrdiff_t>(ordered.size() - following * fleet_->stages());
  if (!dealer_->CanCarry({ordered.begin(), ordered.begin() + carry})) return;
  members_->Place(ordered);
  have = HaveNewcomers();
  // Otherwise one that follows is the first pipeline, so that all wait for it.
  if (std::is_sorted(have.begin(), have.end())) follows_ = static_cast<int>(following);
}

void Session::Place(const Failure& loss) {
  const std::vector<std::string> before = members_->carrying();
  const bool are_same = before == addresses_;
  if (dealer_->TakeRefusal() && are_same) {
    members_->Place(before_moves_);
    return;
  }
  // All that are there have their stage's state where only speeds have ended the layout.
  const bool moves = loss.kind == Failure::Kind::kSpeeds && are_same && fleet_->trains_since();
  members_->Place(dealer_->Placed(before, moves));
  before_moves_ = before;
}

void Session::TakeArrivals() {
  std::vector<std::string> silent;
  std::vector<std::string> arrived = joins_ ? joins_->TakeAdmitted() : std::vector<std::string>();
  {
    absl::MutexLock lock(&returned_mutex_);
    arrived.insert(arrived.end(), returned_.begin(), returned_.end());
    returned_.clear();
    silent = std::exchange(silent_, {});
  }
  for (const std::string& address : arrived) members_->Arrive(address);
  for (const std::string& address : silent) members_->LoseIdle(address);
  if (joins_) members_->DropGuests([this](const auto& one) { return joins_->IsConnected(one); });
}

void Session::Regroup(const Failure& loss, std::vector<Fleet::Parted> parted) {
  TakeArrivals();
  const bool is_unfit = loss.kind == Failure::Kind::kUnfit;
  // One that could not be leased may be another run's by now.
  const bool is_gone = loss.kind == Failure::Kind::kSilent || loss.kind == Failure::Kind::kEnds ||
                       is_unfit || (!fleet_->acquired() && loss.stage != Failure::kCoordinator);
  if (is_gone && loss.kind != Failure::Kind::kJoins) {
    parted.push_back({loss.stage, loss.kind == Failure::Kind::kEnds});
  }
  std::set<int> gone;
  std::vector<int> leaving;
  std::vector<std::string> lost;
  for (const auto& [server, ends] : parted) {
    if (ends) leaving.push_back(server);
    if (gone.insert(server).second) lost.push_back(fleet_->server(server).address());
  }
  // A server that is to end waits for its release, and one that is unfit gets it.
  for (const auto& [server, ends] : parted) {
    const bool goes = is_unfit && server == loss.stage;
    if (ends || goes) fleet_->server(server).Release().IgnoreError();
  }
  // One that is away may be waited for in place of a server that is dismissed.
  std::vector<std::string> missing = lost;
  missing.insert(missing.end(), members_->away().begin(), members_->away().end());
  members_->CountLeaving(leaving);
  if (is_unfit) members_->Dismiss(loss.stage);
  const Paused last = PausedLast(*fleet_);
  const bool fills = members_->PaysToFill(last.trained, last.pause);
  members_->Lose({gone.begin(), gone.end()}, /*fresh=*/!fills);
  const std::vector<std::string>& carrying = members_->carrying();
  const bool is_awaited = std::any_of(missing.begin(), missing.end(), [&](const auto& one) {
    return std::find(carrying.begin(), carrying.end(), one) != carrying.end();
  });
  fleet_options_.patience = is_awaited ? kReturnPatience : patience_;
  if (fills || members_->PaysToGrow(last.trained, last.pause)) members_->Grow();
  if (dealer_) Place(loss);
  members_->CountJoined();
  if (joins_) joins_->Lose(lost);
  if (joins_ && is_unfit) joins_->Dismiss(fleet_->server(loss.stage).address(), loss.status);
  SetCounts(members_->counts());
  pause_ = last.pause;
  if (fleet_->trains_since()) {
    trained_ = addresses_;
    if (!fleet_->have_caught_up()) {
      trained_.resize(trained_.size() / static_cast<size_t>(fleet_->carriers()) *
                      static_cast<size_t>(fleet_->carriers() - follows_));
    }
  }
  LetFollow();
  takes_in_since_.reset();
  const std::vector<bool> have = HaveNewcomers();
  if (std::count(have.begin(), have.end(), true) > 0) takes_in_since_ = SteadyTime::Now();
  addresses_ = members_->carrying();
  fleet_options_.grid.replicas = members_->carriers();
  fleet_options_.are_guests.clear();
  for (const std::string& address : addresses_) {
    fleet_options_.are_guests.push_back(members_->IsGuest(address));
  }
}

void Session::Arrived(const std::string& address, Later* later) {
  const std::vector<std::string>& away = later->members.away();
  const bool is_back = std::find(away.begin(), away.end(), address) != away.end();
  later->news = absl::StrCat(address, is_back ? " is back" : " has joined");
  later->members.Arrive(address);
  absl::MutexLock lock(&returned_mutex_);
  returned_.push_back(address);
}

bool Session::IsThere(const std::string& address) const {
  if (joins_ && joins_->IsConnected(address)) return true;
  StageClient server(StagePlace(), address, CurrentLease(), fleet_options_.security);
  return server.Renew(Fleet::kAnswer, /*advances=*/0).ok() ||
         server
             .Acquire(fleet_options_.lease_seconds, absl::ZeroDuration(), /*keeps_state=*/false,
                      [](const std::string&) {})
             .ok();
}

void Session::Look(Later* later, Fleet* fleet) {
  Members& members = later->members;
  if (joins_) members.DropGuests([this](const auto& one) { return joins_->IsConnected(one); });
  {
    absl::MutexLock lock(&returned_mutex_);
    counts_->idle = members.counts().idle;
    counts_->away = members.counts().away;
  }
  if (!fleet->have_caught_up()) return;  // more come when these carry replicas
  const Paused last = PausedLast(*fleet);
  if (!members.PaysToGrow(last.trained, last.pause)) return;
  for (const std::string& address : members.idle()) {
    if (IsThere(address)) continue;
    members.LoseIdle(address);
    absl::MutexLock lock(&returned_mutex_);
    silent_.push_back(address);
  }
  if (!members.PaysToGrow(last.trained, last.pause)) return;
  fleet->EndAfterStep({/*stage=*/0, Failure::Kind::kJoins, absl::UnavailableError(later->news)});
}

// A server that has come makes the run end after a step and lay out anew, if that gives a pipeline.
void Session::WatchReturns() {
  if (!members_ || (members_->away().empty() && !joins_ && !members_->CanGrow())) return;
  Returns::Search search;
  search.addresses = members_->away();
  search.lease = CurrentLease();
  search.lease_seconds = fleet_options_.lease_seconds;
  search.build = fleet_options_.build;
  search.security = fleet_options_.security;
  search.joins = joins_.get();
  auto later =
      std::make_shared<Later>(Later{*members_, "servers that stand by make up a pipeline"});
  search.on_look = [this, later, fleet = fleet_.get()] { Look(later.get(), fleet); };
  returns_ = std::make_unique<Returns>(
      std::move(search),
      [this, later](const std::string& address) { Arrived(address, later.get()); });
}

Lease Session::CurrentLease() const {
  Lease lease;
  lease.set_run(run_);
  lease.set_generation(fleet_options_.generation);
  lease.set_secret(fleet_options_.lease_secret);
  return lease;
}

// Tries several times: what killed the stage may kill it again before it serves.
absl::Status Session::RestartLocal(int stage) {
  absl::Status status;
  for (int tries = 0; tries < kRestartTries; ++tries) {
    status = local_->Restart(stage);
    if (!absl::IsUnavailable(status)) return status;
  }
  return status;
}

absl::Status Session::ReadLease() {
  if (lease_file_.empty()) return absl::OkStatus();
  const absl::StatusOr<std::string> text = ReadFile(lease_file_);
  if (absl::IsNotFound(text.status())) return absl::OkStatus();
  RETURN_IF_ERROR(text.status());
  const std::vector<std::string> lines = absl::StrSplit(*text, '\n');
  uint64_t generation = 0;
  if (lines.size() < 3 || lines[0].empty() || !absl::SimpleAtoi(lines[1], &generation)) {
    return absl::DataLossError(
        absl::StrCat(lease_file_, ": is no lease; remove it, and wait until the lease has ended"));
  }
  run_ = lines[0];
  fleet_options_.generation = generation + 1;
  fleet_options_.lease_secret = absl::HexStringToBytes(lines[2]);
  return absl::OkStatus();
}

// Writes the run's id, the generation and the secret, a line each.
absl::Status Session::WriteLease() const {
  if (lease_file_.empty()) return absl::OkStatus();
  const mode_t before = umask(077);
  const absl::Status written = ReplaceFile(
      lease_file_, absl::StrCat(run_, "\n", fleet_options_.generation, "\n",
                                absl::BytesToHexString(fleet_options_.lease_secret), "\n"));
  umask(before);
  return written;
}

absl::Status Session::Launch(const std::string& name, const Experiment& experiment,
                             const SessionOptions& options) {
  std::string logs_dir = options.logs_dir;
  if (logs_dir.empty()) {
    ASSIGN_OR_RETURN(logs_, TemporaryFolder::Make("thinwire-" + name));
    logs_dir = logs_->path();
  }
  const Pipelines pipelines{static_cast<int>(experiment.pipeline().stages()), fleet_options_.grid,
                            fleet_options_.stage_carriers};
  ASSIGN_OR_RETURN(LaunchOptions launch,
                   LocalLaunch(experiment, pipelines, options.stage_server, options.libraries));
  launch.cuda_plugin = options.cuda_plugin;
  launch.logs_dir = logs_dir;
  launch.interrupt_fd = interruption_.fd();
  ASSIGN_OR_RETURN(local_, LocalStages::Start(launch));
  return absl::OkStatus();
}

void Session::Release() {
  if (fleet_ == nullptr || std::exchange(released_, true)) return;
  interruption_.OnFirst(nullptr);
  returns_.reset();
  fleet_->Release();
  joining_.reset();  // who joined hears of the end once it is free
  if (!lease_file_.empty()) unlink(lease_file_.c_str());  // the lease is freed
}

Session::~Session() { Release(); }

}  // namespace thinwire
