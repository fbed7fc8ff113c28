#!/usr/bin/env python3
"""Every weight format of one model, measured: size, time to make, quality, speed.

    python3 perf/format_study.py model-f16.gguf text.txt --output study

quantizes the model to every type, compares each with the original on the text (perplexity, KL divergence)
and benches them, round after round through all types so that a drift of the machine meets all alike. Writes
study.json, study.csv, study.md and study.svg; the table also goes to standard output, progress to standard
error. Everything is done by the commands a user has: lockstep quantize, perplexity and bench. With
--resume what an earlier run measured is kept.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import report

TYPES = (
    "F16 BF16 Q8_0 Q6_K Q5_K_M Q5_K_S Q5_1 Q5_0 Q4_K_M Q4_K_S Q4_1 Q4_0 Q4X IQ4_NL IQ4_XS MXFP4 NVFP4 "
    "Q3_K_L Q3_K_M Q3_K_S Q2_K"
).split()


class StudyError(Exception):
    pass


def run(command):
    """Standard output of a command; StudyError with its own last line if it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise StudyError(f"{command[0]}: {error.strerror}; build the project first or give --build") from error
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or ["no message"]
        raise StudyError(f"{os.path.basename(command[0])} {command[1]}: {lines[-1]}")
    return done.stdout


class Study:
    def __init__(self, options):
        self.options = options
        self.lockstep = os.path.join(options.build, "bin", "lockstep")
        self.result = {"title": os.path.basename(options.model), "command": " ".join(sys.argv), "rows": []}
        self.json_path = options.output + ".json"

    def note(self, text):
        print(f"format_study: {text}", file=sys.stderr, flush=True)

    def threads(self):
        return ["--threads", str(self.options.threads)] if self.options.threads else []

    def load_earlier(self):
        if not self.options.resume or not os.path.exists(self.json_path):
            return
        with open(self.json_path, encoding="utf-8") as file:
            earlier = json.load(file)
        self.result["rows"] = [row for row in earlier["rows"] if row["type"] in self.options.types]

    def row(self, type_name):
        for row in self.result["rows"]:
            if row["type"] == type_name:
                return row
        row = {"type": type_name}
        self.result["rows"].append(row)
        return row

    def save(self):
        """Whole or not at all: a study may run for hours and be killed."""
        order = {name: i for i, name in enumerate(self.options.types)}
        self.result["rows"].sort(key=lambda row: order[row["type"]])
        temporary = self.json_path + ".partial"
        with open(temporary, "w", encoding="utf-8") as file:
            json.dump(self.result, file, indent=1)
            file.write("\n")
        os.replace(temporary, self.json_path)

    def file_of(self, type_name):
        return os.path.join(self.options.folder, f"{type_name.lower()}.gguf")

    def quantize(self, row):
        path = self.file_of(row["type"])
        command = [self.lockstep, "quantize", self.options.model, path, row["type"], "--force", "--json"]
        command += ["--pure"] if self.options.pure else []
        command += ["--imatrix", self.options.imatrix] if self.options.imatrix else []
        done = json.loads(run(command + self.threads()))
        row["quantize_seconds"] = done["seconds"]
        row["bits_per_weight"] = done["output_bits_per_weight"]
        row["file_bytes"] = os.path.getsize(path)

    def perplexity_command(self, model):
        options = self.options
        command = [self.lockstep, "perplexity", model, options.text, "--json"]
        command += ["--ctx", str(options.ctx)] if options.ctx else []
        command += ["--chunks", str(options.chunks)] if options.chunks else []
        return command + self.threads()

    def save_base(self):
        """The original is the base of every comparison."""
        path = os.path.join(self.options.folder, "base.logits")
        command = self.perplexity_command(self.options.model) + ["--save-logits", path, "--force"]
        self.result["base"] = json.loads(run(command))
        return path

    def quality(self, row, base):
        done = json.loads(run(self.perplexity_command(self.file_of(row["type"])) + ["--kl-base", base]))
        row["perplexity"] = done["perplexity"]["value"]
        row["perplexity_error"] = done["perplexity"]["error"]
        row["perplexity_change"] = done["ratio"]["value"] - 1
        row["kl"] = done["kl"]["value"]
        row["kl_error"] = done["kl"]["error"]
        row["kl_99"] = done["kl_tails"]["p99"]
        row["same_top"] = done["same_top"]["value"]

    def bench(self, row):
        options = self.options
        command = [self.lockstep, "bench", "-m", self.file_of(row["type"]), "-r", "1", "-o", "json"]
        command += ["-p", str(options.prompt), "-n", str(options.generate)] + self.threads()
        tests = json.loads(run(command))
        prefill = next((test for test in tests if test["n_gen"] == 0), None)
        decode = next((test for test in tests if test["n_prompt"] == 0), None)
        samples = row.setdefault("samples", {"prefill": [], "decode": [], "bytes": [], "share": []})
        samples["prefill"].append(prefill["median_ts"] if prefill else 0)
        samples["decode"].append(decode["median_ts"] if decode else 0)
        # Each decode beside the streaming read of its own moment.
        samples["bytes"].append(decode["weight_bytes_per_s"] if decode else 0)
        samples["share"].append(decode["share_of_stream"] if decode else 0)
        row["prefill"] = statistics.median(samples["prefill"])
        row["decode"] = statistics.median(samples["decode"])
        row["decode_bytes_per_s"] = statistics.median(samples["bytes"])
        row["decode_share"] = statistics.median(samples["share"])

    def measure(self):
        options = self.options
        self.load_earlier()
        pending = [name for name in options.types if "kl" not in self.row(name)]
        if pending:
            self.note(f"base: {options.model}")
            base = self.save_base()
        start = time.monotonic()
        for i, name in enumerate(options.types):
            row = self.row(name)
            missing_rounds = len(row.get("samples", {}).get("decode", [])) < options.rounds
            if name in pending or (missing_rounds and not os.path.exists(self.file_of(name))):
                self.note(f"{i + 1}/{len(options.types)} {name}: quantize, compare")
                self.quantize(row)
            if name in pending:
                self.quality(row, base)
                self.save()
        for number in range(options.rounds):
            self.note(f"bench round {number + 1}/{options.rounds}, {time.monotonic() - start:.0f} s")
            for name in options.types:
                row = self.row(name)
                if len(row.get("samples", {}).get("decode", [])) <= number:
                    self.bench(row)
            self.save()

    def write_reports(self):
        rows = self.result["rows"]
        table = report.markdown_table(rows)
        with open(self.options.output + ".md", "w", encoding="utf-8") as file:
            file.write(table)
        report.write_csv(rows, self.options.output + ".csv")
        print(table, end="")
        try:
            report.scatter_plot(rows, self.options.output + ".svg", f"{self.result['title']}: size against loss")
        except ImportError:
            self.note("no plot: matplotlib is missing (Debian: apt install python3-matplotlib)")


def parse_arguments():
    project = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model", help="the original: F32, F16 or BF16 (GGUF)")
    parser.add_argument("text", help="text for perplexity and KL divergence")
    parser.add_argument("--output", default="format_study", help="prefix of the files written (default %(default)s)")
    parser.add_argument("--types", default=",".join(TYPES), help="comma-separated (default: all)")
    parser.add_argument("--pure", action="store_true", help="one format for all matrices instead of the mixes")
    parser.add_argument("--imatrix", help="importance matrix for quantizing (see lockstep imatrix)")
    parser.add_argument("--ctx", type=int, default=0, help="tokens per chunk of the text (default: as perplexity)")
    parser.add_argument("--chunks", type=int, default=0, help="chunks of the text (default: all)")
    parser.add_argument("--rounds", type=int, default=5, help="bench rounds; 0: no bench (default %(default)s)")
    parser.add_argument("--prompt", type=int, default=512, help="prefill tokens (default %(default)s)")
    parser.add_argument("--generate", type=int, default=64, help="decoded tokens (default %(default)s)")
    parser.add_argument("--threads", type=int, default=0, help="workers (default: the thread budget)")
    parser.add_argument("--folder", help="keep the quantized models here (default: a temporary folder)")
    parser.add_argument("--resume", action="store_true", help="keep what OUTPUT.json holds already")
    parser.add_argument("--build", default=os.path.join(project, "build"), help="build folder (default %(default)s)")
    options = parser.parse_args()
    options.types = [name.strip() for name in options.types.split(",") if name.strip()]
    return options


def main():
    options = parse_arguments()
    try:
        with tempfile.TemporaryDirectory(prefix="format_study-") as temporary:
            options.folder = options.folder or temporary
            os.makedirs(options.folder, exist_ok=True)
            study = Study(options)
            study.measure()
            study.write_reports()
    except StudyError as error:
        sys.exit(f"format_study: error: {error}")
    except KeyboardInterrupt:
        sys.exit("format_study: stopped; run again with --resume to go on")


if __name__ == "__main__":
    main()
