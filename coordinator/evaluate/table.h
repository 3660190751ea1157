// The report of `thinwire evaluate` for people.
#pragma once

#include <string>

#include "proto/evaluation.pb.h"

namespace thinwire {

// Returns a table with a line for each row, below one that says of what it is.
std::string EvaluateTable(const EvaluateReport& report);

// Returns what is said of a row once it is there: "none: loss 3.6601, 12.0 s".
std::string SaidOf(const EvaluateRow& row);

}  // namespace thinwire
