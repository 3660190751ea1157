#include "transport/status.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

TEST(ToGrpcStatusTest, KeepsCodeAndMessage) {
  const grpc::Status status = ToGrpcStatus(absl::DataLossError("a file is cut off"));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::DATA_LOSS);
  EXPECT_EQ(status.error_message(), "a file is cut off");
  EXPECT_TRUE(ToGrpcStatus(absl::OkStatus()).ok());
  const std::string longest(kMaxMessageBytes, 'x');
  EXPECT_EQ(ToGrpcStatus(absl::InternalError(longest)).error_message(), longest);
}

TEST(ToGrpcStatusTest, ShortensAMessageThatAHeaderHasNoRoomFor) {
  const std::string message(100'000, 'x');
  EXPECT_EQ(ToGrpcStatus(absl::InternalError(message)).error_message(),
            absl::StrCat(std::string(kMaxMessageBytes, 'x'), " ... (91808 more bytes)"));
}

TEST(ToGrpcStatusTest, CutsBetweenCharactersAndCountsWhatTheyTakeOnTheWire) {
  std::string message;
  for (int i = 0; i < 5000; ++i) message += "\u00e9";
  const std::string sent = ToGrpcStatus(absl::InternalError(message)).error_message();
  // Each character takes six bytes on the wire.
  EXPECT_EQ(sent, absl::StrCat(message.substr(0, 2 * (kMaxMessageBytes / 6)), " ... (",
                               10'000 - 2 * (kMaxMessageBytes / 6), " more bytes)"));
}

TEST(FromGrpcStatusTest, EscapesWhatAPeerSays) {
  const absl::Status status =
      FromGrpcStatus({grpc::StatusCode::UNAVAILABLE, "gone\x1b[2J\r\n" + std::string(9000, 'x')});
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), ::testing::StartsWith("gone\\x1b[2J\\x0d\nx"));
  EXPECT_LT(status.message().size(), 5000u);
}

}  // namespace
}  // namespace thinwire
