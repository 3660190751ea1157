#include "coordinator/session/joins.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/host_port.h"
#include "base/status.h"

namespace thinwire {
namespace {

constexpr size_t kLongestAddress = 300;  // a name of 253 characters and a port

// Returns whether a peer, as gRPC names it, is on this machine.
bool IsHere(const std::string& peer) {
  for (const char* const here : {"ipv4:127.", "ipv6:[::1]", "ipv6:%5B::1%5D", "unix:"}) {
    if (absl::StartsWith(peer, here)) return true;
  }
  return absl::StrContains(peer, "::ffff:127.");
}

std::string InstructionsOf(const BuildInfo& build) {
  return absl::StrCat(build.onednn_isa(), " (oneDNN) and ", build.simd_target(), " (Highway)");
}

bool SameData(const ConfigureResponse& a, const ConfigureResponse& b) {
  return a.train_digest() == b.train_digest() && a.test_digest() == b.test_digest();
}

std::string DataOf(const ConfigureResponse& data) {
  return absl::StrFormat("%d samples (digest %016x) and %d test samples (digest %016x)",
                         data.train_samples(), data.train_digest(), data.test_samples(),
                         data.test_digest());
}

std::string DeviceOf(const ConfigureResponse& configured) {
  const DeviceInfo& device = configured.device();
  return absl::StrCat(device.name(), device.model().empty() ? "" : " ", device.model());
}

}  // namespace

absl::Status CheckOffered(const std::string& address, const std::string& peer) {
  if (address.size() > kLongestAddress) {
    return absl::InvalidArgumentError(absl::StrCat("an address of ", address.size(),
                                                   " characters, want at most ", kLongestAddress));
  }
  ASSIGN_OR_RETURN(const HostPort at, ParseHostPort(address));
  if (at.host.empty() || IsEveryAddress(at.host) || at.port == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(address, " is no address that others reach, want one (--advertise)"));
  }
  if (IsOwnMachine(at.host) && !IsHere(peer)) {
    return absl::InvalidArgumentError(
        absl::StrCat(address, " is the server's own machine only, and the server calls from ", peer,
                     ": want an address that others reach (--advertise)"));
  }
  return absl::OkStatus();
}

void Joins::SetFirst(const BuildInfo& first) {
  absl::MutexLock lock(&mutex_);
  if (!first_) first_ = first;
}

void Joins::SetEnds(const ConfigureResponse& first, const ConfigureResponse& last) {
  absl::MutexLock lock(&mutex_);
  if (ends_.empty()) ends_ = {first, last};
}

void Joins::SetCarrying(const std::vector<std::string>& addresses) {
  absl::MutexLock lock(&mutex_);
  carrying_ = {addresses.begin(), addresses.end()};
}

void Joins::SetLease(const Lease& lease) {
  absl::MutexLock lock(&mutex_);
  lease_ = lease;
}

Lease Joins::lease() const {
  absl::MutexLock lock(&mutex_);
  return lease_;
}

absl::Status Joins::CheckLike(const std::string& address, const BuildInfo& build) const {
  if (takes_others_) return absl::OkStatus();
  if (build.build_id() != first_->build_id()) {
    return absl::FailedPreconditionError(absl::StrCat(
        address, " is of build \"", build.build_id(), "\", run ", run_, " of build \"",
        first_->build_id(), "\"; make them of one build, or give the run --allow_other_build"));
  }
  if (build.onednn_isa() == first_->onednn_isa() && build.simd_target() == first_->simd_target()) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      address, " computes with ", InstructionsOf(build), ", run ", run_, " with ",
      InstructionsOf(*first_),
      ": numbers would differ in their last bits; want a machine with the same instructions, or "
      "give the run --allow_other_build"));
}

absl::StatusOr<bool> Joins::Offer(const JoinRequest& offer) {
  const std::string& address = offer.address();
  absl::MutexLock lock(&mutex_);
  if (has_ended_) return absl::UnavailableError(absl::StrCat("run ", run_, " has ended"));
  if (!first_ || ends_.empty()) {
    return absl::UnavailableError(absl::StrCat("run ", run_, " has not begun yet"));
  }
  const auto dismissed = dismissed_.find(address);
  if (dismissed != dismissed_.end()) return dismissed->second;
  RETURN_IF_ERROR(CheckLike(address, offer.build()));
  const bool has_stage = carrying_.count(address) > 0;
  if (connected_.count(address) > 0 || (has_stage && offer.run() != run_)) {
    return absl::AlreadyExistsError(
        absl::StrCat("run ", run_, " has a server at ", address,
                     ": one that was started again is taken once its loss is seen; any other one "
                     "wants an address of its own (--advertise)"));
  }
  if (connected_.size() >= kMost) {
    return absl::ResourceExhaustedError(absl::StrCat("run ", run_, " has ", connected_.size(),
                                                     " servers that joined, want at most ", kMost));
  }
  connected_[address] = absl::OkStatus();
  return has_stage;
}

absl::Status Joins::Admit(const std::string& address, const TriedServer& tried) {
  absl::MutexLock lock(&mutex_);
  RETURN_IF_ERROR(CheckLike(address, tried.build));
  RETURN_IF_ERROR(CheckEnd(address, tried.ends.front(), ends_.front()));
  RETURN_IF_ERROR(CheckEnd(address, tried.ends.back(), ends_.back()));
  admitted_.push_back(address);
  return absl::OkStatus();
}

absl::Status Joins::CheckEnd(const std::string& address, const ConfigureResponse& end,
                             const ConfigureResponse& of_run) const {
  if (!SameData(of_run, end)) {
    return absl::FailedPreconditionError(absl::StrCat(address, " reads other data than run ", run_,
                                                      ": ", DataOf(end), ", want ",
                                                      DataOf(of_run)));
  }
  if (end.device().model() == of_run.device().model()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(address, " computes on ", DeviceOf(end),
                                                    ", run ", run_, " on ", DeviceOf(of_run),
                                                    ": want devices of one model"));
}

void Joins::Withdraw(const std::string& address) {
  absl::MutexLock lock(&mutex_);
  connected_.erase(address);
  admitted_.erase(std::remove(admitted_.begin(), admitted_.end(), address), admitted_.end());
}

std::vector<std::string> Joins::TakeAdmitted() {
  absl::MutexLock lock(&mutex_);
  return std::exchange(admitted_, {});
}

bool Joins::IsConnected(const std::string& address) const {
  absl::MutexLock lock(&mutex_);
  const auto found = connected_.find(address);
  return found != connected_.end() && found->second.ok();
}

void Joins::EndCall(const std::string& address, const absl::Status& why) {
  carrying_.erase(address);
  const auto found = connected_.find(address);
  if (found != connected_.end()) found->second = why;
}

void Joins::Lose(const std::vector<std::string>& addresses) {
  absl::MutexLock lock(&mutex_);
  for (const std::string& address : addresses) {
    EndCall(address, absl::UnavailableError(absl::StrCat("run ", run_, " has lost ", address,
                                                         ", which may join again")));
  }
}

void Joins::Dismiss(const std::string& address, const absl::Status& why) {
  absl::MutexLock lock(&mutex_);
  if (dismissed_.size() >= kMost) dismissed_.clear();
  dismissed_[address] = absl::FailedPreconditionError(
      absl::StrCat("run ", run_, " cannot use ", address, ": ", why.message()));
  EndCall(address, dismissed_[address]);
}

void Joins::End() {
  absl::MutexLock lock(&mutex_);
  has_ended_ = true;
}

absl::StatusOr<bool> Joins::HasEnded(const std::string& address) const {
  absl::MutexLock lock(&mutex_);
  const auto found = connected_.find(address);
  if (found != connected_.end() && !found->second.ok()) return found->second;
  return has_ended_;
}

}  // namespace thinwire
