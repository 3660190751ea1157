#include <gtest/gtest.h>

#include "transport/speed.h"

namespace thinwire {
namespace {

// On any machine a message takes some processor time, and one byte takes far less. What the load
// beside the messages has computed is no part of it, on machines that are busy too.
TEST(MeasureTransportTest, AMessageAndItsBytesTakeTheProcessor) {
  const absl::StatusOr<TransportCost> cost = MeasureTransport();
  ASSERT_TRUE(cost.ok()) << cost.status();
  EXPECT_GT(cost->seconds_per_message, 1e-7);
  EXPECT_LT(cost->seconds_per_message, 0.1);
  EXPECT_GT(cost->seconds_per_byte, 0);
  EXPECT_LT(cost->seconds_per_byte, 1e-6);
}

}  // namespace
}  // namespace thinwire
