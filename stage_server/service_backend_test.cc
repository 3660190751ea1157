// Makes control calls to a service with a backend of the test's own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/steady_time.h"
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

// How long a recording takes to start and to stop.
constexpr absl::Duration kRecordingTakes = absl::Milliseconds(30);

// Tells of one kernel from the begin of the recording to its end.
class OneKernel final : public ActivityRecorder {
 public:
  Error Start() override {
    kernel_.begin = SteadyTime::Now().nanoseconds();
    absl::SleepFor(kRecordingTakes);
    return Error{};
  }
  Error Stop(size_t* kept, uint64_t* dropped) override {
    kernel_.end = SteadyTime::Now().nanoseconds();
    *kept = 1;
    *dropped = 3;
    return Error{};
  }
  void Copy(DeviceActivity* activities) const override { *activities = kernel_; }

 private:
  DeviceActivity kernel_{DeviceActivity::Kind::kKernel, 7, 0, 0, 1, "Softmax"};
};

// Makes recorders, or says why not, and nothing else.
class RecordingPlugin final : public BackendPlugin {
 public:
  Error CountDevices(int* /*count*/) override { return Nothing(); }
  Error Describe(int /*index*/, DeviceDescription* /*description*/) override { return Nothing(); }
  Error Open(int /*index*/, Device** /*device*/, CodecKernels** /*kernels*/,
             DirectCopies** /*copies*/) override {
    return Nothing();
  }
  Error NewOps(Device* /*device*/, const OpsOptions& /*options*/, Ops** /*ops*/) override {
    return Nothing();
  }
  Error NewActivityRecorder(size_t /*most*/, ActivityRecorder** recorder) override {
    ++num_asked;
    if (!can_record) return MakeError(absl::StatusCode::kUnavailable, "no libcupti.so.13");
    *recorder = new OneKernel;
    return Error{};
  }

  bool can_record = true;
  int num_asked = 0;

 private:
  static Error Nothing() { return MakeError(absl::StatusCode::kUnimplemented, "it only records"); }
};

class DeviceTraceServiceTest : public BackendTest {
 protected:
  DeviceTraceServiceTest() {
    open_ = [this](const BackendRequest& request) {
      absl::StatusOr<Backend> backend = OpenBackend(request, "");
      if (backend.ok()) backend->plugin = &plugin_;
      return backend;
    };
    trace_.emplace();
    trace_->set_first(2);
    trace_->set_last(2);
  }
  // Trains an epoch of two steps in a lease.
  void TrainOnce(const Lease& lease) {
    ASSERT_TRUE(Acquire(lease, &acquired_).ok());
    const grpc::Status configured = Configure(lease, 0, 1, &configured_);
    ASSERT_TRUE(configured.ok()) << configured.error_message();
    int steps = 0;
    ASSERT_TRUE(Train(lease, 40, &steps).ok());
    ASSERT_TRUE(Release(lease).ok());
  }

  RecordingPlugin plugin_;
};

TEST_F(DeviceTraceServiceTest, SlicesOfTheDeviceComeWithThoseOfItsStep) {
  TrainOnce(LeaseOf("one"));
  const TraceSlice* kernel = nullptr;
  const TraceSlice* step = nullptr;
  for (const TraceSlice& slice : traced_.slices()) {
    if (slice.name() == "kernel Softmax") {
      kernel = &slice;
      EXPECT_EQ(step, nullptr) << "the coordinator waits for the step's slice only";
    }
    if (slice.name() == "step") step = &slice;
  }
  ASSERT_NE(kernel, nullptr);
  ASSERT_NE(step, nullptr);
  EXPECT_EQ(kernel->step(), 2u);
  EXPECT_EQ(kernel->stream(), 7u);
  // Neither start nor stop is a part of the step.
  EXPECT_LE(kernel->begin() + absl::ToInt64Nanoseconds(kRecordingTakes), step->begin());
  EXPECT_GE(kernel->end(), step->end());
  EXPECT_EQ(traced_.dropped(), 3u);
}

TEST_F(DeviceTraceServiceTest, ADeviceThatCannotBeRecordedLeavesTheTraceOfThreads) {
  plugin_.can_record = false;
  TrainOnce(LeaseOf("one"));
  EXPECT_EQ(plugin_.num_asked, 1);
  EXPECT_EQ(traced_.slices_size(), 6);  // of one microbatch
  for (const TraceSlice& slice : traced_.slices()) EXPECT_NE(slice.thread(), TraceSlice::DEVICE);
}

TEST_F(DeviceTraceServiceTest, AGpuIsRecordedByCupti) {
  setenv("LD_LIBRARY_PATH", "tensor/cuda/fake_cupti", /*overwrite=*/1);
  open_ = [](const BackendRequest& request) {
    return OpenBackend(request, "backend/emulated/libthinwire_emulated.so");
  };
  overrides_ = {"device=cuda"};
  TrainOnce(LeaseOf("one"));
  std::vector<std::string> names;
  for (const TraceSlice& slice : traced_.slices()) {
    EXPECT_EQ(slice.step(), 2u);
    if (slice.thread() == TraceSlice::DEVICE) names.push_back(slice.name());
  }
  EXPECT_THAT(names, testing::UnorderedElementsAre("kernel Softmax<float>", "kernel cutlass_gemm",
                                                   "copy to_device", "copy within_device", "clear",
                                                   "copy to_host"));
  EXPECT_EQ(traced_.dropped(), 3u);
}

TEST_F(DeviceTraceServiceTest, WithoutATraceNobodyAsksForARecorder) {
  trace_.reset();
  TrainOnce(LeaseOf("one"));
  EXPECT_EQ(plugin_.num_asked, 0);
  EXPECT_EQ(traced_.slices_size(), 0);
}

}  // namespace
}  // namespace thinwire
