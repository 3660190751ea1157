#include "coordinator/session/returns.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/text.h"

namespace thinwire {
namespace {

constexpr std::chrono::seconds kEvery(1);

}  // namespace

Returns::Returns(Search search, std::function<void(const std::string&)> on_return)
    : search_(std::move(search)), on_return_(std::move(on_return)) {
  for (const std::string& address : search_.addresses) {
    servers_.push_back(
        std::make_unique<StageClient>(StagePlace(), address, search_.lease, search_.security));
  }
  thread_ = std::thread([this] { Loop(); });
}

Returns::~Returns() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  stopping_.notify_one();
  for (const auto& server : servers_) server->Cancel();
  thread_.join();
}

void Returns::Loop() {
  std::vector<StageClient*> sought;
  for (const auto& server : servers_) sought.push_back(server.get());
  std::unique_lock<std::mutex> lock(mutex_);
  while (!stopping_.wait_for(lock, kEvery, [this] { return stop_; })) {
    lock.unlock();
    sought.erase(std::remove_if(sought.begin(), sought.end(),
                                [this](StageClient* server) { return Try(server); }),
                 sought.end());
    if (search_.joins != nullptr) {
      for (const std::string& address : search_.joins->TakeAdmitted()) on_return_(address);
    }
    search_.on_look();
    lock.lock();
  }
}

bool Returns::Try(StageClient* server) {
  const auto answer = server->Acquire(search_.lease_seconds, absl::ZeroDuration(),
                                      /*keeps_state=*/false, [](const std::string&) {});
  if (!answer.ok()) return false;
  const std::string& build = answer->build().build_id();
  if (search_.build.empty() || build == search_.build) {
    on_return_(server->address());
    return true;
  }
  server->Release().IgnoreError();
  const std::string line = absl::StrCat("warning: ", server->address(), " is back, but of build \"",
                                        build, "\", and stays away");
  std::fprintf(stderr, "thinwire: %s\n", PrintableLine(line).c_str());
  return true;
}

}  // namespace thinwire
