#include <gmock/gmock.h>

#include "base/steady_time.h"
#include "stage_server/service_testing.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

constexpr char kLinkSecret[] = "sixteen bytes or more";

// The fixture's server measures; another server answers.
class LinksTest : public ServiceTest {
 protected:
  void SetUp() override {
    ServiceTest::SetUp();
    other_server_ = *StartStageServer({});
    other_ = Stage::NewStub(
        grpc::CreateChannel(other_server_->address(), grpc::InsecureChannelCredentials()));
    ASSERT_TRUE(Take(stub_.get()));
    ASSERT_TRUE(Take(other_.get()));
  }

  bool Take(Stage::Stub* stub) {
    grpc::ClientContext context;
    AcquireRequest request;
    *request.mutable_lease() = LeaseOf("doctor");
    request.set_lease_seconds(60);
    AcquireResponse response;
    const bool taken = stub->Acquire(&context, request, &response).ok();
    EXPECT_GT(response.memory_bytes(), 0u);
    return taken;
  }
  grpc::Status Measure(const Lease& lease, MeasureLinkResponse* response,
                       const std::string& secret = kLinkSecret) {
    grpc::ClientContext context;
    MeasureLinkRequest request;
    *request.mutable_lease() = lease;
    request.set_link_secret(secret);
    request.set_downstream(other_server_->address());
    return stub_->MeasureLink(&context, request, response);
  }

  std::unique_ptr<StageServer> other_server_;
  std::unique_ptr<Stage::Stub> other_;
};

TEST_F(LinksTest, AStageMeasuresTheWayToOneThatAnswers) {
  grpc::ClientContext context;
  AnswerLinkRequest request;
  *request.mutable_lease() = LeaseOf("doctor");
  request.set_link_secret(kLinkSecret);
  const auto answering = other_->AnswerLink(&context, request);
  AnswerLinkResponse listens;
  ASSERT_TRUE(answering->Read(&listens));
  MeasureLinkResponse refused;
  EXPECT_EQ(Measure(LeaseOf("doctor"), &refused, "another secret of sixteen").error_code(),
            grpc::StatusCode::PERMISSION_DENIED);
  MeasureLinkResponse speed;
  const grpc::Status measured = Measure(LeaseOf("doctor"), &speed);
  ASSERT_TRUE(measured.ok()) << measured.error_message();
  EXPECT_GT(speed.round_trip_seconds(), 0);
  EXPECT_GT(speed.down_bytes_per_second(), 1e5);
  EXPECT_GT(speed.up_bytes_per_second(), 1e5);
  EXPECT_FALSE(answering->Read(&listens));
  const grpc::Status answered = answering->Finish();
  EXPECT_TRUE(answered.ok()) << answered.error_message();
}

TEST_F(LinksTest, NobodyMeasuresWithoutTheLeaseOrBesideARun) {
  MeasureLinkResponse speed;
  EXPECT_EQ(Measure(LeaseOf("another"), &speed).error_code(),
            grpc::StatusCode::FAILED_PRECONDITION);
  ConfigureResponse configured;
  ASSERT_TRUE(Configure(LeaseOf("doctor"), 0, 1, &configured).ok());
  EXPECT_THAT(Measure(LeaseOf("doctor"), &speed).error_message(),
              HasSubstr("the stage is configured"));
}

TEST_F(LinksTest, AnAnswerThatNobodyWaitsForEndsWithTheLease) {
  grpc::ClientContext context;
  AnswerLinkRequest request;
  *request.mutable_lease() = LeaseOf("doctor");
  request.set_link_secret(kLinkSecret);
  const auto answering = other_->AnswerLink(&context, request);
  AnswerLinkResponse listens;
  ASSERT_TRUE(answering->Read(&listens));
  grpc::ClientContext release;
  ReleaseRequest released;
  *released.mutable_lease() = LeaseOf("doctor");
  ReleaseResponse response;
  ASSERT_TRUE(other_->Release(&release, released, &response).ok());
  const SteadyTime start = SteadyTime::Now();
  EXPECT_FALSE(answering->Read(&listens));
  EXPECT_FALSE(answering->Finish().ok());
  EXPECT_LT(SecondsSince(start), 10);
}

}  // namespace
}  // namespace thinwire
