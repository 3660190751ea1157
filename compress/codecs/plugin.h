// Codecs from users' own libraries (codec_plugin.h). A library is opened once per process and never
// closed. Both ends of a boundary recognise a codec by a digest.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "compress/codec_plugin.h"
#include "compress/spec.h"

namespace thinwire {

// A library with one set of parameters. Immutable.
struct Plugin {
  uint64_t digest = 0;     // of name, version and parameters
  std::string path;        // absolute
  std::string parameters;  // as the library got them
  const thinwire_codec_v1* table = nullptr;
  void* codec = nullptr;

  // Returns e.g. "sign 1.0 {"center":true}".
  std::string ToString() const;
};

// Opens the library, makes a codec with the parameters (a JSON object; what it leaves out has the
// library's defaults) and returns its digest, for CodecSpec::plugin. Loading the same again returns
// the same digest. Any thread.
// Errors name the path. NotFound gives the loader's reason; FailedPrecondition means another
// interface; InvalidArgument, parameters that the library does not take or refuses, or a
// description that breaks the rules. AlreadyExists means that another file has the same name,
// version and parameters.
absl::StatusOr<uint64_t> LoadPlugin(const std::string& path, const std::string& parameters_json);

// Returns whether a codec on a command line is the path of a library and not a codec's text.
bool IsLibrary(const std::string& text);

// Returns a codec from a command line: `text` is for ParseCodec, or it is the path of a library,
// which is loaded with the parameters.
absl::StatusOr<CodecSpec> ParseCodecOrLibrary(const std::string& text,
                                              const std::string& parameters_json);

// Returns the loaded plug-in with this digest, or null. The pointer stays valid.
const Plugin* FindPlugin(uint64_t digest);

// Like Name(spec.kind) and spec.ToString(), but with the library's own name if one was loaded.
std::string CodecName(const CodecSpec& spec);  // "sign"
std::string CodecText(const CodecSpec& spec);  // "sign 1.0 {"center":true}"

}  // namespace thinwire
