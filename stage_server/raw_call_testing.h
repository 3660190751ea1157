// One call of any name with any bytes for messages, as a peer may make it that keeps to no proto
// file. One thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/grpcpp.h"

namespace thinwire {

class RawCall {
 public:
  using Metadata = std::vector<std::pair<std::string, std::string>>;

  // Begins the call, which ends by itself after `patience`. `method`: "/package.Service/Name".
  RawCall(grpc::GenericStub* stub, const std::string& method, const Metadata& metadata,
          absl::Duration patience);
  // Cancels what has not ended.
  ~RawCall();

  // False once the call is over.
  bool Write(std::string_view message);
  bool WritesDone();
  std::optional<std::string> Read();

  void Cancel() { context_.TryCancel(); }
  // Reads what is left. Idempotent.
  const grpc::Status& Finish();

 private:
  bool Await();  // for the one operation that is under way; whether it went well

  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream_;
  std::optional<grpc::Status> status_;
};

}  // namespace thinwire
