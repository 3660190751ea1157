#include "coordinator/run/run.h"

#include <utility>

#include "config/boundaries.h"
#include "config/sections.h"
#include "coordinator/run/boundary_totals.h"
#include "coordinator/run/generation.h"
#include "coordinator/run/generation_loop.h"
#include "coordinator/run/trace_recorder.h"
#include "coordinator/run/training_reports.h"

namespace thinwire {

absl::Status RunExperiment(const Experiment& experiment, Fleet* fleet, RunObserver* observer,
                           Summary* summary, const RunOptions& options) {
  summary->set_seed(experiment.seed());
  const Pipelines& pipelines = fleet->pipelines();
  summary->set_stages(static_cast<uint32_t>(pipelines.stages));
  std::optional<RunTrace> trace;
  if (options.trace) trace = EmptyTrace(experiment, pipelines, options.run, *options.trace);
  TrainingReports reports(BoundaryNames(experiment), pipelines, std::move(trace), observer,
                          summary);
  std::optional<CheckpointBase> base;
  const CommonToGenerations run{experiment, options, reports, *observer, *summary, base};
  GenerationLoop::KeptStep kept_step;
  if (KeepsStates(experiment)) kept_step = [&reports] { return reports.step(); };
  GenerationLoop generations(
      options, experiment.restarts(), kept_step,
      [&run](const GenerationStart& start) { return Generation(run, start).Run(); }, observer,
      summary);
  return generations.Run(fleet);
}

}  // namespace thinwire
