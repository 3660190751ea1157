// A direction's entry and its codec: which of the entry's fields are parameters of the codec, which
// have a say beside the others, what absent ones mean, and the way back from a specification.
#pragma once

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compress/spec.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// The entry's codec with its parameters, absent ones with their defaults; CheckSpec is for the
// caller. InvalidArgument names what is unknown; *spec then has the default in its place. Leaves
// out `plugin`, which is a path in an entry and a digest in a specification.
absl::Status ReadCodec(const DirectionConfig& direction, CodecSpec* spec);

// The fields that belong to the codec, each with what it needs to have a say ("scope group"), or
// null where it has one. None for an entry whose codec is not known.
std::map<std::string, const char*> NeedsOf(const DirectionConfig& direction);

// Fills in the absent parameters of the codec that have a say and a default worth saying.
void FillCodec(DirectionConfig* direction);

// Fills in an absent `scope` that has a say with the default of a model of tokens.
void FillScopeOfTokens(DirectionConfig* direction);

// Fills in an absent `rounding` of gradients through ecsq, which have to be unbiased before they
// are precise; not of those whose error comes back, or whose cells are to have means.
void FillRoundingOfGradients(DirectionConfig* gradients);

// What CodecFrom, once the experiment is resolved, turns into `spec` again. InvalidArgument for a
// plug-in that was not loaded.
absl::StatusOr<DirectionConfig> ConfigOf(const CodecSpec& spec);

}  // namespace thinwire
