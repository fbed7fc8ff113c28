#!/usr/bin/env python3
"""The same batch of mixed requests through `lockstep batch`, many at a time and one at a time, and through a server.

    python3 perf/batch_throughput.py model.gguf [--server PROGRAM] [--requests 256] [-r 3]

Prompts have 16 to 512 tokens, half of them begin with the same 256 ("a system prompt"), and every answer has 64
tokens whatever the model says. Prompts are token ids, so that all programs compute the same. PROGRAM is any that
understands the options of llama-server (-m -c -t -tb -np --port) and its /health and /completion. It is asked by as
many clients as there are slots, keeps common beginnings as it likes, and is timed from the first request to the
last answer; loading is timed for nobody. Rounds run all cases in turn, in the opposite order every other time:
only ratios mean anything. Markdown goes to standard output, --json writes all samples after every round, progress
goes to standard error.
"""

import argparse
import concurrent.futures
import json
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

from compare import write_json

SHARED = 256
LONGEST = 512


class ThroughputError(Exception):
    pass


def make_prompts(count, vocabulary, seed):
    """Lists of token ids, half of them with a beginning in common."""
    generator = random.Random(seed)

    def tokens(length):
        return [generator.randrange(vocabulary // 4, vocabulary) for _ in range(length)]

    common = tokens(SHARED)
    prompts = []
    for number in range(count):
        if number % 2:
            prompts.append(common + tokens(generator.randrange(16, LONGEST - SHARED + 1)))
        else:
            prompts.append(tokens(generator.randrange(16, LONGEST + 1)))
    generator.shuffle(prompts)
    return prompts


class Ours:
    """`lockstep batch` with some options; tokens per second by its own summary, which leaves out loading."""

    def __init__(self, name, options, words, prompts):
        self.name = name
        self.command = [os.path.join(options.build, "bin", "lockstep"), "batch", "-m", options.model, "-t"]
        self.command += [str(options.threads), "--ctx", str(LONGEST + options.answer), *words]
        self.lines = [
            json.dumps({"prompt": prompt, "max_tokens": options.answer, "ignore_eos": True}) for prompt in prompts
        ]

    def run(self):
        with tempfile.TemporaryDirectory() as folder:
            paths = {name: os.path.join(folder, name) for name in ("in", "out", "summary")}
            with open(paths["in"], "w", encoding="utf-8") as file:
                file.write("\n".join(self.lines) + "\n")
            words = ["-i", paths["in"], "-o", paths["out"], "--summary", paths["summary"]]
            done = subprocess.run(self.command + words, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise ThroughputError(f"{self.name}: exit status {done.returncode}: {done.stderr.strip()}")
            with open(paths["summary"], encoding="utf-8") as file:
                summary = json.load(file)
        return {"seconds": summary["seconds"], "output_tokens": summary["output_tokens"],
                "cached_tokens": summary["cached_tokens"]}


class Server:
    """Another program's server, started anew for every run, with a client for every slot."""

    name = "server"

    def __init__(self, options, prompts):
        self.options = options
        self.prompts = prompts

    def ask(self, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=3600) as answer:
            return json.load(answer)

    def answer(self, prompt):
        found = self.ask("/completion", {"prompt": prompt, "n_predict": self.options.answer, "ignore_eos": True,
                                         "temperature": 0, "cache_prompt": True})
        return found["tokens_predicted"]

    def wait(self, process):
        for _ in range(6000):
            if process.poll() is not None:
                raise ThroughputError(f"{self.options.server}: ended with {process.returncode}")
            try:
                self.ask("/health")
                return
            except (OSError, ValueError):
                time.sleep(0.1)
        raise ThroughputError(f"{self.options.server}: not ready after ten minutes")

    def run(self):
        options = self.options
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        slots = options.server_slots or options.slots
        command = [options.server, "-m", options.model, "-t", str(options.threads), "-tb", str(options.threads)]
        command += ["-np", str(slots), "-c", str(slots * (LONGEST + options.answer)), "--port", str(port)]
        environment = dict(os.environ)
        folder = os.path.dirname(os.path.abspath(options.server))
        environment["LD_LIBRARY_PATH"] = ":".join(filter(None, [folder, environment.get("LD_LIBRARY_PATH")]))
        self.command = command + options.server_option
        process = subprocess.Popen(self.command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
        try:
            self.wait(process)
            begin = time.monotonic()
            with concurrent.futures.ThreadPoolExecutor(slots) as clients:
                tokens = sum(clients.map(self.answer, self.prompts))
            return {"seconds": time.monotonic() - begin, "output_tokens": tokens}
        finally:
            process.terminate()
            process.wait()


def measure(cases, rounds, prompts, answer, on_round):
    """The samples of all rounds by case; on_round() is given those so far, after every round."""
    wanted = len(prompts) * answer
    work = sum(map(len, prompts)) + wanted
    samples = {case.name: [] for case in cases}
    for number in range(rounds):
        for case in cases if number % 2 == 0 else cases[::-1]:
            print(f"batch_throughput: round {number + 1}/{rounds}, {case.name}", file=sys.stderr, flush=True)
            result = case.run()
            if result["output_tokens"] != wanted:
                raise ThroughputError(f"{case.name}: {result['output_tokens']} tokens answered, expected {wanted}")
            result["rate"] = work / result["seconds"]
            samples[case.name].append(result)
        on_round(samples)
    return samples


def markdown(samples, first):
    lines = ["| | tokens/s, prompts and answers | ratio of medians | ratios of the rounds |", "|---|---:|---:|---:|"]
    ours = [sample["rate"] for sample in samples[first]]
    for name, results in samples.items():
        rates = [sample["rate"] for sample in results]
        ratio = statistics.median(ours) / statistics.median(rates)
        ratios = [a / b for a, b in zip(ours, rates)]
        spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
        lines.append(f"| {name} | {statistics.median(rates):.1f} | {ratio:.2f} | {spread} |")
    return "\n".join(lines)


def vocabulary_of(options):
    command = [os.path.join(options.build, "bin", "lockstep"), "inspect", options.model, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ThroughputError(done.stderr.strip())
    return json.loads(done.stdout)["metadata"]["tokenizer.ggml.tokens"]["count"]


def parse_arguments(arguments):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    build = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "build")
    parser.add_argument("model", help="GGUF file")
    parser.add_argument("--server", metavar="PROGRAM", help="the other program")
    parser.add_argument("--server-option", action="append", default=[], metavar="WORD",
                        help="one more word for the other program; may be repeated")
    parser.add_argument("--server-slots", type=int, default=0, metavar="N", help="its slots (default: ours)")
    parser.add_argument("--requests", type=int, default=256, help="(default %(default)s)")
    parser.add_argument("--answer", type=int, default=64, help="tokens of every answer (default %(default)s)")
    parser.add_argument("--slots", type=int, default=32, help="at a time (default %(default)s)")
    parser.add_argument("-t", "--threads", type=int, default=os.cpu_count(), help="(default %(default)s)")
    parser.add_argument("-r", "--rounds", type=int, default=3, help="(default %(default)s)")
    parser.add_argument("--no-single", action="store_true", help="leave out one at a time")
    parser.add_argument("--no-reuse", action="store_true", help="also many at a time without sharing beginnings")
    parser.add_argument("--seed", type=int, default=1, help="of the prompts (default %(default)s)")
    parser.add_argument("--json", metavar="FILE", help="write all samples to FILE")
    parser.add_argument("--build", default=build, help="the build folder (default %(default)s)")
    options = parser.parse_args(arguments)
    if min(options.requests, options.answer, options.slots, options.rounds) < 1:
        parser.error("--requests, --answer, --slots and --rounds: at least 1")
    return options


def main(arguments):
    options = parse_arguments(arguments)
    try:
        prompts = make_prompts(options.requests, vocabulary_of(options), options.seed)
        many = ["--slots", str(options.slots)]
        cases = [Ours(f"{options.slots} at a time", options, many, prompts)]
        if options.no_reuse:
            cases.append(Ours("nothing shared", options, many + ["--no-prefix-reuse"], prompts))
        if not options.no_single:
            cases.append(Ours("one at a time", options, ["--slots", "1", "--no-prefix-reuse"], prompts))
        if options.server:
            cases.append(Server(options, prompts))

        def keep(samples):
            """Rounds take long: what there is is written after each."""
            if options.json:
                commands = {case.name: case.command for case in cases}
                write_json({"requests": options.requests, "prompt_tokens": sum(map(len, prompts)),
                            "commands": commands, "samples": samples}, options.json)

        samples = measure(cases, options.rounds, prompts, options.answer, keep)
    except (ThroughputError, OSError) as error:
        print(f"batch_throughput: error: {error}", file=sys.stderr)
        return 1
    print(markdown(samples, cases[0].name))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
