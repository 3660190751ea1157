// Reads what PyTorch computed: the tensors of a file that make_fixtures.py or
// make_language_fixtures.py wrote.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/types/span.h"

namespace thinwire {

// Values of each tensor, by its name.
using Fixture = std::map<std::string, std::vector<float>>;

// Reads a safetensors file of fp32 tensors. Fails the test if it has no header.
inline Fixture ReadFixture(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  uint64_t header_bytes = 0;
  EXPECT_GT(bytes.size(), sizeof(header_bytes)) << path;
  std::memcpy(&header_bytes, bytes.data(), sizeof(header_bytes));
  const auto header = nlohmann::json::parse(bytes.substr(8, header_bytes));
  Fixture tensors;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    const size_t begin = entry["data_offsets"][0], end = entry["data_offsets"][1];
    std::vector<float>& values = tensors[name];
    values.resize((end - begin) / sizeof(float));
    std::memcpy(values.data(), bytes.data() + 8 + header_bytes + begin, end - begin);
  }
  return tensors;
}

// Returns the norm of the difference over the norm of `expected`, or infinity if the sizes differ
// (which also fails the test).
inline double Distance(absl::Span<const float> values, absl::Span<const float> expected) {
  EXPECT_EQ(values.size(), expected.size());
  if (values.size() != expected.size()) return INFINITY;
  double distance = 0, norm = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double e = static_cast<double>(expected[i]);
    distance += (static_cast<double>(values[i]) - e) * (static_cast<double>(values[i]) - e);
    norm += e * e;
  }
  return std::sqrt(distance / norm);
}

}  // namespace thinwire
