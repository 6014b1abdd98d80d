"""Line plots as SVG files, written by hand: nothing to install, and they show in any browser and on
code hosts. Enough for the benchmarks: several series over one logarithmic or linear axis."""

import html
import math

WIDTH, HEIGHT = 640, 360
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 40, 48
COLORS = ("#1f6feb", "#d1672a", "#2a9d62", "#8250df")


def _nice_step(highest, ticks=5):
    """The least of 1, 2, 5 times a power of ten that gives at most so many ticks."""
    rough = highest / ticks
    power = 10 ** math.floor(math.log10(rough))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= rough)


def _text(x, y, text, anchor="middle", extra=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{extra}>{html.escape(text)}</text>'


def line_plot(title, x_label, y_label, series, log_x=True):
    """The text of an SVG file.

    `series`: {name: [(x, lowest, middle, highest), ...]}; the line goes through the middles and a
    bar shows the spread. The y axis begins at 0.
    """
    points = [p for line in series.values() for p in line]
    xs = sorted({p[0] for p in points})
    highest = max(p[3] for p in points) or 1
    step = _nice_step(highest)
    top = math.ceil(highest / step) * step
    scale = math.log2 if log_x else float
    low, high = scale(xs[0]), scale(xs[-1])

    def at_x(x):
        part = (scale(x) - low) / (high - low) if high > low else 0.5
        return LEFT + 12 + part * (WIDTH - LEFT - RIGHT - 24)

    def at_y(y):
        return HEIGHT - BOTTOM - y / top * (HEIGHT - TOP - BOTTOM)

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
           f'width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" font-size="12">',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
           _text(WIDTH / 2, 18, title, extra=' font-size="14" font-weight="bold"'),
           _text(WIDTH / 2, HEIGHT - 8, x_label),
           _text(14, HEIGHT / 2, y_label, extra=f' transform="rotate(-90 14 {HEIGHT / 2:.0f})"')]
    for tick in range(round(top / step) + 1):
        y = at_y(tick * step)
        out.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
        out.append(_text(LEFT - 6, y + 4, f"{tick * step:g}", "end"))
    for x in xs:
        out.append(_text(at_x(x), HEIGHT - BOTTOM + 18, f"{x:g}"))
    for i, (name, line) in enumerate(series.items()):
        color = COLORS[i % len(COLORS)]
        path = " ".join(f"{at_x(x):.1f},{at_y(middle):.1f}" for x, _, middle, _ in line)
        out.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2"/>')
        for x, lowest, middle, most in line:
            out.append(f'<line x1="{at_x(x):.1f}" x2="{at_x(x):.1f}" y1="{at_y(lowest):.1f}" '
                       f'y2="{at_y(most):.1f}" stroke="{color}"/>')
            out.append(f'<circle cx="{at_x(x):.1f}" cy="{at_y(middle):.1f}" r="3" fill="{color}"/>')
        legend = LEFT + 12 + i * 150
        out.append(f'<rect x="{legend}" y="25" width="10" height="10" fill="{color}"/>')
        out.append(_text(legend + 14, 34, name, "start"))
    return "\n".join(out + ["</svg>"]) + "\n"


def stacked_bars(title, x_label, parts, bars):
    """The text of an SVG file with horizontal bars: {name: [a value for each of `parts`]}."""
    left, row = 150, 26
    height = TOP + row * len(bars) + BOTTOM
    highest = max((sum(values) for values in bars.values()), default=0) or 1
    step = _nice_step(highest)
    right = math.ceil(highest / step) * step

    def at_x(x):
        return left + x / right * (WIDTH - left - RIGHT - 12)

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
           f'width="{WIDTH}" height="{height}" font-family="sans-serif" font-size="12">',
           f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
           _text(WIDTH / 2, 18, title, extra=' font-size="14" font-weight="bold"'),
           _text((left + WIDTH) / 2, height - 8, x_label)]
    bottom = height - BOTTOM
    for tick in range(round(right / step) + 1):
        x = at_x(tick * step)
        out.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{bottom}" stroke="#ddd"/>')
        out.append(_text(x, bottom + 16, f"{tick * step:g}"))
    for i, (name, values) in enumerate(bars.items()):
        y, begin = TOP + row * i + 4, 0
        out.append(_text(left - 6, y + 13, name, "end"))
        for value, color in zip(values, COLORS):
            out.append(f'<rect x="{at_x(begin):.1f}" y="{y}" width="{at_x(value) - left:.1f}" '
                       f'height="{row - 8}" fill="{color}"/>')
            begin += value
    for i, name in enumerate(parts):
        x = 24 + i * 150
        out.append(f'<rect x="{x}" y="25" width="10" height="10" fill="{COLORS[i]}"/>')
        out.append(_text(x + 14, 34, name, "start"))
    return "\n".join(out + ["</svg>"]) + "\n"
