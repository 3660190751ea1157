#include "coordinator/fleet/host_port.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

TEST(ParseHostPortTest, TakesNamesAndAddressesOfBothKinds) {
  for (const char* host : {"localhost", "a", "127.0.0.1", "[::1]", "gpu-7.lab.example"}) {
    const auto parsed = ParseHostPort(std::string(host) + ":4700");
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(parsed->host, host);
    EXPECT_EQ(parsed->port, 4700);
  }
  EXPECT_EQ(ParseHostPort("a:0")->port, 0);
  EXPECT_EQ(ParseHostPort("a:65535")->port, 65535);
}

TEST(ParseHostPortTest, QuotesWhatIsNoHostWithAPort) {
  for (const char* text : {"", "9107", ":9108", "foo", "127.0.0.1:99999", "a:65536", "a:-1", "a:+1",
                           "a: 1", "a:1 ", "a:", "a:http", "::1:80", "[]:80", "a:1,b:1", "a/b:1"}) {
    EXPECT_THAT(std::string(ParseHostPort(text).status().message()),
                HasSubstr("\"" + std::string(text) + "\", want host:port"));
  }
}

}  // namespace
}  // namespace thinwire
