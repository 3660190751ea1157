// A plan as text.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "compress/codecs/plugin.h"
#include "coordinator/plan/plan.h"
#include "coordinator/plan/table_text.h"
#include "models/parts.h"

namespace thinwire {
namespace {

std::string Heading(const Plan& plan) {
  int64_t parameters = 0;
  for (const PlannedStage& stage : plan.stages) parameters += stage.parameters;
  const std::string replicas =
      plan.exchange.replicas == 1 ? "" : absl::StrCat(plan.exchange.replicas, " replicas of ");
  return Wrapped(
      "", absl::StrFormat(
              "%s: %d parameters, %d cuts, %d stages%s; batches of %d in %s%d microbatches, %s, "
              "%s%s",
              plan.model, parameters, plan.boundaries.size(), plan.stages.size(),
              plan.parts == 1 ? "" : absl::StrCat(", ", plan.parts, " parts"), plan.batch_size,
              replicas, plan.microbatches, plan.schedule, plan.precision,
              plan.deterministic ? "" : " not deterministic"));
}

std::string CodecOf(const PlannedDirection& direction) {
  std::string codec = CodecText(direction.codec);
  if (direction.level.kind != LevelKind::kFixed) {
    absl::StrAppend(&codec, ", level ", direction.level.ToString());
  }
  if (direction.exact_messages > 0) {
    absl::StrAppend(&codec, ", ", direction.exact_messages, " messages exact");
  }
  return codec;
}

std::string WithFeedback(const PlannedDirection& direction) {
  const bool has_feedback = direction.feedback.kind != FeedbackKind::kNone;
  return absl::StrCat(CodecOf(direction),
                      has_feedback ? ", feedback " + direction.feedback.ToString() : "");
}

std::string StageTable(const Plan& plan) {
  std::string text = absl::StrFormat("\n%-6s %-24s %12s %14s %10s  %s\n", "stage", "blocks",
                                     "parameters", "MFLOP/sample", "memory MB", "device");
  for (size_t i = 0; i < plan.stages.size(); ++i) {
    const PlannedStage& stage = plan.stages[i];
    const std::string blocks = absl::StrJoin(stage.chunks, "; ", [](auto* to, const auto& chunk) {
      absl::StrAppend(to, chunk.first_block);
      if (chunk.last_block != chunk.first_block) absl::StrAppend(to, " to ", chunk.last_block);
    });
    absl::StrAppendFormat(&text, "%-6d %-24s %12d %14.2f %10.1f  %s\n", i, blocks, stage.parameters,
                          stage.forward_flops / 1e6, stage.memory_bytes / 1e6, stage.device);
  }
  return text +
         Wrapped("",
                 "FLOPs of the forward pass; the backward pass is taken as twice that, less what "
                 "frozen "
                 "weights save. Memory: "
                 "parameters, gradients, what the optimizer remembers, what is kept for the "
                 "backward pass and what passes work with, of a machine.");
}

std::string DirectionRow(const PlannedBoundary& boundary, const char* name,
                         const PlannedDirection& direction) {
  const double raw = static_cast<double>(direction.raw_bytes);
  const double wire = static_cast<double>(direction.wire_bytes);
  const std::string link = boundary.in_memory       ? "memory"
                           : boundary.name == kSums ? "row"
                                                    : absl::StrCat(boundary.upstream_stage, "-",
                                                                   boundary.downstream_stage);
  const std::string break_even =
      direction.break_even_bits_per_second > 0
          ? absl::StrFormat("%.0f", direction.break_even_bits_per_second / 1e6)
          : "-";
  return absl::StrFormat("%-10s %-6s %-10s %11d %9.1f %9.1f %7s %10s\n", boundary.name, link, name,
                         boundary.elements, raw / 1e3, wire / 1e3,
                         wire > 0 ? absl::StrFormat("%.1f x", raw / wire) : "-", break_even);
}

std::string SumsNote(const Plan& plan) {
  const int places = plan.grid.parts;
  const std::string sent =
      plan.exchange.replicas > 1  // the table of their exchange tells
          ? ""
          : absl::StrFormat(" The machine that sends most sends %.2f MB a step.",
                            MachineWireBytes(plan) / 1e6);
  return Wrapped("", absl::StrCat("Sums: what ", plan.parts,
                                  " parts send to one another, as if each had a machine; ",
                                  places == 1 ? "one machine carries"
                                              : absl::StrCat(places, " machines of a row carry"),
                                  " them (--carriers).", sent));
}

std::string BoundaryTable(const Plan& plan) {
  std::vector<PlannedBoundary> boundaries = plan.boundaries;
  if (plan.sums) boundaries.push_back(*plan.sums);
  if (boundaries.empty()) return "";
  std::string text =
      absl::StrFormat("\n%-10s %-6s %-10s %11s %9s %9s %7s %10s\n", "boundary", "link", "direction",
                      "elem/sample", "raw kB", "wire kB", "ratio", "break-even");
  std::vector<Described> codecs;
  for (const PlannedBoundary& boundary : boundaries) {
    codecs.push_back({boundary.name, "activation", CodecOf(boundary.activations)});
    codecs.push_back({boundary.name, "gradient", CodecOf(boundary.gradients)});
    absl::StrAppend(&text, DirectionRow(boundary, "activation", boundary.activations),
                    DirectionRow(boundary, "gradient", boundary.gradients));
  }
  absl::StrAppend(
      &text, DescriptionLines(codecs),
      Wrapped("", absl::StrFormat(
                      "Per step. Wire bytes are the most that compressed messages take, headers "
                      "included: topk sends fewer when it finds zeros or a shorter index. "
                      "Break-even: the link rate in Mbit/s below which the codec saves time. "
                      "Codecs: %s.",
                      plan.codec_source)),
      plan.sums ? SumsNote(plan) : "");
  if (plan.warmup_epochs > 0) {
    absl::StrAppendFormat(&text, "The first %d epochs travel uncompressed.\n", plan.warmup_epochs);
  }
  if (plan.warmup_steps > 0) {
    absl::StrAppendFormat(&text, "The first %d steps travel uncompressed.\n", plan.warmup_steps);
  }
  return text;
}

std::string ExchangeRow(const char* name, const PlannedDirection& direction) {
  const double raw = static_cast<double>(direction.raw_bytes);
  const double wire = static_cast<double>(direction.likely_wire_bytes);
  return absl::StrFormat("%-14s %10.2f %10.2f %8s %10.1f %10.1f\n", name, raw / 1e6, wire / 1e6,
                         wire > 0 ? absl::StrFormat("%.1f x", raw / wire) : "-",
                         1e3 * direction.encode_seconds, 1e3 * direction.decode_seconds);
}

std::string ExchangeTable(const Plan& plan) {
  const PlannedExchange& exchange = plan.exchange;
  if (exchange.replicas == 1) return "";
  std::string text = absl::StrFormat("\n%-14s %10s %10s %8s %10s %10s\n", "exchange", "raw MB",
                                     "wire MB", "ratio", "encode ms", "decode ms");
  absl::StrAppend(&text, ExchangeRow("contributions", exchange.contributions));
  const bool reduces = exchange.way == ReplicaExchange::kReduce;
  if (reduces) absl::StrAppend(&text, ExchangeRow("average", exchange.average));
  std::vector<Described> codecs;
  const auto describe = [&](const std::string& segment, const std::string& contributions,
                            const std::string& average) {
    codecs.push_back({segment, "contributions", contributions});
    if (reduces) codecs.push_back({segment, "average", average});
  };
  for (const auto& [segment, own] : exchange.own) {
    describe(segment, WithFeedback(PlannedDirection(own.contributions)),
             WithFeedback(PlannedDirection(own.average)));
  }
  describe(exchange.own.empty() ? "" : "others", WithFeedback(exchange.contributions),
           WithFeedback(exchange.average));
  absl::StrAppend(
      &text, DescriptionLines(codecs),
      Wrapped(
          "",
          absl::StrFormat(
              "Of %s, all machines together; likely bytes. Replicas: %d, on %d machine%s a "
              "stage (--carriers), exchange %s. Cuts included, the machine that sends most "
              "sends %.2f MB a step, and all together %.2f MB. Bytes at cuts, above, are "
              "of one replica.",
              exchange.every == 1 ? "a step"
                                  : absl::StrCat("an exchange, every ", exchange.every, " steps"),
              exchange.replicas, plan.grid.count(), plan.grid.count() == 1 ? "" : "s",
              Name(exchange.way), MachineWireBytes(plan) / 1e6, StepWireBytes(plan) / 1e6)));
  return text;
}

std::string RateName(const StepEstimate& step) {
  const double rate = step.bits_per_second();
  if (!step.has_bits_per_second()) return "infinite";
  return rate >= 1e9 ? absl::StrFormat("%g Gbit/s", rate / 1e9)
                     : absl::StrFormat("%g Mbit/s", rate / 1e6);
}

double ExposedShare(const StepEstimate& step) {
  if (step.exchange_seconds() == 0) return 0;
  return std::min(1.0, step.exposed_seconds() / step.exchange_seconds());
}

// Tells how much of the exchange lengthens a step, at each rate.
std::string ExposedTable(const Plan& plan) {
  if (plan.exchange.carriers == 1) return "";
  std::string text = absl::StrFormat("\n%-12s %12s %16s %10s\n", "link rate", "exchange ms",
                                     "of it exposed ms", "share");
  for (const StepEstimate& step : plan.steps) {
    absl::StrAppendFormat(&text, "%-12s %12.2f %16.2f %10s\n", RateName(step),
                          1e3 * step.exchange_seconds(), 1e3 * step.exposed_seconds(),
                          absl::StrFormat("%.0f %%", 100 * ExposedShare(step)));
  }
  return text +
         Wrapped("",
                 "Exchange: from the first stage's last backward pass to where the last stage can "
                 "update. Exposed: by how much it lengthens the step.");
}

// Tells how long layers wait for sums, at each rate.
std::string SumsTable(const Plan& plan) {
  if (!plan.sums) return "";
  std::string text =
      absl::StrFormat("\n%-12s %12s %16s\n", "link rate", "sums ms", "share of step");
  for (const StepEstimate& step : plan.steps) {
    absl::StrAppendFormat(&text, "%-12s %12.2f %16s\n", RateName(step), 1e3 * step.sums_seconds(),
                          absl::StrFormat("%.0f %%", 100 * step.sums_seconds() / step.seconds()));
  }
  return text + Wrapped("",
                        "Sums: by how much they lengthen a step whose other messages take no time. "
                        "Layers wait for them.");
}

std::string StepTable(const Plan& plan) {
  std::string text = absl::StrFormat("\n%-12s %12s %16s %10s %12s %8s\n", "link rate", "step ms",
                                     "uncompressed ms", "speed-up", "samples/s", "bubble");
  for (const StepEstimate& step : plan.steps) {
    absl::StrAppendFormat(&text, "%-12s %12.2f %16.2f %10s %12.0f %8s\n", RateName(step),
                          1e3 * step.seconds(), 1e3 * step.uncompressed_seconds(),
                          absl::StrFormat("%.2f x", step.uncompressed_seconds() / step.seconds()),
                          step.samples_per_second(),
                          absl::StrFormat("%.0f %%", 100 * step.bubble_ratio()));
  }
  return text + ExposedTable(plan) + SumsTable(plan) + FormatAssumptions(plan);
}

}  // namespace

std::string FormatAssumptions(const Plan& plan) {
  const PlanAssumptions& assumed = plan.assumptions;
  const char* const nic =
      assumed.nic == Nic::kShared
          ? "Each host sends at the link rate, and receives at it, whichever neighbour it is "
            "(--nic shared)"
          : "Each boundary has a link of its own (--nic private)";
  const std::string hosts =
      assumed.cores == 0 ? "each stage has a machine of its own"
                         : absl::StrFormat("all stages share %d cores (--cores)", assumed.cores);
  const TransportCost& transport = plan.transport;
  const std::string ends =
      transport.seconds_per_message > 0
          ? absl::StrFormat(
                " Each end of a message takes %.0f us and %.2g ns a byte of a processor, measured "
                "now.",
                1e6 * transport.seconds_per_message, 1e9 * transport.seconds_per_byte)
          : "";
  const std::string passes =
      plan.layer_seconds > 0
          ? absl::StrFormat(" and %.2g us a layer and pass besides, measured now",
                            1e6 * plan.layer_seconds)
          : "";
  return Wrapped(
      "", absl::StrFormat("Simulated: %s. Compute: %s%s. %s; %.1f %% of it are headers of "
                          "TCP, IP and Ethernet. A round trip takes %g ms (--rtt_ms)%s.%s",
                          hosts, plan.compute_source, passes, nic, 100 * (1 - kPayloadShare),
                          assumed.rtt_ms, assumed.rtt_ms > 0 ? ", without TCP's slow start" : "",
                          ends));
}

std::string FormatPlan(const Plan& plan) {
  std::string text = absl::StrCat(Heading(plan), StageTable(plan), BoundaryTable(plan),
                                  ExchangeTable(plan), FormatState(plan.state), StepTable(plan));
  if (plan.batch_norm && plan.microbatches > 1) {
    absl::StrAppend(
        &text, "\n",
        Wrapped("", absl::StrFormat("Note: batch norm normalises each microbatch of %d samples by "
                                    "itself, so what the model learns depends on "
                                    "pipeline.microbatches. Papers' results want 1.",
                                    plan.microbatch_size)));
  }
  if (!plan.warnings.empty()) {
    absl::StrAppend(&text, "\n");
    for (const std::string& warning : plan.warnings) text += Wrapped("", warning);
  }
  return text;
}

}  // namespace thinwire
