"""perf/compare.py beside a stand-in for the other program: alternation, medians, ratios, refusals."""

import json
import os
import stat
import subprocess
import sys
import tempfile
import unittest

SOURCE = os.environ["LOCKSTEP_SOURCE_DIR"]
BUILD = os.environ["LOCKSTEP_BUILD_DIR"]
COMPARE = os.path.join(SOURCE, "perf", "compare.py")
MODEL = os.path.join(SOURCE, "runtime", "demo", "storyteller-f16.gguf")

# Speaks like llama-bench and llama-batched-bench and claims one token per second.
STAND_IN = """#!{python}
import json, sys
words = sys.argv[1:]
value = lambda name: words[words.index(name) + 1]
with open({log!r}, "a") as log:
    log.write("peer " + value("-m") + "\\n")
if "broken" in words:
    print("what?")
elif "fails" in words:
    sys.exit("no such model")
elif "table" in words:
    print("|    PP |     TG |    B |   N_KV |   T_PP s | S_PP t/s |   T_TG s | S_TG t/s |", file=sys.stderr)
    print("|-------|--------|------|--------|----------|----------|----------|----------|", file=sys.stderr)
    for count in value("-npl").split(","):
        print(f"| {{value('-npp')}} | {{value('-ntg')}} | {{count}} | 99 | 7.0 | 1.00 | 7.0 | 1.00 |", file=sys.stderr)
elif "-npl" in words:
    print("some banner")
    for count in value("-npl").split(","):
        print(json.dumps(dict(pl=int(count), pp=int(value("-npp")), tg=int(value("-ntg")), speed_pp=1, speed_tg=1)))
else:
    tests = [(int(value("-p")), 0), (0, int(value("-n")))]
    print(json.dumps([dict(n_prompt=p, n_gen=n, avg_ts=1.0) for p, n in tests if p + n]))
"""


class CompareTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.log = os.path.join(self.folder.name, "log")
        self.peer = os.path.join(self.folder.name, "peer")
        with open(self.peer, "w", encoding="utf-8") as file:
            file.write(STAND_IN.format(python=sys.executable, log=self.log))
        os.chmod(self.peer, stat.S_IRWXU)

    def compare(self, *words):
        command = [sys.executable, "-B", COMPARE, self.peer, MODEL, "--build", BUILD, "-t", "1", *words]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def test_rounds_alternate_and_ratios_are_those_of_the_medians(self):
        result = os.path.join(self.folder.name, "result.json")
        done = self.compare("-p", "8", "-n", "4", "-r", "3", "--json", result)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(result, encoding="utf-8") as file:
            rows = json.load(file)["rows"]
        self.assertEqual([row["test"] for row in rows], ["pp8", "tg4"])
        for row in rows:
            self.assertEqual(row["samples"]["peer"], [1.0] * 3)
            self.assertEqual(len(row["samples"]["ours"]), 3)
            self.assertEqual(row["ratio"], sorted(row["samples"]["ours"])[1])
            self.assertLessEqual(row["ratio_min"], row["ratio"])
        turns = [line.rsplit(" ", 1)[1] for line in done.stderr.splitlines() if "round" in line]
        self.assertEqual(turns, ["peer", "ours", "ours", "peer", "peer", "ours"])
        self.assertEqual(len(done.stdout.splitlines()), 4)
        self.assertIn("load average", done.stderr)

    def test_batched(self):
        for form in ((), ("--peer-option=table",)):
            done = self.compare("--batched", "--npp", "4", "--ntg", "2", "--npl", "1,3", "-r", "1", *form)
            self.assertEqual(done.returncode, 0, done.stderr)
            for test in ("1 x pp4", "1 x tg2", "3 x pp4", "3 x tg2"):
                self.assertIn(f"| {test} | 1.00 |", done.stdout)

    def test_a_program_that_fails_or_says_something_else_is_named(self):
        for word, says in (("fails", "no such model"), ("broken", "not what was asked for")):
            done = self.compare("-p", "4", "-n", "0", "-r", "1", f"--peer-option={word}")
            self.assertEqual(done.returncode, 1)
            self.assertEqual(done.stdout, "")
            self.assertIn(says, done.stderr.splitlines()[-1])


if __name__ == "__main__":
    unittest.main()
