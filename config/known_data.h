// The data sets by name: what must be known of them before, or without, loading one.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "tensor/shape.h"

namespace thinwire {

struct KnownData {
  std::string name;
  Shape sample;  // of one sample, batch extent 1: [1, 32, 32, 3]
  int64_t classes = 0;
  int64_t train_samples = 0;  // all of them
  int64_t test_samples = 0;
  bool has_folder = false;  // read from files, not embedded
};

// InvalidArgument for an unknown name, with the nearest and those there are.
absl::StatusOr<KnownData> FindKnownData(const std::string& name);

}  // namespace thinwire
