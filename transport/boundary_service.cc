#include "transport/boundary_service.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>
#include <string_view>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/secret.h"
#include "base/status.h"
#include "proto/boundary.grpc.pb.h"
#include "transport/local_memory.h"
#include "transport/settings.h"
#include "transport/status.h"
#include "transport/stream.h"
#include "wire/frame_checker.h"

namespace thinwire {
namespace {

// The server's end of a call, accepted or refused. Deletes itself in OnDone.
class ServerReactor final : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>,
                            private StreamCalls {
 public:
  explicit ServerReactor(grpc::CallbackServerContext* context) : context_(context) {}

  void Accept(std::shared_ptr<GrpcStream> stream) {
    stream_ = std::move(stream);
    LocalMemory memory;
    if (IsUnixSocket(context_->peer()) && !stream_->attached()) {
      memory = OpenLocalMemory(context_->client_metadata(), stream_->options());
    }
    const bool shares = memory.host != nullptr;
    const std::string slots = memory.device != nullptr ? memory.device->Ticket() : "";
    if (!stream_->Attach(this, std::move(memory))) {
      stream_ = nullptr;
      return Refuse(absl::FailedPreconditionError("the boundary has a peer or is closed"));
    }
    if (shares) context_->AddInitialMetadata(kMemoryMetadata, "shared");
    if (!slots.empty()) context_->AddInitialMetadata(kDeviceMemoryMetadata, slots);
    StartSendInitialMetadata();
    stream_->OnAccepted(shares, ValueOf(context_->client_metadata(), kDeviceMemoryMetadata));
  }
  void Refuse(const absl::Status& status) { ServerBidiReactor::Finish(ToGrpcStatus(status)); }

  void OnReadDone(bool ok) override { stream_->OnReadDone(ok); }
  void OnWriteDone(bool ok) override { stream_->OnWriteDone(ok); }
  void OnDone() override {
    if (stream_ != nullptr) stream_->OnDone(absl::CancelledError("the call is over"));
    delete this;
  }

 private:
  void StartRead(grpc::ByteBuffer* to) override { ServerBidiReactor::StartRead(to); }
  void StartWrite(const grpc::ByteBuffer* from) override { ServerBidiReactor::StartWrite(from); }
  void Cancel() override { context_->TryCancel(); }
  void Finish(Ending, const absl::Status& reason) override { Refuse(reason); }
  std::string PeerAddress() const override { return context_->peer(); }
  bool status_follows() const override { return false; }

  grpc::CallbackServerContext* const context_;
  std::shared_ptr<GrpcStream> stream_;  // null when refused
};

// The streams that wait for their peer or have it; their links own them. A cut has at most one. A
// stream that has ended makes room for the next, even if its link still exists.
class Listeners {
 public:
  absl::StatusOr<std::shared_ptr<GrpcStream>> Add(const LinkOptions& options) {
    if (options.secret.size() < kMinSecretBytes) {
      return absl::InvalidArgumentError(absl::StrCat(LinkName(options), ": a link's secret of ",
                                                     options.secret.size(),
                                                     " bytes, want at least ", kMinSecretBytes));
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    std::weak_ptr<GrpcStream>& at_cut = by_cut_[options.number()];
    const std::shared_ptr<GrpcStream> there = at_cut.lock();
    if (there != nullptr && !there->ended()) {
      return absl::FailedPreconditionError(
          absl::StrCat(LinkName(options), " is already listened at for generation ",
                       there->options().generation, ", wanted for ", options.generation));
    }
    const auto stream = std::make_shared<GrpcStream>(options);
    at_cut = stream;
    return stream;
  }

  // Returns whether this is the secret of any cut that is listened at.
  bool Know(std::string_view secret) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return std::any_of(by_cut_.begin(), by_cut_.end(), [secret](const auto& entry) {
      const std::shared_ptr<GrpcStream> stream = entry.second.lock();
      return stream != nullptr && SameSecret(stream->options().secret, secret);
    });
  }

  // Returns null if nobody listens at the cut.
  std::shared_ptr<GrpcStream> Find(uint64_t cut) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = by_cut_.find(cut);
    return found == by_cut_.end() ? nullptr : found->second.lock();
  }

 private:
  mutable std::mutex mutex_;  // not absl's: the thread sanitizer would not see it
  std::map<uint64_t, std::weak_ptr<GrpcStream>> by_cut_ ABSL_GUARDED_BY(mutex_);
};

absl::StatusOr<uint64_t> Metadata(const grpc::CallbackServerContext& context, const char* name) {
  const auto found = context.client_metadata().find(name);
  if (found == context.client_metadata().end()) {
    return absl::FailedPreconditionError(absl::StrCat("call metadata ", name, " is missing"));
  }
  const absl::string_view text(found->second.data(), found->second.size());
  uint64_t value = 0;
  if (!absl::SimpleAtoi(text, &value)) {
    return absl::FailedPreconditionError(
        absl::StrCat("call metadata ", name, " is \"", text, "\", want a number"));
  }
  return value;
}

absl::Status WantEqual(const char* what, uint64_t dialled, uint64_t held, const std::string& link) {
  if (dialled == held) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("dialled for ", what, " ", dialled, ", ", link,
                                                    " is held by ", what, " ", held));
}

// The message is the same whatever is wrong: a caller without the secret learns nothing of the run.
absl::Status NotOfTheRun() {
  return absl::PermissionDeniedError("the call does not show the secret of a run of this server");
}

absl::StatusOr<std::shared_ptr<GrpcStream>> FindListener(
    const Listeners& listeners, const grpc::CallbackServerContext& context) {
  const std::string secret = ValueOf(context.client_metadata(), kSecretMetadata);
  if (!listeners.Know(secret)) return NotOfTheRun();
  ASSIGN_OR_RETURN(const uint64_t run, Metadata(context, kRunMetadata));
  ASSIGN_OR_RETURN(const uint64_t generation, Metadata(context, kGenerationMetadata));
  ASSIGN_OR_RETURN(const uint64_t cut, Metadata(context, kCutMetadata));
  std::shared_ptr<GrpcStream> stream = listeners.Find(cut);
  if (stream == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat("dialled for cut ", cut, " of run ", run,
                                                      ", generation ", generation,
                                                      ": no such cut is listened at"));
  }
  const LinkOptions& held = stream->options();
  if (!SameSecret(held.secret, secret)) return NotOfTheRun();
  RETURN_IF_ERROR(WantEqual("run", run, held.run, LinkName(held)));
  RETURN_IF_ERROR(WantEqual("generation", generation, held.generation, LinkName(held)));
  return stream;
}

class GrpcBoundaryService final
    : public BoundaryService,
      private Boundary::WithRawCallbackMethod_Exchange<Boundary::Service> {
 public:
  void Configure(const std::string& address, grpc::ServerBuilder* builder) override {
    PrepareDataServer(address, builder);
    builder->RegisterService(this);
  }

  void OnCall(CallListener on_call) override { on_call_ = std::move(on_call); }
  void Secure(const Security* security, Guard guard) override {
    security_ = security;
    guard_ = std::move(guard);
  }
  const Security& security() const override { return *security_; }

  absl::StatusOr<std::unique_ptr<Link>> Listen(const LinkOptions& options) override {
    ASSIGN_OR_RETURN(std::shared_ptr<GrpcStream> stream, listeners_.Add(options));
    return NewStreamLink(std::move(stream));
  }

 private:
  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* Exchange(
      grpc::CallbackServerContext* context) override {
    auto* reactor = new ServerReactor(context);
    const absl::Status allowed = guard_ ? guard_(*context) : absl::OkStatus();
    absl::StatusOr<std::shared_ptr<GrpcStream>> stream =
        allowed.ok() ? FindListener(listeners_, *context) : allowed;
    if (on_call_) on_call_(context->peer(), stream.ok());
    if (stream.ok()) {
      reactor->Accept(*std::move(stream));
    } else {
      reactor->Refuse(stream.status());
    }
    return reactor;
  }

  const Security plaintext_{};
  const Security* security_ = &plaintext_;
  Guard guard_;
  Listeners listeners_;
  CallListener on_call_;
};

}  // namespace

std::unique_ptr<BoundaryService> NewBoundaryService() {
  PrepareProcess();
  return std::make_unique<GrpcBoundaryService>();
}

}  // namespace thinwire
