// Makes control calls to a service with a backend of the test's own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "grpcpp/grpcpp.h"
#include "prometheus/text_serializer.h"
#include "stage_server/service.h"
#include "stage_server/service_testing.h"
#include "tensor/host_pool.h"

namespace thinwire {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// The service with a backend of the test's own.
class BackendTest : public ServiceTest {
 protected:
  BackendTest()
      : boundaries_(NewBoundaryService()),
        service_([](const auto&) { return absl::OkStatus(); },
                 [this](const BackendRequest& request) { return open_(request); },
                 boundaries_.get(), &journal_) {}
  void SetUp() override {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    boundaries_->Configure("127.0.0.1:0", &builder);
    builder.RegisterService(&service_);
    grpc_server_ = builder.BuildAndStart();
    channel_ =
        grpc::CreateChannel(absl::StrCat("127.0.0.1:", port), grpc::InsecureChannelCredentials());
    stub_ = Stage::NewStub(channel_);
  }

  StageService::BackendFactory open_;
  Log no_log_;
  prometheus::Registry registry_;
  Journal journal_{&no_log_, &registry_};
  std::unique_ptr<BoundaryService> boundaries_;
  StageService service_;
  std::unique_ptr<grpc::Server> grpc_server_;
};

TEST_F(BackendTest, AStageBuiltForALeaseThatHasEndedIsNobodys) {
  absl::Notification building, go;
  int opened = 0;
  open_ = [&](const BackendRequest& request) {
    if (++opened == 1) {
      building.Notify();
      go.WaitForNotification();
    }
    return OpenBackend(request, "");
  };
  ASSERT_TRUE(Acquire(LeaseOf("one"), &acquired_).ok());
  grpc::Status late;
  std::thread configure([&] {
    ConfigureResponse response;
    late = Configure(LeaseOf("one"), 0, 1, &response);
  });
  building.WaitForNotification();
  ASSERT_TRUE(Release(LeaseOf("one")).ok());
  ASSERT_TRUE(Acquire(LeaseOf("two"), &acquired_).ok());
  go.Notify();
  configure.join();
  EXPECT_EQ(late.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(late.error_message(), HasSubstr("leased to run two"));
  int steps = 0;
  EXPECT_THAT(Train(LeaseOf("two"), 40, &steps).error_message(), HasSubstr("not configured"));
  EXPECT_THAT(prometheus::TextSerializer().Serialize(registry_.Collect()),
              AllOf(HasSubstr("thinwire_errors_total{kind=\"failed_precondition\"} 2\n"),
                    HasSubstr("thinwire_errors_total{kind=\"peer_gone\"} 0\n")));
  ASSERT_TRUE(Configure(LeaseOf("two"), 0, 1, &configured_).ok());
  EXPECT_TRUE(Train(LeaseOf("two"), 40, &steps).ok());
}

// The CPU's memory pool, which counts what is in use.
class CountedMemory final : public HostPool {
 public:
  const char* name() const override { return "counted"; }
  int num_blocks() const { return num_blocks_; }

 private:
  void* Obtain(size_t bytes) override {
    ++num_blocks_;
    return std::aligned_alloc(kAlignment, bytes);
  }
  void Return(void* memory) override {
    --num_blocks_;
    std::free(memory);
  }
  std::atomic<int> num_blocks_{0};
};

TEST_F(BackendTest, ARunGivesBackItsMemory) {
  CountedMemory memory;
  open_ = [&memory](const BackendRequest& request) -> absl::StatusOr<Backend> {
    absl::StatusOr<Backend> backend = OpenBackend(request, "");
    if (backend.ok()) backend->device = &memory;
    return backend;
  };
  for (const char* width : {"model.width=4", "model.width=6"}) {
    overrides_ = {width, "pipeline.cuts=[layer1]", "pipeline.stages=1"};
    ASSERT_TRUE(Acquire(LeaseOf(width), &acquired_).ok());
    ASSERT_TRUE(Configure(LeaseOf(width), 0, 1, &configured_).ok());
    int steps = 0;
    const grpc::Status status = Train(LeaseOf(width), 40, &steps);
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_GT(memory.num_blocks(), 0);
    ASSERT_TRUE(Release(LeaseOf(width)).ok());
    EXPECT_EQ(memory.num_blocks(), 0);
  }
}

}  // namespace
}  // namespace thinwire
