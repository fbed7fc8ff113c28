"""How fast a token can be decoded on a machine with several NUMA nodes, from its bandwidths.

Decoding reads every weight once a token, so the time is that of the slowest path that weights take: the memory of
a node, the link by which a node reads from others, or the loads that its cores can have under way. Barriers come on
top. What the model leaves out makes machines slower, so a measurement above it shows a wrong bandwidth, and one far
below it something to look for.
"""

from dataclasses import dataclass, field


@dataclass
class Machine:
    """Bandwidths in bytes per second, costs in seconds."""

    cores: list = field(default_factory=lambda: [1])  # by node
    local: float = 0.0  # a node's memory, read by its own cores
    remote: float = 0.0  # what the cores of a node can read from all other nodes together
    per_core: float = 0.0  # what one core can read
    barrier: float = 0.0  # one barrier of a team on one node
    barrier_across: float = 0.0  # and of a team on several

    @property
    def nodes(self):
        return len(self.cores)


def spread(workers, machine, one_node):
    """Workers by node: in proportion to the cores, the remainder evenly, as lockstep places them."""
    if one_node:
        most = max(range(machine.nodes), key=lambda node: machine.cores[node])
        return [min(workers, machine.cores[node]) if node == most else 0 for node in range(machine.nodes)]
    total = sum(machine.cores)
    placed, before, seen = [], 0, 0
    for cores in machine.cores:
        seen += cores
        until = -(-workers * seen // total)
        placed.append(until - before)
        before = until
    return placed


def traffic(policy, placed):
    """reads[i][j]: share of all weights that the workers of node i read from the memory of node j."""
    nodes, workers = len(placed), sum(placed)
    used = [node for node in range(nodes) if placed[node]]
    reads = [[0.0] * nodes for _ in range(nodes)]
    for node in used:
        share = placed[node] / workers
        if policy == "interleave":
            for other in used:
                reads[node][other] = share / len(used)
        elif policy == "none":
            reads[node][used[0]] = share  # the loading thread is a worker of the first node
        else:
            reads[node][node] = share
    return reads


def predict(machine, policy, workers, weight_bytes, barriers):
    """Seconds for a token, what limits it, and the bytes read from other nodes."""
    placed = spread(workers, machine, policy == "one-node")
    reads = traffic(policy, placed)
    nodes = range(machine.nodes)
    times = {}
    for node in nodes:
        if placed[node]:
            own = sum(reads[node]) * weight_bytes
            across = (sum(reads[node]) - reads[node][node]) * weight_bytes
            times[f"loads of the cores of node {node}"] = own / (placed[node] * machine.per_core)
            if across:
                times[f"link of node {node}"] = across / machine.remote
        served = sum(reads[other][node] for other in nodes) * weight_bytes
        if served:
            times[f"memory of node {node}"] = served / machine.local
    limit = max(times, key=times.get)
    several = sum(1 for count in placed if count) > 1
    waiting = barriers * (machine.barrier_across if several else machine.barrier) if sum(placed) > 1 else 0.0
    remote = sum(reads[i][j] for i in nodes for j in nodes if i != j) * weight_bytes
    seconds = times[limit] + waiting
    return {
        "seconds": seconds,
        "tokens_per_s": 1 / seconds,
        "limit": limit if times[limit] >= waiting else "barriers",
        "remote_bytes": remote,
        "workers_by_node": placed,
    }


def parse_machine(text):
    """"nodes=2,cores=48,local=300,remote=120,core=14,barrier=3,across=6": GB/s and microseconds."""
    values = {}
    known = ("nodes", "cores", "local", "remote", "core", "barrier", "across")
    for part in text.split(","):
        name, _, value = part.partition("=")
        try:
            values[name] = float(value)
        except ValueError:
            values[name] = -1.0
        if name not in known or values[name] < 0:
            raise ValueError(f"{part!r}: give NAME=NUMBER with the names {', '.join(known)}")
    missing = [name for name in ("nodes", "cores", "local", "core") if not values.get(name)]
    if missing:
        raise ValueError(f"{text!r} lacks {', '.join(missing)}")
    barrier = values.get("barrier", 2.0) * 1e-6
    return Machine(
        cores=[int(values["cores"])] * int(values["nodes"]),
        local=values["local"] * 1e9,
        remote=values.get("remote", values["local"]) * 1e9,
        per_core=values["core"] * 1e9,
        barrier=barrier,
        barrier_across=values.get("across", 2e6 * barrier) * 1e-6,
    )
