// Decides whether a frame may come next on a link: looks at headers and sizes only, so it runs
// before anything is kept or allocated.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "wire/frame.h"
#include "wire/link.h"

namespace thinwire {

// "cut layer1, from stage 2 (10.0.0.7:4700): ", how every error of a link begins.
std::string LinkPrefix(const LinkOptions& options);

class FrameChecker {
 public:
  explicit FrameChecker(const LinkOptions& options) : options_(options) {}

  // FailedPrecondition: another run or generation. InvalidArgument: anything else, naming field,
  // value met and value wanted. After an error the link is lost. One thread at a time.
  absl::Status Check(const ParsedFrame& frame);

 private:
  absl::Status CheckFence(const FrameHeader& header) const;
  absl::Status CheckKey(const FrameHeader& header) const;
  absl::Status CheckFirst(const FrameHeader& header) const;
  absl::Status CheckContinues(const FrameHeader& header) const;

  const LinkOptions options_;
  FrameHeader first_;        // chunk 0 of the message under way
  uint32_t next_chunk_ = 0;  // 0 between messages
};

}  // namespace thinwire
