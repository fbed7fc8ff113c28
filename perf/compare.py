#!/usr/bin/env python3
"""Two programs on the same models, taking turns: medians, spread and ratios.

    python3 perf/compare.py PROGRAM model.gguf [model.gguf ...] [-p 512] [-n 128]
    python3 perf/compare.py PROGRAM model.gguf --batched --npl 1,4,16

PROGRAM is any that understands the options of llama-bench (-m -p -n -t -r -o json), or with --batched those
of llama-batched-bench (-m -c -b -t -npp -ntg -npl --output-format jsonl); `lockstep bench` is run beside it. Each
round runs both, and the order is turned around from round to round, so that a machine whose speed drifts meets
both alike: only the ratios mean anything. Markdown goes to standard output, --json writes all samples,
progress goes to standard error.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys

BUSY_LOAD = 0.5  # per core, above which the figures are not to be trusted


class CompareError(Exception):
    pass


def run(command, both=False):
    """Standard output of a command, with standard error behind it on demand; CompareError if it fails."""
    environment = dict(os.environ)
    # A program run from its build folder finds its own libraries there.
    folder = os.path.dirname(os.path.abspath(command[0]))
    environment["LD_LIBRARY_PATH"] = ":".join(filter(None, [folder, environment.get("LD_LIBRARY_PATH")]))
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    except OSError as error:
        raise CompareError(f"{command[0]}: {error.strerror}") from error
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or ["no message"]
        raise CompareError(f"{os.path.basename(command[0])}: exit status {done.returncode}: {lines[-1]}")
    return done.stdout + (done.stderr if both else "")


def parse(text, read, command):
    try:
        return read(text)
    except (ValueError, KeyError, TypeError) as error:
        raise CompareError(f"{os.path.basename(command[0])}: its output is not what was asked for: {error}") from error


def test_name(row):
    parts = [f"{kind}{row[key]}" for kind, key in (("pp", "n_prompt"), ("tg", "n_gen")) if row[key]]
    return "+".join(parts)


def single_rates(command):
    """Tokens per second by test name, from the JSON of a llama-bench-like program."""
    return parse(run(command), lambda text: {test_name(row): row["avg_ts"] for row in json.loads(text)}, command)


def batched_row(line):
    """A line of llama-batched-bench, as JSON or of its table (which some versions write, and to standard error)."""
    if line.startswith("{"):
        return json.loads(line)
    cells = [cell.strip() for cell in line.split("|")]
    if len(cells) < 9 or not cells[1].isdigit():
        return None
    # | PP | TG | B | N_KV | T_PP s | S_PP t/s | T_TG s | S_TG t/s | ...
    return {"pp": cells[1], "tg": cells[2], "pl": cells[3], "speed_pp": float(cells[6]), "speed_tg": float(cells[8])}


def batched_rates(command):
    """Tokens per second by number of sequences, from what a llama-batched-bench-like program prints."""

    def read(text):
        rates = {}
        for row in filter(None, map(batched_row, text.splitlines())):
            rates[f"{row['pl']} x pp{row['pp']}"] = row["speed_pp"]
            rates[f"{row['pl']} x tg{row['tg']}"] = row["speed_tg"]
        if not rates:
            raise ValueError("no row of JSON and no table")
        return rates

    return parse(run(command, both=True), read, command)


def write_json(value, path):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(value, file, indent=2)
        file.write("\n")


class Comparison:
    def __init__(self, options):
        self.options = options
        self.lockstep = os.path.join(options.build, "bin", "lockstep")
        self.loads = []

    def commands(self, model):
        """The peer's command and ours for one round."""
        options = self.options
        if options.batched:
            lengths = ["-npp", str(options.npp), "-ntg", str(options.ntg), "-npl", options.npl]
            most = max(int(count) for count in options.npl.split(","))
            context = str(most * (options.npp + options.ntg) + 64)
            theirs = [options.program, "-m", model, "-c", context, "-b", "2048", "-t", str(options.threads)]
            theirs += lengths + ["--output-format", "jsonl"]
            ours = [self.lockstep, "bench", "--batched", "-m", model, "-t", str(options.threads), "-r", "1"]
            return theirs + options.peer_option, ours + lengths + ["-o", "jsonl"]
        tests = ["-m", model, "-p", str(options.prompt), "-n", str(options.generate), "-t", str(options.threads)]
        tests += ["-r", "1", "-o", "json"]
        return [options.program] + tests + options.peer_option, [self.lockstep, "bench"] + tests

    def note(self, text):
        print(f"compare: {text}", file=sys.stderr, flush=True)

    def check_load(self):
        """Other people's work on this machine, before anything of ours runs."""
        load = os.getloadavg()[0] / (os.cpu_count() or 1)
        self.note(f"load average {load:.2f} per core")
        if load > BUSY_LOAD:
            self.note("warning: the machine is busy; ratios of so disturbed a run mean little")
        return load

    def rounds(self, model):
        """Samples of both programs by test name."""
        rates = batched_rates if self.options.batched else single_rates
        samples = {}
        theirs, ours = self.commands(model)
        for number in range(self.options.rounds):
            order = [("peer", theirs), ("ours", ours)]
            if number % 2:
                order.reverse()
            for who, command in order:
                self.note(f"{os.path.basename(model)}: round {number + 1}/{self.options.rounds}, {who}")
                found = rates(command)
                self.loads.append(os.getloadavg()[0] / (os.cpu_count() or 1))
                for test, rate in found.items():
                    samples.setdefault(test, {"peer": [], "ours": []})[who].append(rate)
        return samples

    def rows(self):
        rows = []
        for model in self.options.models:
            for test, samples in self.rounds(model).items():
                if not samples["peer"] or not samples["ours"]:
                    raise CompareError(f"only one of the programs ran {test}")
                ratios = [ours / peer for ours, peer in zip(samples["ours"], samples["peer"])]
                rows.append(
                    {
                        "model": os.path.basename(model),
                        "test": test,
                        "peer": statistics.median(samples["peer"]),
                        "ours": statistics.median(samples["ours"]),
                        "ratio": statistics.median(samples["ours"]) / statistics.median(samples["peer"]),
                        "ratio_min": min(ratios),
                        "ratio_max": max(ratios),
                        "samples": samples,
                    }
                )
        return rows


def markdown(rows):
    lines = [
        "| model | test | peer t/s | lockstep t/s | ratio of medians | ratios of the rounds |",
        "|---|---|---:|---:|---:|---:|",
    ]
    for row in rows:
        spread = f"{row['ratio_min']:.2f} to {row['ratio_max']:.2f}"
        lines.append(
            f"| {row['model']} | {row['test']} | {row['peer']:.2f} | {row['ours']:.2f} "
            f"| {row['ratio']:.2f} | {spread} |"
        )
    return "\n".join(lines)


def parse_arguments(arguments):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    build = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "build")
    parser.add_argument("program", help="the other program")
    parser.add_argument("models", nargs="+", help="GGUF files")
    parser.add_argument("-p", "--prompt", type=int, default=512, help="prompt tokens (default %(default)s)")
    parser.add_argument("-n", "--generate", type=int, default=128, help="generated tokens (default %(default)s)")
    parser.add_argument("-t", "--threads", type=int, default=os.cpu_count(), help="of both (default %(default)s)")
    parser.add_argument("-r", "--rounds", type=int, default=5, help="runs of each program (default %(default)s)")
    parser.add_argument("--batched", action="store_true", help="many sequences together")
    parser.add_argument("--npp", type=int, default=64, help="tokens of every prompt (default %(default)s)")
    parser.add_argument("--ntg", type=int, default=32, help="tokens generated by each (default %(default)s)")
    parser.add_argument("--npl", default="1,4,16", help="numbers of sequences (default %(default)s)")
    parser.add_argument("--peer-option", action="append", default=[], metavar="WORD",
                        help="one more word for the other program, as --peer-option=-fa; may be repeated")
    parser.add_argument("--json", metavar="FILE", help="write all samples to FILE")
    parser.add_argument("--build", default=build, help="the build folder (default %(default)s)")
    options = parser.parse_args(arguments)
    if options.rounds < 1:
        parser.error("--rounds: at least 1")
    return options


def main(arguments):
    options = parse_arguments(arguments)
    comparison = Comparison(options)
    try:
        load = comparison.check_load()
        rows = comparison.rows()
        # A program with a thread on every core makes a load of 1.
        comparison.note(f"load average during the runs: up to {max(comparison.loads):.2f} per core")
        if options.json:
            write_json({"program": options.program, "load_before": load, "load_during": comparison.loads, "rows": rows}, options.json)
    except (CompareError, OSError) as error:
        print(f"compare: error: {error}", file=sys.stderr)
        return 1
    print(markdown(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
