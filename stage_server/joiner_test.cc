#include "stage_server/joiner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"

namespace thinwire {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(AdvertisedAddressTest, IsOneThatOthersReach) {
  EXPECT_EQ(*AdvertisedAddress("", "10.0.0.9:4700"), "10.0.0.9:4700");
  EXPECT_EQ(*AdvertisedAddress("node3:4701", "0.0.0.0:4700"), "node3:4701");
  EXPECT_THAT(std::string(AdvertisedAddress("", "0.0.0.0:4700").status().message()),
              AllOf(HasSubstr("--listen 0.0.0.0:4700"), HasSubstr("want --advertise host:port")));
  EXPECT_THAT(std::string(AdvertisedAddress("node3:0", "10.0.0.9:4700").status().message()),
              HasSubstr("--advertise node3:0"));
  EXPECT_FALSE(AdvertisedAddress("node3", "10.0.0.9:4700").ok());
  EXPECT_FALSE(AdvertisedAddress("", "unix:/tmp/x").ok());
}

// A coordinator that answers each offer as the test says.
class FakeCoordinator final : public Membership::Service {
 public:
  FakeCoordinator() {
    int port = 0;
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    address_ = absl::StrCat("127.0.0.1:", port);
  }
  ~FakeCoordinator() override { server_->Shutdown(std::chrono::system_clock::now()); }

  grpc::Status Join(grpc::ServerContext* context, const JoinRequest* request,
                    grpc::ServerWriter<JoinEvent>* events) override {
    EXPECT_EQ(request->address(), "node3:4700");
    ++offers;
    return answer(*request, context, events);
  }

  const std::string& address() const { return address_; }

  std::function<grpc::Status(const JoinRequest&, grpc::ServerContext*,
                             grpc::ServerWriter<JoinEvent>*)>
      answer;
  std::atomic<int> offers{0};

 private:
  std::string address_;
  std::unique_ptr<grpc::Server> server_;
};

class JoinerTest : public ::testing::Test {
 protected:
  std::unique_ptr<Joiner> Join() {
    JoinOptions options;
    options.coordinator = coordinator_.address();
    options.address = "node3:4700";
    options.offer = [] {
      JoinRequest offer;
      offer.set_run("digits-1a2b");
      return offer;
    };
    options.on_refused = [this] { refused_.Notify(); };
    options.first_wait = options.most_wait = absl::Milliseconds(5);
    return std::make_unique<Joiner>(std::move(options), &log_);
  }
  static grpc::Status Hang(grpc::ServerContext* context) {
    while (!context->IsCancelled()) absl::SleepFor(absl::Milliseconds(1));
    return grpc::Status::CANCELLED;
  }

  Log log_;
  FakeCoordinator coordinator_;
  absl::Notification refused_;
};

TEST_F(JoinerTest, OffersAgainUntilItIsTakenInAndAfterTheEnd) {
  absl::Notification is_in;
  coordinator_.answer = [&](const JoinRequest& request, auto* context, auto* events) {
    EXPECT_EQ(request.run(), "digits-1a2b");
    if (coordinator_.offers == 1) return grpc::Status(grpc::StatusCode::UNAVAILABLE, "not yet");
    JoinEvent event;
    event.set_run("digits-1a2b");
    events->Write(event);
    event.set_has_ended(true);
    if (coordinator_.offers == 2) events->Write(event);
    if (coordinator_.offers == 2) return grpc::Status::OK;
    is_in.Notify();
    return Hang(context);
  };
  const auto joiner = Join();
  is_in.WaitForNotification();
  EXPECT_EQ(coordinator_.offers, 3);
  EXPECT_FALSE(refused_.HasBeenNotified());
}

TEST_F(JoinerTest, ItsEndWithdrawsTheOffer) {
  absl::Notification is_in, is_withdrawn;
  coordinator_.answer = [&](const JoinRequest&, auto* context, auto*) {
    is_in.Notify();
    const grpc::Status status = Hang(context);
    is_withdrawn.Notify();
    return status;
  };
  auto joiner = Join();
  is_in.WaitForNotification();
  joiner.reset();
  is_withdrawn.WaitForNotification();
}

TEST_F(JoinerTest, ARefusalIsFinal) {
  coordinator_.answer = [](const JoinRequest&, auto*, auto*) {
    return grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, "of another build");
  };
  const auto joiner = Join();
  refused_.WaitForNotification();
  EXPECT_EQ(coordinator_.offers, 1);
}

TEST_F(JoinerTest, AnAddressThatAnotherServerHasMayBeFreeLater) {
  absl::Notification again;
  coordinator_.answer = [&](const JoinRequest&, auto*, auto*) {
    if (coordinator_.offers == 2) again.Notify();
    return grpc::Status(grpc::StatusCode::ALREADY_EXISTS, "taken");
  };
  const auto joiner = Join();
  again.WaitForNotification();
  EXPECT_FALSE(refused_.HasBeenNotified());
}

}  // namespace
}  // namespace thinwire
