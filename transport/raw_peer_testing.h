// A peer of a link that does what it likes.
#pragma once

#include <memory>
#include <string>

#include "grpcpp/grpcpp.h"
#include "grpcpp/impl/rpc_method.h"
#include "grpcpp/support/sync_stream.h"
#include "proto/boundary.pb.h"

namespace thinwire {

// Dials a link of DownstreamOptions() and writes arbitrary bytes, using plain gRPC and none of our
// code.
class RawPeer {
 public:
  // Offers memory by these tickets; empty: offers none.
  explicit RawPeer(const std::string& address, const std::string& ticket = "",
                   const std::string& device_ticket = "");
  ~RawPeer();

  void Write(const std::string& bytes);
  void Write(const Frame& frame) { Write(frame.SerializeAsString()); }
  void WritesDone() { stream_->WritesDone(); }

  // Returns a value of the server's answer; empty if it has none of that name.
  std::string Answer(const std::string& name);
  // Returns whether the server has opened the memory of the ticket.
  bool Shares() { return !Answer("thinwire-memory").empty(); }

  // Returns the status with which the server ended the call.
  grpc::Status End();

 private:
  std::shared_ptr<grpc::Channel> channel_;
  grpc::internal::RpcMethod method_;
  bool finished_ = false, is_answered_ = false;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer>> stream_;
};

}  // namespace thinwire
