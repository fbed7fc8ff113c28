"""Tables and plots of perf/report.py from figures made up by hand."""

import csv
import json
import os
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

PERF = os.path.join(os.environ["LOCKSTEP_SOURCE_DIR"], "perf")
sys.path.insert(0, PERF)
import report  # noqa: E402

ROWS = [
    {"type": "F16", "bits_per_weight": 16.0, "file_bytes": 123456789, "kl": 0.0001, "perplexity_change": 0.001},
    {"type": "Q4_0", "bits_per_weight": 4.5, "file_bytes": 12345678, "kl": 0.04, "perplexity_change": 0.025},
    {"type": "worse", "bits_per_weight": 5.5, "file_bytes": 23456789, "kl": 0.05, "perplexity_change": None},
]


class Report(unittest.TestCase):
    def test_markdown_has_a_column_for_what_was_measured(self):
        lines = report.markdown_table(ROWS).splitlines()
        self.assertEqual(lines[0], "| type | bits/weight | file, MB | change | KL |")
        self.assertEqual(lines[1], "|---|---:|---:|---:|---:|")
        self.assertEqual(lines[2], "| F16 | 16.00 | 123.46 | 0.10 % | 0.00010 |")
        self.assertEqual(lines[4], "| worse | 5.50 | 23.46 | - | 0.05000 |")

    def test_csv_keeps_every_figure(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x.csv")
            report.write_csv(ROWS, path)
            with open(path, newline="", encoding="utf-8") as file:
                rows = list(csv.DictReader(file))
        self.assertEqual([row["type"] for row in rows], ["F16", "Q4_0", "worse"])
        self.assertEqual(rows[1]["file_bytes"], "12345678")
        self.assertEqual(rows[2]["perplexity_change"], "")

    def test_pareto_front(self):
        points = [(4.5, 0.04), (16.0, 0.0001), (5.5, 0.05), (4.25, 0.05), (4.5, 0.03)]
        self.assertEqual(report.pareto_front(points), [3, 4, 1])
        self.assertEqual(report.pareto_front([]), [])

    def test_plot_is_an_svg_with_every_type(self):
        try:
            import matplotlib  # noqa: F401
        except ImportError:
            self.skipTest("matplotlib is not installed")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x.svg")
            report.scatter_plot(ROWS, path, "a title")
            with open(path, encoding="utf-8") as file:
                text = file.read()
            report.scatter_plot(ROWS, path, "a title")
            with open(path, encoding="utf-8") as file:
                self.assertEqual(file.read(), text)
        xml.etree.ElementTree.fromstring(text)
        for row in ROWS:
            self.assertIn(">" + row["type"] + "</text>", text)

    def test_command_line(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "study.json")
            with open(path, "w", encoding="utf-8") as file:
                json.dump({"title": "x", "rows": ROWS}, file)
            command = [sys.executable, "-B", os.path.join(PERF, "report.py")]
            done = subprocess.run(command + [path], capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stdout), (0, report.markdown_table(ROWS)))
            with open(path, "w", encoding="utf-8") as file:
                file.write("no json")
            done = subprocess.run(command + [path], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 1)
            self.assertEqual(len(done.stderr.splitlines()), 1)


if __name__ == "__main__":
    unittest.main()
