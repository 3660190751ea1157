// Reads any text as an experiment file. It must be refused, or its own YAML must resolve to the
// same.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "config/experiment.h"
#include "google/protobuf/util/message_differencer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto experiment = thinwire::ParseExperiment(text, "fuzz.yaml", {});
  if (!experiment.ok()) return 0;
  const auto again = thinwire::ParseExperiment(thinwire::ToYaml(*experiment), "again.yaml", {});
  if (!again.ok() || !google::protobuf::util::MessageDifferencer::Equals(*experiment, *again)) {
    std::abort();
  }
  return 0;
}
