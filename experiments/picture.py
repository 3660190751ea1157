"""The results of a suite as an SVG: a row per configuration, a faint dot per seed, a mark per mean."""

import math
from html import escape
from typing import Dict, List, NamedTuple

LEFT, RIGHT, TOP, ROW, WIDTH = 150, 118, 58, 26, 820
GRID, TEXT, FAINT = "#d0d7de", "#1f2328", "#59636e"
FONT = 'font-family="system-ui, sans-serif"'


class Series(NamedTuple):
    """One way to evaluate: its name in the legend, its colour, its mark."""

    inference: str
    label: str
    colour: str
    mark: str


class Row(NamedTuple):
    """`values`: by inference, one for each seed. `note`: at the right edge."""

    name: str
    values: Dict[str, List[float]]
    note: str


def axis(rows: List[Row]) -> List[float]:
    """Round numbers around all values, a tenth, one, ten, ... apart."""
    values = [v for row in rows for of_one in row.values.values() for v in of_one]
    step = 10.0 ** math.floor(math.log10(max(max(values) - min(values), 1e-3)))
    first = math.floor(min(values) / step)
    return [step * i for i in range(first, max(math.ceil(max(values) / step), first + 1) + 1)]


def marked(kind: str, x: float, y: float, colour: str) -> str:
    if kind == "full":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="{colour}"/>'
    style = f'fill="none" stroke="{colour}" stroke-width="2"'
    if kind == "hollow":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.5" {style}/>'
    return f'<path d="M{x:.1f} {y - 5.5:.1f}l5.5 5.5l-5.5 5.5l-5.5-5.5z" {style}/>'


def written(x: float, y: float, text: str, anchor: str = "start", colour: str = TEXT,
            size: int = 12) -> str:
    return (f'<text x="{x:.1f}" y="{y:.1f}" {FONT} font-size="{size}" fill="{colour}" '
            f'text-anchor="{anchor}">{escape(text)}</text>')


def drawn_row(row: Row, y: float, series: List[Series], x_of) -> List[str]:
    parts = [written(LEFT - 14, y + 4, row.name, "end"),
             written(WIDTH - 12, y + 4, row.note, "end", FAINT, 11)]
    means = {kind: sum(row.values[kind.inference]) / len(row.values[kind.inference])
             for kind in series if row.values.get(kind.inference)}
    if means:
        parts.append(f'<path d="M{x_of(min(means.values())):.1f} {y:.1f}'
                     f'H{x_of(max(means.values())):.1f}" stroke="{GRID}" stroke-width="3"/>')
    for kind in means:
        parts += [f'<circle cx="{x_of(value):.1f}" cy="{y:.1f}" r="2.5" fill="{kind.colour}" '
                  f'opacity="0.45"/>' for value in row.values[kind.inference]]
    return parts + [marked(kind.mark, x_of(mean), y, kind.colour) for kind, mean in means.items()]


def picture(title: str, rows: List[Row], series: List[Series], sign: str) -> str:
    """`sign` stands behind the numbers of the axis."""
    lines = axis(rows)
    low, high = lines[0], lines[-1]
    height = TOP + ROW * len(rows) + 40

    def x_of(value: float) -> float:
        return LEFT + (value - low) / (high - low) * (WIDTH - LEFT - RIGHT)

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
             f'role="img"><title>{escape(title)}</title>',
             f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
             written(12, 20, title, size=14)]
    for i, kind in enumerate(series):
        x = LEFT + 190 * i
        parts += [marked(kind.mark, x, 40, kind.colour), written(x + 11, 44, kind.label)]
    bottom = TOP + ROW * len(rows)
    for value in lines:
        parts.append(f'<path d="M{x_of(value):.1f} {TOP}V{bottom}" stroke="{GRID}"/>')
        parts.append(written(x_of(value), bottom + 18, f"{value:.4g}{sign}", "middle", FAINT))
    for i, row in enumerate(rows):
        parts += drawn_row(row, TOP + ROW * (i + 0.5), series, x_of)
    return "\n".join(parts + ["</svg>", ""])
