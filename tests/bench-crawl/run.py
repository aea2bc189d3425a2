#!/usr/bin/env python3
"""The crawl benchmark: agentdex against Scrapy, crawlee, curl and a bare client loop, over the same web in one run.

    tests/bench crawl [--sites N] [--modes raw,polite,hostile,second] [--tools agentdex,scrapy,crawlee,curl,loop]
                      [--profile release|debug] [--rounds N] [--json FILE]

The web's server is pinned to one core and each client to the other. What is printed: sites a second, CPU milliseconds a
site and peak memory of the client (all of its processes), and the violations of politeness that the server's log shows.
Tools that cannot be installed are left out and named. Scrapy and crawlee do not check certificates; the others do.
"""
import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
CACHE = Path(os.environ.get("AGENTDEX_BENCH_CACHE", ROOT / "target" / "bench"))
SCRAPY = "scrapy==2.19.*"
CRAWLEE = "@crawlee/http@3"
CONCURRENCY = 256
SERVER_CORE, CLIENT_CORE = 0, 1
TIME_MAX = 1800


def sh(*command, **options):
    return subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, **options)


def pinned(core, command):
    has_two = (os.cpu_count() or 1) > 1 and shutil.which("taskset")
    return ["taskset", "-c", str(core), *command] if has_two else command


def measure(command, cwd, env=None):
    """Runs a client to its end: wall seconds, CPU seconds and peak memory of it and what it started."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    log = open(cwd / "client.log", "ab")
    started = time.monotonic()
    process = subprocess.Popen(pinned(CLIENT_CORE, command), cwd=cwd, stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                               env={**os.environ, **(env or {})})
    peak = 0
    while process.poll() is None:
        peak = max(peak, rss_kib(process.pid))
        if time.monotonic() - started > TIME_MAX:
            process.kill()
        time.sleep(0.05)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = (after.ru_utime - before.ru_utime) + (after.ru_stime - before.ru_stime)
    if process.returncode != 0:
        raise RuntimeError(f"{command[0]} ended with {process.returncode}; see {cwd / 'client.log'}")
    return {"seconds": time.monotonic() - started, "cpu_seconds": cpu, "peak_rss_mib": round(peak / 1024, 1)}


def rss_kib(pid):
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1])
    except OSError:
        pass
    return 0


class Farm:
    """The web, in a process of its own."""

    def __init__(self, binary, folder, sites, profile):
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.process = subprocess.Popen(pinned(SERVER_CORE, [str(binary), "farm", str(folder), str(sites), profile]),
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        if self.process.stdout.readline().strip() != b"ready":
            raise RuntimeError("the web did not start")
        self.port = (folder / "port").read_text()

    def stop(self):
        self.process.stdin.close()
        self.process.wait()


def agentdex(binary, farm, mode, again=False):
    delay = "1s" if mode == "polite" else "0s"
    concurrency = "8000" if mode == "polite" else str(CONCURRENCY)
    command = [str(binary), "--seeds", "seeds.txt", "--hosts", "hosts", "--ca-file", "ca.pem", "--data-dir", "data",
               "--allow-addresses", "127.0.0.0/8", "--contact-email", "bench@crawler.example", "--delay", delay,
               "--rate", "100000", "--concurrency", concurrency, "--park-wait", "10m", "-q", "--format", "json"]
    if again:
        command += ["--revisit", "0s"]
    return measure(command, farm.folder)


def scrapy(python, farm, mode):
    return measure([str(python), str(ROOT / "tests" / "bench-crawl" / "scrapy_peer.py"), str(farm.folder), mode,
                    str(CONCURRENCY)], farm.folder)


def crawlee(folder, farm, mode):
    return measure(["node", str(folder / "crawlee_peer.mjs"), str(farm.folder), mode, str(CONCURRENCY)], farm.folder,
                   {"CRAWLEE_STORAGE_DIR": str(farm.folder / "crawlee"), "CRAWLEE_PERSIST_STORAGE": "false"})


def curl(farm, mode):
    lines = ["cacert = ca.pem", "silent", "output = /dev/null", "max-time = 20"]
    paths = (farm.folder / "paths.txt").read_text().split()
    for line in (farm.folder / "hosts").read_text().splitlines():
        socket, name = line.split()
        address, port = socket.rsplit(":", 1)
        lines.append(f'resolve = "{name}:{port}:{address}"')
        lines += [f'url = "https://{name}:{port}{path}"\noutput = /dev/null' for path in paths]
    (farm.folder / "curl.conf").write_text("\n".join(lines))
    # a host that fails makes curl end with an error, which is expected of the hostile web
    return measure(["sh", "-c", f"curl --parallel --parallel-max {CONCURRENCY} --config curl.conf; true"], farm.folder)


def loop(binary, farm, mode):
    return measure([str(binary), "loop", str(farm.folder), str(CONCURRENCY)], farm.folder)


def tools(names, crawler, helper):
    """The tools that can be had here, each a function of a farm and a mode."""
    found, missing = {}, {}
    CACHE.mkdir(parents=True, exist_ok=True)
    for name in names:
        try:
            if name == "agentdex":
                found[name] = lambda farm, mode: agentdex(crawler, farm, mode)
            elif name == "scrapy":
                python = CACHE / "venv" / "bin" / "python"
                if not python.exists():
                    sh(sys.executable, "-m", "venv", str(CACHE / "venv"))
                    sh(str(python), "-m", "pip", "install", "--quiet", SCRAPY)
                found[name] = lambda farm, mode, python=python: scrapy(python, farm, mode)
            elif name == "crawlee":
                folder = CACHE / "crawlee"
                folder.mkdir(exist_ok=True)
                if not (folder / "node_modules").exists():
                    sh("npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(folder), CRAWLEE)
                shutil.copy(ROOT / "tests" / "bench-crawl" / "crawlee_peer.mjs", folder)
                found[name] = lambda farm, mode, folder=folder: crawlee(folder, farm, mode)
            elif name == "curl":
                sh("curl", "--version")
                found[name] = curl
            elif name == "loop":
                found[name] = lambda farm, mode: loop(helper, farm, mode)
            else:
                raise RuntimeError("no such tool")
        except (OSError, RuntimeError, subprocess.CalledProcessError) as error:
            said = getattr(error, "stderr", b"") or str(error).encode()
            missing[name] = said.decode(errors="replace").strip().splitlines()[-1:] or ["?"]
    return found, missing


def judge(helper, folder, delay_ms):
    output = subprocess.run([str(helper), "judge", str(folder), str(delay_ms)], check=True, stdout=subprocess.PIPE)
    return json.loads(output.stdout)


def run_one(tool, run, mode, sites, helper, crawler):
    profile = {"polite": "polite", "hostile": "hostile"}.get(mode, "plain")
    with tempfile.TemporaryDirectory(prefix="agentdex-bench-") as folder:
        farm = Farm(helper, Path(folder), sites, profile)
        try:
            if mode == "second":
                run(farm, "raw")
                before = judge(helper, farm.folder, 0)
            measured = agentdex(crawler, farm, "raw", again=True) if mode == "second" and tool == "agentdex" else run(farm, mode)
        finally:
            farm.stop()
        seen = judge(helper, farm.folder, 1000 if mode == "polite" else 0)
    if mode == "second":
        # the log holds two passes, and the second asks again by design
        seen["violations"] -= seen["by_rule"].pop("duplicate", 0)
        seen = {**seen, "requests": seen["requests"] - before["requests"],
                "body_bytes": seen["body_bytes"] - before["body_bytes"],
                "share_of_requests": round((seen["requests"] - before["requests"]) / before["requests"], 3),
                "share_of_bytes": round((seen["body_bytes"] - before["body_bytes"]) / max(before["body_bytes"], 1), 3)}
    return {"tool": tool, "mode": mode, "sites": sites, **measured, **seen,
            "sites_per_second": round(sites / measured["seconds"], 1),
            "cpu_ms_per_site": round(measured["cpu_seconds"] * 1000 / sites, 3)}


def table(rows):
    head = ["mode", "tool", "sites/s", "CPU ms/site", "peak MiB", "requests", "violations", "requests 2nd/1st", "bytes 2nd/1st"]
    lines = [head]
    for row in rows:
        lines.append([row["mode"], row["tool"], row["sites_per_second"], row["cpu_ms_per_site"], row["peak_rss_mib"],
                      row["requests"], row["violations"], row.get("share_of_requests", ""), row.get("share_of_bytes", "")])
    widths = [max(len(str(line[column])) for line in lines) for column in range(len(head))]
    return "\n".join("  ".join(str(cell).rjust(width) for cell, width in zip(line, widths)) for line in lines)


def median_row(rows):
    middle = dict(rows[len(rows) // 2])
    for key in ["sites_per_second", "cpu_ms_per_site", "peak_rss_mib", "seconds", "cpu_seconds"]:
        values = [row[key] for row in rows]
        middle[key] = round(statistics.median(values), 3)
        middle[key + "_range"] = [round(min(values), 3), round(max(values), 3)]
    middle["violations"] = max(row["violations"] for row in rows)
    return middle


def main():
    parser = argparse.ArgumentParser(prog="tests/bench crawl", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sites", type=int, default=1000)
    parser.add_argument("--modes", default="raw,polite,hostile,second")
    parser.add_argument("--tools", default="agentdex,scrapy,crawlee,curl,loop")
    parser.add_argument("--profile", default="release", choices=["release", "debug"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / asked.profile
    flags = ["--release"] if asked.profile == "release" else []
    subprocess.run(["cargo", "build", "--workspace", "--locked", "--quiet", *flags, "--bins", "--example", "crawl_bench"], cwd=ROOT, check=True)
    crawler, helper = target / "crawler", target / "examples" / "crawl_bench"
    found, missing = tools(asked.tools.split(","), crawler, helper)
    for name, why in missing.items():
        print(f"left out: {name}: {why[0]}", file=sys.stderr)
    rows, failed = [], 0
    for mode in asked.modes.split(","):
        results = {name: [] for name in found}
        for turn in range(asked.rounds):
            # another order each time, so that no tool always meets the same state of the machine
            for name in list(found)[turn % len(found):] + list(found)[:turn % len(found)]:
                if mode == "second" and name != "agentdex":
                    continue
                try:
                    results[name].append(run_one(name, found[name], mode, asked.sites, helper, crawler))
                except (RuntimeError, subprocess.CalledProcessError) as error:
                    failed += 1
                    print(f"{mode}: {name}: {error}", file=sys.stderr)
        rows += [median_row(done) for done in results.values() if done]
    print(table(rows))
    if asked.json:
        asked.json.write_text(json.dumps({"sites": asked.sites, "rounds": asked.rounds, "profile": asked.profile, "rows": rows}, indent=1))
    ours = [row for row in rows if row["tool"] == "agentdex"]
    if any(row["violations"] for row in ours):
        print("agentdex was impolite:", [(row["mode"], row["by_rule"]) for row in ours if row["violations"]], file=sys.stderr)
        failed += 1
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
