// Checks what every call of service Stage must be part of.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/grpcpp.h"
#include "prometheus/registry.h"
#include "proto/stage.grpc.pb.h"
#include "stage_server/control_calls_testing.h"
#include "stage_server/raw_call_testing.h"
#include "stage_server/service.h"

namespace thinwire {
namespace {

using ::testing::UnorderedElementsAreArray;

std::vector<std::string> Calls() {
  const auto* service = AcquireRequest::descriptor()->file()->FindServiceByName("Stage");
  std::vector<std::string> names;
  for (int i = 0; i < service->method_count(); ++i) names.push_back(service->method(i)->name());
  return names;
}

// One that was not added would be unimplemented.
TEST(GuardedServiceTest, EveryCallIsThereBehindTheGuard) {
  Log no_log;
  prometheus::Registry registry;
  Journal journal(&no_log, &registry);
  const std::unique_ptr<BoundaryService> boundaries = NewBoundaryService();
  StageService service([](const auto&) { return absl::PermissionDeniedError("not you"); }, {},
                       boundaries.get(), &journal);
  grpc::ServerBuilder builder;
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  grpc::GenericStub stub(server->InProcessChannel({}));
  for (const std::string& name : Calls()) {
    RawCall call(&stub, "/thinwire.Stage/" + name, {}, absl::Seconds(20));
    if (call.Write("")) call.WritesDone();
    EXPECT_EQ(call.Finish().error_code(), grpc::StatusCode::PERMISSION_DENIED) << name;
    EXPECT_EQ(call.Finish().error_message(), "not you");
  }
  server->Shutdown();
}

TEST(ControlCallsTest, AreAllButThoseThatMeasureLinksOrEndTheServer) {
  std::vector<std::string> names = {"AnswerLink", "Drain", "MeasureLink"};
  for (const ControlCall& call : ControlCalls()) names.emplace_back(call.method);
  EXPECT_THAT(names, UnorderedElementsAreArray(Calls()));
}

}  // namespace
}  // namespace thinwire
