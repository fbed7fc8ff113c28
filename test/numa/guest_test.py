"""Placement on machines with several NUMA nodes, seen by a real kernel: see guest.py.

    guest_test.py LOCKSTEP RANDOM_MODEL KERNEL_FOLDER LAYOUT

Exit status 77: no guest can be run here (with LOCKSTEP_NO_SKIPS set that is a failure).
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import guest  # noqa: E402  (found through the line above)

LAYOUTS = {
    "two": guest.Layout(2),
    "four": guest.Layout(4),
    "memoryless": guest.Layout(2, memoryless=(1,)),
}
TIMEOUT = 400  # seconds; a guest needs some 30 on two cores that others use, too

RUN = "./lockstep inspect model.gguf --residency --json -c 128"
HASH = './lockstep generate -m model.gguf -c 64 -n 8 --ignore-end --logits-hash "Once upon a time"'

# Name, command, whether its standard output is JSON.
COMMANDS = {
    "rows": RUN,
    "rows again": RUN,
    "three workers": RUN + " -t 3",
    "small pages": RUN + " --small-pages",
    "interleave": RUN + " --numa interleave --small-pages",
    "none": RUN + " --numa none",
    "one-node": RUN + " --numa one-node",
    "replicate": RUN + " --numa replicate",
    "first node": RUN + " --nodes 0",
    "second node": RUN + " --nodes 1",
    "mask": "taskset -c 2-3 " + RUN,
    "bound": "OMP_PLACES=cores OMP_PROC_BIND=close " + RUN,
    "interleaved parent": "./interleave " + RUN + " --small-pages",
    "forbidden": "./forbid " + RUN,
    "topology": "./lockstep topology --json",
}
HASHES = ["", "-t 1", "-t 3", "--numa interleave", "--numa none", "--numa one-node", "--numa replicate", "--nodes 1"]


def script():
    lines = ["mount -t cgroup2 cgroup2 /sys/fs/cgroup 2>/dev/null"]
    # Linux would move pages to their readers by itself, sooner or later: what is to be seen is where we put them.
    lines += ["echo 0 > /proc/sys/kernel/numa_balancing"]
    for name, command in COMMANDS.items():
        lines += [f'echo "=== {name}"', f"{command} 2>/dev/null || echo failed"]
    for options in HASHES:
        lines += [f'echo "=== hash {options}"', f"{HASH} {options} 2>&1 >/dev/null | grep 'logits hash' || echo failed"]
    # A job whose memory and processors are those of the second node alone: node 0 is not there for it.
    lines += [
        "cd /sys/fs/cgroup && echo +cpuset > cgroup.subtree_control && mkdir job && cd job",
        "echo 2-3 > cpuset.cpus; echo 1 > cpuset.mems; echo $$ > cgroup.procs; cd /guest",
        'echo "=== cpuset"',
        f"{RUN} 2>/dev/null || echo failed",
        "exit 0",
    ]
    return "\n".join(lines) + "\n"


class GuestTest(unittest.TestCase):
    """One boot; every test looks at a part of what was printed."""

    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            model = os.path.join(folder, "model.gguf")
            shape = ["--layers", "2", "--width", "256", "--heads", "8", "--kv-heads", "4", "--feed-forward", "512"]
            subprocess.run([cls.random_model, model, "--format", "Q8_0", "--vocab", "300", *shape], check=True,
                           stdout=subprocess.DEVNULL)
            cls.output = guest.run(cls.layout, cls.kernel, [cls.lockstep, model, *cls.helpers], script(), TIMEOUT)
        cls.parts = {}
        for part in cls.output.split("=== ")[1:]:
            name, _, text = part.partition("\n")
            cls.parts[name.strip()] = text.strip()

    def report(self, name):
        text = self.parts.get(name, "not run")
        self.assertNotIn("failed", text, name)
        return json.loads(text)

    def memory_nodes(self):
        return [node for node in range(self.layout.nodes) if node not in self.layout.memoryless]

    def test_rows_are_all_local(self):
        if self.layout.memoryless:
            self.skipTest("a node without memory has nothing local")
        for name in ("rows", "rows again", "three workers", "small pages", "replicate", "bound", "interleaved parent"):
            report = self.report(name)
            for what in ("weights", "cache"):
                memory = report[what]
                self.assertEqual(memory["remote_bytes"], 0, f"{name}: {what} {memory}")
                self.assertGreater(memory["owned_bytes"], 0)
                self.assertEqual(len(memory["nodes"]), len({worker["node"] for worker in report["workers"]}))
                for node in memory["nodes"]:
                    self.assertGreater(node["local_bytes"], 0, f"{name}: {what} {memory}")
            self.assertEqual(report["remote_bytes_per_token"], 0)

    def test_workers_are_on_their_nodes(self):
        for name, processors in (("rows", 2 * self.layout.nodes), ("three workers", 3)):
            workers = self.report(name)["workers"]
            self.assertEqual(len(workers), processors)
            nodes = [worker["node"] for worker in workers]
            self.assertEqual(nodes, sorted(nodes), "ids are contiguous on every node")
            for worker in workers:
                self.assertEqual(worker["processor"] // 2, worker["node"])

    def test_replicas_take_a_copy_for_every_node(self):
        if self.layout.memoryless:
            self.skipTest("a node without memory takes no copy")
        rows, copies = self.report("rows")["weights"], self.report("replicate")["weights"]
        self.assertGreater(copies["owned_bytes"], 0.9 * self.layout.nodes * rows["owned_bytes"])

    def test_interleaved_pages_are_spread_evenly(self):
        memory = self.report("interleave")["weights"]
        expected = 1 / len(self.memory_nodes())
        if self.layout.memoryless:
            self.skipTest("a node without memory takes no page")
        self.assertAlmostEqual(memory["local_share"], expected, delta=0.1)
        self.assertGreater(self.report("interleave")["remote_bytes_per_token"], 0)

    def test_first_touch_by_the_loader_puts_all_on_one_node(self):
        memory = self.report("none")["weights"]
        local = [node["node"] for node in memory["nodes"] if node["local_bytes"] > 0]
        self.assertEqual(len(local), 1)

    def test_one_node_has_workers_and_pages_of_one_node(self):
        report = self.report("one-node")
        self.assertEqual({worker["node"] for worker in report["workers"]}, {0})
        for what in ("weights", "cache"):
            self.assertEqual(report[what]["remote_bytes"], 0)
            self.assertEqual(len(report[what]["nodes"]), 1)

    def test_the_page_cache_of_a_run_does_not_bind_the_next(self):
        for name, node in (("first node", 0), ("second node", 1), ("mask", 1)):
            report = self.report(name)
            self.assertEqual({worker["node"] for worker in report["workers"]}, {node}, name)
            if node in self.layout.memoryless:
                continue
            self.assertEqual(report["weights"]["local_share"], 1.0, name)
            self.assertEqual([one["node"] for one in report["weights"]["nodes"]], [node])

    def test_a_job_without_node_0(self):
        if self.layout.memoryless:
            self.skipTest("the memory of node 1 is not there")
        report = self.report("cpuset")
        self.assertEqual({worker["node"] for worker in report["workers"]}, {1})
        self.assertEqual(report["weights"]["local_share"], 1.0)

    def test_a_system_that_forbids_memory_policies(self):
        if self.layout.memoryless:
            self.skipTest("a node without memory has nothing local")
        report = self.report("forbidden")
        self.assertIn("not permitted", report["memory_binding"])
        # First touch by the owners has to do, and does for the weights; huge pages cross heads.
        self.assertEqual(report["weights"]["remote_bytes"], 0)

    def test_a_node_without_memory_works_from_its_neighbour(self):
        if not self.layout.memoryless:
            self.skipTest("all nodes have memory")
        for name in ("rows", "interleave", "none", "one-node", "replicate", "second node"):
            self.assertGreater(self.report(name)["weights"]["owned_bytes"], 0)

    def test_the_same_bits_everywhere(self):
        hashes = {name: text for name, text in self.parts.items() if name.startswith("hash")}
        self.assertEqual(len(hashes), len(HASHES))
        self.assertEqual(len(set(hashes.values())), 1, hashes)
        self.assertIn("logits hash", next(iter(hashes.values())))


def residency_table(parts):
    """Where everything was, by policy: what a reader wants to see of a run."""
    lines = ["| placement | workers by node | weights local | cache local | remote bytes a token |", "|---|---|---:|---:|---:|"]
    for name in COMMANDS:
        try:
            report = json.loads(parts[name])
            nodes = [worker["node"] for worker in report["workers"]]
            shares = [f"{100 * report[what]['local_share']:.1f} %" for what in ("weights", "cache")]
        except (KeyError, ValueError):
            continue  # another form of output
        by_node = ", ".join(f"{nodes.count(node)} on {node}" for node in sorted(set(nodes)))
        lines.append(f"| {name} | {by_node} | {' | '.join(shares)} | {report['remote_bytes_per_token']:,} |")
    return "\n".join(lines)


def main(words):
    lockstep, random_model, helpers, kernels, layout = words
    GuestTest.lockstep, GuestTest.random_model = lockstep, random_model
    GuestTest.helpers = [os.path.join(helpers, name) for name in ("interleave", "forbid")]
    GuestTest.layout = LAYOUTS[layout]
    try:
        guest.require_tools()
        GuestTest.kernel = guest.fetch_kernel(kernels)
    except guest.Unavailable as reason:
        print(f"SKIPPED: no guest can be run: {reason}")
        return 1 if os.environ.get("LOCKSTEP_NO_SKIPS") else 77
    program = unittest.main(argv=["guest_test"], exit=False, verbosity=2)
    if not program.result.wasSuccessful():
        print(getattr(GuestTest, "output", "")[-20000:])
        return 1
    print(residency_table(GuestTest.parts))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
