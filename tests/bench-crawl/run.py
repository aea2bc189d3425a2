#!/usr/bin/env python3
"""The crawl benchmark: agentdex, Scrapy, crawlee, curl and a plain client loop on the same web in one run.

    tests/bench crawl [--modes raw,polite,hostile,second,memory] [--tools agentdex,scrapy,crawlee,curl,loop]
                      [--sites N] [--polite-sites N] [--memory-sites N,N] [--rounds N] [--profile release|debug] [--json FILE]
    tests/bench crawl --smoke      every mode at a size too small to measure speed, in less than a minute

  raw      no delay: sites per second and CPU per site
  polite   one second between requests, every tenth site asks for five: completion and violations
  hostile  of 20 sites 6 are dead, 2 send one byte per second, 1 asks for a delay
  second   agentdex only, a second pass after some manifests changed: requests and bytes relative to the first pass
  memory   agentdex only, two passes of different size: peak memory

The web server is pinned to one core and each client to the other. Violations are counted in the server's log. Tools that
cannot be installed are skipped and reported. Scrapy and crawlee do not verify certificates; the others do. A bar is
checked only if the run has the size that the bar is defined for.
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
POLITE_CONCURRENCY = 8000
SERVER_CORE, CLIENT_CORE = 0, 1
TIME_MAX = 1800
# the sizes that the bars are defined for
FULL = {"sites": 1000, "polite_sites": 24000, "memory_sites": [20000, 200000]}
MEMORY_GROWTH_MAX = 1.25


def sh(*command, **options):
    return subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, **options)


def pinned(core, command):
    has_two = (os.cpu_count() or 1) > 1 and shutil.which("taskset")
    return ["taskset", "-c", str(core), *command] if has_two else command


def measure(command, cwd, env=None, codes=(0,)):
    """Runs a client until it exits; returns its wall time, CPU time and peak memory."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.monotonic()
    with open(cwd / "client.log", "ab") as log:
        process = subprocess.Popen(pinned(CLIENT_CORE, command), cwd=cwd, stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                                   env={**os.environ, **(env or {})})
        peak = 0
        while process.poll() is None:
            peak = max(peak, rss_kib(process.pid))
            if time.monotonic() - started > TIME_MAX:
                process.kill()
            time.sleep(0.05)
    seconds = time.monotonic() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = (after.ru_utime - before.ru_utime) + (after.ru_stime - before.ru_stime)
    if codes is not None and process.returncode not in codes:
        why = f"not done after {TIME_MAX} s" if seconds > TIME_MAX else f"ended with {process.returncode}"
        said = (cwd / "client.log").read_text(errors="replace").strip().splitlines()[-3:]
        raise RuntimeError(f"{command[0]} {why}: {' | '.join(said)}")
    return {"seconds": seconds, "cpu_seconds": cpu, "peak_rss_mib": round(peak / 1024, 1)}


def rss_kib(pid):
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1])
    except OSError:
        pass
    return 0


class Farm:
    """The test web, in a separate process."""

    def __init__(self, binary, folder, sites, profile):
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.process = subprocess.Popen(pinned(SERVER_CORE, [str(binary), "farm", str(folder), str(sites), profile]),
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.expect(b"ready")
        self.port = (folder / "port").read_text()

    def expect(self, word):
        if self.process.stdout.readline().strip() != word:
            raise RuntimeError(f"the web did not say {word.decode()}")

    def change(self):
        self.process.stdin.write(b"change\n")
        self.process.stdin.flush()
        self.expect(b"changed")

    def stop(self):
        self.process.stdin.close()
        self.process.wait()


def agentdex(binary, farm, mode, again=False, seeds="seeds.txt", data="data"):
    delay = "1s" if mode == "polite" else "0s"
    concurrency = str(POLITE_CONCURRENCY if mode == "polite" else CONCURRENCY)
    command = [str(binary), "--seeds", seeds, "--hosts", "hosts", "--ca-file", "ca.pem", "--data-dir", data,
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
    lines = ["cacert = ca.pem", "silent", "max-time = 20"]
    paths = (farm.folder / "paths.txt").read_text().split()
    for line in (farm.folder / "hosts").read_text().splitlines():
        socket, name = line.split()
        address, port = socket.rsplit(":", 1)
        lines.append(f'resolve = "{name}:{port}:{address}"')
        lines += [f'url = "https://{name}:{port}{path}"\noutput = /dev/null' for path in paths]
    (farm.folder / "curl.conf").write_text("\n".join(lines))
    # a failed host makes curl exit with an error, which is expected on the hostile web
    return measure(["curl", "--parallel", "--parallel-max", str(CONCURRENCY), "--config", "curl.conf"], farm.folder,
                   codes=range(0, 100))


def loop(binary, farm, mode):
    return measure([str(binary), "loop", str(farm.folder), str(CONCURRENCY)], farm.folder)


def tools(names, crawler, helper):
    """The available tools, each as a function of a farm and a mode, and the reasons why others are missing."""
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
                sh(str(python), "-c", "import scrapy")
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


def row_of(tool, mode, sites, measured, seen):
    return {"tool": tool, "mode": mode, "sites": sites, **measured, **seen,
            "sites_per_second": round(sites / measured["seconds"], 1),
            "cpu_ms_per_site": round(measured["cpu_seconds"] * 1000 / sites, 3)}


def run_one(tool, run, mode, sites, helper):
    profile = {"polite": "polite", "hostile": "hostile"}.get(mode, "plain")
    with tempfile.TemporaryDirectory(prefix="agentdex-bench-") as folder:
        farm = Farm(helper, Path(folder), sites, profile)
        try:
            measured = run(farm, mode)
        finally:
            farm.stop()
        seen = judge(helper, farm.folder, 1000 if mode == "polite" else 0)
    return row_of(tool, mode, sites, measured, seen)


def run_second(sites, helper, crawler):
    """Two passes with changed manifests in between; the requests of the second as shares of the first."""
    with tempfile.TemporaryDirectory(prefix="agentdex-bench-") as folder:
        farm = Farm(helper, Path(folder), sites, "plain")
        try:
            agentdex(crawler, farm, "raw")
            before = judge(helper, farm.folder, 0)
            farm.change()
            measured = agentdex(crawler, farm, "raw", again=True)
        finally:
            farm.stop()
        seen = judge(helper, farm.folder, 0)
    # the log contains both passes, and the second repeats requests by design
    seen["violations"] -= seen["by_rule"].pop("duplicate", 0)

    def share(of, what):
        return round((of(seen)[what] - of(before)[what]) / max(of(before)[what], 1), 3)
    seen["shares"] = {
        "requests": share(lambda log: log, "requests"), "bytes": share(lambda log: log, "body_bytes"),
        "positive_requests": share(lambda log: log["positive"], "requests"),
        "positive_bytes": share(lambda log: log["positive"], "body_bytes"),
        "changed": sum(1 for index in range(sites) if index % 100 < 3), "changes_seen": seen["changes_seen"]}
    seen["requests"] -= before["requests"]
    return row_of("agentdex", "second", sites, measured, seen)


def run_memory(sites, helper, crawler):
    with tempfile.TemporaryDirectory(prefix="agentdex-bench-") as folder:
        farm = Farm(helper, Path(folder), sites, "plain")
        try:
            # the hosts file that replaces DNS here grows with the number of sites, but a real crawl does not hold it in memory
            (farm.folder / "one.txt").write_text((farm.folder / "seeds.txt").read_text().split("\n", 1)[0] + "\n")
            names = agentdex(crawler, farm, "raw", seeds="one.txt", data="data-of-one")
            measured = agentdex(crawler, farm, "raw")
        finally:
            farm.stop()
    seen = {"requests": "", "violations": "", "names_mib": names["peak_rss_mib"]}
    return row_of("agentdex", "memory", sites, measured, seen)


def table(rows):
    head = ["mode", "tool", "sites", "sites/s", "sustained/s", "CPU ms/site", "peak MiB", "requests", "violations"]
    lines = [head]
    for row in rows:
        lines.append([row["mode"], row["tool"], row["sites"], row["sites_per_second"],
                      round(row.get("sustained_per_second") or 0, 1) or "", row["cpu_ms_per_site"], row["peak_rss_mib"],
                      row["requests"], row["violations"]])
    widths = [max(len(str(line[column])) for line in lines) for column in range(len(head))]
    return "\n".join("  ".join(str(cell).rjust(width) for cell, width in zip(line, widths)) for line in lines)


def median_row(rows):
    middle = dict(rows[len(rows) // 2])
    for key in ["sites_per_second", "cpu_ms_per_site", "peak_rss_mib", "seconds", "cpu_seconds"]:
        values = [row[key] for row in rows]
        middle[key] = round(statistics.median(values), 3)
        middle[key + "_range"] = [round(min(values), 3), round(max(values), 3)]
    if middle["mode"] != "memory":
        middle["violations"] = max(row["violations"] for row in rows)
    return middle


def bars(rows, is_full):
    """Every bar as (name, limit as text, measured, passed); passed is None if this run is too small to decide."""
    def find(mode, tool="agentdex"):
        return [row for row in rows if row["mode"] == mode and row["tool"] == tool]

    judged = []

    def bar(name, limit, value, passed, needs_size=True):
        judged.append({"bar": name, "limit": limit, "measured": value, "passed": passed if is_full or not needs_size else None})

    for row in [*find("polite"), *find("hostile"), *find("raw"), *find("second")]:
        bar(f"{row['mode']}: violations", "0", row["violations"], row["violations"] == 0, needs_size=False)
    for row in find("raw"):
        bar("raw: CPU ms a site of 9 requests", "<= 3 (aim 1.5)", row["cpu_ms_per_site"], row["cpu_ms_per_site"] <= 3)
        for peer in find("raw", "scrapy"):
            share = round(row["cpu_ms_per_site"] / peer["cpu_ms_per_site"], 4)
            bar("raw: CPU in shares of Scrapy's", "<= 0.1 (aim 0.05)", share, share <= 0.1)
    for row in find("polite"):
        pace = round(row["sustained_per_second"], 1)
        bar("polite: sites a second, sustained", ">= 400", pace, pace >= 400)
        bar("polite: peak MiB", "<= 700", row["peak_rss_mib"], row["peak_rss_mib"] <= 700)
    for row in find("second"):
        shares = row["shares"]
        for name, what, limit in [("requests of positives", "positive_requests", 0.25),
                                  ("bytes of positives", "positive_bytes", 0.15),
                                  ("requests of all", "requests", 0.35), ("bytes of all", "bytes", 0.30)]:
            bar(f"second: {name}, in shares of the first pass", f"<= {limit}", shares[what], shares[what] <= limit,
                needs_size=False)
        bar("second: changed manifests fetched", shares["changed"], shares["changes_seen"],
            shares["changes_seen"] == shares["changed"], needs_size=False)
    memory = sorted(find("memory"), key=lambda row: row["sites"])
    if len(memory) > 1:
        few, many = (row["peak_rss_mib"] - row["names_mib"] for row in (memory[0], memory[-1]))
        growth = round(many / few, 2)
        name = f"memory: peak over that of one site, at {memory[-1]['sites']} sites in shares of {memory[0]['sites']}"
        bar(name, f"<= {MEMORY_GROWTH_MAX}", growth, growth <= MEMORY_GROWTH_MAX)
    return judged


def parse():
    parser = argparse.ArgumentParser(prog="tests/bench crawl", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--modes", default="raw,polite,hostile,second,memory")
    parser.add_argument("--tools", default="agentdex,scrapy,crawlee,curl,loop")
    parser.add_argument("--sites", type=int, default=FULL["sites"])
    parser.add_argument("--polite-sites", type=int, default=FULL["polite_sites"], help="of agentdex; the others get --sites")
    parser.add_argument("--memory-sites", default=",".join(map(str, FULL["memory_sites"])))
    parser.add_argument("--profile", default="release", choices=["release", "debug"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--smoke", action="store_true")
    asked = parser.parse_args()
    if asked.smoke:
        asked.sites, asked.polite_sites, asked.memory_sites, asked.rounds = 100, 100, "100,200", 1
        asked.profile, asked.tools = "debug", "agentdex,curl,loop"
    return asked


def main():
    asked = parse()
    memory_sites = [int(text) for text in asked.memory_sites.split(",")]
    is_full = (asked.profile == "release" and asked.sites >= FULL["sites"] and asked.polite_sites >= FULL["polite_sites"]
               and memory_sites == FULL["memory_sites"])
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / asked.profile
    # the debug build is that of tests/run, so that nothing is built twice with different features
    parts = ["--release", "--bins", "--examples"] if asked.profile == "release" else ["--all-targets"]
    subprocess.run(["cargo", "build", "--workspace", "--locked", "--quiet", *parts], cwd=ROOT, check=True)
    crawler, helper = target / "crawler", target / "examples" / "crawl_bench"
    found, missing = tools(asked.tools.split(","), crawler, helper)
    for name, why in missing.items():
        print(f"left out: {name}: {why[0]}", file=sys.stderr)
    rows, failed = [], 0
    for mode in asked.modes.split(","):
        results = {}
        for turn in range(asked.rounds):
            # rotate the order, so that no tool always runs in the same state of the machine
            names = list(found)[turn % len(found):] + list(found)[:turn % len(found)]
            if mode in ("second", "memory"):
                names = [name for name in names if name == "agentdex"]
            for name in names:
                sizes = memory_sites if mode == "memory" else [asked.polite_sites if mode == "polite" and name == "agentdex" else asked.sites]
                # the large pass takes minutes, and its memory varies little
                for sites in sizes if turn == 0 or mode != "memory" else []:
                    try:
                        if mode == "second":
                            row = run_second(sites, helper, crawler)
                        elif mode == "memory":
                            row = run_memory(sites, helper, crawler)
                        else:
                            row = run_one(name, found[name], mode, sites, helper)
                        results.setdefault((name, sites), []).append(row)
                        print(table([row]).splitlines()[1], file=sys.stderr, flush=True)
                    except (RuntimeError, subprocess.CalledProcessError) as error:
                        failed += name == "agentdex"
                        print(f"{mode}: {name}: {error}", file=sys.stderr, flush=True)
        rows += [median_row(done) for done in results.values()]
    judged = bars(rows, is_full)
    print(table(rows))
    print()
    words = {True: "pass", False: "FAIL", None: "not judged at this size"}
    for each in judged:
        print(f"{each['bar']}: {each['measured']} (bar: {each['limit']}): {words[each['passed']]}")
    if asked.json:
        asked.json.write_text(json.dumps({"rounds": asked.rounds, "profile": asked.profile, "rows": rows, "bars": judged}, indent=1))
    for row in rows:
        if row["tool"] == "agentdex" and row["violations"]:
            print("agentdex was impolite:", row["mode"], row["by_rule"], file=sys.stderr)
    sys.exit(1 if failed or any(each["passed"] is False for each in judged) else 0)


if __name__ == "__main__":
    main()
