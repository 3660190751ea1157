// manifest.json: what a checkpoint was made from and which files belong to it
// (docs/checkpoints.md).
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/checkpoint.pb.h"

namespace thinwire {

inline constexpr char kManifestFile[] = "manifest.json";
inline constexpr uint32_t kManifestFormat = 2;
// Number of the older format, whose progress holds the epochs themselves. It is read, never
// written.
inline constexpr uint32_t kFormatWithEpochs = 1;
inline constexpr uint64_t kMaxManifestBytes = uint64_t{64} << 20;

// Returns the manifest as JSON. Numbers that JSON lacks are the strings "NaN", "Infinity" and
// "-Infinity", so that every value is read back unchanged.
std::string ManifestText(const CheckpointManifest& manifest);

// Parses a manifest. DataLoss names `path` and the fault: no JSON; a field that is unknown, missing
// or of the wrong type; an unknown format; a file name that leads out of the folder or occurs
// twice.
absl::StatusOr<CheckpointManifest> ParseManifest(const std::string& text, const std::string& path);

// Returns DataLoss unless a checkpoint's file may have this name: it must not lead out of the
// folder or be one of the names that every checkpoint uses.
absl::Status CheckFileName(const std::string& name);

}  // namespace thinwire
