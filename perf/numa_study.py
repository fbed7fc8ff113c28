#!/usr/bin/env python3
"""Where threads and pages should sit: a grid of placements, each measured in a fresh process.

    python3 perf/numa_study.py model.gguf --output study --policies rows,one-node,interleave --threads 1,8,16,32
    python3 perf/report.py study.json --html study.html
    HWLOC_SYNTHETIC="Package:2 [NUMANode(memory=192GiB)] L3:1 Core:48 PU:2" \\
        python3 perf/numa_study.py model.gguf --dry-run --predict nodes=2,cores=48,local=300,remote=120,core=14

The bandwidth from every node to every other comes first: it is what the rest is read against. Rounds go through the
whole grid, in an order that is turned around from round to round, so that a drift of the machine meets all cells.
Beside each cell stands what placement_model.py predicts from the bandwidths. Writes OUTPUT.json and OUTPUT.csv after
every cell; --resume keeps what an earlier run measured. --dry-run measures nothing and shows the plan of every cell,
also for a machine that is only described. Progress goes to standard error.
"""

import argparse
import csv
import itertools
import json
import os
import shlex
import statistics
import sys
import time

import compare
import placement_model

POLICIES = ("rows", "one-node", "interleave", "none", "replicate")
# From a row of `lockstep bench`, once for every cell.
KEPT = ("openmp", "wait_policy", "isa", "kernels", "numa_nodes", "numa_balancing", "remote_bytes_per_token",
        "huge_page_bytes", "logits_hash")


def run(command):
    """What a command prints, as JSON; CompareError if it fails."""
    return compare.parse(compare.run(command), json.loads, command)


def name_of(cell):
    words = [cell["policy"], f"{cell['threads']} thread" + ("s" if cell["threads"] > 1 else "")]
    words += ["all hardware threads"] if cell["smt"] else []
    words += [f"nodes {cell['nodes']}"] if cell["nodes"] else []
    words += ["small pages"] if cell["small_pages"] else []
    return ", ".join(words)


class Study:
    def __init__(self, options):
        self.options = options
        self.program = os.path.join(options.build, "bin", "lockstep")
        self.result = {"kind": "numa_study", "command": shlex.join(["python3", *sys.argv]), "cells": []}
        self.started = time.monotonic()
        self.measured = 0

    def note(self, text):
        print(f"numa_study: {text}", file=sys.stderr, flush=True)

    def placement(self, cell):
        words = ["--numa", cell["policy"], "--numa-level", self.options.level]
        words += ["--smt"] if cell["smt"] else []
        words += ["--nodes", cell["nodes"]] if cell["nodes"] else []
        return words + (["--small-pages"] if cell["small_pages"] else [])

    def command(self, cell):
        options = self.options
        words = [self.program, "bench", "-m", cell["model"], "-p", str(options.prompt), "-n", str(options.generate)]
        words += ["-t", str(cell["threads"]), "-r", "1", "-o", "json"]
        return words + self.placement(cell)

    def topology(self, cell=None):
        words = [self.program, "topology", "--json"]
        if cell:
            words += ["-t", str(cell["threads"])] + self.placement(cell)
        return run(words)

    def grid(self):
        options = self.options
        machine = self.topology()
        cores = sum(node["cores"] for node in machine["nodes"])
        threads = options.threads or sorted({1, *(cores // step for step in (4, 2) if cores // step), cores})
        cells = []
        for model, policy, count, nodes, smt, pages in itertools.product(
            options.models, options.policies, threads, options.nodes, options.smt, options.pages
        ):
            cell = {"model": model, "policy": policy, "threads": count, "nodes": nodes, "smt": smt == "on",
                    "small_pages": pages == "small"}
            cells.append({**cell, "name": name_of(cell), "samples": {}})
        return machine, cells

    def load_earlier(self, cells):
        path = self.options.output + ".json"
        if not self.options.resume or not os.path.exists(path):
            return
        with open(path, encoding="utf-8") as file:
            earlier = json.load(file)
        known = {(cell["model"], cell["name"]): cell for cell in earlier["cells"]}
        for cell in cells:
            cell.update(known.get((cell["model"], cell["name"]), {}))
        self.result["bandwidth"] = earlier.get("bandwidth")
        self.result["barriers"] = earlier.get("barriers")

    def machine_model(self):
        """The measured machine in the terms of the model, or the one that was described."""
        if self.options.predict:
            return placement_model.parse_machine(self.options.predict)
        if not self.result.get("bandwidth"):
            return None
        cells = self.result["bandwidth"]["cells"]
        local = [cell["bytes_per_s"] for cell in cells if cell["cores_on"] == cell["memory_on"]]
        remote = [cell["bytes_per_s"] for cell in cells if cell["cores_on"] != cell["memory_on"]]
        cores = [node["cores"] for node in self.result["machine"]["nodes"] if node["cores"]]
        by_team = {cell["workers"]: cell["barrier_seconds"] for cell in self.result["barriers"]["cells"]}
        whole = by_team.get(sum(cores)) or max(by_team.values())
        return placement_model.Machine(
            cores=cores,
            local=max(local),
            remote=max(remote, default=max(local)),
            per_core=self.result["bandwidth"]["one_core"],
            barrier=by_team.get(cores[0], whole),
            barrier_across=whole,
        )

    def predict(self, cell, machine):
        if machine is None or cell["smt"] or cell["nodes"]:
            return None
        shape = self.result["models"][cell["model"]]
        return placement_model.predict(machine, cell["policy"], cell["threads"], shape["weight_bytes"], shape["barriers"])

    def measure_roofs(self):
        if self.result.get("bandwidth"):
            return
        self.note("bandwidth from every node to every node")
        tool = os.path.join(self.options.build, "bin", "bandwidth_bench")
        self.result["bandwidth"] = run([tool, "--json"])
        row = run([self.program, "bench", "-m", self.options.models[0], "-p", "0", "-n", "1", "-t", "1", "-r", "3", "-o", "json"])
        self.result["bandwidth"]["one_core"] = row[0]["weight_bytes_per_s"] / row[0]["share_of_stream"]
        self.note("barriers")
        self.result["barriers"] = run([os.path.join(self.options.build, "bin", "barrier_bench"), "--json"])

    def describe_models(self):
        self.result["models"] = dict(self.options.assume)
        for model in self.options.models:
            if model in self.result["models"]:
                continue
            plan = run([self.program, "plan", "-m", model, "--json"])
            self.result["models"][model] = {"weight_bytes": plan["weight_bytes"], "barriers": plan["barriers"]}

    def save(self):
        path = self.options.output + ".json"
        compare.write_json(self.result, path + ".part")
        os.replace(path + ".part", path)
        columns = ["model", "policy", "threads", "nodes", "smt", "small_pages", "test", "tokens_per_s", "samples",
                   "share_of_stream", "barrier_share", "predicted_tokens_per_s", "remote_bytes_per_token", "huge_page_bytes"]
        with open(self.options.output + ".csv", "w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, columns, extrasaction="ignore")
            writer.writeheader()
            for cell in self.result["cells"]:
                for test, samples in cell["samples"].items():
                    row = {**cell, **cell.get("last", {}).get(test, {}), "test": test, "samples": len(samples)}
                    row["tokens_per_s"] = statistics.median(samples)
                    if test.startswith("tg") and cell.get("prediction"):
                        row["predicted_tokens_per_s"] = cell["prediction"]["tokens_per_s"]
                    writer.writerow(row)

    def measure(self, cell, left):
        elapsed = time.monotonic() - self.started
        eta = f", about {elapsed / self.measured * left / 60:.0f} min left" if self.measured else ""
        self.note(f"{left} to go{eta}: {os.path.basename(cell['model'])}, {cell['name']}")
        cell["command"] = shlex.join(self.command(cell))
        for row in run(self.command(cell)):
            test = f"pp{row['n_prompt']}" if row["n_prompt"] else f"tg{row['n_gen']}"
            cell["samples"].setdefault(test, []).append(row["avg_ts"])
            cell.update({key: row[key] for key in KEPT})
            cell.setdefault("last", {})[test] = {key: row[key] for key in ("share_of_stream", "share_of_peak", "barrier_share")}
        self.measured += 1

    def run(self):
        self.result["machine"], cells = self.grid()
        self.load_earlier(cells)
        self.result["cells"] = cells
        self.describe_models()
        self.measure_roofs()
        machine = self.machine_model()
        for cell in cells:
            cell["prediction"] = self.predict(cell, machine)
        order = list(cells)
        for number in range(self.options.rounds):
            due = [cell for cell in order if len(next(iter(cell["samples"].values()), [])) <= number]
            for at, cell in enumerate(due):
                self.measure(cell, len(due) - at + len(cells) * (self.options.rounds - number - 1))
                self.save()
            order.reverse()
        self.save()

    def dry_run(self):
        machine, cells = self.grid()
        self.result["machine"] = machine
        self.describe_models()
        model = placement_model.parse_machine(self.options.predict) if self.options.predict else None
        print(f"{machine['cpu'] or 'a described machine'}: {len(cells)} cells, {self.options.rounds} rounds")
        for cell in cells:
            plan = self.topology(cell)
            nodes = {}
            for worker in plan["workers"]:
                nodes.setdefault(worker["node"], []).append(worker)
            print(f"\n{os.path.basename(cell['model'])}, {cell['name']}")
            for node, workers in nodes.items():
                first, last = workers[0], workers[-1]
                rows = f"rows {first['rows'][0]}-{last['rows'][1] - 1} of {plan['matrix']['rows']}"
                print(f"  node {node}: workers {first['worker']}-{last['worker']} on processors "
                      f"{first['processor']}-{last['processor']}, {rows}")
            prediction = self.predict(cell, model)
            if prediction:
                cell["prediction"] = prediction
                print(f"  predicted: {prediction['tokens_per_s']:.1f} tokens/s, limited by {prediction['limit']}, "
                      f"{prediction['remote_bytes'] / 1e6:.0f} MB a token from other nodes")
            print("  " + " ".join(self.command(cell)))
        if self.options.output:
            self.result["cells"] = cells
            self.result["predicted_for"] = self.options.predict
            self.save()


def comma_list(allowed=None):
    def parse(text):
        words = text.split(",")
        if allowed and any(word not in allowed for word in words):
            raise argparse.ArgumentTypeError(f"{text!r}: a list of {', '.join(allowed)}")
        return words

    return parse


def assumed(text):
    name, _, rest = text.partition("=")
    weight_bytes, _, barriers = rest.partition(":")
    try:
        return name, {"weight_bytes": float(weight_bytes), "barriers": int(barriers)}
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r}: NAME=BYTES:BARRIERS, as 70B-Q4_K=40e9:401") from None


def numbers(text):
    if not all(word.isdigit() and int(word) > 0 for word in text.split(",")):
        raise argparse.ArgumentTypeError(f"{text!r}: a list of numbers from 1 on")
    return [int(word) for word in text.split(",")]


def parse_arguments(arguments):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    build = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "build")
    parser.add_argument("models", nargs="*", help="GGUF files, of the formats to be compared")
    parser.add_argument("--assume", type=assumed, action="append", default=[], metavar="NAME=BYTES:BARRIERS",
                        help="a model that is not here, as 70B-Q4_K=40e9:401 (with --dry-run)")
    parser.add_argument("--output", help="beginning of the names of the results")
    parser.add_argument("--policies", type=comma_list(POLICIES), default=list(POLICIES), help="default: all")
    parser.add_argument("--threads", type=numbers, help="default: 1, a quarter, half and all of the cores")
    parser.add_argument("--nodes", action="append", metavar="LIST",
                        help="use these nodes alone, such as 0,1; may be repeated (default: all)")
    parser.add_argument("--smt", type=comma_list(("off", "on")), default=["off"], help="off, on or both (default off)")
    parser.add_argument("--pages", type=comma_list(("huge", "small")), default=["huge"], help="default huge")
    parser.add_argument("--level", choices=("socket", "node", "cache"), default="node", help="default %(default)s")
    parser.add_argument("-p", "--prompt", type=int, default=0, help="prompt tokens (default none)")
    parser.add_argument("-n", "--generate", type=int, default=64, help="generated tokens (default %(default)s)")
    parser.add_argument("-r", "--rounds", type=int, default=5, help="default %(default)s")
    parser.add_argument("--predict", metavar="MACHINE",
                        help="bandwidths of a machine that is not here, as nodes=2,cores=48,local=300,remote=120,"
                             "core=14,barrier=3,across=6 (GB/s, microseconds)")
    parser.add_argument("--resume", action="store_true", help="keep what OUTPUT.json has already")
    parser.add_argument("--dry-run", action="store_true", help="show the plan of every cell and measure nothing")
    parser.add_argument("--build", default=build, help="the build folder (default %(default)s)")
    options = parser.parse_args(arguments)
    options.nodes = options.nodes or [""]
    if options.assume and not options.dry_run:
        parser.error("--assume: a model that is not here can be planned for, with --dry-run, and not measured")
    options.models += [name for name, _ in options.assume]
    if not options.models:
        parser.error("give a model")
    if options.rounds < 1 or options.generate < 1:
        parser.error("--rounds and --generate: at least 1")
    if not options.dry_run and not options.output:
        parser.error("--output: give the results a name, or ask for a --dry-run")
    if not options.dry_run and os.path.exists(options.output + ".json") and not options.resume:
        parser.error(f"{options.output}.json exists: give another name, or --resume")
    return options


def main(arguments):
    options = parse_arguments(arguments)
    study = Study(options)
    try:
        if options.dry_run:
            study.dry_run()
        else:
            study.run()
    except (compare.CompareError, ValueError, OSError) as error:
        print(f"numa_study: error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
