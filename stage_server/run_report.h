// What a run tells of itself: to its coordinator, and to whoever scrapes /metrics.
#pragma once

#include <cstdint>

#include "proto/stage.pb.h"
#include "stage_server/boundary/step_trace.h"
#include "stage_server/metrics.h"
#include "stage_server/stage/executor.h"
#include "stage_server/stage/local_stage.h"

namespace thinwire {

constexpr uint64_t kEveryStep = UINT64_MAX;

// Any thread, all. The first tells of steps up to `last_step` of training, all of whose messages
// have been sent, what no report has told before.
StageReport ReportOf(const LocalStage& stage, const Executor& executor, const Backend& backend,
                     uint64_t last_step);
TraceReport ReportOf(const StepTrace::Taken& taken);
StageSnapshot SnapshotOf(const LocalStage& stage, const Executor& executor, const Backend& backend);

}  // namespace thinwire
