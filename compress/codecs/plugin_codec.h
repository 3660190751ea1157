// Codec plugin: a codec from a user's own library, which LoadPlugin has opened.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "compress/codec.h"

namespace thinwire {

// Returns the codec of a plug-in. FailedPrecondition if the library is not loaded in this process.
absl::StatusOr<std::unique_ptr<Codec>> NewPluginCodec(const CodecSpec& spec, CodecKernels* kernels);

}  // namespace thinwire
