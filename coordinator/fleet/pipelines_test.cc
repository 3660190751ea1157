#include "coordinator/fleet/pipelines.h"

#include "gtest/gtest.h"

namespace thinwire {
namespace {

// Checks that each server has a place of its own, at which it is found.
void CheckPlaces(const Pipelines& pipelines,
                 const std::vector<std::pair<int, int>>& stages_and_carriers) {
  ASSERT_EQ(pipelines.servers(), static_cast<int>(stages_and_carriers.size()));
  for (int server = 0; server < pipelines.servers(); ++server) {
    const auto [stage, carrier] = pipelines.PlaceOf(server);
    EXPECT_EQ(std::make_pair(stage, carrier), stages_and_carriers[static_cast<size_t>(server)]);
    EXPECT_EQ(pipelines.ServerAt(stage, carrier), server);
  }
}

TEST(PipelinesTest, ServersAreNumberedCarrierByCarrier) {
  CheckPlaces({2, {/*replicas=*/2}}, {{0, 0}, {1, 0}, {0, 1}, {1, 1}});
  CheckPlaces({1, {/*replicas=*/1, /*parts=*/2}}, {{0, 0}, {0, 1}});
}

TEST(PipelinesTest, AStageOnFewerMachinesHasNoneOfTheLastCarriers) {
  const Pipelines pipelines{3, {/*replicas=*/3}, {2, 1, 3}};
  CheckPlaces(pipelines, {{0, 0}, {1, 0}, {2, 0}, {0, 1}, {2, 1}, {2, 2}});
  EXPECT_EQ(pipelines.carriers(), 3);
  EXPECT_EQ(pipelines.GridOf(1).count(), 1);
  EXPECT_EQ(pipelines.GridOf(2).count(), 3);
}

}  // namespace
}  // namespace thinwire
