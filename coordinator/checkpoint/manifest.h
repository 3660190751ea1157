// manifest.json: what a checkpoint is of and which files belong to it (docs/checkpoints.md).
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/checkpoint.pb.h"

namespace thinwire {

inline constexpr char kManifestFile[] = "manifest.json";
inline constexpr uint32_t kManifestFormat = 2;
// The one before, whose progress has the epochs themselves: it is read, and not written.
inline constexpr uint32_t kFormatWithEpochs = 1;
inline constexpr uint64_t kMaxManifestBytes = uint64_t{64} << 20;

// Numbers that JSON does not have stand as the strings "NaN", "Infinity" and "-Infinity", so that
// all of it is read back as it was.
std::string ManifestText(const CheckpointManifest& manifest);

// DataLoss names `path` and what is wrong: no JSON, a field that there is not, is missing or is of
// another type, another format, a file's name that leads out of the folder or comes twice.
absl::StatusOr<CheckpointManifest> ParseManifest(const std::string& text, const std::string& path);

// DataLoss unless a file of a checkpoint may have the name, which leads nowhere else and is not
// that of a file that every checkpoint has.
absl::Status CheckFileName(const std::string& name);

}  // namespace thinwire
