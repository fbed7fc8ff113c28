#!/usr/bin/env python3
"""Tables and plots from what the programs in this folder measured.

As a program: the result of format_study.py (JSON) to Markdown on standard output and, on demand, to CSV
and to a scatter plot of size against loss.

    python3 perf/report.py study.json --csv study.csv --svg study.svg

The result of numa_study.py to one HTML page with its plots in it:

    python3 perf/report.py study.json --html study.html

Tables need nothing but Python; plots need matplotlib (Debian: python3-matplotlib).
"""

import argparse
import csv
import json
import sys

# Key in the rows, heading, how a cell is written. The columns are those of "Which Quantization Should I
# Use?" (arXiv 2601.14277, table 3) and of the QuantX paper (arXiv 2505.07531), with KL divergence added.
COLUMNS = [
    ("type", "type", "{}"),
    ("bits_per_weight", "bits/weight", "{:.2f}"),
    ("file_bytes", "file, MB", "mega"),
    ("quantize_seconds", "quantize, s", "{:.2f}"),
    ("perplexity", "perplexity", "{:.4f}"),
    ("perplexity_error", "+/-", "{:.4f}"),
    ("perplexity_change", "change", "percent"),
    ("kl", "KL", "{:.5f}"),
    ("kl_99", "KL 99 %", "{:.4f}"),
    ("same_top", "same top", "percent"),
    ("prefill", "prefill, t/s", "{:.0f}"),
    ("decode", "decode, t/s", "{:.1f}"),
    ("decode_bytes_per_s", "decode, GB/s", "giga"),
    ("decode_share", "of stream", "percent"),
]


def cell(value, form):
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    if form == "mega":
        return f"{value / 1e6:.2f}"
    if form == "giga":
        return f"{value / 1e9:.2f}"
    if form == "percent":
        return cell(100 * value, "{:.2f}") + " %"
    text = form.format(value)
    return text.lstrip("-") if float(text) == 0 else text  # no minus before a rounded zero


def markdown_table(rows, columns=None):
    """Rows (dictionaries) as a Markdown table; `columns` as COLUMNS. Columns that no row has are left out."""
    columns = [c for c in columns or COLUMNS if any(row.get(c[0]) is not None for row in rows)]
    lines = ["| " + " | ".join(heading for _, heading, _ in columns) + " |"]
    lines.append("|" + "|".join("---" if key == "type" else "---:" for key, _, _ in columns) + "|")
    for row in rows:
        lines.append("| " + " | ".join(cell(row.get(key), form) for key, _, form in columns) + " |")
    return "\n".join(lines) + "\n"


def write_csv(rows, path):
    """All values, unrounded, one line a row."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [key for key, _, _ in COLUMNS], extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)


def pareto_front(points):
    """Indices of the points (x, y) that no other point beats in both, in order of x."""
    front = []
    for i in sorted(range(len(points)), key=lambda i: points[i]):
        if not front or points[i][1] < points[front[-1]][1]:
            front.append(i)
    return front


def label_points(figure, axes, names, points, colors):
    """Writes a name beside every point where it covers no other name and no point."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.text import Text

    renderer = FigureCanvasAgg(figure).get_renderer()  # knows how large a text will be
    taken = [axes.transData.transform(point) for point in points]
    boxes = []

    def is_free(box):
        return not any(box.overlaps(other) for other in boxes) and not any(box.contains(*at) for at in taken)

    for name, point, color in sorted(zip(names, points, colors), key=lambda item: item[1]):
        places = [(side * across, up) for up in (3, -9, 14, -20, 25, -31, 36, -42, 47) for across in (6, 16)
                  for side in (1, -1)]
        for across, up in places:
            line = {"arrowstyle": "-", "color": "#c9ced6", "linewidth": 0.7} if abs(up) > 10 else None
            label = axes.annotate(name, point, xytext=(across, up), textcoords="offset points", fontsize=8,
                                  color=color, ha="left" if across > 0 else "right", arrowprops=line)
            label.update_positions(renderer)
            box = Text.get_window_extent(label, renderer)  # of the name, without its line
            if is_free(box) or (across, up) == places[-1]:
                boxes.append(box)
                break
            label.remove()


def scatter_plot(rows, path, title):
    """Bits per weight against KL divergence (log scale); the line joins types that nothing else beats."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    matplotlib.rcParams["svg.fonttype"] = "none"  # text stays text
    matplotlib.rcParams["svg.hashsalt"] = "lockstep"  # the same file from the same figures
    rows = [row for row in rows if row.get("kl") and row["kl"] > 0]
    points = [(row["bits_per_weight"], row["kl"]) for row in rows]
    front = pareto_front(points)
    figure, axes = plt.subplots(figsize=(9, 6.5))
    axes.plot([points[i][0] for i in front], [points[i][1] for i in front], color="#b8c4d6", zorder=1)
    colors = ["#1f5fb4" if i in front else "#8a8f98" for i in range(len(points))]
    for point, color in zip(points, colors):
        axes.scatter(*point, s=30, color=color, zorder=2)
    axes.set_yscale("log")
    axes.set_xscale("log", base=2)
    ticks = [bits for bits in (2, 3, 4, 5, 6, 8, 12, 16) if points and bits <= 1.1 * max(points)[0]]
    axes.set_xticks(ticks, [str(bits) for bits in ticks])
    axes.minorticks_off()
    if points:
        axes.set_xlim(0.93 * min(points)[0], 1.1 * max(points)[0])
    axes.set_xlabel("bits per weight of the whole file")
    axes.set_ylabel("mean KL divergence from the original, nats per token")
    axes.set_title(title)
    axes.grid(True, which="major", color="#e6e8ec")
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    figure.tight_layout()
    label_points(figure, axes, [row["type"] for row in rows], points, colors)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def write_page(study, path):
    if not path:
        sys.exit("report: the result of numa_study.py becomes a page: give --html FILE")
    import numa_report

    try:
        text = numa_report.page(study)
    except ImportError:
        sys.exit("report: the plots need matplotlib (Debian: apt install python3-matplotlib)")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("study", help="result of format_study.py or numa_study.py (JSON)")
    parser.add_argument("--csv", help="also write this CSV file")
    parser.add_argument("--svg", help="also write this scatter plot (needs matplotlib)")
    parser.add_argument("--html", help="write this page (of numa_study.py; needs matplotlib)")
    options = parser.parse_args()
    try:
        with open(options.study, encoding="utf-8") as file:
            study = json.load(file)
        if study.get("kind") == "numa_study":
            write_page(study, options.html)
            return
        rows = study["rows"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        sys.exit(f"report: {options.study}: no result of a study: {error}")
    print(markdown_table(rows), end="")
    if options.csv:
        write_csv(rows, options.csv)
    if options.svg:
        try:
            scatter_plot(rows, options.svg, study.get("title", ""))
        except ImportError:
            sys.exit("report: the plot needs matplotlib (Debian: apt install python3-matplotlib); the table does not")


if __name__ == "__main__":
    main()
