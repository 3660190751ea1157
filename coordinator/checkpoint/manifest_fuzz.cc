// Parses any text as a checkpoint's manifest. It must be refused, or its own text must read back as
// the same.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "coordinator/checkpoint/manifest.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto manifest = thinwire::ParseManifest(text, "fuzz.json");
  if (!manifest.ok()) return 0;
  for (const thinwire::CheckpointFile& file : manifest->files()) {
    if (file.name().find('/') != std::string::npos || file.name() == "..") std::abort();
  }
  const std::string written = thinwire::ManifestText(*manifest);
  const auto again = thinwire::ParseManifest(written, "again.json");
  if (!again.ok() || thinwire::ManifestText(*again) != written) std::abort();
  return 0;
}
