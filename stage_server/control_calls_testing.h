// Requests of every control call, and experiments whose stages are built quickly.
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

// State that a checkpoint or an export gave a peer, which sends it back.
struct KeptState {
  std::string file = "no file";
  StatePart part;
};

struct ControlCall {
  char letter;
  const char* method;
  // Returns a request without a lease. Every variant is a valid request; those of few arguments
  // repeat.
  std::unique_ptr<google::protobuf::Message> (*request)(uint8_t variant, const KeptState& kept);
};

// Returns all calls of service Stage except those that measure links, which take seconds each and
// dial peers that the request names, and Drain, which wants no lease and ends the server.
absl::Span<const ControlCall> ControlCalls();

// Returns the number of configurations; variant n of Configure asks for configuration n modulo
// that. The first, and some others with cuts inside the stage, train alone; the rest wait for
// neighbours.
size_t NumConfigurations();

// Returns a folder with the data that Configure names; it is removed when this process exits.
const std::string& DataFolder();

// Reduces what makes a stage slow to build or to train, since the holder of a lease may ask for any
// size.
void BoundCost(ConfigureRequest* request);

// Return and set the lease, a field that every request has.
const Lease& LeaseIn(const google::protobuf::Message& request);
void SetLease(const Lease& lease, google::protobuf::Message* request);

}  // namespace thinwire
