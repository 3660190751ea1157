#include "transport/raw_peer_testing.h"

#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "transport/settings.h"

namespace thinwire {

RawPeer::RawPeer(const std::string& address, const std::string& ticket,
                 const std::string& device_ticket)
    : channel_(grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(),
                                         DataChannelArguments(address))),
      method_(kExchangeMethod, grpc::internal::RpcMethod::BIDI_STREAMING) {
  context_.set_wait_for_ready(true);
  context_.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(30)));
  context_.AddMetadata("thinwire-link-secret-bin", "what a link shows");
  context_.AddMetadata("thinwire-run", "77");
  context_.AddMetadata("thinwire-generation", "5");
  context_.AddMetadata("thinwire-cut", "3");
  if (!ticket.empty()) context_.AddMetadata("thinwire-memory", ticket);
  if (!device_ticket.empty()) context_.AddMetadata("thinwire-device-memory", device_ticket);
  using Factory = grpc::internal::ClientReaderWriterFactory<grpc::ByteBuffer, grpc::ByteBuffer>;
  stream_.reset(Factory::Create(channel_.get(), method_, &context_));
}

RawPeer::~RawPeer() {
  context_.TryCancel();
  if (!finished_) stream_->Finish();
}

void RawPeer::Write(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  stream_->Write(grpc::ByteBuffer(&slice, 1));
}

std::string RawPeer::Answer(const std::string& name) {
  if (!std::exchange(is_answered_, true)) stream_->WaitForInitialMetadata();
  const auto found = context_.GetServerInitialMetadata().find(name);
  if (found == context_.GetServerInitialMetadata().end()) return "";
  return {found->second.data(), found->second.size()};
}

grpc::Status RawPeer::End() {
  grpc::ByteBuffer ignored;
  while (stream_->Read(&ignored)) {
  }
  finished_ = true;
  return stream_->Finish();
}

}  // namespace thinwire
