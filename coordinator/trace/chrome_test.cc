#include "coordinator/trace/chrome.h"

#include <algorithm>
#include <map>

#include "coordinator/trace/trace_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace thinwire {
namespace {

using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

std::string Written(const RunTrace& trace) {
  std::string text;
  const absl::Status status = WriteChrome(trace, [&text](std::string_view piece) {
    text += piece;
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
  return text;
}

nlohmann::json Events(const RunTrace& trace = MadeUpTrace()) {
  return nlohmann::json::parse(Written(trace))["traceEvents"];
}

// Returns one line for each slice, sorted.
std::vector<std::string> Spelled(const std::vector<TraceSlice>& slices) {
  std::vector<std::string> all;
  for (const TraceSlice& slice : slices) all.push_back(slice.ShortDebugString());
  std::sort(all.begin(), all.end());
  return all;
}

TEST(ChromeTest, ReadsWhatItWrote) {
  RunTrace trace = MadeUpTrace();
  trace.stages[1].clock = {-1234, 56};
  trace.stages[1].dropped = 7;
  trace.stages[1].slices[2].set_segment(1);
  trace.stages[1].slices.push_back(OfDevice("kernel Softmax<float, 4>", 13, 30, 31));
  trace.stages[1].slices.push_back(OfDevice("copy to_host", 7, 31, 32));
  trace.stages[1].slices.back().set_bytes(4096);
  const absl::StatusOr<RunTrace> read = ParseChrome(Written(trace));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->run, trace.run);
  EXPECT_EQ(read->schedule, trace.schedule);
  EXPECT_EQ(read->microbatches, trace.microbatches);
  EXPECT_EQ(read->cuts, trace.cuts);
  EXPECT_EQ(read->steps.first(), 3u);
  EXPECT_EQ(read->steps.last(), 3u);
  ASSERT_EQ(read->stages.size(), 2u);
  for (size_t i : {0, 1}) {
    EXPECT_EQ(Spelled(read->stages[i].slices), Spelled(trace.stages[i].slices));
  }
  EXPECT_EQ(read->stages[1].clock.offset, -1234);
  EXPECT_EQ(read->stages[1].clock.uncertainty, 56);
  EXPECT_EQ(read->stages[1].dropped, 7u);
}

TEST(ChromeTest, NamesStagesThreadsAndWires) {
  std::vector<std::string> names;
  for (const nlohmann::json& event : Events()) {
    if (event["ph"] == "M" && event["name"] != "process_sort_index") {
      names.push_back(event["args"]["name"]);
    }
  }
  EXPECT_THAT(names,
              UnorderedElementsAre("stage 0", "executor", "encode activation layer1",
                                   "decode gradient layer1", "stage 1", "executor",
                                   "decode activation layer1", "encode gradient layer1", "wires"));
}

TEST(ChromeTest, EachStreamOfAGpuIsATrackOfItsStage) {
  RunTrace trace = MadeUpTrace();
  trace.stages[1].slices.push_back(OfDevice("kernel Softmax", 0, 30, 31));
  trace.stages[1].slices.push_back(OfDevice("kernel Softmax", 13, 30, 31));
  trace.stages[1].slices.push_back(OfDevice("kernel Gemm", 13, 31, 32));
  std::map<uint64_t, std::string> tracks;
  std::vector<std::string> kernels;
  for (const nlohmann::json& event : Events(trace)) {
    if (event["pid"] != 1) continue;
    if (event["name"] == "thread_name") tracks[event["tid"]] = event["args"]["name"];
    if (event["ph"] != "X" || event["cat"] != "kernel") continue;
    kernels.push_back(tracks[event["tid"]] + ": " + event["name"].get<std::string>());
  }
  EXPECT_THAT(kernels,
              UnorderedElementsAre("GPU stream 0: kernel Softmax", "GPU stream 13: kernel Softmax",
                                   "GPU stream 13: kernel Gemm"));
  EXPECT_EQ(tracks.size(), 3u + 2u);  // an executor, an encoder, a decoder
}

// Perfetto rejects slices of one thread that overlap without nesting.
TEST(ChromeTest, SlicesOfAThreadNestAndOuterOnesComeFirst) {
  std::map<std::pair<int, int>, std::vector<std::pair<double, double>>> open;
  for (const nlohmann::json& event : Events()) {
    if (event["ph"] != "X") continue;
    auto& outer = open[{event["pid"], event["tid"]}];
    const double begin = event["ts"], end = begin + event["dur"].get<double>();
    while (!outer.empty() && outer.back().second <= begin) outer.pop_back();
    if (!outer.empty()) {
      EXPECT_LE(end, outer.back().second) << event;
    }
    outer.emplace_back(begin, end);
  }
  EXPECT_EQ(open.size(), 6u);
}

TEST(ChromeTest, AMessageIsOnTheWireFromItsHandOverToItsArrival) {
  std::map<std::string, int> phases;
  for (const nlohmann::json& event : Events()) {
    ++phases[event["ph"]];
    if (event["ph"] != "b" || event["name"] != "activation layer1") continue;
    if (event["args"]["microbatch"] != 0) continue;
    EXPECT_EQ(event["ts"], 0.015);  // handed to the worker at 12, to the transport at 15
    EXPECT_EQ(event["args"]["wire_bytes"], 77);
    EXPECT_EQ(event["args"]["from"], 0);
    EXPECT_EQ(event["args"]["to"], 1);
  }
  for (const char* phase : {"b", "e", "s", "f"}) EXPECT_EQ(phases[phase], 4) << phase;
}

TEST(ChromeTest, SaysWhatIsNotAsItWritesIt) {
  const std::string good = Written(MadeUpTrace());
  const auto changed = [&good](const std::string& from, const std::string& to) {
    std::string text = good;
    EXPECT_NE(text.find(from), std::string::npos) << from;
    return text.replace(text.find(from), from.size(), to);
  };
  for (const auto& [text, want] : std::vector<std::pair<std::string, std::string>>{
           {"", "is no JSON object"},
           {"[]", "is no JSON object"},
           {"{}", "file: otherData: want an object"},
           {good.substr(0, good.size() / 2), "is no JSON object"},
           {changed("thinwire trace 1", "thinwire trace 9"), "otherData: format"},
           {changed("\"stages\":[{", "\"stages\":[3,{"), "otherData: stages: want objects"},
           {changed("\"cuts\":[\"layer1\"]", "\"cuts\":[1]"), "otherData: cuts: want names"},
           {changed("\"ts\":", "\"tt\":"), "ts: want a number of microseconds"},
           {changed("\"dur\":0.1", "\"dur\":1e300"), "dur: want a number"},
           {changed("\"pid\":0,\"tid\":0,\"ts\"", "\"pid\":9,\"tid\":0,\"ts\""),
            "pid: want the number of a stage"},
           {changed("\"cut\":\"layer1\"", "\"cut\":\"layer7\""), "cut: want one of otherData's"},
           {changed("\"direction\":\"gradient\"", "\"direction\":\"up\""), "direction: want"},
           {changed("\"args\":{\"step\":3}", "\"args\":3"), "args: want an object"},
           {changed("\"args\":{\"step\":3}", "\"args\":{\"step\":-3}"), "step: want a whole"}}) {
    const absl::Status status = ParseChrome(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << want;
    EXPECT_THAT(std::string(status.message()), HasSubstr(want));
  }
}

}  // namespace
}  // namespace thinwire
