#include "coordinator/run/metrics.h"

#include <utility>

#include "coordinator/plan/break_even.h"
#include "coordinator/run/boundary_totals.h"
#include "monitoring/buckets.h"
#include "monitoring/errors.h"
#include "prometheus/counter.h"
#include "prometheus/gauge.h"
#include "prometheus/histogram.h"

namespace thinwire {
namespace {

using prometheus::Counter;
using prometheus::Gauge;
using prometheus::Histogram;
using prometheus::Labels;
using prometheus::Registry;

constexpr auto kStepSeconds = DecimalBounds<-3, 5>();  // 1 ms to 100 s

Gauge& NewGauge(Registry* registry, const char* name, const char* help, const Labels& labels) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(*registry).Add(labels);
}

Counter& NewCounter(Registry* registry, const char* name, const char* help, const Labels& labels) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(*registry).Add(labels);
}

Labels With(Labels labels, const std::string& name, const std::string& value) {
  labels[name] = value;
  return labels;
}

// The series of one boundary and direction.
struct DirectionSeries {
  DirectionSeries(Registry* registry, const Labels& labels)
      : ratio(NewGauge(registry, "thinwire_compression_ratio",
                       "Raw bytes over wire bytes, training so far", labels)),
        wire_bytes(NewCounter(registry, "thinwire_run_wire_bytes_total",
                              "Bytes of serialised frames of training messages", labels)),
        breakeven(NewGauge(registry, "thinwire_breakeven_bytes_per_second",
                           "Link rate below which the codec saves time when encode, transfer and "
                           "decode follow one another",
                           labels)),
        registry(registry),
        labels(labels) {}

  // Returns the series of errors, which exists once a message was measured.
  Gauge& Error() {
    if (error == nullptr) {
      error = &NewGauge(registry, "thinwire_run_relative_error",
                        "Mean relative error of the measured messages", labels);
    }
    return *error;
  }
  void Update(const DirectionRecord& record) {
    ratio.Set(CompressionRatio(record));
    const double more = static_cast<double>(record.wire_bytes()) - wire_bytes.Value();
    if (more > 0) wire_bytes.Increment(more);
    if (record.has_relative_error()) Error().Set(record.relative_error());
    const double break_even_bits_per_second = BreakEvenBitsPerSecond(
        static_cast<double>(record.raw_bytes()), static_cast<double>(record.wire_bytes()),
        record.encode_seconds() + record.decode_seconds());
    breakeven.Set(break_even_bits_per_second / 8);
  }

  Gauge& ratio;
  Counter& wire_bytes;
  Gauge& breakeven;
  Registry* const registry;
  const Labels labels;
  Gauge* error = nullptr;
};

// The series of one kind of evaluation, which exist once it was made.
class TestSeries {
 public:
  TestSeries(Registry* registry, Labels labels)
      : registry_(*registry), labels_(std::move(labels)) {}

  void Update(const Measured& measured) {
    Set(&loss_, "thinwire_test_loss", "Mean over the test samples", measured.loss());
    if (measured.has_accuracy()) {
      Set(&accuracy_, "thinwire_test_accuracy", "Fraction of the test samples",
          measured.accuracy());
    }
    const ClassMeasures& classes = measured.classes();
    if (measured.has_perplexity()) {
      Set(&perplexity_, "thinwire_test_perplexity", "exp(loss)", measured.perplexity());
    }
    if (classes.has_f1()) Set(&f1_, "thinwire_test_f1", "Of class 1", classes.f1());
    if (classes.has_matthews()) {
      Set(&matthews_, "thinwire_test_matthews", "Matthews' correlation", classes.matthews());
    }
    if (measured.has_scores()) {
      Set(&pearson_, "thinwire_test_pearson", "Of scores", measured.scores().pearson());
      Set(&spearman_, "thinwire_test_spearman", "Of scores' ranks", measured.scores().spearman());
    }
  }

 private:
  // Sets a gauge that exists once it has a value.
  void Set(Gauge** gauge, const char* name, const char* help, double value) {
    if (*gauge == nullptr) *gauge = &NewGauge(&registry_, name, help, labels_);
    (*gauge)->Set(value);
  }

  Registry& registry_;
  const Labels labels_;
  Gauge* loss_ = nullptr;
  Gauge* accuracy_ = nullptr;    // unless labels are scores
  Gauge* perplexity_ = nullptr;  // of language models only
  Gauge* f1_ = nullptr;          // these two of tasks that are judged so
  Gauge* matthews_ = nullptr;
  Gauge* pearson_ = nullptr;  // these two of scores
  Gauge* spearman_ = nullptr;
};

}  // namespace

// Reasons for the loss of a stage (RunEvent).
constexpr const char* kReasons[] = {"dead", "silent", "unleased", "ends", "error"};

struct RunMetrics::Series {
  Series(Registry* r, const Labels& run)
      : registry(r),
        run(run),
        epoch(NewGauge(r, "thinwire_epoch", "Epoch of the last step, from 1", run)),
        step(NewGauge(r, "thinwire_step", "Last optimizer step, from 1", run)),
        train_loss(NewGauge(r, "thinwire_train_loss", "Of the last step's batch", run)),
        train_accuracy(
            NewGauge(r, "thinwire_train_accuracy", "Of the last step's batch, as a fraction", run)),
        learning_rate(NewGauge(r, "thinwire_learning_rate", "Of the last step", run)),
        eta_seconds(
            NewGauge(r, "thinwire_eta_seconds", "Estimated time until the run is done", run)),
        bubble_ratio(NewGauge(r, "thinwire_pipeline_bubble_ratio",
                              "1 - forward and backward seconds / (stages x training seconds)",
                              run)),
        samples(NewCounter(r, "thinwire_samples_total", "Trained samples", run)),
        step_seconds(
            prometheus::BuildHistogram()
                .Name("thinwire_step_seconds")
                .Help("Wall time of a training step at the last stage")
                .Register(*r)
                .Add(run, Histogram::BucketBoundaries(kStepSeconds.begin(), kStepSeconds.end()))),
        errors(run, r),
        compressed(r, With(run, "inference", "compressed")),
        uncompressed(r, With(run, "inference", "uncompressed")),
        uncompressed_recalibrated(r, With(run, "inference", "uncompressed_recalibrated")) {}

  // Exists for every stage and reason once the stages are known.
  Counter& Restarts(size_t stage, const std::string& reason) {
    return NewCounter(registry, "thinwire_restarts_total",
                      "Times that the run went on from a checkpoint, as this stage was lost",
                      With(With(run, "stage", std::to_string(stage)), "reason", reason));
  }

  void Update(const TestRecord& test) {
    if (test.has_compressed()) compressed.Update(test.compressed());
    if (test.has_uncompressed()) uncompressed.Update(test.uncompressed());
    if (test.has_uncompressed_recalibrated()) {
      uncompressed_recalibrated.Update(test.uncompressed_recalibrated());
    }
  }

  Registry* const registry;
  const Labels run;
  Gauge &epoch, &step, &train_loss, &train_accuracy, &learning_rate, &eta_seconds, &bubble_ratio;
  Counter& samples;
  Histogram& step_seconds;
  ErrorCounter errors;
  TestSeries compressed, uncompressed, uncompressed_recalibrated;
  struct Boundary {
    DirectionSeries activations, gradients;
  };
  std::vector<Boundary> boundaries;  // in the order of the cuts
};

RunMetrics::RunMetrics(const std::string& run, const std::vector<std::string>& cuts,
                       Registry* registry) {
  const Labels labels = {{"run", run}};
  series_ = std::make_unique<Series>(registry, labels);
  for (const std::string& cut : cuts) {
    const Labels boundary = With(labels, "boundary", cut);
    series_->boundaries.push_back(
        {DirectionSeries(registry, With(boundary, "direction", "activation")),
         DirectionSeries(registry, With(boundary, "direction", "gradient"))});
  }
}

RunMetrics::~RunMetrics() = default;

void RunMetrics::Failed(const absl::Status& error) { series_->errors.Count(KindOf(error)); }

absl::Status RunMetrics::OnStart(const RunPlan& plan) {
  pace_.Start(plan);
  for (size_t stage = 0; stage < plan.stages.size(); ++stage) {
    for (const char* reason : kReasons) series_->Restarts(stage, reason);
  }
  return absl::OkStatus();
}

absl::Status RunMetrics::OnStep(const StepRecord& step) {
  pace_.Add(step);
  series_->epoch.Set(step.epoch());
  series_->step.Set(static_cast<double>(step.step()));
  series_->train_loss.Set(step.loss());
  series_->train_accuracy.Set(step.accuracy());
  series_->learning_rate.Set(step.lr());
  series_->eta_seconds.Set(pace_.EtaSeconds());
  series_->samples.Increment(step.samples());
  series_->step_seconds.Observe(step.seconds());
  return absl::OkStatus();
}

absl::Status RunMetrics::OnTotals(const RunTotals& totals) {
  series_->bubble_ratio.Set(totals.bubble_ratio);
  for (size_t i = 0; i < series_->boundaries.size() && i < totals.boundaries.size(); ++i) {
    series_->boundaries[i].activations.Update(totals.boundaries[i].activations());
    series_->boundaries[i].gradients.Update(totals.boundaries[i].gradients());
  }
  return absl::OkStatus();
}

absl::Status RunMetrics::OnCheckpoint(const CheckpointManifest&) {
  NewGauge(series_->registry, "thinwire_last_checkpoint_timestamp_seconds",
           "When the last checkpoint was written, Unix time", series_->run)
      .SetToCurrentTime();
  return absl::OkStatus();
}

absl::Status RunMetrics::OnEvent(const RunEvent& event) {
  if (event.has_stage()) series_->Restarts(event.stage(), event.reason()).Increment();
  return absl::OkStatus();
}

absl::Status RunMetrics::OnEvaluated(const EvaluationRecord& evaluation) {
  series_->Update(evaluation.test());
  return absl::OkStatus();
}

absl::Status RunMetrics::OnEpoch(const EpochRecord& epoch) {
  pace_.Add(epoch);
  series_->eta_seconds.Set(pace_.EtaSeconds());
  series_->Update(epoch.test());
  return absl::OkStatus();
}

}  // namespace thinwire
