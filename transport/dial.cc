#include "transport/dial.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/grpcpp.h"
#include "transport/local_memory.h"
#include "transport/settings.h"
#include "transport/status.h"
#include "transport/stream.h"
#include "wire/frame_checker.h"

namespace thinwire {
namespace {

// The client's end of a stream. Lives until OnDone.
class ClientReactor final : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>,
                            private StreamCalls {
 public:
  ClientReactor(const std::string& target, const LinkOptions& options, const Security& security)
      : stream_(options),
        stub_(grpc::CreateCustomChannel(target, security.ChannelCredentials(),
                                        DataChannelArguments(target))) {
    security.Show(&context_);
    context_.AddMetadata(kSecretMetadata, options.secret);
    context_.AddMetadata(kRunMetadata, absl::StrCat(options.run));
    context_.AddMetadata(kGenerationMetadata, absl::StrCat(options.generation));
    context_.AddMetadata(kCutMetadata, absl::StrCat(options.number()));
    context_.set_wait_for_ready(true);
    if (IsUnixSocket(target)) OfferMemory();
  }

  void Start() {
    stub_.PrepareBidiStreamingCall(&context_, kExchangeMethod, grpc::StubOptions(), this);
    AddHold();  // until Finish, since writes start outside of reactions
    stream_.Attach(this, std::move(memory_));
    StartCall();
  }

  GrpcStream* stream() { return &stream_; }

  void OnReadInitialMetadataDone(bool ok) override {
    if (!ok) return;
    const CallMetadata& answer = context_.GetServerInitialMetadata();
    stream_.OnAccepted(answer.count(kMemoryMetadata) > 0, ValueOf(answer, kDeviceMemoryMetadata));
  }
  void OnReadDone(bool ok) override { stream_.OnReadDone(ok); }
  void OnWriteDone(bool ok) override { stream_.OnWriteDone(ok); }
  void OnDone(const grpc::Status& status) override { stream_.OnDone(FromGrpcStatus(status)); }

 private:
  void StartRead(grpc::ByteBuffer* to) override { ClientBidiReactor::StartRead(to); }
  void StartWrite(const grpc::ByteBuffer* from) override { ClientBidiReactor::StartWrite(from); }
  void Cancel() override { context_.TryCancel(); }
  void Finish(Ending ending, const absl::Status&) override {
    if (ending != Ending::kPeerEnded) context_.TryCancel();
    RemoveHold();
  }
  std::string PeerAddress() const override { return context_.peer(); }
  bool status_follows() const override { return true; }

  // Offers shared memory; without it everything goes through the socket.
  void OfferMemory() {
    memory_ = MakeLocalMemory(stream_.options());
    if (memory_.host == nullptr) return;
    context_.AddMetadata(kMemoryMetadata, memory_.host->Ticket());
    if (memory_.device == nullptr) return;
    context_.AddMetadata(kDeviceMemoryMetadata, memory_.device->Ticket());
  }

  GrpcStream stream_;
  LocalMemory memory_;  // until Start
  grpc::GenericStub stub_;
  grpc::ClientContext context_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Link>> DialLink(const std::string& target,
                                               const LinkOptions& options, const Security& security,
                                               SteadyTime deadline,
                                               const std::function<absl::Status()>& stopped) {
  PrepareProcess();
  const auto reactor = std::make_shared<ClientReactor>(target, options, security);
  reactor->Start();
  const std::shared_ptr<GrpcStream> stream(reactor, reactor->stream());
  std::unique_ptr<Link> link = NewStreamLink(stream);  // shares ownership of the reactor
  const absl::Status accepted = stream->WaitAccepted(deadline, stopped);
  if (accepted.ok()) return link;
  const std::string message = absl::StrCat(LinkName(options), ": ", options.peer, " at ", target,
                                           " has not accepted the boundary: ", accepted.message());
  const bool is_refusal =
      absl::IsFailedPrecondition(accepted) || absl::IsPermissionDenied(accepted);
  if (is_refusal) return absl::Status(accepted.code(), message);
  return absl::UnavailableError(message);
}

}  // namespace thinwire
