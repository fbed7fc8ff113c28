"""perf/numa_study.py, placement_model.py and the page of report.py: plans, predictions, resuming, refusals."""

import csv
import html.parser
import json
import os
import subprocess
import sys
import tempfile
import unittest

SOURCE = os.environ["LOCKSTEP_SOURCE_DIR"]
BUILD = os.environ["LOCKSTEP_BUILD_DIR"]
PERF = os.path.join(SOURCE, "perf")
MODEL = os.path.join(SOURCE, "runtime", "demo", "storyteller-f16.gguf")
XEON = "Package:2 [NUMANode(memory=192GiB)] L3:1 Core:48 PU:2"
BANDWIDTHS = "nodes=2,cores=48,local=300,remote=120,core=14,barrier=3,across=6"
# Where results stay, to be looked at after a run of the tests.
ARTEFACTS = os.path.join(BUILD, "numa-study")

sys.path.insert(0, PERF)
import placement_model  # noqa: E402  (found through the line above)


class Page(html.parser.HTMLParser):
    """Counts tags and notices what a page would have to fetch."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.fetched = {}, []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags[tag] = self.tags.get(tag, 0) + 1
        for name, value in attrs:
            if name in ("src", "href") and not (value or "").startswith("#"):
                self.fetched.append(value)


def study(*words, **environment):
    command = [sys.executable, "-B", os.path.join(PERF, "numa_study.py"), MODEL, "--build", BUILD, *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **environment})


class ModelTest(unittest.TestCase):
    machine = placement_model.parse_machine(BANDWIDTHS)

    def predict(self, policy, workers):
        return placement_model.predict(self.machine, policy, workers, 600e6, 111)

    def test_workers_are_spread_as_lockstep_does(self):
        self.assertEqual(placement_model.spread(7, self.machine, False), [4, 3])
        self.assertEqual(placement_model.spread(7, self.machine, True), [7, 0])
        self.assertEqual(placement_model.spread(96, self.machine, True), [48, 0])

    def test_traffic_by_hand(self):
        self.assertEqual(placement_model.traffic("rows", [2, 2]), [[0.5, 0], [0, 0.5]])
        self.assertEqual(placement_model.traffic("none", [2, 2]), [[0.5, 0], [0.5, 0]])
        self.assertEqual(placement_model.traffic("interleave", [2, 2]), [[0.25, 0.25], [0.25, 0.25]])

    def test_predictions_by_hand(self):
        waiting = 111 * 6e-6
        self.assertAlmostEqual(self.predict("rows", 96)["seconds"], 300e6 / 300e9 + waiting)
        self.assertAlmostEqual(self.predict("one-node", 48)["seconds"], 600e6 / 300e9 + 111 * 3e-6)
        # Half of every node's share crosses the link: 150 MB over 120 GB/s takes longer than the memory.
        self.assertAlmostEqual(self.predict("interleave", 96)["seconds"], 150e6 / 120e9 + waiting)
        # One memory serves everything, and the other node's half has to cross.
        self.assertAlmostEqual(self.predict("none", 96)["seconds"], 300e6 / 120e9 + waiting)
        self.assertAlmostEqual(self.predict("rows", 1)["seconds"], 600e6 / 14e9)
        self.assertEqual(self.predict("rows", 96)["remote_bytes"], 0)
        self.assertEqual(self.predict("interleave", 96)["remote_bytes"], 300e6)

    def test_rows_win_and_two_sockets_are_worth_having(self):
        rates = {policy: self.predict(policy, 96)["tokens_per_s"] for policy in ("rows", "one-node", "interleave", "none")}
        self.assertEqual(max(rates, key=rates.get), "rows")
        self.assertLess(rates["none"], rates["rows"])

    def test_descriptions_that_say_too_little_are_refused(self):
        for text in ("nodes=2", "nodes=2,cores=x,local=1,core=1", "speed=3", ""):
            with self.assertRaises(ValueError):
                placement_model.parse_machine(text)


class StudyTest(unittest.TestCase):
    def setUp(self):
        os.makedirs(ARTEFACTS, exist_ok=True)

    def page(self, name):
        path = os.path.join(ARTEFACTS, name)
        command = [sys.executable, "-B", os.path.join(PERF, "report.py"), path + ".json", "--html", path + ".html"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if "matplotlib" in done.stderr:
            self.skipTest(done.stderr.strip())
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(path + ".html", encoding="utf-8") as file:
            return file.read()

    def test_a_described_machine_is_planned_and_predicted(self):
        output = os.path.join(ARTEFACTS, "predicted-2x48")
        words = ["--predict", BANDWIDTHS, "--threads", "24,48,96", "--assume", "8B-Q4_K=4.9e9:161", "--output", output]
        done = study("--dry-run", *words, HWLOC_SYNTHETIC=XEON)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.count("predicted:"), 30)
        self.assertIn("8B-Q4_K, rows, 96 threads\n  node 0: workers 0-47", done.stdout)
        self.assertIn("  node 1: workers 48-95", done.stdout)
        with open(output + ".json", encoding="utf-8") as file:
            cells = json.load(file)["cells"]
        for cell in cells:
            self.assertEqual(cell["samples"], {})
        text = self.page("predicted-2x48")
        found = Page(text)
        self.assertEqual(found.fetched, [], "the page needs nothing from elsewhere")
        self.assertEqual(found.tags["svg"], 4)
        self.assertIn("nothing was measured", text)

    def test_this_machine_is_measured_once_and_resumed(self):
        output = os.path.join(ARTEFACTS, "measured")
        for end in (".json", ".csv", ".html"):
            if os.path.exists(output + end):
                os.remove(output + end)
        words = ["--output", output, "--policies", "rows,none", "--threads", "1", "-n", "4"]
        first = study(*words, "-r", "1")
        self.assertEqual(first.returncode, 0, first.stderr)
        again = study(*words, "-r", "1")
        self.assertEqual(again.returncode, 2)
        self.assertIn("--resume", again.stderr)
        more = study(*words, "-r", "2", "--resume")
        self.assertEqual(more.returncode, 0, more.stderr)
        self.assertEqual(more.stderr.count(" to go"), 2, "only the second round was missing")
        with open(output + ".json", encoding="utf-8") as file:
            result = json.load(file)
        self.assertEqual([cell["policy"] for cell in result["cells"]], ["rows", "none"])
        for cell in result["cells"]:
            self.assertEqual(len(cell["samples"]["tg4"]), 2)
            self.assertIn("--numa", cell["command"])
        self.assertEqual(len({cell["logits_hash"] for cell in result["cells"]}), 1)
        with open(output + ".csv", encoding="utf-8") as file:
            self.assertEqual(len(list(csv.DictReader(file))), 2)
        found = Page(self.page("measured"))
        self.assertEqual(found.fetched, [])
        self.assertEqual(found.tags["svg"], 3)

    def test_what_cannot_work_is_refused(self):
        self.assertEqual(study().returncode, 2)
        self.assertEqual(study("--assume", "x=1:1", "--output", "x").returncode, 2)
        self.assertEqual(study("--dry-run", "--assume", "x=1").returncode, 2)
        self.assertEqual(study("--dry-run", "--policies", "best").returncode, 2)
        self.assertEqual(study("--dry-run", "--threads", "0").returncode, 2)
        done = study("--dry-run", "--nodes", "77")
        self.assertEqual(done.returncode, 1)
        self.assertIn("node 77 cannot be used", done.stderr.splitlines()[-1])
        self.assertEqual(study("--dry-run", "--predict", "nodes=2").returncode, 1)


if __name__ == "__main__":
    unittest.main()
