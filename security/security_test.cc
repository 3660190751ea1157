#include "security/security.h"

#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "openssl/crypto.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

std::string FileOf(const std::string& name, const std::string& content) {
  const std::string path = ::testing::TempDir() + "/" + name;
  std::ofstream(path) << content;
  return path;
}

std::string Refusal(const SecurityOptions& options) {
  const absl::Status status = Security::Load(options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

TEST(SecurityTest, ALoopbackAddressNeedsNothing) {
  for (const char* address : {"unix:/tmp/stage.sock", "127.0.0.1:0", "127.1.2.3:4700",
                              "localhost:4700", "[::1]:4700", "[0:0:0:0:0:0:0:1]:4700"}) {
    EXPECT_TRUE(Security().CheckListen(address).ok()) << address;
  }
}

TEST(SecurityTest, AnAddressThatOthersReachNeedsCertificatesOrAToken) {
  for (const char* address : {"0.0.0.0:0", "[::]:4700", "*:4700", "[fd00::1]:4700", "10.0.0.7:4700",
                              "127.example.org:4700", "node1:4700"}) {
    EXPECT_THAT(std::string(Security().CheckListen(address).message()),
                AllOf(HasSubstr(address), HasSubstr("--tls_cert"), HasSubstr("--token_file"),
                      HasSubstr("--insecure")));
  }
  SecurityOptions options;
  options.token_file = FileOf("token", "  sixteen bytes it is\n");
  EXPECT_TRUE(Security::Load(options)->CheckListen("0.0.0.0:0").ok());
}

TEST(SecurityTest, ATokenIsItsFilesTextWithoutWhiteSpace) {
  SecurityOptions options;
  options.token_file = FileOf("short", " \n fifteen bytes\n\n");
  EXPECT_THAT(Refusal(options), HasSubstr("/short has 13 bytes, want at least 16"));
  options.token_file = "/none";
  EXPECT_THAT(Refusal(options), HasSubstr("token_file: /none: cannot open"));
}

TEST(SecurityTest, FilesOfCertificatesBelongTogether) {
  SecurityOptions options;
  options.tls_cert = FileOf("cert.pem", "-----BEGIN CERTIFICATE-----\n");
  EXPECT_THAT(Refusal(options), HasSubstr("tls_key is missing"));
  options.tls_key = FileOf("key.pem", "no key");
  EXPECT_THAT(Refusal(options), HasSubstr("tls_key: " + options.tls_key + " is no PEM file"));
  options.tls_key = options.tls_cert;
  EXPECT_THAT(Refusal(options), HasSubstr("tls_ca is missing"));
}

// What is registered before OpenSSL's own end runs after it. OpenSSL then refuses to begin anew.
TEST(KeepOpenSslToTheEndDeathTest, OpenSslIsThereWhileTheProcessExits) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a process in which OpenSSL has not begun
  EXPECT_EXIT(
      {
        std::atexit([] { _exit(OPENSSL_init_crypto(0, nullptr) == 1 ? 0 : 1); });
        KeepOpenSslToTheEnd();
        OPENSSL_init_crypto(OPENSSL_INIT_LOAD_CRYPTO_STRINGS, nullptr);
        std::exit(2);
      },
      ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace thinwire
