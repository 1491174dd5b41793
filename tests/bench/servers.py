# SPDX-License-Identifier: LGPL-3.0-or-later
"""Servers under test: an upstream, and the ones that re-export it.

Each is a stock ganesha.nfsd on an address of its own, started here and stopped by its pid. No
rpcbind and no bus is needed: a preloaded shim answers the registration with yes.
"""

import os
import re
import shutil
import signal
import socket
import subprocess
import time

NFS_PORT = 31049
MNT_PORT = 31048
START_LIMIT_S = 20
STOP_LIMIT_S = 4

# glibc otherwise gives each 1 MiB buffer back to the kernel and faults it in again.
TUNED_MALLOC = {
    "MALLOC_MMAP_THRESHOLD_": str(64 << 20),
    "MALLOC_TRIM_THRESHOLD_": str(1 << 30),
    "MALLOC_TOP_PAD_": str(64 << 20),
    "MALLOC_ARENA_MAX": "2",
}

COMMON_CONF = """
NFS_CORE_PARAM {{
	Bind_Addr = {addr};
	NFS_Port = {nfs_port};
	MNT_Port = {mnt_port};
	Protocols = 3, 4;
	Plugins_Dir = "{plugins}";
	mount_path_pseudo = true;
	Enable_UDP = false;
	Enable_NLM = false;
	Enable_RQUOTA = false;
}}
NFSv4 {{
	Graceless = true;
	RecoveryBackend = fs;
	RecoveryRoot = "{recovery}";
	Only_Numeric_Owners = true;
}}
NFS_KRB5 {{ Active_krb5 = false; }}
EXPORT_DEFAULTS {{
	Access_Type = RW;
	Squash = No_Root_Squash;
	SecType = sys;
	Protocols = 3, 4;
	Transports = TCP;
}}
EXPORT {{
	Export_Id = 1;
	Path = "{path}";
	Pseudo = "/bench";
	{extra}
	FSAL {{ {fsal} }}
}}
"""


class BenchError(Exception):
    """Something that ends the benchmark, with a message for its user."""


def cpu_ns(pid):
    """CPU time of a process so far: its threads, user and system, in nanoseconds."""
    # The kernel's clock id of another process: all its threads, scheduler precision.
    return time.clock_gettime_ns((~pid << 3) | 2)


def peak_kib(pid):
    """Highest resident size of a process so far."""
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return int(re.search(r"^VmHWM:\s+(\d+) kB", status.read(), re.M).group(1))


def busy_s():
    """CPU seconds that the whole machine has spent on anything."""
    with open("/proc/stat", encoding="ascii") as stat:
        ticks = [int(word) for word in stat.readline().split()[1:]]
    # user nice system idle iowait irq softirq steal
    return (sum(ticks[:3]) + sum(ticks[5:8])) / os.sysconf("SC_CLK_TCK")


def can_connect(addr, port):
    """Whether something listens there."""
    with socket.socket() as sock:
        sock.settimeout(1)
        return sock.connect_ex((addr, port)) == 0


class Server:
    """One ganesha.nfsd."""

    def __init__(self, name, addr, folder):
        self.name = name
        self.addr = addr
        self.folder = folder
        self.process = None

    @property
    def pid(self):
        return self.process.pid

    def url(self, version):
        return (
            f"nfs://{self.addr}/bench?nfsport={NFS_PORT}&mountport={MNT_PORT}"
            f"&version={version}"
        )

    def write_conf(self, plugins, path, fsal, extra=""):
        recovery = os.path.join(self.folder, "recovery")
        os.makedirs(recovery, exist_ok=True)
        with open(os.path.join(self.folder, "conf"), "w", encoding="ascii") as conf:
            conf.write(
                COMMON_CONF.format(
                    addr=self.addr,
                    nfs_port=NFS_PORT,
                    mnt_port=MNT_PORT,
                    plugins=plugins,
                    recovery=recovery,
                    path=path,
                    fsal=fsal,
                    extra=extra,
                )
            )

    def log_tail(self, n_lines=12):
        try:
            with open(os.path.join(self.folder, "log"), encoding="utf-8") as log:
                return "".join(log.readlines()[-n_lines:])
        except OSError:
            return ""

    def start(self, shim, environment):
        env = {key: value for key, value in os.environ.items() if not key.startswith("MALLOC_")}
        env.update(environment)
        env["LD_PRELOAD"] = shim
        # A bus that does not exist: the system's own must not be touched.
        env["DBUS_SYSTEM_BUS_ADDRESS"] = f"unix:path={self.folder}/no-bus"
        with open(os.path.join(self.folder, "out"), "ab") as out:
            self.process = subprocess.Popen(
                ["ganesha.nfsd", "-F", "-f", f"{self.folder}/conf", "-L", f"{self.folder}/log",
                 "-p", f"{self.folder}/pid", "-N", "NIV_EVENT"],
                stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=env,
                start_new_session=True,
            )
        end = time.monotonic() + START_LIMIT_S
        while not (can_connect(self.addr, NFS_PORT) and can_connect(self.addr, MNT_PORT)):
            if self.process.poll() is not None:
                raise BenchError(f"server '{self.name}' ended at start:\n{self.log_tail()}")
            if time.monotonic() > end:
                raise BenchError(f"server '{self.name}' does not listen:\n{self.log_tail()}")
            time.sleep(0.05)

    def is_running(self):
        return self.process is not None and self.process.poll() is None

    def stop(self):
        """SIGTERM, and SIGKILL for one that does not follow: PROXY_V4 takes a minute."""
        if self.process is None:
            return
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(STOP_LIMIT_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.process = None


class Bench:
    """Folders, addresses and built files that all servers of a run share."""

    def __init__(self, work, net, module, tools):
        self.work = work
        self.net = net
        self.module = module
        self.tools = tools
        self.data = None
        self.plugins = os.path.join(work, "plugins")
        self.servers = {}

    def prepare(self):
        """Make the exported folder, in memory, and the folder of modules."""
        self.data = f"/dev/shm/fsal-ssc-bench.{os.getpid()}"
        os.mkdir(self.data, 0o755)
        os.makedirs(self.plugins)
        stock = f"/usr/lib/{os.uname().machine}-linux-gnu/ganesha"
        if not os.path.isdir(stock):
            raise BenchError("no modules of nfs-ganesha; apt-get install nfs-ganesha-vfs")
        for name in os.listdir(stock):
            if name.startswith("libfsal"):
                os.symlink(os.path.join(stock, name), os.path.join(self.plugins, name))
        if self.module:
            # A copy: a build that goes on meanwhile must not change what is measured.
            shutil.copyfile(self.module, os.path.join(self.plugins, "libfsalssc.so"))

    def make(self, kind, upstream_addr=None, name=None, host_part=None, extra=""):
        """A server object of a kind: direct, proxy_v4 or ssc. extra: of the ssc's FSAL block."""
        number = host_part or {"direct": 11, "proxy_v4": 12, "ssc": 13}[kind]
        name = name or kind
        folder = os.path.join(self.work, name)
        os.makedirs(folder, exist_ok=True)
        server = Server(name, f"{self.net}.{number}", folder)
        upstream = upstream_addr or f"{self.net}.11"
        if kind == "direct":
            # tmpfs has no file system id of its own that the server could use.
            server.write_conf(self.plugins, self.data, "Name = VFS;", "Filesystem_Id = 192.168;")
        elif kind == "proxy_v4":
            server.write_conf(
                self.plugins, "/bench",
                f"Name = PROXY_V4; Srv_Addr = {upstream}; NFS_Port = {NFS_PORT}; "
                "Use_Privileged_Client_Port = false;")
        else:
            server.write_conf(
                self.plugins, "/bench",
                f"Name = SSC; Server = {upstream}; Port = {NFS_PORT}; Mount_Port = {MNT_PORT}; "
                "Remote_Path = /bench;" + extra)
        return server

    def start(self, server, malloc):
        self.servers[server.name] = server
        server.start(self.tools["shim"], TUNED_MALLOC if malloc == "tuned" else {})

    def stop(self, *names):
        """Stop the named servers, or all: re-exporting ones before the upstream."""
        for name in names or sorted(self.servers, key=lambda name: name == "direct"):
            server = self.servers.pop(name, None)
            if server:
                server.stop()

    def pids(self):
        return [server.pid for server in self.servers.values()]

    def clean(self):
        self.stop()
        if self.data:
            shutil.rmtree(self.data, ignore_errors=True)
