// Conversion between a direction's entry and a codec: which fields of the entry are parameters of
// the codec, which of them matter beside the others, what absent ones mean, and the way back.
#pragma once

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compress/spec.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// Reads the entry's codec with its parameters; absent ones get their defaults. The caller has to
// call CheckSpec. InvalidArgument names an unknown value; *spec then has the default in its place.
// `plugin` is left out, as it is a path in an entry and a digest in a specification.
absl::Status ReadCodec(const DirectionConfig& direction, CodecSpec* spec);

// Returns the fields that belong to the codec. The value is null if the field matters, or else what
// it needs in order to matter ("scope group"). Empty for an unknown codec.
std::map<std::string, const char*> NeedsOf(const DirectionConfig& direction);

// Returns InvalidArgument if a parameter of the codec is set but does not matter, as the user's
// wish would have no effect. The error names the field below `path`, its value and what it needs.
absl::Status CheckNoSilentField(const std::string& path, const DirectionConfig& direction);

// Clears parameters that mattered in `before`, do not matter in `*after` and are not set in `next`,
// which was merged over `before`. So an overlay that makes a field meaningless replaces it.
// `before` and `after` are complete entries of a cut. The fields are cleared in `*entry`, which may
// be only a part of `after`.
void ForgetSilenced(const DirectionConfig& before, const DirectionConfig& next,
                    const DirectionConfig& after, DirectionConfig* entry);

// Fills in the codec's absent parameters that matter, if the default is worth writing down.
void FillCodec(DirectionConfig* direction);

// Fills in an absent `scope`, if it matters, with the default for a model of tokens.
void FillScopeOfTokens(DirectionConfig* direction);

// Fills in an absent `rounding` of gradients with codec ecsq. Gradients have to be unbiased rather
// than precise, unless their error comes back through feedback or cells have means.
void FillRoundingOfGradients(DirectionConfig* gradients);

// Returns the entry that CodecFrom turns into `spec` again, once the experiment is resolved.
// InvalidArgument for a plug-in that was not loaded.
absl::StatusOr<DirectionConfig> ConfigOf(const CodecSpec& spec);

}  // namespace thinwire
