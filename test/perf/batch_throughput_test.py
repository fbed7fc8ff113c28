"""perf/batch_throughput.py: the same work for all, a server that is asked as it should be, refusals."""

import importlib.util
import json
import os
import stat
import subprocess
import sys
import tempfile
import unittest

SOURCE = os.environ["LOCKSTEP_SOURCE_DIR"]
BUILD = os.environ["LOCKSTEP_BUILD_DIR"]
SCRIPT = os.path.join(SOURCE, "perf", "batch_throughput.py")
MODEL = os.path.join(SOURCE, "runtime", "demo", "storyteller-f16.gguf")

# Answers every request with as many tokens as it asks for, less one if told so, and keeps what it was asked.
SERVER = f"""#!{sys.executable}
import http.server, json, sys
short = "--short" in sys.argv
log = sys.argv[sys.argv.index("--log") + 1]
class Handler(http.server.BaseHTTPRequestHandler):
    def reply(self, value):
        text = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)
    def do_GET(self):
        self.reply({{"status": "ok"}})
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with open(log, "a") as file:
            file.write(json.dumps(body) + "\\n")
        self.reply({{"tokens_predicted": body["n_predict"] - short}})
    def log_message(self, *words):
        pass
port = int(sys.argv[sys.argv.index("--port") + 1])
http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()
"""


class BatchThroughputTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def server(self):
        with open(self.path("server"), "w", encoding="utf-8") as file:
            file.write(SERVER)
        os.chmod(self.path("server"), stat.S_IRWXU)
        return ["--server", self.path("server"), "--server-option=--log", f"--server-option={self.path('log')}"]

    def throughput(self, *words):
        command = [sys.executable, "-B", SCRIPT, MODEL, "--build", BUILD, "--requests", "6", "--answer", "3",
                   "--slots", "4", "-t", "1", *words]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def test_all_cases_do_the_same_work(self):
        done = self.throughput(*self.server(), "-r", "2", "--no-reuse", "--json", self.path("json"))
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(self.path("json"), encoding="utf-8") as file:
            found = json.load(file)
        self.assertEqual(list(found["samples"]), ["4 at a time", "nothing shared", "one at a time", "server"])
        for samples in found["samples"].values():
            self.assertEqual([sample["output_tokens"] for sample in samples], [18, 18])
        self.assertGreater(found["samples"]["4 at a time"][0]["cached_tokens"], 0)
        self.assertEqual(found["samples"]["nothing shared"][0]["cached_tokens"], 0)
        self.assertEqual(len(done.stdout.splitlines()), 6)
        with open(self.path("log"), encoding="utf-8") as file:
            asked = [json.loads(line) for line in file]
        self.assertEqual(len(asked), 12)
        self.assertEqual(sum(len(body["prompt"]) for body in asked), 2 * found["prompt_tokens"])

    def test_a_server_that_does_less_is_no_measure(self):
        done = self.throughput(*self.server(), "--server-option=--short", "-r", "1", "--no-single")
        self.assertEqual(done.returncode, 1)
        self.assertIn("server: 12 tokens answered, expected 18", done.stderr)

    def test_refusals(self):
        done = self.throughput("--server", "/bin/false", "-r", "1", "--no-single")
        self.assertEqual(done.returncode, 1)
        self.assertIn("/bin/false: ended with 1", done.stderr)
        command = [sys.executable, "-B", SCRIPT, self.path("none.gguf"), "--build", BUILD]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("none.gguf", done.stderr)

    def test_prompts_are_what_the_description_says(self):
        sys.path.insert(0, os.path.dirname(SCRIPT))
        spec = importlib.util.spec_from_file_location("batch_throughput", SCRIPT)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        prompts = module.make_prompts(256, 1024, 1)
        self.assertEqual(prompts, module.make_prompts(256, 1024, 1))
        self.assertTrue(all(16 <= len(prompt) <= 512 for prompt in prompts))
        beginnings = [tuple(prompt[:256]) for prompt in prompts if len(prompt) > 256]
        self.assertEqual(max(map(beginnings.count, beginnings)), 128)


if __name__ == "__main__":
    unittest.main()
