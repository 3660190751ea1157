#include "stage_server/grpc/link.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/steady_time.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/grpcpp.h"
#include "stage_server/grpc/settings.h"
#include "stage_server/grpc/stream.h"

namespace thinwire {
namespace {

// How long the end of a cancelled call may take. gRPC answers in milliseconds; this only bounds
// what a defect could cost.
constexpr absl::Duration kMaxEnding = absl::Seconds(10);

// The codes of the two are the same numbers.
absl::Status FromGrpcStatus(const grpc::Status& status) {
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

// The client's end of a stream. Lives until OnDone.
class ClientReactor final : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>,
                            private StreamCalls {
 public:
  ClientReactor(const std::string& target, const LinkOptions& options)
      : stream_(options),
        stub_(grpc::CreateCustomChannel(target, grpc::InsecureChannelCredentials(),
                                        DataChannelArguments(target))) {
    context_.AddMetadata(kRunMetadata, absl::StrCat(options.run));
    context_.AddMetadata(kGenerationMetadata, absl::StrCat(options.generation));
    context_.AddMetadata(kCutMetadata, absl::StrCat(options.cut));
    context_.set_wait_for_ready(true);
  }

  void Start() {
    stub_.PrepareBidiStreamingCall(&context_, kExchangeMethod, grpc::StubOptions(), this);
    AddHold();  // until Finish: writes start from outside of reactions
    stream_.Attach(this);
    StartCall();
  }

  GrpcStream* stream() { return &stream_; }

  void OnReadInitialMetadataDone(bool ok) override {
    if (ok) stream_.OnAccepted();
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

  GrpcStream stream_;
  grpc::GenericStub stub_;
  grpc::ClientContext context_;
};

class DialledLink final : public Link {
 public:
  DialledLink(const std::string& target, const LinkOptions& options)
      : reactor_(std::make_unique<ClientReactor>(target, options)), stream_(reactor_->stream()) {
    reactor_->Start();
  }
  ~DialledLink() override {
    stream_->Close(absl::CancelledError("the link was destroyed"));
    // Rather a leak than freeing what gRPC still uses.
    if (!stream_->WaitDone(SteadyTime::Now() + kMaxEnding)) reactor_.release();
  }

  absl::Status WaitAccepted(SteadyTime deadline, const std::function<absl::Status()>& stopped) {
    return stream_->WaitAccepted(deadline, stopped);
  }

  uint64_t Send(Message message) override { return stream_->Send(message); }
  absl::StatusOr<Message> Receive(SteadyTime deadline) override {
    return stream_->Receive(deadline);
  }
  void Close(absl::Status reason) override { stream_->Close(reason); }
  absl::Status Flush(SteadyTime deadline) override { return stream_->Flush(deadline); }
  uint64_t SocketBytesAcked() const override { return stream_->SocketBytesAcked(); }

 private:
  std::unique_ptr<ClientReactor> reactor_;
  GrpcStream* const stream_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Link>> DialLink(const std::string& target,
                                               const LinkOptions& options, SteadyTime deadline,
                                               const std::function<absl::Status()>& stopped) {
  PrepareProcess();
  auto link = std::make_unique<DialledLink>(target, options);
  const absl::Status accepted = link->WaitAccepted(deadline, stopped);
  if (accepted.ok()) return std::unique_ptr<Link>(std::move(link));
  const std::string message = absl::StrCat("cut ", options.name, ": ", options.peer, " at ", target,
                                           " has not accepted the boundary: ", accepted.message());
  if (absl::IsFailedPrecondition(accepted)) return absl::FailedPreconditionError(message);
  return absl::UnavailableError(message);
}

}  // namespace thinwire
