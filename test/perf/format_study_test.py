"""A whole format study of the demo model, as short as it can be, and one that goes on where it stopped."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

SOURCE = os.environ["LOCKSTEP_SOURCE_DIR"]
BUILD = os.environ["LOCKSTEP_BUILD_DIR"]
MODEL = os.path.join(SOURCE, "runtime", "demo", "storyteller-f16.gguf")


def study(folder, *options):
    text = os.path.join(folder, "text")
    with open(text, "w", encoding="utf-8") as file:
        for i in range(40):
            file.write(f"Once upon a time, a sleepy owl named Uma had {i} lanterns and a red kite.\n")
    command = [sys.executable, "-B", os.path.join(SOURCE, "perf", "format_study.py"), MODEL, text, "--build", BUILD]
    command += ["--output", os.path.join(folder, "out"), "--ctx", "64", "--chunks", "3", "--rounds", "1"]
    command += ["--prompt", "16", "--generate", "4", *options]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def load(folder):
    with open(os.path.join(folder, "out.json"), encoding="utf-8") as file:
        return json.load(file)


class FormatStudy(unittest.TestCase):
    def test_measures_every_type_once(self):
        with tempfile.TemporaryDirectory() as folder:
            done = study(folder, "--types", "Q8_0,Q4_0")
            self.assertEqual(done.returncode, 0, done.stderr)
            rows = load(folder)["rows"]
            self.assertEqual([row["type"] for row in rows], ["Q8_0", "Q4_0"])
            for row in rows:
                for key in ("quantize_seconds", "file_bytes", "perplexity", "prefill", "decode", "decode_share"):
                    self.assertGreater(row[key], 0, key)
            self.assertGreater(rows[1]["kl"], rows[0]["kl"])
            self.assertGreater(rows[0]["bits_per_weight"], rows[1]["bits_per_weight"])
            for end in ("md", "csv"):
                self.assertTrue(os.path.getsize(os.path.join(folder, "out." + end)) > 0)
            with open(os.path.join(folder, "out.md"), encoding="utf-8") as file:
                self.assertEqual(done.stdout, file.read())

            # One more type: what is known already stays as it was.
            done = study(folder, "--types", "Q8_0,Q4_0,Q4X", "--resume")
            self.assertEqual(done.returncode, 0, done.stderr)
            again = load(folder)["rows"]
            self.assertEqual(again[:2], rows)
            self.assertGreater(again[2]["kl"], 0)
            self.assertNotIn("1/3 Q8_0", done.stderr)

    def test_tells_in_one_line_what_is_wrong(self):
        with tempfile.TemporaryDirectory() as folder:
            done = study(folder, "--types", "Q9")
            self.assertEqual(done.returncode, 1)
            self.assertIn("Q9", done.stderr.splitlines()[-1])
            done = study(folder, "--build", os.path.join(folder, "nowhere"))
            self.assertEqual(done.returncode, 1)
            self.assertIn("build the project first", done.stderr.splitlines()[-1])


if __name__ == "__main__":
    unittest.main()
