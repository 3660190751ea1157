#include "stage_server/fuzz_peer_testing.h"

#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <string_view>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/crc32c.h"
#include "base/digest.h"
#include "base/secret.h"
#include "base/steady_time.h"
#include "proto/boundary.pb.h"
#include "stage_server/fuzz_server_testing.h"
#include "stage_server/lease_testing.h"
#include "transport/settings.h"

namespace thinwire {
namespace {

using ProtoMessage = ::google::protobuf::Message;
using grpc::StatusCode;

constexpr size_t kMostOpen = 3;
// Waits of calls. The holder's calls may wait for one that it has left open or that it holds. All
// others wait only for neighbours, and for these only a moment.
constexpr absl::Duration kPatience = absl::Milliseconds(50);
constexpr absl::Duration kOpen = absl::Milliseconds(200);  // a call that is left open, at most
constexpr char kRefusal[] = "this server is leased, and this call does not have the lease's secret";
constexpr char kLeased[] = "this server is leased to another run until ";

[[noreturn]] void Fail(const std::string& what) {
  std::fprintf(stderr, "service_fuzz: %s\n", what.c_str());
  std::abort();
}

bool IsSame(const Lease& a, const Lease& b) {
  return a.run() == b.run() && a.generation() == b.generation() && a.secret() == b.secret();
}

std::string PathOf(const char* method) { return absl::StrCat("/thinwire.Stage/", method); }

}  // namespace

bool FuzzPeer::IsHolder(const Lease& lease) const { return held_ && IsSame(*held_, lease); }

Lease FuzzPeer::HowLeased(char who) const {
  Lease lease = held_.value_or(LeaseOf("one"));
  switch (who) {
    case 's':  // an earlier generation
      lease.set_generation(lease.generation() - 1);
      break;
    case 'h':  // a later one
      lease.set_generation(lease.generation() + 1);
      break;
    case 'r':
      lease.set_run("another run");
      break;
    case 'w':
      lease.set_secret("what nobody was told");
      break;
    case 'p':
      lease.mutable_secret()->pop_back();
      break;
    case 'e':
      lease.clear_secret();
      break;
    case 't':
      lease = LeaseOf("two", 7);
      lease.set_secret("what a tenant knows of its lease");
      break;
    case 'n':
      return {};
    default:
      break;
  }
  return lease;
}

grpc::Status FuzzPeer::Wait(const std::string& method, const std::string& bytes,
                            absl::Duration patience, std::vector<std::string>* answers) {
  const SteadyTime end = SteadyTime::Now() + kHangs;
  RawCall call(TheServer().stub(), method, {}, patience);
  if (call.Write(bytes)) call.WritesDone();
  while (std::optional<std::string> answer = call.Read()) {
    if (answers != nullptr) answers->push_back(*std::move(answer));
  }
  call.Finish();
  if (SteadyTime::Now() > end) Fail(method + " hangs");
  return call.Finish();
}

grpc::Status FuzzPeer::Ask(const char* method, const ProtoMessage& request,
                           std::vector<std::string>* answers) {
  return Wait(PathOf(method), request.SerializeAsString(), kHangs, answers);
}

std::vector<std::string> FuzzPeer::AskAsHolder(char letter, uint8_t variant) {
  for (const ControlCall& call : ControlCalls()) {
    if (call.letter != letter) continue;
    const auto request = call.request(variant, kept_);
    SetLease(*held_, request.get());
    std::vector<std::string> answers;
    const grpc::Status status = Ask(call.method, *request, &answers);
    if (status.ok()) return answers;
    Fail(absl::StrCat(call.method, " by the holder: ", status.error_message()));
  }
  Fail(absl::StrCat("no call has the letter ", std::string(1, letter)));
}

StatusCode FuzzPeer::StateOfRun() {
  ReadSnapshotRequest request;
  *request.mutable_lease() = *held_;
  request.set_file(1000);
  return Ask("ReadSnapshot", request).error_code();
}

void FuzzPeer::LeaveOpen(std::unique_ptr<RawCall> call) {
  if (open_.size() == kMostOpen) open_.pop_front();
  open_.push_back(std::move(call));
}

void FuzzPeer::Obey(const Orders::Order& order) {
  switch (order.call) {
    case kLink:
      return DialLink(order);
    case kReadState:
      return ReadState(order);
    case kUnknown: {
      const StatusCode code = Wait("/thinwire.Stage/Unknown", "", kHangs).error_code();
      if (code != StatusCode::UNIMPLEMENTED) Fail(absl::StrCat("unknown call: ", code));
      return;
    }
    case kEnd:
    case kCancel:
      if (open_.empty()) return;
      if (order.call == kCancel) open_.front()->Cancel();
      open_.front()->WritesDone();
      open_.front()->Finish();
      return open_.pop_front();
    case kOwnRun:
      return CheckOwnRun();
    default:
      break;
  }
  for (const ControlCall& call : ControlCalls()) {
    if (call.letter == order.call) return Make(call, order);
  }
}

void FuzzPeer::Make(const ControlCall& call, const Orders::Order& order) {
  std::unique_ptr<ProtoMessage> request = call.request(order.variant, kept_);
  SetLease(HowLeased(order.who), request.get());
  std::string bytes = request->SerializeAsString();
  Inflict(order.damage, &bytes);
  const bool is_read = request->ParseFromString(bytes);
  const bool is_holder = is_read && IsHolder(LeaseIn(*request));
  auto* const configure = dynamic_cast<ConfigureRequest*>(request.get());
  if (is_holder && configure != nullptr) {
    BoundCost(configure);
    bytes = request->SerializeAsString();
  }
  // Calls that change the lease are awaited, since the peer must know who holds it.
  const bool changes_lease = call.letter == 'a' || call.letter == 'z';
  if (order.stays_open && !changes_lease) {
    auto open = std::make_unique<RawCall>(TheServer().stub(), PathOf(call.method),
                                          RawCall::Metadata{}, kOpen);
    open->Write(bytes);
    return LeaveOpen(std::move(open));
  }
  const bool is_still =
      IsSureToHold() && !is_holder && TheServer().IsQuietWithin(absl::Milliseconds(20));
  const StatusCode before = is_still ? StateOfRun() : StatusCode::OK;
  std::vector<std::string> answers;
  if (is_holder && call.letter == 'e') may_be_held_up_ = true;
  const bool is_of_run = !changes_lease && call.letter != 'n';
  const bool may_wait = is_holder && is_of_run && (may_be_held_up_ || !open_.empty());
  const grpc::Status status =
      Wait(PathOf(call.method), bytes, may_wait ? kPatience : kHangs, &answers);
  if (is_holder && status.ok() && call.letter == 'c') may_be_held_up_ = false;
  if (is_holder && status.ok()) Keep(call, answers);
  const auto* acquire = dynamic_cast<AcquireRequest*>(request.get());
  if (acquire != nullptr && is_read) {
    CheckAcquire(*acquire, status);
  } else if (!is_holder) {
    CheckStranger(call, is_read ? request.get() : nullptr, status);
    if (is_still && StateOfRun() != before) Fail("a stranger has changed the run");
  } else if (call.letter == 'z') {
    if (IsSureToHold() && !status.ok()) Fail("the holder cannot release its lease");
    held_.reset();
  } else if (call.letter == 'n' && IsSureToHold() && !status.ok()) {
    Fail("the holder cannot renew its lease: " + status.error_message());
  }
}

void FuzzPeer::Keep(const ControlCall& call, const std::vector<std::string>& answers) {
  if (call.letter == 's') {
    snapshot_.ParseFromString(answers[0]);
    return;
  }
  if (call.letter == 'd' && snapshot_.files_size() > 0) {
    kept_.part = snapshot_.files(0).part();
    snapshot_.mutable_files()->DeleteSubrange(0, 1);
  }
  if (call.letter != 'd' && call.letter != 'p' && call.letter != 'q') return;
  KeepFile(answers);
}

void FuzzPeer::KeepFile(const std::vector<std::string>& pieces) {
  kept_.file.clear();
  for (const std::string& piece : pieces) {
    FileChunk chunk;
    chunk.ParseFromString(piece);
    kept_.file += chunk.data();
  }
}

void FuzzPeer::CheckStranger(const ControlCall& call, const ProtoMessage* request,
                             const grpc::Status& status) const {
  const std::string told = absl::StrCat(call.method, " by a stranger: ", status.error_code(), " \"",
                                        status.error_message(), "\"");
  if (status.ok()) Fail(told);
  // Open calls may be as many uploads as are allowed.
  if (request == nullptr || status.error_code() == StatusCode::RESOURCE_EXHAUSTED) return;
  if (status.error_code() != StatusCode::FAILED_PRECONDITION) Fail(told);
  const bool knows = IsSureToHold() && LeaseIn(*request).secret() == held_->secret();
  if (IsSureToHold() && !knows && status.error_message() != kRefusal) Fail(told);
}

void FuzzPeer::CheckAcquire(const AcquireRequest& request, const grpc::Status& status) {
  const Lease& lease = request.lease();
  const double seconds = request.lease_seconds();
  const bool is_valid = !lease.run().empty() && lease.generation() > 0 && seconds > 0 &&
                        seconds <= 600 && lease.secret().size() >= kMinSecretBytes;
  const bool takes_over = held_ && lease.run() == held_->run() &&
                          lease.secret() == held_->secret() &&
                          lease.generation() > held_->generation();
  const std::string told = absl::StrCat("Acquire: ", status.error_code(), " \"",
                                        status.error_message(), "\" with ", lease.DebugString());
  const bool has_to = is_valid && (!held_ || takes_over);
  const bool may = is_valid && !IsSureToHold();
  if (has_to && !status.ok()) Fail(told);
  if (!has_to && !may && status.ok()) Fail(told);
  const bool is_told = IsSureToHold() && lease.secret() == held_->secret();
  const bool says_leased = status.error_code() == StatusCode::UNAVAILABLE &&
                           absl::StartsWith(status.error_message(), kLeased);
  if (is_valid && IsSureToHold() && !is_told && !says_leased) Fail(told);
  if (!status.ok()) return;
  held_ = lease;
  is_brief_ = seconds < 60;
}

void FuzzPeer::DialLink(const Orders::Order& order) {
  const Lease lease = HowLeased(order.who);
  Digest run;
  run.Add(lease.run().data(), lease.run().size());
  const bool is_of_run = order.who == 'o' && order.variant % 4 != 3;
  const RawCall::Metadata metadata = {
      {kSecretMetadata, is_of_run ? kLinkSecretForTests : lease.secret()},
      {kRunMetadata, absl::StrCat(run.value())},
      {kGenerationMetadata, absl::StrCat(lease.generation())},
      {kCutMetadata, absl::StrCat(order.variant / 64)},
  };
  auto call = std::make_unique<RawCall>(TheServer().stub(), kExchangeMethod, metadata, kOpen);
  Frame frame;
  frame.set_payload(std::string(1 + order.variant, 'x'));
  FrameHeader* header = frame.mutable_header();
  header->set_run(run.value());
  header->set_generation(lease.generation());
  header->set_epoch(1);
  header->set_step(1);
  header->set_phase(static_cast<Phase>(1 + order.variant % 4));
  header->set_direction(DIRECTION_ACTIVATION);
  header->set_chunks(1);
  header->set_payload_crc32c(Crc32c(frame.payload().data(), frame.payload().size()));
  header->set_dtype(FrameHeader::ELEMENT_TYPE_FP32);
  for (const uint32_t extent : {4, 8, 8, 2}) header->add_shape(extent);
  header->mutable_codec()->set_kind(CodecParameters::KIND_UNIFORM);
  header->mutable_codec()->set_bits(4);
  header->set_payload_bytes(frame.payload().size());
  const std::string bytes = header->SerializeAsString();
  frame.set_header_crc32c(Crc32c(bytes.data(), bytes.size()));
  std::string damaged = frame.SerializeAsString();
  Inflict(order.damage, &damaged);
  call->Write(damaged);
  if (order.stays_open) return LeaveOpen(std::move(call));
  call->WritesDone();
  if (call->Finish().ok()) Fail("a link that sends nonsense ends well");
}

void FuzzPeer::ReadState(const Orders::Order& order) {
  const Lease lease = HowLeased(order.who);
  const bool is_of_run = order.who == 'o' && order.variant % 4 != 3;
  ReadStateRequest request;
  request.set_link_secret(is_of_run ? kLinkSecretForTests : lease.secret());
  request.set_generation(lease.generation());
  request.set_step(order.variant / 4 % 8);
  request.set_stage(order.variant / 32);
  std::string bytes = request.SerializeAsString();
  Inflict(order.damage, &bytes);
  constexpr char kMethod[] = "/thinwire.StagePeer/ReadState";
  if (order.stays_open) {
    auto open = std::make_unique<RawCall>(TheServer().stub(), kMethod, RawCall::Metadata{}, kOpen);
    open->Write(bytes);
    return LeaveOpen(std::move(open));
  }
  const grpc::Status status = Wait(kMethod, bytes, kHangs);
  const bool is_stranger =
      request.ParseFromString(bytes) && request.link_secret() != kLinkSecretForTests;
  if (is_stranger && status.error_code() != StatusCode::PERMISSION_DENIED) {
    Fail(absl::StrCat("ReadState by a stranger: ", status.error_code(), " ",
                      status.error_message()));
  }
}

void FuzzPeer::CheckConfigurations() {
  for (const ControlCall& call : ControlCalls()) {
    const bool is_other =
        std::string_view(kOtherOrders, std::size(kOtherOrders)).find(call.letter) !=
        std::string_view::npos;
    if (is_other)
      Fail(absl::StrCat(call.method, " would never be made: its letter is another order's"));
  }
  CheckOwnRun();  // takes the lease
  for (size_t i = 0; i < NumConfigurations(); ++i) AskAsHolder('c', static_cast<uint8_t>(i));
}

void FuzzPeer::CheckOwnRun() {
  open_.clear();
  if (!TheServer().IsQuietWithin(kHangs)) Fail("a call goes on after it was cancelled");
  if (!IsSureToHold()) {
    Leave();
    AcquireRequest acquire;
    *acquire.mutable_lease() = LeaseOf("own", 3);
    acquire.set_lease_seconds(600);
    CheckAcquire(acquire, Ask("Acquire", acquire));
  }
  AskAsHolder('c', 0);
  std::vector<double> losses;
  for (const std::string& answer : AskAsHolder('t', 8)) {  // epoch 1
    StageEvent event;
    if (event.ParseFromString(answer) && event.has_step()) losses.push_back(event.step().loss());
  }
  static const auto* const alone = new std::vector<double>(losses);
  if (losses != *alone || losses.empty()) Fail("a run has other losses than it had alone");
  KeepFile(AskAsHolder('p', 0));
  AskAsHolder('i', 0);  // no earlier upload is still counted
  may_be_held_up_ = false;
}

void FuzzPeer::Leave() {
  open_.clear();
  if (held_) {
    RenewRequest renew;
    ReleaseRequest release;
    *renew.mutable_lease() = *release.mutable_lease() = *held_;
    const bool renewed = Ask("Renew", renew).ok(), released = Ask("Release", release).ok();
    if (IsSureToHold() && !(renewed && released)) Fail("the holder's lease does not work any more");
  }
  held_.reset();
  if (!TheServer().IsQuietWithin(kHangs)) Fail("a call outlives the lease");
  if (TheServer().IsLeased()) Fail("the server is leased after it was released");
}

}  // namespace thinwire
