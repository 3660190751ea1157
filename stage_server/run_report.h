// What a run tells of itself: to its coordinator, and to whoever scrapes /metrics.
#pragma once

#include "proto/stage.pb.h"
#include "stage_server/boundary/step_trace.h"
#include "stage_server/metrics.h"
#include "stage_server/stage/executor.h"
#include "stage_server/stage/local_stage.h"

namespace thinwire {

// Any thread, all.
StageReport ReportOf(const LocalStage& stage, const Executor& executor, const Backend& backend);
TraceReport ReportOf(const StepTrace::Taken& taken);
StageSnapshot SnapshotOf(const LocalStage& stage, const Executor& executor, const Backend& backend);

}  // namespace thinwire
