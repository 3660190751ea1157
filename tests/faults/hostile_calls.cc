// Makes random calls and sends random frames to the stage servers of a run, as peers that hold no
// lease. Some have a coordinator's or a stage's certificate and the token, some have no token, and
// some have no certificate. Exits with 1 if one of these calls succeeds or is not answered in time,
// or if a health check is not answered within seconds. Prints the number of calls and their status
// codes by peer.
//
// usage: hostile_calls --servers HOST:PORT,... --certs DIR --token_file FILE --run ID --calls N
//   [--seed N]
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/steady_time.h"
#include "google/protobuf/message.h"
#include "google/protobuf/stubs/logging.h"
#include "grpc/support/log.h"
#include "grpcpp/grpcpp.h"
#include "proto/boundary.pb.h"
#include "proto/stage.grpc.pb.h"
#include "security/security.h"
#include "stage_server/raw_call_testing.h"

namespace thinwire {
namespace {

using ::google::protobuf::FieldDescriptor;
using ::google::protobuf::Message;
using grpc::StatusCode;

constexpr absl::Duration kPatience = absl::Seconds(30);  // for one call
constexpr double kHealthSeconds = 10;
// Most calls that a peer leaves open. Each control peer has one connection for all of its calls.
constexpr size_t kMostOpen = 3;
constexpr size_t kMostBytes = 3'000'000;  // most bytes of one message

// Random choices: the same for the same seed, with every standard library.
class Chance {
 public:
  explicit Chance(uint64_t seed) : random_(seed) {}
  uint64_t Below(uint64_t end) { return random_() % end; }
  bool OneIn(uint64_t n) { return Below(n) == 0; }
  uint64_t Word() { return random_() >> Below(64); }
  std::string Bytes(size_t size) {
    std::string bytes(size, 0);
    for (char& byte : bytes) byte = static_cast<char>(random_());
    return bytes;
  }
  template <typename T, size_t n>
  T Of(const T (&choices)[n]) {
    return choices[Below(n)];
  }

 private:
  std::mt19937_64 random_;
};

std::string AnyText(Chance* chance) {
  constexpr const char* kTexts[] = {"",     "resnet8",  "digits",           "gpt2", "layer1",
                                    "topk", "../../..", "/dev/zero",        "none", "cpu",
                                    "auto", "model",    "unix:/tmp/socket", "%s%n", "127.0.0.1:1"};
  return chance->OneIn(8) ? std::string(chance->Below(300), 'a') : chance->Of(kTexts);
}

double AnyReal(Chance* chance) {
  constexpr double kReals[] = {0,     -1,      1,    0.5,
                               60,    600,     1e-9, std::numeric_limits<double>::infinity(),
                               1e300, -1e-300, -0.0, std::numeric_limits<double>::quiet_NaN()};
  return chance->Of(kReals);
}

void Fill(Message* message, Chance* chance, int depth);

void FillField(Message* message, const FieldDescriptor* field, Chance* chance, int depth) {
  const auto* reflection = message->GetReflection();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_UINT32:
      return reflection->SetUInt32(message, field, static_cast<uint32_t>(chance->Word()));
    case FieldDescriptor::CPPTYPE_UINT64:
      return reflection->SetUInt64(message, field, chance->Word());
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection->SetBool(message, field, chance->OneIn(2));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return reflection->SetDouble(message, field, AnyReal(chance));
    case FieldDescriptor::CPPTYPE_ENUM:
      return reflection->SetEnumValue(message, field, static_cast<int>(chance->Below(9)));
    case FieldDescriptor::CPPTYPE_STRING:
      return reflection->SetString(message, field,
                                   field->type() == FieldDescriptor::TYPE_BYTES
                                       ? chance->Bytes(chance->Below(100))
                                       : AnyText(chance));
    case FieldDescriptor::CPPTYPE_MESSAGE:
      if (depth > 0) Fill(reflection->MutableMessage(message, field), chance, depth - 1);
      return;
    default:
      return;  // no request has these
  }
}

void FillRepeated(Message* message, const FieldDescriptor* field, Chance* chance, int depth) {
  const auto* reflection = message->GetReflection();
  for (uint64_t n = chance->Below(4); n > 0; --n) {
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_STRING:
        reflection->AddString(message, field, AnyText(chance));
        break;
      case FieldDescriptor::CPPTYPE_INT32:
        reflection->AddInt32(message, field, static_cast<int32_t>(chance->Word()));
        break;
      case FieldDescriptor::CPPTYPE_UINT32:
        reflection->AddUInt32(message, field, static_cast<uint32_t>(chance->Word()));
        break;
      case FieldDescriptor::CPPTYPE_UINT64:
        reflection->AddUInt64(message, field, chance->Word());
        break;
      case FieldDescriptor::CPPTYPE_MESSAGE:
        if (depth > 0) Fill(reflection->AddMessage(message, field), chance, depth - 1);
        break;
      default:
        break;
    }
  }
}

// Fills about half of the fields, with values that mean something and values that do not.
void Fill(Message* message, Chance* chance, int depth) {
  for (int i = 0; i < message->GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor* field = message->GetDescriptor()->field(i);
    if (chance->OneIn(2)) continue;
    if (field->is_repeated()) {
      FillRepeated(message, field, chance, depth);
    } else {
      FillField(message, field, chance, depth);
    }
  }
}

template <typename Request>
std::unique_ptr<Message> New() {
  return std::make_unique<Request>();
}

struct Method {
  const char* name;
  std::unique_ptr<Message> (*request)();
};

constexpr Method kMethods[] = {
    {"Acquire", New<AcquireRequest>},
    {"Renew", New<RenewRequest>},
    {"Configure", New<ConfigureRequest>},
    {"Connect", New<ConnectRequest>},
    {"Train", New<TrainRequest>},
    {"EndTraining", New<EndTrainingRequest>},
    {"TakeSnapshot", New<TakeSnapshotRequest>},
    {"ReadSnapshot", New<ReadSnapshotRequest>},
    {"Restore", New<RestoreRequest>},
    {"HoldState", New<HoldStateRequest>},
    {"FetchState", New<FetchStateRequest>},
    {"Evaluate", New<EvaluateRequest>},
    {"ExportParameters", New<ExportParametersRequest>},
    {"ImportParameters", New<ImportParametersRequest>},
    {"ListInitial", New<ListInitialRequest>},
    {"ReadInitial", New<ReadInitialRequest>},
    {"Gradients", New<GradientsRequest>},
    {"Generate", New<GenerateRequest>},
    {"ExportCapture", New<ExportCaptureRequest>},
    {"Release", New<ReleaseRequest>},
    {"Unknown", New<ReleaseRequest>},
};

// Gives most requests a lease that could exist but that no server has granted.
void Claim(const std::string& run, Message* request, Chance* chance) {
  const auto* field = request->GetDescriptor()->FindFieldByName("lease");
  if (field == nullptr || chance->OneIn(8)) return;
  Lease lease;
  lease.set_run(run);
  lease.set_generation(1 + chance->Below(3));
  lease.set_secret(chance->Bytes(chance->OneIn(4) ? chance->Below(64) : 16));
  request->GetReflection()->MutableMessage(request, field)->CopyFrom(lease);
}

void Damage(std::string* bytes, Chance* chance) {
  for (uint64_t n = 1 + chance->Below(4); n > 0 && !bytes->empty(); --n) {
    const size_t at = chance->Below(bytes->size());
    if (chance->OneIn(4)) {
      bytes->resize(at);
    } else {
      (*bytes)[at] = static_cast<char>(chance->Word());
    }
  }
}

std::string AnyMessage(std::unique_ptr<Message> message, const std::string& run, Chance* chance) {
  if (chance->OneIn(2000)) return chance->Bytes(chance->Below(kMostBytes));
  if (chance->OneIn(20)) return chance->Bytes(chance->Below(1000));
  Fill(message.get(), chance, /*depth=*/3);
  Claim(run, message.get(), chance);
  std::string bytes = message->SerializePartialAsString();
  if (chance->OneIn(3)) Damage(&bytes, chance);
  return bytes;
}

// Counts what came of all peers' calls. Any thread may call it.
class Tally {
 public:
  explicit Tally(uint64_t wanted) : wanted_(wanted) {}

  // Counts a call. Returns false once enough calls were made.
  bool Begin() { return begun_++ < wanted_; }
  void Frame() { ++begun_, ++frames_; }
  void Answered(const std::string& peer, const std::string& call, const grpc::Status& status) {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++calls_[peer];
    ++codes_[peer][status.error_code()];
    if (status.ok() || status.error_code() == StatusCode::DEADLINE_EXCEEDED) {
      ++failures_;
      std::printf("FAILED: %s by %s: code %d %s\n", call.c_str(), peer.c_str(), status.error_code(),
                  status.error_message().c_str());
    }
  }
  void Healthy(double seconds, bool is_well) {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++checks_;
    slowest_ = std::max(slowest_, seconds);
    if (is_well) return;
    ++failures_;
    std::printf("FAILED: a health check, after %.1f s\n", seconds);
  }

  // Prints the counts. Returns the number of failures.
  int Print(double seconds, uint64_t seed) const {
    uint64_t calls = frames_;
    for (const auto& [peer, count] : calls_) {
      std::string codes;
      for (const auto& [code, n] : codes_.at(peer)) absl::StrAppend(&codes, " ", code, ":", n);
      std::printf("%-28s %9llu calls; by status code%s\n", peer.c_str(),
                  static_cast<unsigned long long>(count), codes.c_str());
      calls += count;
    }
    std::printf("%-28s %9llu\n", "frames among these", static_cast<unsigned long long>(frames_));
    std::printf("%llu calls and frames in %.1f s, %.0f a second, seed %llu\n",
                static_cast<unsigned long long>(calls), seconds,
                static_cast<double>(calls) / seconds, static_cast<unsigned long long>(seed));
    std::printf("%d health checks, the slowest %.2f s; %d failures\n", checks_, slowest_,
                failures_);
    return failures_ + (checks_ == 0 ? 1 : 0);
  }

 private:
  const uint64_t wanted_;
  std::atomic<uint64_t> begun_{0}, frames_{0};
  mutable std::mutex mutex_;
  std::map<std::string, uint64_t> calls_;
  std::map<std::string, std::map<int, uint64_t>> codes_;
  int checks_ = 0, failures_ = 0;
  double slowest_ = 0;
};

struct Ways {
  Security coordinator, stage;
  std::shared_ptr<grpc::ChannelCredentials> nobody;  // credentials without a certificate
  std::string token;
  std::string run;  // id of the run under way; its name is no secret
};

std::shared_ptr<grpc::Channel> Dial(const std::string& server,
                                    const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 5000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 200);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetSslTargetNameOverride("stage.thinwire");
  return grpc::CreateCustomChannel(server, credentials, arguments);
}

// Makes control calls until there were enough, and now and then leaves one open for a while.
class ControlPeer {
 public:
  ControlPeer(const Ways& ways, const std::string& server, uint64_t seed)
      : ways_(ways), chance_(seed), stub_(Dial(server, ways.coordinator.ChannelCredentials())) {}

  void CallUntilEnough(Tally* tally) {
    while (tally->Begin()) {
      const Method& method = kMethods[chance_.Below(std::size(kMethods))];
      const bool shows_token = !chance_.OneIn(8);
      const bool sends_files =
          method.request == New<RestoreRequest> || method.request == New<ImportParametersRequest>;
      Started call{shows_token ? "coordinator without lease" : "coordinator without token",
                   method.name, Begin(method, shows_token)};
      if (sends_files && chance_.OneIn(4)) {
        call.call->Write(AnyMessage(method.request(), ways_.run, &chance_));
      }
      const bool is_left = chance_.OneIn(50);
      if (!is_left) {
        End(call, tally);
        continue;
      }
      left_.push_back(std::move(call));
      if (left_.size() > kMostOpen) EndFirst(tally);
    }
    while (!left_.empty()) EndFirst(tally);
  }

 private:
  struct Started {
    std::string peer;
    const char* name;
    std::unique_ptr<RawCall> call;
  };

  std::unique_ptr<RawCall> Begin(const Method& method, bool shows_token) {
    RawCall::Metadata metadata;
    if (shows_token) metadata.emplace_back("thinwire-token-bin", ways_.token);
    if (!shows_token && chance_.OneIn(2)) {
      metadata.emplace_back("thinwire-token-bin", chance_.Bytes(chance_.Below(64)));
    }
    auto call = std::make_unique<RawCall>(&stub_, absl::StrCat("/thinwire.Stage/", method.name),
                                          metadata, kPatience);
    if (!chance_.OneIn(30)) call->Write(AnyMessage(method.request(), ways_.run, &chance_));
    return call;
  }
  void End(const Started& started, Tally* tally) {
    started.call->WritesDone();
    tally->Answered(started.peer, started.name, started.call->Finish());
  }
  void EndFirst(Tally* tally) {
    if (chance_.OneIn(2)) left_.front().call->Cancel();
    End(left_.front(), tally);
    left_.pop_front();
  }

  const Ways& ways_;
  Chance chance_;
  grpc::GenericStub stub_;
  std::deque<Started> left_;
};

// Asks for the state that a server holds for others of its stage.
void ReadState(const Ways& ways, grpc::GenericStub* stub, const RawCall::Metadata& metadata,
               Chance* chance, Tally* tally) {
  RawCall call(stub, "/thinwire.StagePeer/ReadState", metadata, kPatience);
  if (!chance->OneIn(30)) call.Write(AnyMessage(New<ReadStateRequest>(), ways.run, chance));
  call.WritesDone();
  tally->Answered("stage without link secret", "ReadState", call.Finish());
}

// Dials cuts with a stage's certificate but without a valid secret of a link. One call in ten asks
// for the stage's state instead, and one in ten of the others is a control call.
void DialUntilEnough(const Ways& ways, const std::string& server, uint64_t seed, Tally* tally) {
  Chance chance(seed);
  const auto channel = Dial(server, ways.stage.ChannelCredentials());
  grpc::GenericStub stub(channel);
  while (tally->Begin()) {
    RawCall::Metadata metadata;
    if (!chance.OneIn(8)) metadata.emplace_back("thinwire-token-bin", ways.token);
    if (!chance.OneIn(4)) {
      metadata.emplace_back("thinwire-link-secret-bin",
                            chance.Bytes(chance.OneIn(2) ? 16 : chance.Below(64)));
    }
    for (const char* name : {"thinwire-run", "thinwire-generation", "thinwire-cut"}) {
      if (!chance.OneIn(8)) metadata.emplace_back(name, absl::StrCat(chance.Word()));
    }
    if (chance.OneIn(10)) {
      ReadState(ways, &stub, metadata, &chance, tally);
      continue;
    }
    const bool is_link = !chance.OneIn(10);
    RawCall call(&stub, is_link ? "/thinwire.Boundary/Exchange" : "/thinwire.Stage/Release",
                 metadata, kPatience);
    for (uint64_t n = chance.Below(4); n > 0; --n) {
      tally->Frame();
      if (!call.Write(AnyMessage(New<Frame>(), ways.run, &chance))) break;
    }
    call.WritesDone();
    tally->Answered(is_link ? "stage without link secret" : "stage that controls",
                    is_link ? "Exchange" : "Release", call.Finish());
  }
}

// Makes each call on a connection of its own, which ends in the handshake for want of a
// certificate.
void KnockUntilEnough(const Ways& ways, const std::string& server, uint64_t seed, Tally* tally) {
  Chance chance(seed);
  while (tally->Begin()) {
    grpc::GenericStub stub(Dial(server, ways.nobody));
    RawCall call(&stub, "/thinwire.Stage/Acquire", {{"thinwire-token-bin", ways.token}}, kPatience);
    call.Write(AnyMessage(New<AcquireRequest>(), ways.run, &chance));
    call.WritesDone();
    tally->Answered("nobody, by a handshake", "Acquire", call.Finish());
    absl::SleepFor(absl::Milliseconds(20));
  }
}

void CheckHealth(const Ways& ways, const std::string& server, const std::atomic<bool>& ends,
                 Tally* tally) {
  grpc::GenericStub stub(Dial(server, ways.coordinator.ChannelCredentials()));
  while (!ends) {
    const SteadyTime start = SteadyTime::Now();
    RawCall call(&stub, "/grpc.health.v1.Health/Check", {}, absl::Seconds(kHealthSeconds));
    call.Write("");
    call.WritesDone();
    const bool is_well = call.Finish().ok();
    tally->Healthy(absl::ToDoubleSeconds(SteadyTime::Now() - start), is_well);
    absl::SleepFor(absl::Milliseconds(200));
  }
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

Security Load(const std::string& certs, const std::string& role, const std::string& token_file) {
  SecurityOptions options;
  options.tls_cert = absl::StrCat(certs, "/", role, ".pem");
  options.tls_key = absl::StrCat(certs, "/", role, ".key");
  options.tls_ca = absl::StrCat(certs, "/ca.pem");
  options.token_file = token_file;
  absl::StatusOr<Security> security = Security::Load(options);
  if (security.ok()) return *std::move(security);
  std::fprintf(stderr, "hostile_calls: %s\n", security.status().ToString().c_str());
  std::exit(2);
}

int Main(int argc, char** argv) {
  std::vector<std::string> servers;
  std::string certs, token_file;
  Ways ways;
  uint64_t calls = 0, seed = 1;
  CLI::App app("Random calls to the stage servers of a run.", "hostile_calls");
  app.add_option("--servers", servers, "HOST:PORT,...")->delimiter(',')->required();
  app.add_option("--certs", certs, "folder of deploy/certs.sh")->required();
  app.add_option("--token_file", token_file, "the servers' token")->required();
  app.add_option("--run", ways.run, "id of the run under way")->required();
  app.add_option("--calls", calls, "how many, frames included")->required();
  app.add_option("--seed", seed);
  CLI11_PARSE(app, argc, argv);
  gpr_set_log_function([](gpr_log_func_args*) {});
  google::protobuf::SetLogHandler(nullptr);

  ways.coordinator = Load(certs, "coordinator", token_file);
  ways.stage = Load(certs, "stage", token_file);
  grpc::SslCredentialsOptions authority;
  authority.pem_root_certs = ReadFile(certs + "/ca.pem");
  ways.nobody = grpc::SslCredentials(authority);
  ways.token = ReadFile(token_file);
  while (!ways.token.empty() && ways.token.back() == '\n') ways.token.pop_back();

  Tally tally(calls);
  std::atomic<bool> ends{false};
  std::vector<std::thread> peers, checks;
  const SteadyTime start = SteadyTime::Now();
  for (const std::string& server : servers) {
    checks.emplace_back([&] { CheckHealth(ways, server, ends, &tally); });
    for (int i = 0; i < 3; ++i) {
      peers.emplace_back(
          [&, own = ++seed] { ControlPeer(ways, server, own).CallUntilEnough(&tally); });
    }
    for (int i = 0; i < 2; ++i) {
      peers.emplace_back([&, own = ++seed] { DialUntilEnough(ways, server, own, &tally); });
    }
    peers.emplace_back([&, own = ++seed] { KnockUntilEnough(ways, server, own, &tally); });
  }
  const uint64_t first_seed = seed - peers.size();
  for (std::thread& peer : peers) peer.join();
  const double seconds = absl::ToDoubleSeconds(SteadyTime::Now() - start);
  ends = true;
  for (std::thread& check : checks) check.join();
  return tally.Print(seconds, first_seed) == 0 ? 0 : 1;
}

}  // namespace
}  // namespace thinwire

int main(int argc, char** argv) { return thinwire::Main(argc, argv); }
