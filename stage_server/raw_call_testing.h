// One call of any name with arbitrary bytes as messages, as a peer may make it that follows no
// proto file. Not thread-safe.
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

  // Begins the call, which ends by itself after `patience`. `method` is like
  // "/package.Service/Name".
  RawCall(grpc::GenericStub* stub, const std::string& method, const Metadata& metadata,
          absl::Duration patience);
  // Cancels the call if it has not ended.
  ~RawCall();

  // These return false, or nothing, once the call is over.
  bool Write(std::string_view message);
  bool WritesDone();
  std::optional<std::string> Read();

  void Cancel() { context_.TryCancel(); }
  // Reads what is left and returns the status. Idempotent.
  const grpc::Status& Finish();

 private:
  bool Await();  // waits for the one operation under way; returns whether it succeeded

  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream_;
  std::optional<grpc::Status> status_;
};

}  // namespace thinwire
