// Watches for servers that a run has lost and that are there again, and for those that join it.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "coordinator/fleet/stage_client.h"
#include "coordinator/session/joins.h"
#include "proto/stage.pb.h"
#include "security/security.h"

namespace thinwire {

class Returns {
 public:
  // Whom to look for, and what they are leased for.
  struct Search {
    std::vector<std::string> addresses;
    Lease lease;
    double lease_seconds = 15;
    std::string build;  // that a server must have; empty: any
    Security security;
    Joins* joins = nullptr;                 // outlives this object; null: nobody joins
    std::function<void()> on_look = [] {};  // called each time, after those that have come
  };

  // Tries about once a second to lease each server. `on_return` is called once for each that was
  // leased, and for each that has joined, on a thread of this object, as is `on_look`. The lease
  // is not renewed: it is for who takes it over. Of a server of another build stderr gets a line.
  Returns(Search search, std::function<void(const std::string& address)> on_return);
  // Ends a call that is under way.
  ~Returns();

  Returns(const Returns&) = delete;
  Returns& operator=(const Returns&) = delete;

 private:
  void Loop();
  // Returns whether the server is looked for no longer.
  bool Try(StageClient* server);

  const Search search_;
  const std::function<void(const std::string&)> on_return_;
  std::vector<std::unique_ptr<StageClient>> servers_;
  std::mutex mutex_;
  std::condition_variable stopping_;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace thinwire
