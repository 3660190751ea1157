#include "monitoring/errors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "prometheus/text_serializer.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

TEST(ErrorCounterTest, EveryKindIsThereFromTheStartAndCountsItsOwn) {
  prometheus::Registry registry;
  ErrorCounter errors({{"run", "digits-1a2b"}}, &registry);
  errors.Count(KindOf(absl::UnavailableError("stage 1 is gone")));
  const std::string text = prometheus::TextSerializer().Serialize(registry.Collect());
  EXPECT_THAT(text, HasSubstr("thinwire_errors_total{kind=\"peer_gone\",run=\"digits-1a2b\"} 1\n"));
  for (const char* kind :
       {"data_loss", "deadline", "failed_precondition", "internal", "invalid_argument",
        "lease_expired", "out_of_range", "resource_exhausted", "other"}) {
    EXPECT_THAT(text, HasSubstr("kind=\"" + std::string(kind) + "\",run=\"digits-1a2b\"} 0\n"));
  }
}

TEST(ErrorKindTest, IsThatOfTheCode) {
  EXPECT_STREQ(Name(KindOf(absl::DataLossError("crc"))), "data_loss");
  EXPECT_STREQ(Name(KindOf(absl::DeadlineExceededError("30 s"))), "deadline");
  EXPECT_STREQ(Name(KindOf(absl::OutOfRangeError("nan"))), "out_of_range");
  EXPECT_STREQ(Name(KindOf(absl::PermissionDeniedError("file"))), "other");
}

}  // namespace
}  // namespace thinwire
