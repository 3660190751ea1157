// A gRPC service that lets a call in only when its guard does. It has the calls that are added to
// it; others of its proto file are unimplemented.
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/message_lite.h"
#include "grpcpp/grpcpp.h"
#include "grpcpp/impl/codegen/proto_utils.h"
#include "grpcpp/support/method_handler.h"
#include "transport/status.h"

namespace thinwire {

// The handler with which gRPC calls a function that reads from `In` and writes to `Out`.
template <typename In, typename Out>
struct CallShape;
template <typename Request, typename Response>
struct CallShape<const Request, Response> {
  static constexpr auto kType = grpc::internal::RpcMethod::NORMAL_RPC;
  using Lite = google::protobuf::MessageLite;
  template <typename Service>
  using Handler = grpc::internal::RpcMethodHandler<Service, Request, Response, Lite, Lite>;
};
template <typename Request, typename Response>
struct CallShape<const Request, grpc::ServerWriter<Response>> {
  static constexpr auto kType = grpc::internal::RpcMethod::SERVER_STREAMING;
  template <typename Service>
  using Handler = grpc::internal::ServerStreamingHandler<Service, Request, Response>;
};
template <typename Request, typename Response>
struct CallShape<grpc::ServerReader<Request>, Response> {
  static constexpr auto kType = grpc::internal::RpcMethod::CLIENT_STREAMING;
  template <typename Service>
  using Handler = grpc::internal::ClientStreamingHandler<Service, Request, Response>;
};

class GuardedService : public grpc::Service {
 public:
  // Returns OK if the caller may call; otherwise the error that answers the call. Any thread.
  using Guard = std::function<absl::Status(const grpc::ServerContextBase&)>;

 protected:
  // `name`: with its package, as "thinwire.Stage".
  GuardedService(const std::string& name, Guard guard)
      : prefix_(absl::StrCat("/", name, "/")), guard_(std::move(guard)) {}

  // Adds the call `name`, which `answer` answers; before the server is built. A server interceptor
  // cannot take the guard's place: it cannot end a call with a status.
  template <typename In, typename Out>
  void Add(const char* name, std::function<absl::Status(grpc::ServerContext*, In*, Out*)> answer) {
    using Shape = CallShape<In, Out>;
    const std::string& path = paths_.emplace_back(absl::StrCat(prefix_, name));
    auto guarded = [answer = std::move(answer)](GuardedService* service,
                                                grpc::ServerContext* context, In* in, Out* out) {
      absl::Status status = service->guard_(*context);
      if (status.ok()) status = answer(context, in, out);
      return ToGrpcStatus(status);
    };
    AddMethod(new grpc::internal::RpcServiceMethod(
        path.c_str(), Shape::kType,
        new typename Shape::template Handler<GuardedService>(std::move(guarded), this)));
  }

 private:
  const std::string prefix_;
  const Guard guard_;
  std::deque<std::string> paths_;  // which gRPC does not copy
};

}  // namespace thinwire
