"""The report of numa_study.py: one HTML file with everything in it, plots as SVG, for people and for printing."""

import html
import io
import os
import statistics

COLORS = {
    "rows": "#1f5fb4",
    "one-node": "#c2571a",
    "interleave": "#2e8b57",
    "none": "#8a8f98",
    "replicate": "#7b4fa3",
}
MEANING = {
    "rows": "every worker's rows in the memory of its own node",
    "one-node": "workers and memory of one node alone",
    "interleave": "pages on all nodes in turn",
    "none": "all pages where the loading thread touched them",
    "replicate": "a copy of all weights on every node",
}

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #1c2430; max-width: 62rem; margin: 2.5rem auto; padding: 0 1.2rem; }
h1 { font-size: 1.7rem; margin-bottom: .2rem; } h2 { font-size: 1.2rem; margin-top: 2.4rem; border-bottom: 1px solid #e1e5ea; }
p.lead { color: #58616f; margin-top: 0; } svg { max-width: 100%; height: auto; }
table { border-collapse: collapse; font-size: .88rem; margin: .8rem 0; font-variant-numeric: tabular-nums; }
th, td { padding: .28rem .7rem; text-align: right; border-bottom: 1px solid #eceff3; }
th:first-child, td:first-child { text-align: left; } th { font-weight: 600; color: #58616f; }
td.own { background: #e8f1fb; } code, pre { font: .82rem/1.45 ui-monospace, monospace; }
pre { background: #f6f7f9; padding: .8rem 1rem; white-space: pre-wrap; overflow-wrap: anywhere; border-radius: 6px; }
.swatch { display: inline-block; width: .8rem; height: .8rem; border-radius: 2px; margin-right: .4rem; }
figure { margin: 1rem 0; } figcaption { color: #58616f; font-size: .88rem; }
"""


def escape(value):
    return html.escape(str(value))


def table(headings, rows, own=()):
    """Rows of ready HTML; cells at the places (row, column) in `own` are marked."""
    head = "".join(f"<th>{heading}</th>" for heading in headings)
    body = ""
    for i, row in enumerate(rows):
        cells = "".join(f'<td{" class=own" if (i, j) in own else ""}>{cell}</td>' for j, cell in enumerate(row))
        body += f"<tr>{cells}</tr>\n"
    return f"<table><thead><tr>{head}</tr></thead><tbody>\n{body}</tbody></table>"


def new_plot(size=(8.2, 4.2)):
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    matplotlib.rcParams["svg.fonttype"] = "none"  # text stays text
    matplotlib.rcParams["svg.hashsalt"] = "lockstep"  # the same file from the same figures
    matplotlib.rcParams["font.family"] = "sans-serif"
    figure, axes = plt.subplots(figsize=size)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.grid(True, axis="y", color="#e6e8ec")
    axes.set_axisbelow(True)
    return figure, axes


def from_zero(axes):
    """The vertical axis begins at 0, and the highest point keeps its distance from the edge."""
    axes.set_ylim(0, 1.08 * max(axes.get_ylim()[1], 1e-9))


def thread_ticks(axes, cells):
    ticks = sorted({cell["threads"] for cell in plain(cells)})
    axes.set_xticks(ticks, [str(tick) for tick in ticks])


def finish(figure):
    import matplotlib.pyplot as plt

    text = io.StringIO()
    figure.tight_layout()
    figure.savefig(text, format="svg", metadata={"Date": None})
    plt.close(figure)
    return text.getvalue()[text.getvalue().index("<svg"):]


def median(cell, test):
    return statistics.median(cell["samples"][test]) if cell["samples"].get(test) else None


def decode_test(cells):
    """Name of the decoding test that was measured, or None."""
    return next((test for cell in cells for test in cell["samples"] if test.startswith("tg")), None)


def plain(cells):
    """Cells that differ in policy and threads alone: what the curves show."""
    return [cell for cell in cells if not cell["smt"] and not cell["nodes"] and not cell["small_pages"]]


def curves(cells):
    """Policy, color and the cells of its curve in order of threads."""
    for policy, color in COLORS.items():
        mine = [cell for cell in plain(cells) if cell["policy"] == policy]
        yield policy, color, sorted(mine, key=lambda cell: cell["threads"])


def speed_plot(cells, test):
    figure, axes = new_plot()
    for policy, color, mine in curves(cells):
        measured = [(cell["threads"], median(cell, test)) for cell in mine if test and median(cell, test)]
        if measured:
            axes.plot(*zip(*measured), color=color, marker="o", label=policy)
        predicted = [(cell["threads"], cell["prediction"]["tokens_per_s"]) for cell in mine if cell.get("prediction")]
        if predicted:
            label = None if measured else f"{policy}, predicted"
            axes.plot(*zip(*predicted), color=color, linestyle=":", marker=None if measured else ".", label=label)
    axes.set_xlabel("threads")
    axes.set_ylabel("tokens per second")
    from_zero(axes)
    thread_ticks(axes, cells)
    axes.legend(frameon=False)
    return finish(figure)


def bytes_plot(cells):
    """Local and remote bytes of a token with all threads, by policy."""
    most = max((cell["threads"] for cell in plain(cells)), default=0)
    figure, axes = new_plot((8.2, 3.2))
    shown = [cell for cell in plain(cells) if cell["threads"] == most]
    for i, cell in enumerate(shown):
        remote = cell.get("remote_bytes_per_token")
        if remote is None:
            remote = (cell.get("prediction") or {}).get("remote_bytes", 0)
        local = cell["weight_bytes"] - remote
        axes.bar(i, local / 1e6, color=COLORS[cell["policy"]], width=0.6)
        axes.bar(i, remote / 1e6, bottom=local / 1e6, color=COLORS[cell["policy"]], alpha=0.35, hatch="//", width=0.6)
    axes.set_xticks(range(len(shown)), [cell["policy"] for cell in shown])
    axes.set_ylabel("MB read for a token")
    return finish(figure), most


def barrier_plot(cells, test):
    figure, axes = new_plot((8.2, 3.2))
    for policy, color, mine in curves(cells):
        points = [(cell["threads"], 100 * cell["last"][test]["barrier_share"]) for cell in mine if cell.get("last")]
        if points:
            axes.plot(*zip(*points), color=color, marker="o", label=policy)
    axes.set_xlabel("threads")
    axes.set_ylabel("% of the time at barriers")
    from_zero(axes)
    thread_ticks(axes, cells)
    axes.legend(frameon=False)
    return finish(figure)


def bandwidth_table(bandwidth):
    cells = bandwidth["cells"]
    memory = sorted({cell["memory_on"] for cell in cells})
    rows, own = [], set()
    for i, node in enumerate(sorted({cell["cores_on"] for cell in cells})):
        row = [f"cores of node {node}"]
        for j, other in enumerate(memory):
            found = [cell for cell in cells if (cell["cores_on"], cell["memory_on"]) == (node, other)]
            row.append(f"{found[0]['bytes_per_s'] / 1e9:.1f}" if found else "-")
            if node == other:
                own.add((i, j + 1))
        rows.append(row)
    return table(["GB/s"] + [f"memory of node {node}" for node in memory], rows, own)


def cells_table(cells, tests):
    headings = ["placement"] + [f"{test}, tokens/s" for test in tests]
    headings += ["of the stream", "predicted", "remote MB/token", "huge pages, MB", "barriers"]
    rows = []
    for cell in cells:
        row = [f'<span class="swatch" style="background:{COLORS[cell["policy"]]}"></span>{escape(cell["name"])}']
        for test in tests:
            value = median(cell, test)
            row.append("-" if value is None else f"{value:.1f}")
        last = cell.get("last", {}).get(decode_test([cell]) or "", {})
        prediction = cell.get("prediction")
        remote = cell.get("remote_bytes_per_token", (prediction or {}).get("remote_bytes"))
        row.append(f"{100 * last['share_of_stream']:.0f} %" if last else "-")
        row.append(f"{prediction['tokens_per_s']:.1f}" if prediction else "-")
        row.append("-" if remote is None else f"{remote / 1e6:.1f}")
        row.append(f"{cell['huge_page_bytes'] / 1e6:.0f}" if "huge_page_bytes" in cell else "-")
        row.append(f"{100 * last['barrier_share']:.1f} %" if last else "-")
        rows.append(row)
    return table(headings, rows)


def machine_section(study):
    machine = study["machine"]
    nodes = [[f"node {node['node']}", node["cores"], f"{node['memory_bytes'] / 2**30:.1f} GiB"] for node in machine["nodes"]]
    about = "".join(f"<li>{escape(limit)}</li>" for limit in machine["limits"])
    here = "" if machine["this_system"] else " This machine was described, not measured."
    facts = next((cell for cell in study["cells"] if "openmp" in cell), None)
    runtime = ""
    if facts:
        runtime = (f"<p>{escape(facts['openmp'])}, which {escape(facts['wait_policy'])}; kernels {escape(facts['kernels'])}; "
                   f"NUMA balancing {escape(facts['numa_balancing'])}; memory binding {escape(machine['memory_binding'])}.</p>")
    return f"<h2>Machine</h2><p>{escape(machine['cpu'] or 'Unknown processor')}.{here}</p>" + table(
        ["", "cores", "memory"], nodes) + f"<ul>{about}</ul>" + runtime


def figure(svg, caption):
    return f"<figure>{svg}<figcaption>{caption}</figcaption></figure>"


def model_section(study, model):
    cells = [cell for cell in study["cells"] if cell["model"] == model]
    for cell in cells:
        cell["weight_bytes"] = study["models"][model]["weight_bytes"]
    test = decode_test(cells)
    tests = sorted({name for cell in cells for name in cell["samples"]})
    predicted = any(cell.get("prediction") for cell in cells)
    text = f"<h2>{escape(os.path.basename(model))}</h2>"
    text += (f"<p>{study['models'][model]['weight_bytes'] / 1e6:.0f} MB of weights and "
             f"{study['models'][model]['barriers']} barriers for a token.</p>")
    if test or predicted:
        dotted = " Dotted: what the bandwidths allow." if test and predicted else ""
        what = "Decoding against threads, medians of the rounds." if test else "Predicted decoding against threads."
        text += figure(speed_plot(cells, test), what + dotted)
    svg, most = bytes_plot(cells)
    text += figure(svg, f"Weights read for a token, threads: {most}. Hatched: from another node.")
    if test and any(cell.get("last") for cell in cells):
        text += figure(barrier_plot(cells, test), "Time that workers stood at barriers while decoding.")
    return text + cells_table(cells, tests)


def page(study):
    models = sorted(study["models"])
    policies = "".join(
        f'<li><span class="swatch" style="background:{COLORS[name]}"></span><b>{name}</b>: {MEANING[name]}</li>'
        for name in COLORS if any(cell["policy"] == name for cell in study["cells"])
    )
    measured = any(cell["samples"] for cell in study["cells"])
    lead = "Measured, each cell in a fresh process." if measured else "Predicted from bandwidths; nothing was measured."
    body = f"<h1>Where threads and pages should sit</h1><p class=lead>{lead}</p><ul>{policies}</ul>"
    body += machine_section(study)
    if study.get("predicted_for"):
        body += f"<p>Predicted for <code>{escape(study['predicted_for'])}</code> (GB/s and microseconds).</p>"
    if study.get("bandwidth"):
        body += "<h2>Bandwidth</h2><p>Streaming reads, median of the rounds; a node's own memory is marked.</p>"
        body += bandwidth_table(study["bandwidth"])
    body += "".join(model_section(study, model) for model in models)
    commands = [cell["command"] for cell in study["cells"] if cell.get("command")]
    body += "<h2>Doing it again</h2><pre>" + escape(study["command"]) + "</pre>"
    if commands:
        body += "<p>One cell at a time:</p><pre>" + escape("\n".join(commands)) + "</pre>"
    return (f"<!doctype html><html lang=en><head><meta charset=utf-8><title>Placement study</title>"
            f"<meta name=viewport content='width=device-width, initial-scale=1'><style>{STYLE}</style></head>"
            f"<body>{body}</body></html>\n")
