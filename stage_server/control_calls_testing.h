// Requests of every control call, and experiments whose stages are built in a moment.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "google/protobuf/message.h"
#include "proto/stage.pb.h"

namespace thinwire {

inline constexpr char kLinkSecretForTests[] = "what a link shows";

// What a checkpoint or an export gave a peer, which sends it back.
struct KeptState {
  std::string file = "no file";
  StatePart part;
};

struct ControlCall {
  char letter;
  const char* method;
  // Without a lease. Every variant is a request; those of few arguments repeat.
  std::unique_ptr<google::protobuf::Message> (*request)(uint8_t variant, const KeptState& kept);
};

// All of service Stage, but those that measure links: seconds each, to peers of others' choosing.
absl::Span<const ControlCall> ControlCalls();

// How many there are; variant n of Configure asks for number n modulo that. The first trains alone,
// and so do some others, which cut inside the stage; the rest wait for neighbours.
size_t NumConfigurations();

// A folder of this process's, removed when it exits, with the data that Configure names.
const std::string& DataFolder();

// Changes what makes a stage take long to build or to train: whoever holds the lease may ask for
// any size.
void BoundCost(ConfigureRequest* request);

// The field that every request has.
const Lease& LeaseIn(const google::protobuf::Message& request);
void SetLease(const Lease& lease, google::protobuf::Message* request);

}  // namespace thinwire
