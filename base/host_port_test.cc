#include "base/host_port.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

TEST(ParseHostPortTest, TakesNamesAndAddressesOfBothKinds) {
  for (const char* host : {"localhost", "a", "127.0.0.1", "gpu-7.lab.example", "*", "0.0.0.0"}) {
    const auto parsed = ParseHostPort(std::string(host) + ":4700");
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(parsed->host, host);
    EXPECT_EQ(parsed->port, 4700);
  }
  EXPECT_EQ(ParseHostPort("a:0")->port, 0);
  EXPECT_EQ(ParseHostPort("a:65535")->port, 65535);
}

TEST(ParseHostPortTest, AnIpv6AddressStandsInBrackets) {
  for (const std::string host : {"::1", "::", "fd00::7", "fe80::1%eth0", "::ffff:10.0.0.7"}) {
    const auto parsed = ParseHostPort("[" + host + "]:4700");
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(parsed->host, host);
    EXPECT_EQ(parsed->Text(), "[" + host + "]:4700");
  }
  EXPECT_EQ((HostPort{"10.0.0.7", 0}.Text()), "10.0.0.7:0");
}

TEST(ParseHostPortTest, QuotesWhatIsNoHostWithAPort) {
  for (const char* text :
       {"",      "9107",    ":9108",        "foo",         "127.0.0.1:99999", "a:65536", "a:-1",
        "a:+1",  "a: 1",    "a:1 ",         "a:",          "a:http",          "::1:80",  "[]:80",
        "[::1]", "[::1:80", "[fe80::1%]:1", "[1.2.3.4]:1", "[a]:1",           "a:1,b:1", "a/b:1"}) {
    EXPECT_THAT(std::string(ParseHostPort(text).status().message()),
                HasSubstr("\"" + std::string(text) + "\", want host:port"));
  }
  EXPECT_EQ(ParseHostPort("::1:80").status().message(),
            "\"::1:80\", want host:port with a port of at most 65535, and an IPv6 address in "
            "brackets, [::1]:4700");
}

TEST(HostTest, EveryAddressIsAskedForInThreeWays) {
  for (const char* host : {"0.0.0.0", "::", "0::0", "*"}) EXPECT_TRUE(IsEveryAddress(host)) << host;
  for (const char* host : {"127.0.0.1", "::1", "a", ""}) EXPECT_FALSE(IsEveryAddress(host)) << host;
}

TEST(HostTest, TheOwnMachineIsKnownByItsLoopbacks) {
  for (const char* host : {"localhost", "127.0.0.1", "127.1.2.3", "::1", "0:0:0:0:0:0:0:1"}) {
    EXPECT_TRUE(IsOwnMachine(host)) << host;
  }
  for (const char* host : {"10.0.0.7", "127.example.org", "node1", "::", "0.0.0.0", "fd00::1"}) {
    EXPECT_FALSE(IsOwnMachine(host)) << host;
  }
}

}  // namespace
}  // namespace thinwire
