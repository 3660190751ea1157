// RETURN_IF_ERROR and ASSIGN_OR_RETURN for absl::Status: they return an error from the enclosing
// function.
#pragma once

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#define RETURN_IF_ERROR(expression)                      \
  do {                                                   \
    absl::Status thinwire_status_ = (expression);        \
    if (!thinwire_status_.ok()) return thinwire_status_; \
  } while (false)

#define THINWIRE_CONCAT_INNER_(a, b) a##b
#define THINWIRE_CONCAT_(a, b) THINWIRE_CONCAT_INNER_(a, b)

// ASSIGN_OR_RETURN(auto x, F()): `target` may declare a variable or name an existing one.
#define ASSIGN_OR_RETURN(target, expression) \
  ASSIGN_OR_RETURN_IMPL_(THINWIRE_CONCAT_(thinwire_or_, __LINE__), target, expression)
#define ASSIGN_OR_RETURN_IMPL_(result, target, expression) \
  auto result = (expression);                              \
  if (!result.ok()) return std::move(result).status();     \
  target = *std::move(result)
