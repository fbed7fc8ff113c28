"""perf/crowding.py: every cell of every build is run, the neighbours are gone afterwards, refusals."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

SOURCE = os.environ["LOCKSTEP_SOURCE_DIR"]
BUILD = os.environ["LOCKSTEP_BUILD_DIR"]
CROWDING = os.path.join(SOURCE, "perf", "crowding.py")
MODEL = os.path.join(SOURCE, "runtime", "demo", "storyteller-f16.gguf")


def busy_loops():
    """Command lines of this user that are one of our neighbours."""
    found = 0
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{process}/cmdline", "rb") as file:
                found += b"while True: pass" in file.read()
        except OSError:
            pass  # it ended meanwhile
    return found


class CrowdingTest(unittest.TestCase):
    def crowding(self, *words):
        command = [sys.executable, "-B", CROWDING, *words]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def test_every_cell_of_every_build(self):
        before = busy_loops()
        with tempfile.TemporaryDirectory() as folder:
            result = os.path.join(folder, "result.json")
            words = [MODEL, "-n", "4", "-r", "2", "--cores", "1", "--json", result]
            done = self.crowding(*words, "--build", BUILD, "--build", os.path.join(BUILD, "."))
            self.assertEqual(done.returncode, 0, done.stderr)
            with open(result, encoding="utf-8") as file:
                rows = json.load(file)["rows"]
        self.assertEqual(len(rows), 2)
        for row in rows:
            self.assertEqual(list(row["samples"]), ["alone", "oversubscribed", "crowded"])
            for values in row["samples"].values():
                self.assertEqual(len(values), 2)
                self.assertGreater(min(values), 0)
            self.assertEqual(row["slowdown"]["alone"], 1)
            self.assertIn("OpenMP", row["runtime"])
        self.assertEqual(len(done.stdout.splitlines()), 4)
        self.assertEqual(busy_loops(), before)

    def test_what_cannot_work_is_refused_in_one_line(self):
        done = self.crowding("missing.gguf", "--build", BUILD, "-r", "1")
        self.assertEqual(done.returncode, 1)
        self.assertIn("missing.gguf", done.stderr.splitlines()[-1])
        self.assertEqual(self.crowding(MODEL, "--rounds", "0").returncode, 2)


if __name__ == "__main__":
    unittest.main()
