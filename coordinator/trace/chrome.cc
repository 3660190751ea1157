#include "coordinator/trace/chrome.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/annotated.h"
#include "base/file.h"
#include "base/status.h"
#include "coordinator/files/json.h"
#include "nlohmann/json.hpp"

namespace thinwire {
namespace {

using Json = nlohmann::ordered_json;
using Sink = std::function<absl::Status(std::string_view)>;

constexpr uint64_t kFirstStream = 1'000'000;  // beyond the threads of any number of cuts

// Returns the thread of a slice. Processes are the stages and, after them, the wires. Thread 0 of a
// stage is its executor. Each cut has two threads for each direction, and on the wires one for each
// direction. Each stream of a stage's GPU has one.
uint64_t ThreadId(const TraceSlice& slice) {
  if (IsOfDevice(slice)) return kFirstStream + slice.stream();
  if (slice.thread() == TraceSlice::EXECUTOR) return 0;
  return 1 + slice.cut() * 4 + (slice.gradient() ? 2 : 0) +
         (slice.thread() == TraceSlice::DECODER ? 1 : 0);
}

void SetThread(uint64_t id, TraceSlice* slice) {
  if (id >= kFirstStream) {
    slice->set_thread(TraceSlice::DEVICE);
    slice->set_stream(static_cast<uint32_t>(id - kFirstStream));
  } else if (id > 0) {
    slice->set_thread(id % 2 == 1 ? TraceSlice::ENCODER : TraceSlice::DECODER);
  }
}

const char* NameOf(bool gradient) { return gradient ? "gradient" : "activation"; }

double Microseconds(int64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1000; }

class Writer {
 public:
  Writer(const RunTrace& trace, const Sink& sink)
      : trace_(trace), sink_(sink), wires_(trace.stages.size()) {}

  absl::Status Write() {
    RETURN_IF_ERROR(sink_("{\"traceEvents\":["));
    for (size_t stage = 0; stage < trace_.stages.size(); ++stage) RETURN_IF_ERROR(Stage(stage));
    RETURN_IF_ERROR(Named("process_name", wires_, 0, "wires"));
    RETURN_IF_ERROR(Sorted(wires_));
    const std::vector<TracedMessage> messages = MessagesOf(trace_);
    for (size_t i = 0; i < messages.size(); ++i) {
      if (messages[i].crossed()) RETURN_IF_ERROR(Wire(messages[i], i));
    }
    return sink_(absl::StrCat(
        "\n],\"displayTimeUnit\":\"ms\",\"otherData\":", JsonText(OtherData()), "}\n"));
  }

 private:
  absl::Status Event(const Json& event) {
    const char* const separator = std::exchange(is_first_, false) ? "\n" : ",\n";
    return sink_(separator + JsonText(event));
  }

  absl::Status Named(const char* what, uint64_t process, uint64_t thread, const std::string& name) {
    return Event({{"ph", "M"},
                  {"name", what},
                  {"pid", process},
                  {"tid", thread},
                  {"args", {{"name", name}}}});
  }

  absl::Status Sorted(uint64_t process) {
    return Event({{"ph", "M"},
                  {"name", "process_sort_index"},
                  {"pid", process},
                  {"tid", 0},
                  {"args", {{"sort_index", process}}}});
  }

  std::string CutName(uint32_t cut) const {
    return cut < trace_.cuts.size() ? trace_.cuts[cut] : absl::StrCat("cut ", cut);
  }

  std::string ThreadName(const TraceSlice& slice) const {
    if (IsOfDevice(slice)) return absl::StrCat("GPU stream ", slice.stream());
    if (slice.thread() == TraceSlice::EXECUTOR) return "executor";
    return absl::StrCat(slice.thread() == TraceSlice::ENCODER ? "encode " : "decode ",
                        NameOf(slice.gradient()), " ", CutName(slice.cut()));
  }

  // Returns "stage 2", or "stage 2 of carrier 1" of several.
  std::string StageName(size_t stage) const {
    if (trace_.carriers <= 1) return absl::StrCat("stage ", stage);
    const size_t stages = trace_.stages.size() / trace_.carriers;
    return absl::StrCat("stage ", stage % stages, " of carrier ", stage / stages);
  }
  absl::Status Stage(size_t stage) {
    RETURN_IF_ERROR(Named("process_name", stage, 0, StageName(stage)));
    RETURN_IF_ERROR(Sorted(stage));
    std::vector<const TraceSlice*> slices;
    for (const TraceSlice& slice : trace_.stages[stage].slices) slices.push_back(&slice);
    // Outer slices come before those inside them.
    std::sort(slices.begin(), slices.end(), [](const TraceSlice* a, const TraceSlice* b) {
      return std::make_tuple(ThreadId(*a), a->begin(), -a->end()) <
             std::make_tuple(ThreadId(*b), b->begin(), -b->end());
    });
    std::set<uint64_t> named;
    for (const TraceSlice* slice : slices) {
      const uint64_t thread = ThreadId(*slice);
      if (named.insert(thread).second) {
        RETURN_IF_ERROR(Named("thread_name", stage, thread, ThreadName(*slice)));
      }
      RETURN_IF_ERROR(Event({{"ph", "X"},
                             {"name", slice->name()},
                             {"cat", ActivityOf(*slice)},
                             {"pid", stage},
                             {"tid", thread},
                             {"ts", Microseconds(slice->begin())},
                             {"dur", Microseconds(slice->end() - slice->begin())},
                             {"args", Arguments(*slice)}}));
    }
    return absl::OkStatus();
  }

  Json Arguments(const TraceSlice& slice) const {
    Json arguments = {{"step", slice.step()}};
    if (slice.has_microbatch()) arguments["microbatch"] = slice.microbatch();
    if (slice.has_segment()) arguments["segment"] = slice.segment();
    if (slice.has_cut()) {
      arguments["cut"] = CutName(slice.cut());
      arguments["direction"] = NameOf(slice.gradient());
    }
    if (slice.has_ready()) arguments["ready"] = Microseconds(slice.ready());
    if (slice.core_wait() > 0) arguments["core_wait"] = Microseconds(slice.core_wait());
    if (slice.wire_bytes() > 0) arguments["wire_bytes"] = slice.wire_bytes();
    if (slice.bytes() > 0) arguments["bytes"] = slice.bytes();
    return arguments;
  }

  // Writes the slice from the hand-over to the transport to the arrival of the last byte, and an
  // arrow from the sender's slice to the receiver's.
  absl::Status Wire(const TracedMessage& message, size_t id) {
    const std::string name = absl::StrCat(NameOf(message.gradient), " ", CutName(message.cut));
    Json event = {{"ph", "b"},
                  {"name", name},
                  {"cat", "wire"},
                  {"id", id},
                  {"pid", wires_},
                  {"tid", message.cut * 2 + (message.gradient ? 1 : 0)},
                  {"ts", Microseconds(message.send->begin())}};
    event["args"] = {{"step", message.step},
                     {"microbatch", message.microbatch},
                     {"from", message.from},
                     {"to", message.to},
                     {"wire_bytes", message.send->wire_bytes()}};
    RETURN_IF_ERROR(Event(event));
    event.erase("args");
    event["ph"] = "e";
    event["ts"] = Microseconds(std::max(message.send->begin(), message.decode->ready()));
    RETURN_IF_ERROR(Event(event));
    Json arrow = {{"ph", "s"},
                  {"name", name},
                  {"cat", "message"},
                  {"id", id},
                  {"pid", message.from},
                  {"tid", ThreadId(*message.send)},
                  {"ts", Microseconds(message.send->begin())}};
    RETURN_IF_ERROR(Event(arrow));
    arrow["ph"] = "f";
    arrow["bp"] = "e";  // the arrow ends at the slice around that moment
    arrow["pid"] = message.to;
    arrow["tid"] = ThreadId(*message.decode);
    arrow["ts"] = Microseconds(message.decode->begin());
    return Event(arrow);
  }

  Json OtherData() const {
    Json stages = Json::array();
    for (const StageTrace& stage : trace_.stages) {
      stages.push_back({{"clock_offset_us", Microseconds(stage.clock.offset)},
                        {"clock_uncertainty_us", Microseconds(stage.clock.uncertainty)},
                        {"dropped_slices", stage.dropped}});
    }
    Json data = {{"format", "thinwire trace 1"},
                 {"run", trace_.run},
                 {"schedule", trace_.schedule},
                 {"microbatches", trace_.microbatches},
                 {"first_step", trace_.steps.first()},
                 {"last_step", trace_.steps.last()},
                 {"cuts", trace_.cuts},
                 {"stages", stages}};
    if (trace_.carriers > 1) data["carriers"] = trace_.carriers;
    return data;
  }

  const RunTrace& trace_;
  const Sink& sink_;
  const uint64_t wires_;
  bool is_first_ = true;
};

// Reads members of one JSON object; remembers the first fault.
class Reader {
 public:
  Reader(const nlohmann::json& object, std::string name)
      : object_(object), name_(std::move(name)) {}

  bool Has(const char* member) const { return object_.contains(member); }
  uint64_t Whole(const char* member) {
    const auto* value = Find(member);
    if (value != nullptr && value->is_number_unsigned()) return value->get<uint64_t>();
    return Wrong(member, "a whole number"), 0;
  }
  int64_t Nanoseconds(const char* member) {
    constexpr double kMost = 1e15;  // in microseconds: 30 years
    const auto* value = Find(member);
    if (value != nullptr && value->is_number() && std::abs(value->get<double>()) < kMost) {
      return std::llround(value->get<double>() * 1000);
    }
    return Wrong(member, "a number of microseconds"), 0;
  }
  std::string Text(const char* member) {
    const auto* value = Find(member);
    if (value != nullptr && value->is_string()) return value->get<std::string>();
    return Wrong(member, "a text"), "";
  }
  const nlohmann::json& List(const char* member) {
    static const nlohmann::json none = nlohmann::json::array();
    const auto* value = Find(member);
    if (value != nullptr && value->is_array()) return *value;
    return Wrong(member, "a list"), none;
  }
  const nlohmann::json& Object(const char* member) {
    static const nlohmann::json none = nlohmann::json::object();
    const auto* value = Find(member);
    if (value != nullptr && value->is_object()) return *value;
    return Wrong(member, "an object"), none;
  }
  void Wrong(const char* member, const char* want) {
    status_.Update(absl::InvalidArgumentError(absl::StrCat(name_, ": ", member, ": want ", want)));
  }
  const absl::Status& status() const { return status_; }

 private:
  const nlohmann::json* Find(const char* member) const {
    const auto found = object_.find(member);
    return found == object_.end() ? nullptr : &*found;
  }

  const nlohmann::json& object_;
  const std::string name_;
  absl::Status status_;
};

absl::Status ParseOtherData(const nlohmann::json& object, RunTrace* trace) {
  Reader data(object, "otherData");
  if (data.Text("format") != "thinwire trace 1") data.Wrong("format", "\"thinwire trace 1\"");
  trace->run = data.Text("run");
  trace->schedule = data.Text("schedule");
  trace->microbatches = static_cast<uint32_t>(data.Whole("microbatches"));
  trace->steps.set_first(data.Whole("first_step"));
  trace->steps.set_last(data.Whole("last_step"));
  if (object.contains("carriers")) trace->carriers = static_cast<uint32_t>(data.Whole("carriers"));
  for (const nlohmann::json& cut : data.List("cuts")) {
    if (!cut.is_string()) data.Wrong("cuts", "names");
    trace->cuts.push_back(cut.is_string() ? cut.get<std::string>() : "");
  }
  for (const nlohmann::json& one : data.List("stages")) {
    if (!one.is_object()) return absl::InvalidArgumentError("otherData: stages: want objects");
    Reader stage(one, absl::StrCat("otherData: stage ", trace->stages.size()));
    StageTrace& made = trace->stages.emplace_back();
    made.clock = {stage.Nanoseconds("clock_offset_us"), stage.Nanoseconds("clock_uncertainty_us")};
    made.dropped = stage.Whole("dropped_slices");
    RETURN_IF_ERROR(stage.status());
  }
  return data.status();
}

absl::Status ParseMessage(Reader* arguments, const RunTrace& trace, TraceSlice* slice) {
  const std::string name = arguments->Text("cut"), direction = arguments->Text("direction");
  const auto cut = std::find(trace.cuts.begin(), trace.cuts.end(), name);
  if (cut == trace.cuts.end()) arguments->Wrong("cut", "one of otherData's");
  slice->set_cut(static_cast<uint32_t>(cut - trace.cuts.begin()));
  slice->set_gradient(direction == "gradient");
  if (direction != "gradient" && direction != "activation") {
    arguments->Wrong("direction", "activation or gradient");
  }
  return arguments->status();
}

absl::Status ParseSlice(const nlohmann::json& object, const std::string& name, RunTrace* trace) {
  Reader event(object, name);
  TraceSlice slice;
  slice.set_name(event.Text("name"));
  const uint64_t stage = event.Whole("pid");
  SetThread(event.Whole("tid"), &slice);
  slice.set_begin(event.Nanoseconds("ts"));
  slice.set_end(slice.begin() + event.Nanoseconds("dur"));
  if (stage >= trace->stages.size()) event.Wrong("pid", "the number of a stage");
  Reader arguments(event.Object("args"), name + ": args");
  RETURN_IF_ERROR(event.status());
  slice.set_step(arguments.Whole("step"));
  if (arguments.Has("microbatch")) {
    slice.set_microbatch(static_cast<uint32_t>(arguments.Whole("microbatch")));
  }
  if (arguments.Has("segment")) {
    slice.set_segment(static_cast<uint32_t>(arguments.Whole("segment")));
  }
  if (arguments.Has("cut")) RETURN_IF_ERROR(ParseMessage(&arguments, *trace, &slice));
  if (arguments.Has("ready")) slice.set_ready(arguments.Nanoseconds("ready"));
  if (arguments.Has("core_wait")) slice.set_core_wait(arguments.Nanoseconds("core_wait"));
  if (arguments.Has("wire_bytes")) slice.set_wire_bytes(arguments.Whole("wire_bytes"));
  if (arguments.Has("bytes")) slice.set_bytes(arguments.Whole("bytes"));
  RETURN_IF_ERROR(arguments.status());
  trace->stages[stage].slices.push_back(std::move(slice));
  return absl::OkStatus();
}

}  // namespace

absl::Status WriteChrome(const RunTrace& trace, const Sink& sink) {
  return Writer(trace, sink).Write();
}

absl::StatusOr<RunTrace> ParseChrome(std::string_view text) {
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return absl::InvalidArgumentError("is no JSON object");
  Reader file(json, "file");
  RunTrace trace;
  const nlohmann::json& data = file.Object("otherData");
  const nlohmann::json& events = file.List("traceEvents");
  RETURN_IF_ERROR(file.status());
  RETURN_IF_ERROR(ParseOtherData(data, &trace));
  for (size_t i = 0; i < events.size(); ++i) {
    const std::string name = absl::StrCat("event ", i);
    if (!events[i].is_object()) return absl::InvalidArgumentError(name + ": want an object");
    const auto phase = events[i].find("ph");
    if (phase != events[i].end() && *phase == "X") {
      RETURN_IF_ERROR(ParseSlice(events[i], name, &trace));
    }
  }
  return trace;
}

std::string TracePath(const std::string& run) { return run + "/trace.json"; }

absl::StatusOr<RunTrace> ReadTrace(const std::string& run) {
  const std::string path = TracePath(run);
  const absl::StatusOr<std::string> text = ReadFile(path);
  if (absl::IsNotFound(text.status())) {
    return absl::NotFoundError(
        absl::StrCat(text.status().message(), "; thinwire run --trace steps=N..M writes it"));
  }
  RETURN_IF_ERROR(text.status());
  return Annotated(ParseChrome(*text), absl::StrCat(path, ": is no trace of Thinwire"));
}

}  // namespace thinwire
