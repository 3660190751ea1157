// Requests for the next positions of a text: what they may ask for, and the token that is drawn
// behind them. Pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "models/model.h"
#include "proto/stage.pb.h"

namespace thinwire {

// Checks a request; `positions` is the number of positions of the text so far. InvalidArgument and
// FailedPrecondition say what the request has and what the model, or the text so far, wants.
absl::Status CheckText(const GenerateRequest& request, const Model& model, int64_t positions);

// Draws the token of a checked request from the logits of its last position. OutOfRange if one of
// them is not finite.
absl::StatusOr<int32_t> DrawToken(const GenerateRequest& request, const std::vector<float>& logits);

}  // namespace thinwire
