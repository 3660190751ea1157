// The running statistics of a stage's batch norms while its replicas take turns. Each replica
// starts from those of the step's begin; the means over the replicas with samples are what is left.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nn/segment/segment.h"
#include "tensor/device.h"

namespace thinwire {

class RunningStatistics {
 public:
  // The statistics of one segment, one after the other.
  struct OfSegment {
    uint32_t number = 0;  // of their messages
    Segment* segment = nullptr;
    std::vector<Tensor> tensors;  // the parameters' own memory
    int64_t elements = 0;
    std::vector<float> kept;               // of the step's begin
    std::vector<std::vector<float>> left;  // by each replica with samples
  };

  // Adds a segment, which outlives this object as `device` does.
  void Add(uint32_t number, Segment* segment, Device* device);

  // Return the segments that have any. Read returns a segment's, as they are now.
  std::vector<OfSegment>& segments() { return segments_; }
  size_t size() const { return segments_.size(); }
  absl::StatusOr<std::vector<float>> Read(const OfSegment& of) const;

  // Keeps what all segments have now, and sets it again.
  absl::Status Keep();
  absl::Status Restore() const;

  // Sets a segment's to the means of what the replicas have left, added in ascending order.
  absl::Status SetMeans(const OfSegment& of) const;

 private:
  absl::Status Write(const std::vector<float>& values, const OfSegment& to) const;

  Device* device_ = nullptr;
  std::vector<OfSegment> segments_;
};

}  // namespace thinwire
