#!/usr/bin/env python3
"""Draws what Prometheus answers to the queries of the dashboards, as SVG. No Grafana takes part.

usage: draw.py http://HOST:9090 RUN START END FOLDER DASHBOARD...

START and END are Unix times, a DASHBOARD is run, compression, pipeline or replicas. Writes
FOLDER/DASHBOARD.svg of each.
"""

import json
import math
import pathlib
import re
import sys
import urllib.parse
import urllib.request
from html import escape
from typing import Dict, List, NamedTuple, Tuple

COLUMN, ROW, GAP, HEAD = 50, 30, 6, 34  # of Grafana's grid, in pixels
COLOURS = ["#3e7cb1", "#c4572e", "#3f8f5b", "#8c5fa8", "#b58900", "#5f6b76",
           "#1b9aaa", "#d14b8f", "#7a9a01", "#6b4f3a", "#e08e45", "#2f4b7c"]
GRID, TEXT, FAINT = "#d0d7de", "#1f2328", "#59636e"
LEGEND_ROW, LEGEND_COLUMNS = 14, 3
DASHBOARDS = pathlib.Path(__file__).resolve().parent / "dashboards"


class Curve(NamedTuple):
    """A series with its name in the legend."""

    name: str
    points: List[Tuple[float, float]]


class Answers:
    """A Prometheus, asked about one run."""

    def __init__(self, address: str, run: str, start: float, end: float):
        self._address, self._run = address, run
        self.start, self.end = start, end

    def _ask(self, path: str, expr: str, **parameters) -> List[Dict]:
        span = f"{math.ceil(self.end - self.start)}s"
        for name, value in {"$run": self._run, "$boundary": ".*", "$direction": ".*",
                            "$__rate_interval": "4s", "$__range": span}.items():
            expr = expr.replace(name, value)
        asked = urllib.parse.urlencode({"query": expr, **parameters})
        with urllib.request.urlopen(f"{self._address}/api/v1/{path}?{asked}") as answer:
            return json.load(answer)["data"]["result"]

    def curves(self, target: Dict) -> List[Curve]:
        """What a graph draws of one query."""
        step = max(1, round((self.end - self.start) / 120))
        curves = []
        for series in self._ask("query_range", target["expr"], start=self.start, end=self.end,
                                step=step):
            labels = series["metric"]
            name = re.sub(r"\{\{(\w+)\}\}", lambda match: labels.get(match[1], ""),
                          target["legendFormat"])
            curves.append(Curve(name.strip(), [(float(at), float(value))
                                               for at, value in series["values"]]))
        return sorted(curves)

    def rows(self, target: Dict) -> List[Dict]:
        """The labels that a table lists."""
        return [series["metric"] for series in self._ask("query", target["expr"], time=self.end)]


def written(x: float, y: float, text: str, size: int = 11, anchor: str = "start",
            colour: str = TEXT) -> str:
    """One line of text."""
    return (f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" '
            f'fill="{colour}">{escape(text)}</text>')


def shown(value: float, unit: str) -> str:
    """A value in its unit, as short as may be."""
    if unit == "percentunit":
        return f"{100 * value:.3g} %"
    if unit == "s":
        if value == 0 or value >= 1:
            return f"{value:.3g} s"
        return f"{1e3 * value:.3g} ms" if value >= 1e-3 else f"{1e6 * value:.3g} µs"
    if unit in ("bytes", "bps", "short"):
        base = 1024 if unit == "bytes" else 1000
        power = max(0, min(4, int(math.log(abs(value), base)))) if value else 0
        name = {"bytes": "B", "bps": "b/s", "short": ""}[unit]
        prefix = ["", "k" if base == 1000 else "Ki", "M" if base == 1000 else "Mi",
                  "G" if base == 1000 else "Gi", "T" if base == 1000 else "Ti"][power]
        return f"{value / base ** power:.3g} {prefix}{name}".strip()
    text = f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
    return text + (unit[len("suffix:"):] if unit.startswith("suffix:") else "")


class Frame(NamedTuple):
    """Where curves are drawn, and what its edges mean."""

    x: float
    y: float
    width: float
    height: float
    start: float
    end: float
    low: float
    high: float
    logarithmic: bool

    def across(self, at: float) -> float:
        """The pixel of a time."""
        return self.x + (at - self.start) / (self.end - self.start) * self.width

    def up(self, value: float) -> float:
        """The pixel of a value."""
        if self.logarithmic:
            share = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return self.y + self.height * (1 - share)


def stacked(curves: List[Curve]) -> List[Curve]:
    """Each on top of those before it."""
    total: Dict[float, float] = {}
    result = []
    for curve in curves:
        points = []
        for at, value in curve.points:
            if math.isfinite(value):
                total[at] = total.get(at, 0) + value
                points.append((at, total[at]))
        result.append(Curve(curve.name, points))
    return result


def bounds(curves: List[Curve], logarithmic: bool) -> Tuple[float, float]:
    """Lowest and highest value of the frame."""
    values = [value for curve in curves for _, value in curve.points
              if math.isfinite(value) and (value > 0 or not logarithmic)]
    if logarithmic:
        low, high = min(values), max(values)
        return 10 ** math.floor(math.log10(low)), 10 ** math.ceil(math.log10(high * 1.0001))
    low, high = min(0, *values), max(values)
    return low, high + 0.08 * (high - low) if high > low else low + 1


def ticks(frame: Frame, unit: str) -> List[float]:
    """Values with a line."""
    if frame.logarithmic:
        first, last = round(math.log10(frame.low)), round(math.log10(frame.high))
        return [10.0 ** power for power in range(first, last + 1)]
    raw = (frame.high - frame.low) / 4
    scale = 1024 ** int(math.log(frame.high, 1024)) if unit == "bytes" else 1
    power = scale * 10 ** math.floor(math.log10(raw / scale))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= raw)
    first = math.ceil(frame.low / step)
    return [i * step for i in range(first, int(frame.high / step) + 1)]


def outline(curve: Curve, frame: Frame) -> str:
    """A line that is broken where there is no value."""
    parts, command = [], "M"
    for at, value in curve.points:
        if not math.isfinite(value) or (frame.logarithmic and value <= 0):
            command = "M"
            continue
        parts.append(f"{command}{frame.across(at):.1f} {frame.up(value):.1f}")
        command = "L"
    return "".join(parts)


def drawn_curves(curves: List[Curve], frame: Frame, filled: bool) -> List[str]:
    """Lines; with `filled`, the highest first, each with what is below it."""
    parts = []
    for i, curve in reversed(list(enumerate(curves))):
        colour, line = COLOURS[i % len(COLOURS)], outline(curve, frame)
        if filled and curve.points:
            base = frame.up(frame.low)
            first, last = frame.across(curve.points[0][0]), frame.across(curve.points[-1][0])
            parts.append(f'<path d="{line}L{last:.1f} {base:.1f}H{first:.1f}Z" fill="{colour}"/>')
        parts.append(f'<path d="{line}" fill="none" stroke-width="1.6" stroke="{colour}"/>')
    return parts


def legend(curves: List[Curve], x: float, y: float, width: float) -> List[str]:
    """Names under a graph, in columns."""
    parts, size = [], 10 if len(curves) <= 2 * LEGEND_COLUMNS else 8
    for i, curve in enumerate(curves):
        left = x + (i % LEGEND_COLUMNS) * width / LEGEND_COLUMNS
        top = y + (i // LEGEND_COLUMNS) * LEGEND_ROW
        parts.append(f'<path d="M{left:.1f} {top - 3.5:.1f}h9" stroke-width="3" '
                     f'stroke="{COLOURS[i % len(COLOURS)]}"/>')
        parts.append(written(left + 12, top, curve.name, size, colour=FAINT))
    return parts


def graph(panel: Dict, answers: Answers, box: Tuple) -> List[str]:
    """Axes, curves, legend."""
    x, y, width, height = box
    defaults = panel["fieldConfig"]["defaults"]
    custom = defaults.get("custom", {})
    logarithmic = custom.get("scaleDistribution", {}).get("type") == "log"
    curves = [curve for target in panel["targets"] for curve in answers.curves(target)]
    filled = custom.get("stacking", {}).get("mode") == "normal"
    drawn = stacked(curves) if filled else curves
    names = LEGEND_ROW * math.ceil(len(curves) / LEGEND_COLUMNS)
    frame = Frame(x + 52, y + 26, width - 62, height - 34 - names,
                  answers.start, answers.end, *bounds(drawn, logarithmic), logarithmic)
    parts = []
    for value in ticks(frame, defaults["unit"]):
        level = frame.up(value)
        parts.append(f'<path d="M{frame.x:.1f} {level:.1f}h{frame.width:.1f}" stroke="{GRID}"/>')
        parts.append(written(frame.x - 5, level + 3, shown(value, defaults["unit"]), 9, "end",
                             FAINT))
    for step in custom.get("thresholdsStyle", {}) and defaults["thresholds"]["steps"]:
        limit = step["value"]
        if limit is not None and frame.low <= limit <= frame.high:
            parts.append(f'<path d="M{frame.x:.1f} {frame.up(limit):.1f}h{frame.width:.1f}" '
                         f'stroke="#d1242f" stroke-dasharray="5 4"/>')
    parts += drawn_curves(drawn, frame, filled)
    return parts + legend(curves, frame.x, y + height - names + 6, frame.width)


def number(panel: Dict, answers: Answers, box: Tuple) -> List[str]:
    """The last value, large."""
    x, y, width, height = box
    values = [value for curve in answers.curves(panel["targets"][0]) for _, value in curve.points
              if math.isfinite(value)]
    text = shown(values[-1], panel["fieldConfig"]["defaults"]["unit"])
    return [written(x + width / 2, y + height / 2 + 18, text, 24, "middle")]


def table(panel: Dict, answers: Answers, box: Tuple) -> List[str]:
    """The labels of each series."""
    x, y, width, _ = box
    order = panel["transformations"][0]["options"]["indexByName"]
    columns = sorted(order, key=order.get)
    lines = [{name: name for name in columns}, *answers.rows(panel["targets"][0])]
    return [written(x + 10 + column * (width - 10) / len(columns), y + 38 + 17 * i,
                    row.get(name, ""), 11, colour=TEXT if i else FAINT)
            for i, row in enumerate(lines) for column, name in enumerate(columns)]


def picture(board: Dict, answers: Answers) -> str:
    """A whole dashboard."""
    rows = max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in board["panels"])
    width, height = 24 * COLUMN, HEAD + rows * ROW
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
             f'font-family="system-ui, sans-serif"><title>{escape(board["title"])}</title>',
             f'<rect width="{width}" height="{height}" fill="#f6f8fa"/>',
             written(10, 22, board["title"], 15),
             written(width - 10, 22, f"drawn from Prometheus' answers, "
                     f"{answers.end - answers.start:.0f} s", 11, "end", FAINT)]
    for panel in board["panels"]:
        place = panel["gridPos"]
        box = (place["x"] * COLUMN + GAP / 2, HEAD + place["y"] * ROW + GAP / 2,
               place["w"] * COLUMN - GAP, place["h"] * ROW - GAP)
        parts.append(f'<rect x="{box[0]}" y="{box[1]}" width="{box[2]}" height="{box[3]}" '
                     f'fill="white" stroke="{GRID}"/>')
        parts.append(written(box[0] + 10, box[1] + 17, panel["title"], 12))
        draw = {"timeseries": graph, "stat": number, "table": table}[panel["type"]]
        parts += draw(panel, answers, box)
    return "\n".join(parts + ["</svg>", ""])


def main() -> None:
    """Draws the dashboards that are named."""
    address, run, start, end, folder, *names = sys.argv[1:]
    answers = Answers(address, run, float(start), float(end))
    for name in names:
        board = json.loads((DASHBOARDS / f"{name}.json").read_text(encoding="utf-8"))
        target = pathlib.Path(folder) / f"{name}.svg"
        target.write_text(picture(board, answers), encoding="utf-8")
        print(target)


if __name__ == "__main__":
    main()
