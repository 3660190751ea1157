// Offers this server to a run, again and again, as long as it serves.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/grpcpp.h"
#include "proto/members.grpc.pb.h"
#include "security/security.h"
#include "stage_server/log.h"

namespace thinwire {

struct JoinOptions {
  std::string coordinator;  // host:port of a `thinwire run --listen`
  std::string address;      // host:port of this server, as others reach it
  Security security;
  std::function<JoinRequest()> offer;  // what this server says of itself, but for its address
  // Called, like the next, on a thread of the Joiner: when an offer has ended.
  std::function<void()> on_ended = [] {};
  // Called once if the run does not take such a server.
  std::function<void()> on_refused;
  absl::Duration first_wait = absl::Seconds(1);  // before the second offer; doubles up to the most
  absl::Duration most_wait = absl::Seconds(5);
};

// Returns `advertise` or, if it is empty, `listening`. InvalidArgument for an address at which
// others cannot reach the server.
absl::StatusOr<std::string> AdvertisedAddress(const std::string& advertise,
                                              const std::string& listening);

// Makes an offer, keeps it up while the run takes the server in, and makes the next one when that
// has ended: the run, the connection, or the coordinator. Says each in the log, a reason once.
class Joiner {
 public:
  // `log` outlives this object.
  Joiner(JoinOptions options, Log* log);
  // Withdraws the offer.
  ~Joiner();

  Joiner(const Joiner&) = delete;
  Joiner& operator=(const Joiner&) = delete;

 private:
  void Loop();
  // Returns how the offer ended; OK: with its run.
  absl::Status Offer(Membership::Stub* coordinator);
  void Tell(const absl::Status& ended);
  // Returns false if the offer is withdrawn meanwhile.
  bool Wait(absl::Duration duration);

  const JoinOptions options_;
  Log& log_;
  bool is_member_ = false;  // since the last offer
  std::string told_;        // reason of the last line
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  grpc::ClientContext* call_ ABSL_GUARDED_BY(mutex_) = nullptr;  // the offer; null: none
  std::thread thread_;
};

}  // namespace thinwire
