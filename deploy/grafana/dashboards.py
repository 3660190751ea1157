#!/usr/bin/env python3
"""Writes the dashboards beside it with Grafana's grafana-foundation-sdk (requirements.txt).

usage: dashboards.py           writes dashboards/{run,compression,pipeline,replicas}.json
       dashboards.py --check   fails unless they are what it would write
"""

import json
import pathlib
import sys
from typing import List

from grafana_foundation_sdk.builders import dashboard
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import dashboard as model

from panels import SOURCE, Look, Query, graph, listing, number

FOLDER = pathlib.Path(__file__).resolve().parent / "dashboards"
RUN = 'run=~"$run"'
CUT = 'run=~"$run", boundary=~"$boundary", direction=~"$direction"'
BY_CUT = "sum by (run, boundary, direction)"
CUT_NAME = "{{boundary}} {{direction}}"
BY_WAY = "sum by (run, way)"
STAGE_NAME = "stage {{stage}}"
# Encode and decode run beside the rest, on threads of their own.
ON_EXECUTOR = 'activity!~"encode|decode"'


def rate(series: str) -> str:
    """Per second, over four scrapes or a pixel, whichever is longer."""
    return f"rate({series}[$__rate_interval])"


def quantile(q: float, histogram: str, by: str) -> str:
    """Of the observations of the last moments."""
    return f"histogram_quantile({q}, sum by ({by}, le) ({rate(histogram)}))"


def share(activities: str) -> str:
    """Of each stage's training time."""
    spent = f'sum by (run, stage) ({rate(f"thinwire_stage_seconds_total{{{RUN}, {activities}}}")})'
    return f'{spent} / sum by (run, stage) ' \
           f'({rate(f"thinwire_stage_seconds_total{{{RUN}, {ON_EXECUTOR}}}")})'


def of_stages(series: str) -> str:
    """Of the processes that serve the run; their own series do not name it."""
    return f"{series} * on (job, instance) group_left (run, stage) thinwire_stage_up{{{RUN}}}"


def run_numbers() -> List:
    """The first row of "Run"."""
    wire = f"thinwire_run_wire_bytes_total{{{RUN}}}"
    return [
        number("Epoch", "none", Query(f"thinwire_epoch{{{RUN}}}", "{{run}}"),
               "Epoch of the last step, from 1. Bad: it stands still while steps should be made."),
        number("Training loss", "none", Query(f"thinwire_train_loss{{{RUN}}}", "{{run}}"),
               "Of the last step's batch. Bad: NaN, infinity, or above that of guessing, "
               "ln(classes)."),
        number("Test accuracy", "percentunit",
               Query(f'thinwire_test_accuracy{{{RUN}, inference="compressed"}}', "{{run}}"),
               "Of the last evaluation, with the codecs. Bad: at guessing, 1 / classes, after the "
               "first epochs."),
        number("Lost to the codecs", "percentunit",
               Query(f"run:thinwire_accuracy_loss:ratio{{{RUN}}}", "{{run}}"),
               "Test accuracy without the codecs minus test accuracy with them. Bad: above 5 %; "
               "below -25 % the network is of no use without its codecs.", Look(above=0.05)),
        number("Throughput", "short",
               Query(f"thinwire_samples_total{{{RUN}}} / thinwire_step_seconds_sum{{{RUN}}}",
                     "{{run}}"),
               "Samples per second of training, mean of the run. Bad: much below what `thinwire "
               "plan` says for this link."),
        number("Time left", "s", Query(f"thinwire_eta_seconds{{{RUN}}}", "{{run}}"),
               "Until the run is done, at its mean pace so far. Bad: it grows."),
        number("Smaller on the wire", "suffix: x",
               Query(f"sum by (run) ({wire} * on (run, boundary, direction) "
                     f"thinwire_compression_ratio{{{RUN}}}) / sum by (run) ({wire})", "{{run}}"),
               "Raw bytes over wire bytes of all boundaries, training so far. Bad: 1 or less, the "
               "codecs save nothing.", Look(below=1)),
        number("Alerts", "none",
               Query('count(ALERTS{alertname=~"Thinwire.*", alertstate="firing"}) or vector(0)',
                     "firing"),
               "Alerts that fire, of all runs; docs/alerts.md says what to do. Bad: any.",
               Look(above=1)),
    ]


def run_graphs() -> List:
    """What becomes of the network, and how fast."""
    test = "thinwire_test_{}{{{}}}"
    return [
        graph("Loss", "none",
              [Query(f"thinwire_train_loss{{{RUN}}}", "training"),
               Query(test.format("loss", RUN), "test, {{inference}}")],
              "Of each step's batch, and of the last evaluation with and without the codecs. Bad: "
              "it rises for long, or is far higher with the codecs than without."),
        graph("Accuracy", "percentunit",
              [Query(f"thinwire_train_accuracy{{{RUN}}}", "training"),
               Query(test.format("accuracy", RUN), "test, {{inference}}")],
              "Of each step's batch, and of the last evaluation. Bad: test curves far apart; a "
              "network without its codecs may do worse, as it got used to them."),
        graph("Throughput", "short",
              [Query(f"sum by (run) ({rate(f'thinwire_samples_total{{{RUN}}}')})", "samples/s")],
              "Samples trained per second; 0 in evaluations. Bad: it falls from epoch to epoch."),
        graph("Step time", "s",
              [Query(quantile(q, f"thinwire_step_seconds_bucket{{{RUN}}}", "run"),
                     f"{100 * q:g} %") for q in (0.5, 0.9, 0.99)],
              "What so many of the steps stay below. Bad: the upper lines far from the median: a "
              "link or a stage hesitates."),
        graph("Learning rate", "sci", [Query(f"thinwire_learning_rate{{{RUN}}}", "{{run}}")],
              "Of the last step. Bad: not what lr_schedule was meant to be."),
        graph("Time left", "s", [Query(f"thinwire_eta_seconds{{{RUN}}}", "{{run}}")],
              "Until the run is done, at its mean pace so far. Bad: level or rising, the run is "
              "getting slower."),
    ]


def size_graphs() -> List:
    """What the codecs make of the traffic."""
    return [
        listing("Codecs",
                f"max by (boundary, direction, codec, feedback) "
                f"(max_over_time(thinwire_boundary_info{{{CUT}}}[$__range]))",
                ["boundary", "direction", "codec", "feedback"],
                "In force at the senders. Bad: not what the experiment says."),
        graph("Compression ratio", "suffix: x",
              [Query(f"thinwire_compression_ratio{{{CUT}}}", CUT_NAME)],
              "Raw bytes over wire bytes, training so far. Bad: 1 or less, nothing is saved; in a "
              "warm-up it is 1.", Look(below=1)),
        graph("Bits per element", "none",
              [Query(f"32 / (thinwire_compression_ratio{{{CUT}}} > 0)", CUT_NAME)],
              "Wire bits per fp32 element; with precision bf16 it is half of what is drawn. Bad: "
              "above `thinwire plan`'s, or 32: nothing is compressed."),
        graph("Wire rate", "bps",
              [Query(f"8 * {BY_CUT} ({rate(f'thinwire_boundary_wire_bytes_total{{{CUT}}}')})",
                     CUT_NAME)],
              "Frames sent, of training and evaluation. Bad: at the rate of the link, which then "
              "holds up the stages."),
        graph("Break-even bandwidth", "bps",
              [Query(f"8 * thinwire_breakeven_bytes_per_second{{{CUT}}} > 0", CUT_NAME),
               Query(f"8 * boundary:thinwire_wire_bytes:rate20s_max15m{{{CUT}}}",
                     f"seen: {CUT_NAME}")],
              "The link rate below which the codec saves time, and the highest rate seen on the "
              "link. Bad: below the rate of the link, which is at least what was seen.",
              Look(logarithmic=True)),
        graph("Break-even over the rate seen", "suffix: x",
              [Query(f"boundary:thinwire_breakeven_bytes_per_second:rate5m{{{CUT}}} / "
                     f"boundary:thinwire_wire_bytes:rate20s_max15m{{{CUT}}} > 0", CUT_NAME)],
              "By how much the link may be faster than it was seen to be before the codec costs "
              "time, in the last 5 minutes. Bad: below 1, or no line: it saves nothing.",
              Look(logarithmic=True, below=1)),
    ]


def loss_graphs() -> List:
    """What the codecs lose, and what they take."""
    codec = f"thinwire_codec_{{}}_seconds{{}}{{{{{CUT}}}}}"
    return [
        graph("Relative error received", "percentunit",
              [Query(f"thinwire_run_relative_error{{{CUT}}}", CUT_NAME)],
              "‖x − x̂‖ / ‖x‖ of what the receivers use, mean of the run. Bad: above 100 %, worse "
              "than zeros; or it rises."),
        graph("Relative error of the codec", "percentunit",
              [Query(f"thinwire_codec_relative_error{{{CUT}}}", CUT_NAME)],
              "‖m − D(C(m))‖ / ‖m‖ of the last measured message; 0 in a warm-up. Bad: it drifts "
              "upwards for long while the codec's level stays."),
        graph("Residual norm", "percentunit",
              [Query(f"thinwire_feedback_residual_norm{{{CUT}}}", CUT_NAME)],
              "What feedback carries on, against the message; 0 without feedback. Bad: it grows "
              "without end: the codec is no contraction."),
        graph("Encode time", "s",
              [Query(quantile(0.5, codec.format("encode", "_bucket"), "boundary, direction"),
                     CUT_NAME)],
              "Wall time per message, median. Bad: near the time of a microbatch, for every "
              "message waits for it."),
        graph("Decode time", "s",
              [Query(quantile(0.5, codec.format("decode", "_bucket"), "boundary, direction"),
                     CUT_NAME)],
              "Wall time per message, median. Bad: near the time of a microbatch, for every "
              "message waits for it."),
        graph("Time in codecs", "percentunit",
              [Query(f"{BY_CUT} ({rate(codec.format('encode', '_sum'))}) + "
                     f"{BY_CUT} ({rate(codec.format('decode', '_sum'))})", CUT_NAME)],
              "Seconds of encoding and decoding in each second. Bad: near 100 %, the codec's "
              "thread has no rest and sets the pace."),
    ]


def time_graphs() -> List:
    """What the stages do, and for whom they wait."""
    activity = f"thinwire_stage_seconds_total{{{RUN}, {ON_EXECUTOR}}}"
    waits = f'sum by (run, boundary, direction) ' \
            f'(rate(thinwire_boundary_wait_seconds_total{{{CUT}, end="%s"}}[$__rate_interval]))'
    return [
        graph("Busy", "percentunit",
              [Query(share('activity=~"forward|backward|optimizer"'), STAGE_NAME)],
              "Share of a stage's training time in forward, backward and the optimizer. Bad: one "
              "stage far above the others: the cuts are uneven."),
        graph("Waiting", "percentunit",
              [Query(share('activity=~"send_wait|receive_wait"'), STAGE_NAME)],
              "Share of a stage's training time in which it waits for a neighbour. Bad: above the "
              "schedule's own bubble, (stages − 1) / (microbatches + stages − 1)."),
        graph("Bubble", "percentunit",
              [Query("1 - " + share('activity=~"forward|backward"'), STAGE_NAME),
               Query(f"thinwire_pipeline_bubble_ratio{{{RUN}}}", "all, so far")],
              "Share of training time without forward or backward. Bad: far above "
              "(stages − 1) / (microbatches + stages − 1)."),
        graph("What the stages do", "percentunit",
              [Query(f"sum by (run, activity) ({rate(activity)}) / on (run) group_left () "
                     f"sum by (run) ({rate(activity)})", "{{activity}}")],
              "Training time of all stages by activity. Bad: waits or data above the rest.",
              Look(stacked=True)),
        graph("Waiting to receive", "percentunit", [Query(waits % "receive", CUT_NAME)],
              "Seconds per second in which a stage waited for this boundary's message. Bad: one "
              "boundary far above the others: its link, or the stage before it, is the slow one."),
        graph("Waiting to send", "percentunit", [Query(waits % "send", CUT_NAME)],
              "Seconds per second until a message was handed over. Bad: above a few percent: the "
              "link is full, its rate is what holds the pipeline up."),
    ]


def machine_graphs() -> List:
    """Links, devices and processes."""
    received = f"thinwire_link_last_receive_timestamp_seconds{{{CUT}}}"
    cpu = of_stages(rate('process_cpu_seconds_total{job="stage"}'))
    return [
        graph("Silence of links", "s",
              [Query(f"max by (run, boundary, direction) "
                     f"(clamp_min(timestamp({received}) - {received}, 0) and {received} > 0)",
                     CUT_NAME)],
              "Since the last message came, at each scrape; clocks that differ shift it. Bad: "
              "longer than a few steps, in training; pipeline.deadline_seconds ends the run."),
        graph("Device utilisation", "percentunit",
              [Query(f"max by (run, stage) (thinwire_stage_device_utilization_ratio{{{RUN}}}) or "
                     f"max by (run, stage) ({cpu})", STAGE_NAME)],
              "Of a GPU the share of time in which it was busy; of a CPU the cores in use, 100 % "
              "each. Bad: low on every stage: they wait."),
        graph("Device memory", "bytes",
              [Query(f"thinwire_stage_device_memory_bytes{{{RUN}}}", STAGE_NAME)],
              "What a stage has taken of its device's memory. Bad: it grows from epoch to epoch, "
              "or nears what the device has."),
        graph("Resident memory", "bytes",
              [Query(of_stages('process_resident_memory_bytes{job="stage"}'), STAGE_NAME),
               Query(f'process_resident_memory_bytes{{job="coordinator"}} * on (job, instance) '
                     f'group_left (run) (thinwire_step{{{RUN}}} * 0 + 1)', "coordinator")],
              "Of the processes. Bad: it grows from epoch to epoch, or nears the limit of the "
              "container."),
        graph("Open files", "percentunit",
              [Query(of_stages('process_open_fds{job="stage"} / process_max_fds{job="stage"}'),
                     STAGE_NAME)],
              "File descriptors and sockets, of as many as the process may have. Bad: above 80 %.",
              Look(above=0.8)),
        graph("Errors", "none",
              [Query('sum by (job, stage) (increase('
                     'thinwire_errors_total{job=~"stage|coordinator"}[$__rate_interval]))',
                     "{{job}} {{stage}}")],
              "Calls that failed or were refused, leases that ran out, runs that ended with an "
              "error; of all runs. Bad: any. The log of the process says which."),
    ]


def called(expression: str, of: str) -> str:
    """The expression's series with a label `of`."""
    return f'label_replace({expression}, "of", "{of}", "", "")'


def replica_graphs() -> List:
    """What replicas exchange, what that loses, and how long they wait for each other."""
    raw, wire, error, waited, drift = (
        f"thinwire_replica_{name}{{{RUN}}}" for name in
        ("raw_bytes_total", "wire_bytes_total", "relative_error", "wait_seconds_total", "drift"))
    parts_waited = f"thinwire_part_wait_seconds_total{{{RUN}}}"
    cuts = f'thinwire_boundary_wire_bytes_total{{{RUN}, phase="train"}}'
    return [
        graph("Wire rate", "bps", [Query(f"8 * {BY_WAY} ({rate(wire)})", "{{way}}")],
              "Frames of all stages, once for each receiver. Bad: at the rate of the links, which "
              "then hold up the steps. With local steps it is 0 between exchanges."),
        graph("Compression ratio", "suffix: x",
              [Query(f"{BY_WAY} ({raw}) / ({BY_WAY} ({wire}) > 0)", "{{way}}")],
              "Raw bytes over wire bytes so far. Bad: 1 or less, nothing is saved; in a warm-up it "
              "is 1.", Look(below=1)),
        graph("Share of the traffic", "percentunit",
              [Query(f"sum by (run) ({wire}) / (sum by (run) ({wire}) + (sum by (run) ({cuts}) or "
                     f"0 * sum by (run) ({wire})) > 0)", "{{run}}")],
              "Bytes among replicas, of all bytes of training so far; the rest crossed the cuts. "
              "Bad: near 100 %, stronger codecs at the cuts save nothing more."),
        graph("Relative error", "percentunit",
              [Query(f"max by (run, way) ({error})", "{{way}}")],
              "‖x − x̂‖ / ‖x‖ of what all replicas use, mean of the run, of the worst stage. Bad: "
              "above 100 %, worse than zeros; or it rises."),
        graph("Waiting for other carriers", "percentunit",
              [Query(f"max by (run, stage, of) ({called(rate(waited), 'replicas')} or "
                     f"{called(rate(parts_waited), 'parts')})", f"{STAGE_NAME}, {{{{of}}}}")],
              "Seconds per second in which a stage waited for its replicas or its parts on other "
              "machines; 0 with one carrier. Bad: above a few percent: links among carriers hold "
              "it up, or a machine is slower than the others."),
        graph("Drift of replicas", "percentunit",
              [Query(f"max by (run, stage) ({drift})", STAGE_NAME)],
              "‖θ_g − θ‖ / ‖θ‖ before the last exchange of local steps, mean over replicas. Bad: "
              "it grows while the learning rate does not."),
        graph("Machines", "none",
              [Query(f"sum by (run, state) (thinwire_members{{{RUN}}})", "{{state}}")],
              "Servers that carry a stage, stand by, or are away, where membership is open. Bad: "
              "some are away for long, or so many stand by that they would make a pipeline."),
        graph("Machines that come and go", "none",
              [Query(f"sum by (run, kind) (increase(thinwire_member_changes_total{{{RUN}}}[5m]))",
                     "{{kind}}"),
               Query(f"increase(thinwire_repeated_steps_total{{{RUN}}}[5m])", "steps done again")],
              "In 5 minutes: servers that joined, left in order or were lost, and steps that were "
              "done again. Bad: losses that nobody has caused."),
        graph("Time lost to them", "percentunit",
              [Query(rate(f"thinwire_members_lost_seconds_total{{{RUN}}}"), "{{run}}")],
              "Seconds per second without training, as servers came and went or replicas were dealt "
              "anew. Bad: above a few percent."),
    ]


def variables() -> List:
    """Data source, run (the newest first), boundary, direction."""
    def asked(name: str, query: str) -> dashboard.QueryVariable:
        return (dashboard.QueryVariable(name).query(query).datasource(SOURCE).multi(True)
                .refresh(model.VariableRefresh.ON_TIME_RANGE_CHANGED))

    runs = "sort_desc(max by (run) (max_over_time(run:thinwire_start:timestamp_seconds[$__range])))"
    cuts = f"label_values(thinwire_compression_ratio{{{RUN}}}, %s)"
    return [
        dashboard.DatasourceVariable("datasource").label("Data source").type("prometheus"),
        asked("run", f"query_result({runs})").label("Run").regex('/run="([^"]+)"/'),
        asked("boundary", cuts % "boundary").label("Boundary").include_all(True).all_value(".*")
        .sort(model.VariableSort.ALPHABETICAL_ASC),
        asked("direction", cuts % "direction").label("Direction").include_all(True).all_value(".*")
        .sort(model.VariableSort.ALPHABETICAL_ASC),
    ]


def board(name: str, description: str, panels: List) -> str:
    """The JSON of one dashboard."""
    made = (dashboard.Dashboard(f"Thinwire: {name}").uid(f"thinwire-{name.lower()}")
            .description(description).tags(["thinwire"]).readonly()
            .time("now-15m", "now").refresh("5s").timezone("browser")
            .tooltip(model.DashboardCursorSync.CROSSHAIR).variables(variables())
            .link(dashboard.DashboardLink("Thinwire").type(model.DashboardLinkType.DASHBOARDS)
                  .tags(["thinwire"]).include_vars(True).keep_time(True))
            .annotation(dashboard.AnnotationQuery().name("Alerts").datasource(SOURCE).enable(True)
                        .icon_color("red")
                        .expr('ALERTS{alertname=~"Thinwire.*", alertstate="firing"}')))
    for i, panel in enumerate(panels):
        made.with_panel(panel.id(i + 1))
    return json.dumps(made.build(), cls=JSONEncoder, indent=1, sort_keys=True,
                      ensure_ascii=False) + "\n"


def main() -> int:
    """Writes or compares."""
    if sys.argv[1:] not in ([], ["--check"]):
        print(f"dashboards.py: unknown arguments {sys.argv[1:]}, want none or --check",
              file=sys.stderr)
        return 2
    boards = {
        "run": board("Run", "What becomes of the network, and how fast",
                     run_numbers() + run_graphs()),
        "compression": board("Compression", "What the codecs save, lose and take",
                             size_graphs() + loss_graphs()),
        "pipeline": board("Pipeline", "What the stages do and for whom they wait",
                          time_graphs() + machine_graphs()),
        "replicas": board("Replicas", "What replicas exchange, lose and wait for",
                          replica_graphs()),
    }
    stale = 0
    for name, text in boards.items():
        path = FOLDER / f"{name}.json"
        if sys.argv[1:] == []:
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            print(f"FAILED: {path} is not what dashboards.py makes; run it", file=sys.stderr)
            stale += 1
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
