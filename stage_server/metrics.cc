#include "stage_server/metrics.h"

#include <deque>
#include <limits>
#include <utility>

#include "base/build_info.h"
#include "prometheus/client_metric.h"
#include "prometheus/metric_family.h"
#include "stage_server/stash/stash_counts.h"

namespace thinwire {
namespace {

using Labels = std::vector<prometheus::ClientMetric::Label>;
using prometheus::MetricFamily;
using prometheus::MetricType;

// Builds a metric family.
class Family {
 public:
  Family(const char* name, const char* help, MetricType type) {
    family_.name = name;
    family_.help = help;
    family_.type = type;
  }
  void Add(Labels labels, double value) {
    prometheus::ClientMetric metric;
    metric.label = std::move(labels);
    (family_.type == MetricType::Counter ? metric.counter.value : metric.gauge.value) = value;
    family_.metric.push_back(std::move(metric));
  }
  void Add(Labels labels, const Histogram& histogram) {
    prometheus::ClientMetric metric;
    metric.label = std::move(labels);
    uint64_t cumulative = 0;
    for (size_t i = 0; i < histogram.counts().size(); ++i) {
      cumulative += histogram.counts()[i];
      const double bound = i < Histogram::kBounds.size() ? Histogram::kBounds[i]
                                                         : std::numeric_limits<double>::infinity();
      metric.histogram.bucket.push_back({cumulative, bound});
    }
    metric.histogram.sample_count = cumulative;
    metric.histogram.sample_sum = histogram.sum();
    family_.metric.push_back(std::move(metric));
  }
  const MetricFamily& get() const { return family_; }

 private:
  MetricFamily family_;
};

// The families of one page, in the order in which they were begun.
class Page {
 public:
  Family& New(const char* name, const char* help, MetricType type) {
    return families_.emplace_back(name, help, type);
  }
  // Returns those that have metrics.
  std::vector<MetricFamily> Families() const {
    std::vector<MetricFamily> families;
    for (const Family& family : families_) {
      if (!family.get().metric.empty()) families.push_back(family.get());
    }
    return families;
  }

 private:
  std::deque<Family> families_;  // keeps references valid
};

Labels With(Labels labels, const char* name, const std::string& value) {
  labels.push_back({name, value});
  return labels;
}

Labels LabelsOf(const StageSnapshot& snapshot) {
  return {{"run", snapshot.run}, {"stage", std::to_string(snapshot.stage)}};
}

Labels LabelsOf(const StageSnapshot& snapshot, const std::string& boundary,
                const std::string& direction) {
  return With(With(LabelsOf(snapshot), "boundary", boundary), "direction", direction);
}

void AddTraffic(const StageSnapshot& snapshot, Page* page) {
  Family& raw =
      page->New("thinwire_boundary_raw_bytes_total",
                "Bytes of sent tensors before encoding, in the compute type.", MetricType::Counter);
  Family& wire = page->New("thinwire_boundary_wire_bytes_total",
                           "Bytes of sent frames with their gRPC prefixes.", MetricType::Counter);
  Family& messages =
      page->New("thinwire_boundary_messages_total", "Tensors sent.", MetricType::Counter);
  for (const StageSnapshot::End& end : snapshot.ends) {
    if (!end.sender) continue;
    const std::pair<const char*, const BoundaryStatistics::Traffic*> phases[] = {
        {"train", &end.statistics.train}, {"eval", &end.statistics.evaluate}};
    for (const auto& [phase, traffic] : phases) {
      const Labels labels = With(LabelsOf(snapshot, end.boundary, end.direction), "phase", phase);
      raw.Add(labels, static_cast<double>(traffic->raw_bytes));
      wire.Add(labels, static_cast<double>(traffic->wire_bytes));
      messages.Add(labels, static_cast<double>(traffic->messages));
    }
  }
}

void AddCodecs(const StageSnapshot& snapshot, Page* page) {
  Family& info =
      page->New("thinwire_boundary_info", "The codec and feedback in force.", MetricType::Gauge);
  Family& encode = page->New("thinwire_codec_encode_seconds",
                             "Wall time to encode one training message.", MetricType::Histogram);
  Family& decode = page->New("thinwire_codec_decode_seconds",
                             "Wall time to decode one training message.", MetricType::Histogram);
  Family& error =
      page->New("thinwire_codec_relative_error",
                "||m - D(C(m))|| / ||m|| of the last measured message that did not go exact.",
                MetricType::Gauge);
  Family& residual = page->New(
      "thinwire_feedback_residual_norm",
      "||e|| / ||x|| (ef) or ||x - A|| / ||x|| (ef21) of the same message.", MetricType::Gauge);
  Family& received = page->New("thinwire_link_last_receive_timestamp_seconds",
                               "When the last message came, Unix time.", MetricType::Gauge);
  for (const StageSnapshot::End& end : snapshot.ends) {
    const Labels labels = LabelsOf(snapshot, end.boundary, end.direction);
    if (end.sender) {
      info.Add(With(With(labels, "codec", end.codec), "feedback", end.feedback), 1);
      encode.Add(labels, end.statistics.encode);
      error.Add(labels, end.statistics.errors.last_codec.relative_error);
      residual.Add(labels, end.statistics.errors.last_codec.relative_residual);
    } else {
      decode.Add(labels, end.statistics.decode);
      received.Add(labels, end.statistics.last_receive_unix_seconds);
    }
  }
}

void AddReplicas(const StageSnapshot& snapshot, Page* page) {
  Family& count = page->New("thinwire_replicas", "Replicas of the stage that share a batch.",
                            MetricType::Gauge);
  Family& raw =
      page->New("thinwire_replica_raw_bytes_total",
                "Bytes of what replicas exchanged, before encoding, once for each receiver.",
                MetricType::Counter);
  Family& wire = page->New("thinwire_replica_wire_bytes_total",
                           "Bytes of the frames that carry it.", MetricType::Counter);
  Family& error =
      page->New("thinwire_replica_relative_error",
                "Mean relative error of the measured messages among replicas.", MetricType::Gauge);
  Family& wait =
      page->New("thinwire_replica_wait_seconds_total",
                "Training time that the stage waited for those that carry other replicas.",
                MetricType::Counter);
  count.Add(LabelsOf(snapshot), snapshot.replicas);
  if (!snapshot.exchanged.empty()) wait.Add(LabelsOf(snapshot), snapshot.replica_wait_seconds);
  for (const StageSnapshot::Exchanged& exchanged : snapshot.exchanged) {
    const Labels labels = With(LabelsOf(snapshot), "way", exchanged.way);
    const BoundaryStatistics& counts = exchanged.statistics;
    raw.Add(labels, static_cast<double>(counts.train.raw_bytes));
    wire.Add(labels, static_cast<double>(counts.train.wire_bytes));
    if (counts.errors.messages == 0) continue;
    error.Add(labels, counts.errors.relative_error / static_cast<double>(counts.errors.messages));
  }
  Family& drift =
      page->New("thinwire_replica_drift",
                "How far replicas had gone from the shared parameters at the last exchange.",
                MetricType::Gauge);
  if (snapshot.drift) drift.Add(LabelsOf(snapshot), *snapshot.drift);
}

void AddParts(const StageSnapshot& snapshot, Page* page) {
  Family& wait = page->New("thinwire_part_wait_seconds_total",
                           "Time that the stage waited for those that carry other parts.",
                           MetricType::Counter);
  if (snapshot.part_wait_seconds) wait.Add(LabelsOf(snapshot), *snapshot.part_wait_seconds);
}

void AddStash(const StageSnapshot& snapshot, Page* page) {
  Family& raw =
      page->New("thinwire_stash_raw_bytes_total",
                "Bytes of kept tensors before the stash encoded them.", MetricType::Counter);
  Family& bytes = page->New("thinwire_stash_bytes_total",
                            "Bytes that the stash kept in their place.", MetricType::Counter);
  Family& error =
      page->New("thinwire_stash_relative_error",
                "Mean relative error of the measured tensors of the stash.", MetricType::Gauge);
  if (!snapshot.stash) return;
  const BoundaryStatistics& counts = *snapshot.stash;
  raw.Add(LabelsOf(snapshot), static_cast<double>(counts.train.raw_bytes));
  bytes.Add(LabelsOf(snapshot), static_cast<double>(counts.train.payload_bytes));
  if (counts.errors.messages == 0) return;
  error.Add(LabelsOf(snapshot),
            counts.errors.relative_error / static_cast<double>(counts.errors.messages));
}

void AddSwap(const StageSnapshot& snapshot, Page* page) {
  Family& bytes =
      page->New("thinwire_swap_bytes_total",
                "Bytes of kept tensors that left the device, or came back.", MetricType::Counter);
  Family& most = page->New("thinwire_swap_most_bytes", "Most bytes that waited elsewhere at once.",
                           MetricType::Gauge);
  if (!snapshot.swap) return;
  const Labels labels = LabelsOf(snapshot);
  bytes.Add(With(labels, "way", "out"), static_cast<double>(snapshot.swap->bytes_out));
  bytes.Add(With(labels, "way", "in"), static_cast<double>(snapshot.swap->bytes_in));
  most.Add(labels, static_cast<double>(snapshot.swap->most_bytes));
}

void AddActivity(const StageSnapshot& snapshot, Page* page) {
  Family& seconds = page->New("thinwire_stage_seconds_total",
                              "Training time by what it was spent on.", MetricType::Counter);
  Family& waits = page->New("thinwire_boundary_wait_seconds_total",
                            "Training time spent waiting for a neighbour.", MetricType::Counter);
  const Labels labels = LabelsOf(snapshot);
  for (const auto& [activity, spent] : ByName(snapshot.activity)) {
    seconds.Add(With(labels, "activity", activity), spent);
  }
  for (const StageSnapshot::Wait& wait : snapshot.waits) {
    waits.Add(With(LabelsOf(snapshot, wait.boundary, wait.direction), "end", wait.end),
              wait.seconds);
  }
  double encode = 0, decode = 0;
  for (const StageSnapshot::End& end : snapshot.ends) {
    encode += end.statistics.encode.sum();
    decode += end.statistics.decode.sum();
  }
  seconds.Add(With(labels, "activity", "encode"), encode);
  seconds.Add(With(labels, "activity", "decode"), decode);
  page->New("thinwire_stage_memory_peak_bytes",
            "Most memory that the stage has taken in training, as a plan counts it.",
            MetricType::Gauge)
      .Add(labels, static_cast<double>(snapshot.most_memory_bytes));
  if (snapshot.stash) {
    seconds.Add(With(labels, "activity", kStash),
                snapshot.stash->encode.sum() + snapshot.stash->decode.sum());
  }
  if (snapshot.swap) seconds.Add(With(labels, "activity", kSwap), snapshot.swap->wait_seconds);
}

void AddDevice(const Labels& stage, Device* device, const std::string& model, Page* page) {
  Family& memory = page->New("thinwire_stage_device_memory_bytes",
                             "Device memory in use by this server.", MetricType::Gauge);
  Family& utilization = page->New(
      "thinwire_stage_device_utilization_ratio",
      "Share of recent time in which the device was busy, with whoever's work.", MetricType::Gauge);
  Family& info = page->New("thinwire_stage_device_info", "The device that the stage computes on.",
                           MetricType::Gauge);
  memory.Add(stage, static_cast<double>(device->bytes_in_use()));
  DeviceUsage usage;
  if (device->Usage(&usage).ok() && usage.busy_fraction >= 0) {
    utilization.Add(stage, usage.busy_fraction);
  }
  info.Add(With(With(stage, "device", device->name()), "model", model), 1);
}

}  // namespace

std::vector<MetricFamily> StageMetrics::Collect() const {
  Page page;
  const std::optional<StageSnapshot> snapshot = snapshot_();
  Family& up = page.New("thinwire_stage_up", "1 while the server runs.", MetricType::Gauge);
  Family& busy =
      page.New("thinwire_stage_busy", "1 while the server is leased to a run.", MetricType::Gauge);
  const Labels stage = snapshot ? LabelsOf(*snapshot) : Labels();
  up.Add(stage, 1);
  busy.Add(stage, is_busy_() ? 1 : 0);
  AddDevice(stage, snapshot ? snapshot->device : idle_, snapshot ? snapshot->device_model : "",
            &page);
  Family& build = page.New("thinwire_build_info", "The build that serves.", MetricType::Gauge);
  build.Add({{"commit", BuildCommit()}, {"build", BuildId()}}, 1);
  if (snapshot) {
    AddTraffic(*snapshot, &page);
    AddCodecs(*snapshot, &page);
    AddReplicas(*snapshot, &page);
    AddParts(*snapshot, &page);
    AddStash(*snapshot, &page);
    AddSwap(*snapshot, &page);
    AddActivity(*snapshot, &page);
  }
  return page.Families();
}

}  // namespace thinwire
