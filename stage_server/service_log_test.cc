// Checks what a server's log says about a run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "grpcpp/grpcpp.h"
#include "spdlog/sinks/base_sink.h"
#include "stage_server/service_testing.h"

namespace thinwire {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

// Keeps the lines of a log, without their times.
class KeptLines final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  std::vector<std::string> lines() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return lines_;
  }

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t buffer;
    formatter_->format(message, buffer);
    const std::string line(buffer.data(), buffer.size() - 1);  // without the line's end
    lines_.push_back(line.substr(line.find(' ') + 1));
  }
  void flush_() override {}

  std::vector<std::string> lines_;
};

class ServiceLogTest : public ServiceTest {
 protected:
  ServiceLogTest() { log_ = *Log::New({}, logged_); }
  std::vector<std::string> Lines() const { return logged_->lines(); }

  const std::shared_ptr<KeptLines> logged_ = std::make_shared<KeptLines>();
};

TEST_F(ServiceLogTest, WhoLacksTheLeasesSecretIsToldNothingOfIt) {
  constexpr char kRefusal[] =
      "this server is leased, and this call does not have the lease's secret";
  ASSERT_TRUE(Acquire(LeaseOf("one"), &acquired_).ok());
  ASSERT_TRUE(Configure(LeaseOf("one"), 0, 1, &configured_).ok());
  Lease outsider = LeaseOf("one", 2);
  outsider.set_secret("a guess of a secret");
  const grpc::Status status = Acquire(outsider, &acquired_);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(status.error_message(),
              MatchesRegex("this server is leased to another run until [0-9:]+ UTC, [0-9]+ s from "
                           "now, unless it is renewed"));
  EXPECT_THAT(Lines().back(),
              MatchesRegex("warning run one: a lease is refused to a test at ipv4:.*: this server "
                           "is leased.*; it is of run one generation 1 \\(a test at ipv4:.*\\)"));
  const size_t lines = Lines().size();
  EXPECT_FALSE(Acquire(outsider, &acquired_).ok());
  EXPECT_EQ(Lines().size(), lines) << "who waits for the server is told of once";
  outsider.set_generation(1);
  EXPECT_EQ(Release(outsider).error_message(), kRefusal);
  EXPECT_EQ(Evaluate(outsider, 20).error_message(), kRefusal);
  int steps = 0;
  EXPECT_EQ(Train(outsider, 40, &steps).error_message(), kRefusal);
  EXPECT_TRUE(Train(LeaseOf("one"), 40, &steps).ok());
}

TEST_F(ServiceLogTest, TheLogTellsARunFromItsLeaseToItsRelease) {
  const Lease lease = LeaseOf("one");
  ASSERT_TRUE(Acquire(lease, &acquired_).ok());
  ASSERT_TRUE(Configure(lease, 0, 1, &configured_).ok());
  ASSERT_TRUE(Connect(lease, "").ok());
  int steps = 0;
  ASSERT_TRUE(Train(lease, 40, &steps).ok());
  ASSERT_TRUE(Evaluate(lease, 20).ok());
  ASSERT_TRUE(Release(lease).ok());
  server_->Shutdown();
  EXPECT_THAT(
      Lines(),
      ElementsAre(
          MatchesRegex("info    run one: leased to a test at ipv4:127.0.0.1:[0-9]+ for 60 s from "
                       "each renewal, generation 1"),
          MatchesRegex("info    run one, stage 0: configured as stage 0 of 1: resnet8, [0-9]+ "
                       "parameters here, on cpu with 1 thread"),
          "info    run one, stage 0: last stage, nothing to connect to",
          "info    run one, stage 0: epoch 1 begins: 40 samples",
          MatchesRegex("info    run one, stage 0: epoch 1 is trained: 40 samples in [0-9.]+ s, "
                       "[0-9]+ samples/s"),
          MatchesRegex("info    run one, stage 0: evaluated in epoch 1 without codecs: 20 "
                       "samples in [0-9.]+ s, loss [0-9.]+, accuracy [0-9.]+ %"),
          "info    run one, stage 0: released by its coordinator; the server is free"));
}

TEST_F(ServiceLogTest, TheLogNamesTheCodecsOfTheCuts) {
  overrides_ = {"pipeline.cuts=[layer1]", "pipeline.stages=2",
                "compression.activations={codec: uniform, bits: 4, feedback: ef}"};
  ASSERT_TRUE(Acquire(LeaseOf("one"), &acquired_).ok());
  ASSERT_TRUE(Configure(LeaseOf("one"), 1, 2, &configured_).ok());
  EXPECT_THAT(Lines().back(), AllOf(HasSubstr("stage 1 of 2"),
                                    HasSubstr("with 2 threads; cut layer1: activations "
                                              "uniform(bits=4, "),
                                    HasSubstr(") with ef("), HasSubstr(", gradients none")));
}

TEST_F(ServiceLogTest, TheLogSaysWhatWasRefusedAndWhatFailed) {
  ASSERT_TRUE(Acquire(LeaseOf("one"), &acquired_).ok());
  EXPECT_FALSE(Acquire(LeaseOf("two"), &acquired_).ok());
  EXPECT_THAT(
      Lines().back(),
      MatchesRegex("warning run two: a lease is refused to a test at ipv4:.*: this server "
                   "is leased to run one generation 1, refused run two generation 1; it is of "
                   "run one generation 1 .*"));
  EXPECT_FALSE(Configure(LeaseOf("one"), 7, 1, &configured_).ok());
  EXPECT_THAT(Lines().back(),
              MatchesRegex("error   run one, stage 7: Configure failed \\(invalid_argument\\): "
                           ".*stage 7, want 0 to 0.*"));
  int steps = 0;
  EXPECT_FALSE(Train(LeaseOf("one"), 40, &steps).ok());
  EXPECT_EQ(Lines().back(),
            "error   run one: Train failed (failed_precondition): the stage is not configured");
}

TEST_F(ServiceLogTest, ALeaseThatRunsOutIsLogged) {
  AcquireRequest request;
  *request.mutable_lease() = LeaseOf("one");
  request.set_lease_seconds(0.01);
  grpc::ClientContext context;
  ASSERT_TRUE(stub_->Acquire(&context, request, &acquired_).ok());
  while (Lines().size() < 2) absl::SleepFor(absl::Milliseconds(10));
  EXPECT_EQ(Lines().back(),
            "error   run one: the coordinator stopped renewing its lease; the run ends here and "
            "the server is free");
}

}  // namespace
}  // namespace thinwire
