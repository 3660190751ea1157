#include "coordinator/session/members_server.h"

#include <dirent.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "config/experiment.h"
#include "coordinator/fleet/fake_stage_testing.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

constexpr char kExperiment[] = R"(
name: joins
model: {name: resnet8, width: 4}
data: {name: digits, batch_size: 20, limit: 40, test_limit: 20}
pipeline: {cuts: [stem], stages: 2}
replicas: {count: 2}
membership: {open: true}
optimizer: {lr: 0.1}
epochs: 1
)";

// One offer, from its begin to its end.
class Offer {
 public:
  Offer(const std::string& server, const std::string& address, const std::string& build)
      : stub_(
            Membership::NewStub(grpc::CreateChannel(server, grpc::InsecureChannelCredentials()))) {
    JoinRequest request;
    request.set_address(address);
    request.mutable_build()->set_build_id(build);
    events_ = stub_->Join(&context_, request);
  }
  ~Offer() {
    context_.TryCancel();
    End();
  }
  // Returns the run that has taken the server in; empty: none.
  std::string Run() { return events_->Read(&event_) ? event_.run() : ""; }
  bool HasEnded() { return events_->Read(&event_) && event_.has_ended(); }
  grpc::Status End() {
    if (events_ == nullptr) return grpc::Status::OK;
    while (events_->Read(&event_)) continue;
    const grpc::Status status = events_->Finish();
    events_.reset();
    return status;
  }

 private:
  const std::unique_ptr<Membership::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<JoinEvent>> events_;
  JoinEvent event_;
};

class MembersServerTest : public ::testing::Test {
 protected:
  MembersServerTest() {
    Lease lease;
    lease.set_run("joins-1a2b");
    lease.set_generation(3);
    lease.set_secret("a secret of 16 bytes");
    joins_.SetLease(lease);
    joins_.SetFirst(stage_.build);
    joins_.SetEnds(stage_.configured, stage_.configured);
    auto server =
        MembersServer::Start("127.0.0.1:0", Security(), *ParseExperiment(kExperiment, "test", {}),
                             &joins_, [](const std::string&) {});
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  std::unique_ptr<Offer> OfferOf(const std::string& address) {
    return std::make_unique<Offer>(server_->address(), address, stage_.build.build_id());
  }

  FakeStage stage_;
  Joins joins_{"joins-1a2b", /*takes_others=*/false};
  std::unique_ptr<MembersServer> server_;
};

TEST_F(MembersServerTest, AServerIsTriedAndTakenInAndHearsOfTheEnd) {
  const auto offer = OfferOf(stage_.address());
  EXPECT_EQ(offer->Run(), "joins-1a2b");
  EXPECT_THAT(joins_.TakeAdmitted(), ::testing::ElementsAre(stage_.address()));
  EXPECT_THAT(stage_.calls(), ::testing::ElementsAre("Acquire", "Configure stage 0 threads 1",
                                                     "Configure stage 1 threads 1", "Release"));
  EXPECT_EQ(stage_.lease().generation(), 3u);
  server_.reset();
  EXPECT_TRUE(offer->HasEnded());
  EXPECT_TRUE(offer->End().ok());
}

TEST_F(MembersServerTest, AServerThatCannotBeReachedMayTryAgain) {
  const grpc::Status status = OfferOf("127.0.0.1:1")->End();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(status.error_message(), HasSubstr("run joins-1a2b has tried 127.0.0.1:1"));
}

TEST_F(MembersServerTest, AServerThatReadsOtherDataIsRefused) {
  FakeStage other;
  other.configured.set_train_digest(5);
  const grpc::Status status = OfferOf(other.address())->End();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(status.error_message(), HasSubstr("reads other data than run joins-1a2b"));
  EXPECT_TRUE(other.released());
}

TEST_F(MembersServerTest, OfTwoThatClaimOneAddressTheFirstHasIt) {
  const auto first = OfferOf(stage_.address());
  EXPECT_EQ(first->Run(), "joins-1a2b");
  EXPECT_EQ(OfferOf(stage_.address())->End().error_code(), grpc::StatusCode::ALREADY_EXISTS);
}

TEST_F(MembersServerTest, WithoutTheTokenNobodyComesIn) {
  const std::string path = ::testing::TempDir() + "/members_token";
  FILE* const file = fopen(path.c_str(), "w");
  fputs("a token of more than 16 bytes", file);
  fclose(file);
  SecurityOptions options;
  options.token_file = path;
  server_ = *MembersServer::Start("127.0.0.1:0", *Security::Load(options),
                                  *ParseExperiment(kExperiment, "test", {}), &joins_,
                                  [](const std::string&) {});
  EXPECT_EQ(OfferOf(stage_.address())->End().error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_TRUE(stage_.calls().empty()) << "nobody is dialled for a stranger";
}

// Returns how many descriptors this process has open.
int Descriptors() {
  DIR* const folder = opendir("/proc/self/fd");
  int number = 0;
  while (readdir(folder) != nullptr) ++number;
  closedir(folder);
  return number;
}

TEST_F(MembersServerTest, ServersThatComeAndGoLeaveNoDescriptors) {
  const auto come_and_go = [&](int times) {
    for (int i = 0; i < times; ++i) {
      ASSERT_EQ(OfferOf(stage_.address())->Run(), "joins-1a2b");
      while (joins_.IsConnected(stage_.address())) absl::SleepFor(absl::Milliseconds(1));
      joins_.TakeAdmitted();
    }
  };
  come_and_go(2);
  const int before = Descriptors();
  come_and_go(8);
  EXPECT_LE(Descriptors(), before + 4);
}

}  // namespace
}  // namespace thinwire
