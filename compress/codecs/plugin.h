// Codecs from users' own libraries (codec_plugin.h): opened once per process, never closed, known
// by a digest on which both ends of a boundary agree.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "compress/codec_plugin.h"
#include "compress/spec.h"

namespace thinwire {

// One library with one set of parameters. Immutable.
struct Plugin {
  uint64_t digest = 0;     // of name, version and parameters
  std::string path;        // absolute
  std::string parameters;  // as the library got them
  const thinwire_codec_v1* table = nullptr;
  void* codec = nullptr;

  // "sign 1.0 {"center":true}"
  std::string ToString() const;
};

// Opens the library, makes a codec with the parameters (a JSON object; what it leaves out has the
// library's defaults) and returns its digest, for CodecSpec::plugin. Loading the same again gives
// the same. Any thread.
// Errors name the path: NotFound with the loader's reason; FailedPrecondition for another
// interface; InvalidArgument for parameters that the library does not take or refuses, and for a
// description that breaks the rules; AlreadyExists for another file with the same name, version and
// parameters.
absl::StatusOr<uint64_t> LoadPlugin(const std::string& path, const std::string& parameters_json);

// Whether a codec on a command line is the path of a library and not a codec's text.
bool IsLibrary(const std::string& text);

// A codec as command lines have it: a text for ParseCodec, or the path of a library, which is
// loaded with the parameters.
absl::StatusOr<CodecSpec> ParseCodecOrLibrary(const std::string& text,
                                              const std::string& parameters_json);

// Null if no such plug-in was loaded. Stays valid.
const Plugin* FindPlugin(uint64_t digest);

// As Name(spec.kind) and spec.ToString(), but with the library's own name where one was loaded.
std::string CodecName(const CodecSpec& spec);  // "sign"
std::string CodecText(const CodecSpec& spec);  // "sign 1.0 {"center":true}"

}  // namespace thinwire
