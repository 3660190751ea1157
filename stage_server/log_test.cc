#include "stage_server/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "spdlog/sinks/ostream_sink.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

constexpr char kTime[] =
    "[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]T[0-9][0-9]:[0-9][0-9]:[0-9][0-9]\\.[0-9][0-9][0-"
    "9]Z";
const LogSubject kStage = {"digits-1a2b", 2};

class LogTest : public ::testing::Test {
 protected:
  std::unique_ptr<Log> NewLog(const std::string& level, const std::string& format) {
    return *Log::New({level, format}, std::make_shared<spdlog::sinks::ostream_sink_mt>(out_));
  }
  std::ostringstream out_;
};

TEST_F(LogTest, ALineOfTextHasTimeLevelRunStageAndMessage) {
  NewLog("info", "text")->Write(spdlog::level::warn, "connected", kStage, "connected to stage 3");
  EXPECT_THAT(out_.str(),
              MatchesRegex(std::string(kTime) +
                           " warning run digits-1a2b, stage 2: connected to stage 3\n"));
}

TEST_F(LogTest, ALineAboutTheServerNamesNoRun) {
  NewLog("info", "text")->Write(spdlog::level::info, "serving", {}, "serving on a:1");
  EXPECT_THAT(out_.str(), MatchesRegex(std::string(kTime) + " info    serving on a:1\n"));
}

TEST_F(LogTest, JsonIsOneObjectALineWithTheSameKeys) {
  NewLog("info", "json")
      ->Write(spdlog::level::err, "failed", kStage, "a \"loss\" is\nnan",
              {{"epoch", 3}, {"seconds", 0.5}, {"device", "cpu\x1b"}});
  EXPECT_EQ(out_.str().find('\n'), out_.str().size() - 1);
  const auto line = nlohmann::ordered_json::parse(out_.str());
  EXPECT_THAT(line["time"].get<std::string>(), MatchesRegex(kTime));
  std::string keys;
  for (const auto& [key, value] : line.items()) keys += key + " ";
  EXPECT_EQ(keys, "time level event run stage message epoch seconds device ");
  EXPECT_EQ(line["level"], "error");
  EXPECT_EQ(line["event"], "failed");
  EXPECT_EQ(line["run"], "digits-1a2b");
  EXPECT_EQ(line["stage"], 2);
  EXPECT_EQ(line["message"], "a \"loss\" is\\nnan");
  EXPECT_EQ(line["seconds"], 0.5);
  EXPECT_EQ(line["device"], "cpu\\x1b");
}

TEST_F(LogTest, WhatComesFromAPeerReachesNoTerminalRaw) {
  NewLog("info", "text")->Write(spdlog::level::info, "lease_taken", {"r\x1b[2J", {}}, "by a\xff\r");
  EXPECT_THAT(out_.str(), HasSubstr("run r\\x1b[2J: by a\\xff\\x0d\n"));
  out_.str("");
  NewLog("info", "json")->Write(spdlog::level::info, "lease_taken", {"r\xff", {}}, "by \u009b");
  EXPECT_THAT(nlohmann::json::parse(out_.str())["message"], "by \\xc2\\x9b");
}

TEST_F(LogTest, LinesBelowTheLevelAreNotWritten) {
  const auto log = NewLog("warning", "text");
  log->Write(spdlog::level::info, "serving", {}, "serving");
  EXPECT_EQ(out_.str(), "");
  NewLog("off", "text")->Write(spdlog::level::critical, "failed", {}, "failed");
  Log().Write(spdlog::level::critical, "failed", {}, "failed");
  EXPECT_EQ(out_.str(), "");
}

TEST_F(LogTest, WrongOptionsAreNamed) {
  const auto message = [](const LogOptions& options) {
    return std::string(Log::New(options, nullptr).status().message());
  };
  EXPECT_EQ(message({"loud", "text"}),
            "--log_level: \"loud\", want debug, info, warning, error or off");
  EXPECT_EQ(message({"info", "xml"}), "--log_format: \"xml\", want text or json");
}

}  // namespace
}  // namespace thinwire
