#!/usr/bin/env python3
"""What decoding costs where cores are not its own: twice as many threads as cores, and busy neighbours.

    python3 perf/crowding.py model.gguf [--build build --build build-clang]

Each round benches every build quietly, with twice the threads, and beside one busy loop a core, in an order that
is turned around from round to round. Slowdowns are ratios of medians to the quiet figure of the same build; a fair
share of the processor is 1 and 2. Several builds show how the OpenMP runtimes differ. Markdown goes to standard
output, --json writes all samples, progress goes to standard error.
"""

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys

from compare import CompareError, parse, run, write_json

CELLS = {"quiet": "alone", "twice the threads": "oversubscribed", "beside busy loops": "crowded"}


@contextlib.contextmanager
def busy_loops(count):
    """Processes that do nothing as fast as they can, anywhere the system puts them."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


class Crowding:
    def __init__(self, options):
        self.options = options
        self.samples = {}  # by build, then cell: tokens per second
        self.runtimes = {}  # by build

    def bench(self, build, threads):
        options = self.options
        command = [os.path.join(build, "bin", "lockstep"), "bench", "-m", options.model, "-p", "0"]
        command += ["-n", str(options.generate), "-t", str(threads), "-r", "1", "-o", "json"]
        row = parse(run(command), lambda text: json.loads(text)[0], command)
        self.runtimes[build] = f"{row['openmp']}, {row['wait_policy']}"
        return row["avg_ts"]

    def measure(self, build, cell):
        cores = self.options.cores
        if cell == "oversubscribed":
            return self.bench(build, 2 * cores)
        with busy_loops(cores if cell == "crowded" else 0):
            return self.bench(build, cores)

    def rounds(self):
        order = [(build, cell) for build in self.options.build for cell in CELLS.values()]
        for number in range(self.options.rounds):
            for build, cell in order:
                print(f"crowding: round {number + 1}/{self.options.rounds}, {build}, {cell}", file=sys.stderr)
                self.samples.setdefault(build, {}).setdefault(cell, []).append(self.measure(build, cell))
            order.reverse()

    def rows(self):
        rows = []
        for build, cells in self.samples.items():
            rates = {cell: statistics.median(values) for cell, values in cells.items()}
            rows.append(
                {
                    "build": build,
                    "runtime": self.runtimes[build],
                    "tokens_per_s": rates,
                    "slowdown": {cell: rates["alone"] / rate for cell, rate in rates.items()},
                    "samples": cells,
                }
            )
        return rows


def markdown(rows):
    lines = ["| build | OpenMP runtime | " + " | ".join(CELLS) + " |", "|---|---|" + "---:|" * len(CELLS)]
    for row in rows:
        cells = [f"{row['slowdown'][cell]:.2f} x" for cell in list(CELLS.values())[1:]]
        quiet = f"{row['tokens_per_s']['alone']:.2f} t/s"
        lines.append(f"| {row['build']} | {row['runtime']} | " + " | ".join([quiet] + cells) + " |")
    return "\n".join(lines)


def parse_arguments(arguments):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    build = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "build")
    parser.add_argument("model", help="a GGUF file")
    parser.add_argument("-n", "--generate", type=int, default=64, help="generated tokens (default %(default)s)")
    parser.add_argument("-r", "--rounds", type=int, default=5, help="runs of every cell (default %(default)s)")
    parser.add_argument("--cores", type=int, default=len(os.sched_getaffinity(0)),
                        help="threads of the quiet runs, and busy loops (default %(default)s)")
    parser.add_argument("--build", action="append", metavar="FOLDER",
                        help=f"a build folder; may be repeated (default {build})")
    parser.add_argument("--json", metavar="FILE", help="write all samples to FILE")
    options = parser.parse_args(arguments)
    options.build = options.build or [build]
    if options.rounds < 1 or options.cores < 1:
        parser.error("--rounds and --cores: at least 1")
    return options


def main(arguments):
    options = parse_arguments(arguments)
    crowding = Crowding(options)
    try:
        crowding.rounds()
        rows = crowding.rows()
        if options.json:
            write_json({"cores": options.cores, "rows": rows}, options.json)
    except (CompareError, OSError) as error:
        print(f"crowding: error: {error}", file=sys.stderr)
        return 1
    print(markdown(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
