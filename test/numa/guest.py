"""Boots a small Linux in an emulated machine with several NUMA nodes and runs a shell script in it.

QEMU emulates everything in software, so that nothing but its package is needed; a guest is up in some seconds. It
tells nothing about speed, but the kernel in it places real pages and threads. The kernel is Debian's for cloud
machines, unpacked and not installed; the rest of the guest is busybox and the files that are asked for, with the
libraries they need.
"""

import glob
import gzip
import os
import re
import shutil
import subprocess
import tempfile

NEEDED = ("qemu-system-x86_64", "busybox", "cpio", "ldd")
MEBIBYTES = 1024  # memory of all nodes together
CONSOLE = (
    "console=ttyS0 quiet panic=-1 mitigations=off nokaslr no_timer_check tsc=reliable "
    "audit=0 apparmor=0 ipv6.disable=1"
)

INIT = """#!/bin/busybox sh
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sysfs /sys
/bin/busybox mount -t devtmpfs devtmpfs /dev
/bin/busybox mount -t tmpfs tmpfs /tmp
/bin/busybox --install -s /bin
export PATH=/bin
cd /guest
sh ./script > /dev/ttyS1 2>&1
echo "guest-status $?" > /dev/ttyS0
sync
poweroff -f
"""


class Unavailable(Exception):
    """This system cannot run a guest; the text says why."""


class GuestError(Exception):
    """The guest did not come to its end."""


def require_tools():
    for command in NEEDED:
        if not shutil.which(command):
            raise Unavailable(f"there is no {command}")


def kernel_package():
    """The package that Debian's newest kernel for cloud machines is in, or None."""
    depends = ["apt-cache", "depends", "linux-image-cloud-amd64"]
    found = re.search(r"Depends: (linux-image-\S+)", subprocess.run(depends, capture_output=True, text=True, check=False).stdout)
    return found[1] if found else None


def fetch_kernel(folder):
    """Path of a kernel image in `folder`, fetched with apt if it is not there."""
    image = os.path.join(folder, "vmlinuz")
    if os.path.exists(image):
        return image
    if not shutil.which("apt-get") or not shutil.which("dpkg-deb"):
        raise Unavailable("there is no apt-get to fetch a kernel with")
    found = kernel_package()
    if not found and os.geteuid() == 0:  # the lists may never have been fetched
        subprocess.run(["apt-get", "-q", "update"], capture_output=True, check=False)
        found = kernel_package()
    if not found:
        raise Unavailable("the package lists have no linux-image-cloud-amd64 (apt-get update?)")
    os.makedirs(folder, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as work:
        got = subprocess.run(["apt-get", "download", found], cwd=work, capture_output=True, text=True, check=False)
        packages = glob.glob(os.path.join(work, "*.deb"))
        if got.returncode != 0 or not packages:
            raise Unavailable(f"{found} could not be fetched: {(got.stderr.strip().splitlines() or ['?'])[-1]}")
        subprocess.run(["dpkg-deb", "-x", packages[0], os.path.join(work, "root")], check=True)
        os.replace(glob.glob(os.path.join(work, "root", "boot", "vmlinuz-*"))[0], image)
    return image


def libraries(program):
    """What the dynamic loader maps for a program, itself included; nothing for other files."""
    listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=False).stdout
    return set(re.findall(r"(/\S+)", listed))


def write_initrd(path, files, script):
    with tempfile.TemporaryDirectory() as root:
        for name in ("bin", "proc", "sys", "dev", "tmp", "guest", "lib64"):
            os.mkdir(os.path.join(root, name))
        shutil.copy(shutil.which("busybox"), os.path.join(root, "bin", "busybox"))
        for file in files:
            shutil.copy(file, os.path.join(root, "guest", os.path.basename(file)))
            for library in libraries(file):
                place = root + library
                os.makedirs(os.path.dirname(place), exist_ok=True)
                shutil.copy(os.path.realpath(library), place)
        for name, text in (("init", INIT), ("guest/script", script)):
            with open(os.path.join(root, name), "w", encoding="utf-8") as file:
                file.write(text)
            os.chmod(os.path.join(root, name), 0o755)
        names = [os.path.relpath(os.path.join(at, name), root) for at, dirs, found in os.walk(root) for name in dirs + found]
        archive = subprocess.run(
            ["cpio", "-o", "-H", "newc", "--quiet"], input="\n".join(names).encode(), cwd=root, capture_output=True,
            check=True,
        ).stdout
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(archive)


class Layout:
    """Nodes with two processors each; `memoryless` ones have no memory."""

    def __init__(self, nodes, memoryless=()):
        self.nodes = nodes
        self.memoryless = memoryless

    def options(self):
        processors = 2 * self.nodes
        share = MEBIBYTES // (self.nodes - len(self.memoryless))
        words = ["-smp", f"{processors},sockets={self.nodes},cores=2,threads=1", "-m", f"{MEBIBYTES}M"]
        for node in range(self.nodes):
            numa = f"node,nodeid={node},cpus={2 * node}-{2 * node + 1}"
            if node not in self.memoryless:
                words += ["-object", f"memory-backend-ram,id=memory{node},size={share}M"]
                numa += f",memdev=memory{node}"
            words += ["-numa", numa]
        for one in range(self.nodes):
            for other in range(one + 1, self.nodes):
                words += ["-numa", f"dist,src={one},dst={other},val=21"]
        return words


def run(layout, kernel, files, script, timeout):
    """What the script prints in the guest. Raises GuestError unless it ends with status 0."""
    with tempfile.TemporaryDirectory() as folder:
        initrd = os.path.join(folder, "initrd")
        console, output = os.path.join(folder, "console"), os.path.join(folder, "output")
        write_initrd(initrd, files, script)
        command = ["qemu-system-x86_64", "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"]
        # KVM may open and not work in a guest of a guest; software does everywhere.
        command += ["-machine", "pc", "-accel", "tcg,thread=multi", "-cpu", "max,vendor=GenuineIntel"]
        command += layout.options()
        command += ["-kernel", kernel, "-initrd", initrd, "-append", CONSOLE]
        command += ["-serial", f"file:{console}", "-serial", f"file:{output}"]
        try:
            subprocess.run(command, stdin=subprocess.DEVNULL, timeout=timeout, check=False)
            ended = True
        except subprocess.TimeoutExpired:
            ended = False
        texts = {}
        for name, path in (("console", console), ("output", output)):
            with open(path, encoding="utf-8", errors="replace") as file:
                texts[name] = file.read().replace("\r", "")
        status = re.search(r"^guest-status (\d+)$", texts["console"], re.MULTILINE)
        if not ended or not status or status[1] != "0":
            reason = f"status {status[1]}" if status else "no report" if ended else f"no end within {timeout} s"
            tail = "\n".join((texts["console"] + texts["output"]).splitlines()[-30:])
            raise GuestError(f"{reason}\n{tail}")
        return texts["output"]
