// Which evaluation of a run is its best so far.
#pragma once

#include <optional>
#include <string>

#include "google/protobuf/repeated_field.h"
#include "proto/coordinator.pb.h"

namespace thinwire {

// Returns a number that is less for a better evaluation. `by` is loss or accuracy, with the codecs
// where these are evaluated. None if the evaluation has no such measure.
std::optional<double> BadnessOf(const std::string& by, const TestRecord& test);

// Returns whether `latest` is better than all evaluations before it: those of complete `epochs`,
// and those after `steps` of the epoch that it belongs to. Of equal ones the earlier is better.
// False if nothing was evaluated.
bool IsBest(const std::string& by, const TestRecord& latest,
            const google::protobuf::RepeatedPtrField<EpochRecord>& epochs,
            const google::protobuf::RepeatedPtrField<EvaluationRecord>& steps);

}  // namespace thinwire
