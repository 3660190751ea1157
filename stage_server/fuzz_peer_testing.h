// The client of the fuzz target.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "google/protobuf/message.h"
#include "grpcpp/grpcpp.h"
#include "stage_server/control_calls_testing.h"
#include "stage_server/fuzz_orders_testing.h"
#include "stage_server/raw_call_testing.h"

namespace thinwire {

// Obeys orders, by who holds the lease and who does not. It knows what the service must answer, and
// ends the process where that answers otherwise.
class FuzzPeer {
 public:
  void Obey(const Orders::Order& order);
  // Checks that the service takes every configuration; otherwise the search would be useless.
  void CheckConfigurations();
  // Makes the service free and waits until it has no call under way.
  void Leave();

 private:
  Lease HowLeased(char who) const;
  void Make(const ControlCall& call, const Orders::Order& order);
  void DialLink(const Orders::Order& order);
  void ReadState(const Orders::Order& order);
  // Makes a call with the message `bytes` and waits for its end.
  grpc::Status Wait(const std::string& method, const std::string& bytes, absl::Duration patience,
                    std::vector<std::string>* answers = nullptr);
  grpc::Status Ask(const char* method, const google::protobuf::Message& request,
                   std::vector<std::string>* answers = nullptr);
  void Keep(const ControlCall& call, const std::vector<std::string>& answers);
  void KeepFile(const std::vector<std::string>& pieces);
  void LeaveOpen(std::unique_ptr<RawCall> call);
  void CheckStranger(const ControlCall& call, const google::protobuf::Message* request,
                     const grpc::Status& status) const;
  void CheckAcquire(const AcquireRequest& request, const grpc::Status& status);
  void CheckOwnRun();
  // Makes a call that must succeed and returns the answers.
  std::vector<std::string> AskAsHolder(char letter, uint8_t variant);
  // Returns a status that tells the lease's holder whether there is a run.
  grpc::StatusCode StateOfRun();
  bool IsHolder(const Lease& lease) const;
  // Returns whether this peer surely holds the lease; a short lease may be over.
  bool IsSureToHold() const { return held_ && !is_brief_; }

  std::optional<Lease> held_;
  bool is_brief_ = false;
  bool may_be_held_up_ = false;  // EndTraining holds a run's steps, and then what follows them
  KeptState kept_;
  TakeSnapshotResponse snapshot_;  // whose files have not been read
  std::deque<std::unique_ptr<RawCall>> open_;
};

}  // namespace thinwire
