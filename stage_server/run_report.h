// Makes the reports of a run for its coordinator and for /metrics.
#pragma once

#include <cstdint>

#include "proto/stage.pb.h"
#include "stage_server/boundary/step_trace.h"
#include "stage_server/metrics.h"
#include "stage_server/stage/executor.h"
#include "stage_server/stage/local_stage.h"

namespace thinwire {

// Stands for a last step beyond any step.
constexpr uint64_t kEveryStep = UINT64_MAX;

// Make reports; any thread. The first reports the training steps up to `last_step` that no report
// has had before; all their messages must have been sent.
StageReport ReportOf(const LocalStage& stage, const Executor& executor, const Backend& backend,
                     uint64_t last_step);
TraceReport ReportOf(const StepTrace::Taken& taken);
StageSnapshot SnapshotOf(const LocalStage& stage, const Executor& executor, const Backend& backend);

}  // namespace thinwire
