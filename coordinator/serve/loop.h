// The loop that works the queue off: begins runs, each a process of its own, and waits for them.
#pragma once

#include "coordinator/serve/queue.h"
#include "coordinator/serve/queue_metrics.h"
#include "coordinator/serve/service.h"
#include "coordinator/session/interruption.h"
#include "coordinator/session/session.h"

namespace thinwire {

struct ServeOptions {
  int jobs = 1;                       // runs at once on this machine, where there are no groups
  double metrics_linger_seconds = 0;  // of each run
  SessionOptions session;             // of its stages nothing: the queue's groups have them
};

// Works `queue` off until `interruption` has seen a signal, a run at a time for each group of stage
// servers or for each job; runs that are under way have ended then and wait for the next server.
// Prints what begins and ends. On the main thread, with which the runs end.
void WorkOff(const ServeOptions& options, const QueueLimits& limits, RunQueue* queue,
             QueueMetrics* metrics, Interruption* interruption);

}  // namespace thinwire
