"""The checks of the lab's scenarios: one function for each, of the scenario's name, in CHECKS.

They compare Xenoscope's reports of a scenario's recordings with what the guests say they did, with the
trace, and with what the scenario did to the guests. Each lab.check() is about one fact.
"""
import collections
import datetime
import json
import math
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import lab_counts

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "build/release/xenoscope"

# Options of scripts/lab/run for a scenario.
OPTIONS = {"ratio": ["--truth"]}


class Lab:
    """The results of a scenario, and whether all checks were good."""

    def __init__(self, name, directory):
        self.name = name
        self.directory = pathlib.Path(directory).resolve()
        self.good = True

    def check(self, good, text):
        """Prints one fact, and whether it holds."""
        self.good = self.good and bool(good)
        print(("ok     " if good else "FAILED ") + text, flush=True)

    def path(self, which=""):
        """The path of the recording, or of one of several."""
        return self.directory / f"{self.name}{which and '-'}{which}.xeno"

    def recording(self, which=""):
        return json.loads((self.path(which) / "recording.json").read_text())

    def report(self, *options, which=""):
        return self.run_json("report", self.path(which), "--format", "json", *options)

    def summary(self, which=""):
        return self.run_json("summary", self.path(which), "--format", "json")

    def run_json(self, *words):
        """The JSON that the program prints for these words."""
        done = subprocess.run([PROGRAM, *words], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            self.check(False, f"{' '.join(map(str, words))}: {done.stderr}")
            raise SystemExit(1)
        return json.loads(done.stdout)

    def dump(self, *options, which=""):
        """The records of the trace."""
        done = subprocess.run([PROGRAM, "dump", self.path(which), "--format", "json", *options],
                              capture_output=True, text=True, check=True)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def text(self, name):
        return (self.directory / name).read_text(errors="replace")

    def load(self, guest, work, piece):
        """The number of calls that labload in the guest prints in its last line for this work."""
        lines = [line for line in self.text(f"guests/guest-{guest}.log").splitlines()
                 if line.startswith(f"LOAD {work} ")]
        return int(re.search(rf" {piece}=\d+/(\d+)", lines[-1]).group(1))

    def check_accounting(self, report, what="samples"):
        """Checks that a report's samples add up."""
        samples = report["samples"]
        total = samples["attributed"] + sum(samples["remainders"].values())
        self.check(samples["total"] > 0, f"{what}: there are {samples['total']:.0f}")
        self.check(abs(total - samples["total"]) < 0.5,
                   f"{what}: each is accounted for, {total:.0f} of {samples['total']:.0f}")

    def check_leads(self, row, function, what):
        """Checks that the row with the most samples is the one of `function`."""
        self.check(row["function"] == function,
                   f"{what}: {row['function']} leads with {row['samples']:.0f} samples, as {function} should")

    def check_kept(self, kept, least, what):
        self.check(kept > least, f"{what}: {kept} samples are kept, more than {least}")

    def check_went_on(self, recording, what, ended="command ended"):
        """Checks that a recording was not cut short."""
        self.check(recording["state"] == "complete", f"{what}: the recording is {recording['state']}")
        self.check(recording["stopped_because"] == ended, f"{what}: it ended with {recording['stopped_because']!r}")

    def check_said(self, pattern, name, what):
        """Checks that a text has a line of this pattern."""
        self.check(re.search(pattern, self.text(name), re.MULTILINE), f"{what}: {name} says {pattern!r}")


def count(rows, **wanted):
    return sum(row["samples"] for row in rows
               if all(row[key] == value for key, value in wanted.items()))


def top_row(rows, **wanted):
    """The row with the most samples among those wanted."""
    rows = [row for row in rows if all(row[key] == value for key, value in wanted.items())]
    return max(rows, key=lambda row: row["samples"], default={"function": "nothing", "samples": 0})


def domains_by_name(recording):
    return {domain["name"]: domain for domain in recording["domains"]}


def streams_of(recording, source, domain):
    return [stream for stream in recording["streams"]
            if stream["source"] == source and stream["domain"] == domain["id"]]


def check_leaf_shares(lab, rows, domain, what):
    """Checks the samples of labload's leaf_a, which runs three times as long as leaf_b."""
    a, b = (count(rows, domain=domain, mode="user", function=name) for name in ("leaf_a", "leaf_b"))
    chance = 4 * math.sqrt(0.25 * 0.75 / max(a + b, 1))
    lab.check(a + b > 50, f"{what}: {domain} has {a + b:.0f} samples in leaf_a and leaf_b")
    lab.check(abs(b / max(a + b, 1) - 0.25) < 0.05 + chance,
              f"{what}: {domain} does leaf_a three times as often as leaf_b: {a:.0f} and {b:.0f} samples")


def check_poll_counters(lab, recording, what):
    """Checks that every poll of the vcpu source is accounted for, and none failed."""
    found = [stream["looks"] for stream in recording["streams"] if "looks" in stream]
    total = sum(poll["total"] for poll in found)
    kinds = ("blocked", "running", "preempted")
    lab.check(total > 50, f"{what}: there are {total} polls")
    lab.check(total == sum(poll[kind] for poll in found for kind in kinds),
              f"{what}: Xen answered each of {total} polls")


def check_callers(lab, domain, function, caller, *options, which="", least=10):
    """Checks that a function is found with its callers, up to main, as labload keeps frame pointers.

    leaf_a has no frame of its own: the frame pointer is that of alpha, whose caller is then the first to be
    found. Callers of a vCPU that ran on while they were read are dropped, which emulation makes frequent.
    """
    rows = lab.report("--event", "vcpu-preempted", "--by", "domain,stack", *options, which=which)["rows"]
    stacks = [(row["stack"].split(";"), row["samples"]) for row in rows if row["domain"] == domain]
    found = sum(samples for stack, samples in stacks if stack[-1] == function and len(stack) > 1)
    good = sum(samples for stack, samples in stacks
               if stack[-2:] == [caller, function] and "main" in stack)
    lab.check(found > least, f"vcpu: {found:.0f} polls found {function} with a caller in {domain}")
    lab.check(good >= 0.9 * found, f"vcpu: {caller} called {function}, and main led there, in {good:.0f} of "
              f"{found:.0f} such polls of {domain}")


def check_balanced(lab, recording, what):
    """Checks that a recording is complete, and that its buffers' accounts balance."""
    streams = recording["streams"]
    lab.check(recording["state"] == "complete", f"{what}: the recording is {recording['state']}")
    lab.check(streams, f"{what}: it has {len(streams)} buffers")
    lab.check(all(stream["complete"] for stream in streams), f"{what}: each buffer was drained to its end")
    lab.check(all(stream["balanced"] for stream in streams),
              f"{what}: what Xen logged is what was drained, in each of {len(streams)} buffers")


def check_balanced_stream(lab, stream, what, least=50):
    """Checks that one vCPU's samples are all there."""
    lab.check_kept(stream["kept"], least, what)
    lab.check(stream["complete"], f"{what}: its buffer was drained to its end")
    lab.check(stream["balanced"], f"{what}: all of {stream['kept']} samples are accounted for")


def check_xen_is_quiet(lab):
    """Checks that Xen's console has no complaint."""
    bad = [line for line in lab.text("xen.log").splitlines() if re.search("BUG|panic|Unknown.*NMI", line)]
    lab.check(not bad, f"Xen complains of nothing: {bad[:3]}")


def seconds_of(recording):
    """How long a recording sampled, by the host's TSC."""
    return (recording["stopped_tsc"] - recording["started_tsc"]) / recording["host"]["clock_hz"]


def ci(lab):
    """Samples and trace agree with the guests' consoles."""
    domains = domains_by_name(lab.recording())
    columns = "domain,mode,function"
    report = lab.report("--by", columns)
    exits = lab.report("--source", "trace", "--by", columns)
    summary = lab.summary()
    lab.check_accounting(report)

    lab.check_leads(top_row(report["rows"], domain="pv"), "sha256_block", "pv, which only hashes")

    wanted = lab.load("pvh", "cpuid", "cpuid")
    seen = sum(vcpu.get("exits", {}).get("VMEXIT_CPUID", {"count": 0})["count"]
               for domain in summary["domains"] if domain["domid"] == domains["pvh"]["id"]
               for vcpu in domain["vcpus"])
    lab.check(abs(seen - wanted) <= 0.01 * wanted,
              f"pvh did {wanted} CPUIDs; {seen} CPUID exits were counted")

    # The exits for interrupts in the trace are another sample of the same guest.
    busiest, found = (top_row(of["rows"], domain="pvh", mode="user")["function"]
                      for of in (report, exits))
    lab.check(found == busiest,
              f"{busiest} leads pvh's user mode in the samples, {found} in the trace's own")

    lost = summary["trace"]["lost_records"]
    lab.check(lost == 0, f"{lost} trace records were lost")


def counts(lab):
    """The exits and hypercalls that are counted are those that the guests did."""
    ids = {name: domain["id"] for name, domain in domains_by_name(lab.recording()).items()}
    summary = lab.summary()
    vcpus = {name: [vcpu for domain in summary["domains"] if domain["domid"] == domid for vcpu in domain["vcpus"]]
             for name, domid in ids.items()}
    lost = summary["trace"]["lost_records"]
    lab.check(lost == 0, f"{lost} trace records were lost")
    # Programs that start use other leaves.
    asked = sum(record["fields"].get("leaf") == "0x40000000"
                for record in lab.dump("--domain", str(ids["pvh"]), "--event", "cpuid"))
    ports = sum(vcpu["io_ports"].get(f"0x84 {way}", {"count": 0})["count"]
                for vcpu in vcpus["pvh"] for way in ("read", "write"))
    calls = sum(vcpu["hypercalls"].get("hvm_op", {"count": 0})["count"] for vcpu in vcpus["pv"])
    for guest, work, piece, seen in (("pvh", "cpuid", "cpuid", asked), ("pvh", "portio", "portio", ports),
                                     ("pv", "hyper", "hyper", calls)):
        done = lab.load(guest, work, piece)
        lab.check(done > 10000, f"{guest} did {done} {work}")
        lab.check(seen == done, f"{guest} did {done} {work}; {seen} were counted")


def hyper(lab):
    """The trace alone proves the TSC of guests that write theirs into it."""
    ids = {name: domain["id"] for name, domain in domains_by_name(lab.recording()).items()}
    clocks = {clock["domain"]: clock for clock in lab.summary()["trace"]["guest_clocks"]}
    for name in ("pv", "pvh"):
        clock = clocks.get(ids[name], {"epochs": [], "outside": 0})
        lab.check(clock["outside"] == 0, f"{clock['outside']} events contradict {name}'s clock")
        found = [offset for epoch in clock["epochs"] for offset in epoch["ranges"]]
        lab.check(len(found) == 1, f"{name}'s events leave {found}")
        least, most = (found[0][end] for end in ("least", "most")) if found else (0, 0)
        if name == "pv":
            lab.check(least <= 0 <= most, f"pv's TSC is the host's: {least} to {most}")
        else:
            lab.check(most < 0, f"pvh's TSC began with the guest: {least} to {most}")


def marks(lab):
    """The texts that domains write into the trace are in its dump."""
    ids = {name: domain["id"] for name, domain in domains_by_name(lab.recording()).items()}
    texts = {}
    for record in lab.dump("--event", "guest"):
        fields = record["fields"]
        if "mark" not in fields:
            continue
        mark = (record["domid"], fields["mark_kind"], fields["mark"])
        texts[mark] = texts.get(mark, "") + fields["mark_text"]
    steps = [f"step {step} of eight steps" for step in range(8)]
    for domain, kind, wanted in ((ids["pv"], "instant", steps), (ids["pvh"], "begin", steps),
                                 (0, "end", ["from dom0"])):
        found = [text for mark, text in texts.items() if mark[:2] == (domain, kind)]
        lab.check(found == wanted, f"d{domain} wrote {found}")


def threads(lab):
    """What dom0's threads were doing is what Xen's trace says of its vCPU, and what dom0 did."""
    data = lab.run_json("threads", lab.path(), "--format", "json")
    dom0, rows = data["domains"][0], data["rows"]
    lab.check(dom0["events"] > 1000 and dom0["lost_events"] == 0,
              f"of dom0's kernel there are {dom0['events']} events, {dom0['lost_events']} were lost")
    given = sum(trace["read"] for trace in lab.recording()["kernel_traces"])
    lab.check(given == dom0["events"], f"its kernel says that it gave {given}")
    cats = [row for row in rows if row["thread"] == "cat" and row["switches"] > 0]
    lab.check(len(cats) == 20, f"dom0 began cat 20 times; {len(cats)} threads of it ran")
    sums = {key: sum(row[key] for row in rows) for key in rows[0] if key.endswith("_s")}
    vcpu = next(domain for domain in lab.summary()["domains"] if domain["domid"] == 0)["vcpus"][0]
    cycles = {state: found["cycles"] for state, found in vcpu["runstates"].items()}
    for key, state in (("guest_s", "running"), ("stolen_s", "runnable"), ("halted_s", "blocked")):
        ours, xens = sums[key] / sums["on_vcpu_s"], cycles[state] / sum(cycles.values())
        lab.check(abs(ours - xens) < 0.03, f"{100 * ours:.1f} % {key[:-2]}, Xen: {100 * xens:.1f} % {state}")
    waits = lab.run_json("threads", lab.path(), "--culprits", "--by", "domain", "--format", "json")["rows"]
    by = {row["by_domain"]: row["time_s"] for row in waits if row["state"] == "stolen"}
    lab.check(by.get("-", 0) <= 0.001 * sums["stolen_s"] and by.get("pv", 0) > 0,
              f"{by.get('pv', 0):.3f} s were stolen by pv, {by.get('-', 0):.4f} s by nobody that is known")
    lab.check(sums["untraced_s"] < 0.05 * sums["on_vcpu_s"], f"{sums['untraced_s']:.3f} s are untraced")
    samples = lab.report("--by", "domain,thread")["rows"]
    of_dom0 = {row["thread"]: row for row in samples if row["domain"] == "Domain-0"}
    every = sum(row["samples"] for row in of_dom0.values())
    unknown = sum(row["samples"] for name, row in of_dom0.items() if name == "-")
    lab.check(every > 500 and unknown <= 0.01 * every, f"{unknown} of {every} samples of dom0 have no thread")
    # The recorder's first thread works before samples are taken, and after.
    first = [row for row in rows if row["pid"] is not None and row["tid"] == row["pid"]]
    recorder = max(first, key=lambda row: row["guest_s"])["process"]
    others = [row for row in rows if row["tid"] != row["pid"] or row["process"] != recorder]
    most = sorted(others, key=lambda row: -row["guest_s"])[:6]
    cycles = {}
    for row in most:
        name = row["thread"] if row["thread"] == "[idle]" else f"{row['thread']} ({row['tid']})"
        cycles[name] = (of_dom0.get(name, {"cycles": 0})["cycles"], row["guest_s"])
    traced, followed = (sum(pair[i] for pair in cycles.values()) for i in (0, 1))
    for name, (ours, events) in cycles.items():
        lab.check(abs(ours / traced - events / followed) < 0.02,
                  f"{name}: {100 * ours / traced:.1f} % of the time of six threads, by events {100 * events / followed:.1f} %")


def ratio(lab):
    """Shares of samples are those of the instructions that QEMU counted."""
    rows = lab.report("--by", "domain,mode,function")["rows"]
    symbols = subprocess.run(["nm", "-n", "--defined-only", ROOT / "build/lab/labload"],
                             capture_output=True, text=True, check=True).stdout
    labload = [line for line in symbols.splitlines() if line.split()[1] in "tTwW"]
    lab_counts.compare_all(lab.check, rows, lab.directory / "truth.txt", labload,
                           lab.path() / "symbols/xensyms")


def polls(lab):
    """On two pCPUs every poll of the vcpu source is accounted for, and is in the trace."""
    found = [stream["looks"] for stream in lab.recording()["streams"]]
    check_poll_counters(lab, lab.recording(), "vcpu")
    running = lab.report("--event", "vcpu-running")
    preempted = lab.report("--event", "vcpu-preempted")
    total = running["samples"]["total"]
    lab.check(total > 30, f"there are {total} samples of running vCPUs")
    lab.check(sum(poll["running"] for poll in found) == total,
              f"the polls that found a running vCPU are its {total} samples")
    lab.check(sum(poll["preempted"] for poll in found) == preempted["samples"]["total"],
              f"the polls that found a vCPU without a pCPU are its {preempted['samples']['total']} samples")

    # A vCPU may be preempted after its state was read and before it is stopped.
    samples = running["samples"]
    stopped = samples["placements"]["stopped"]
    lab.check(stopped == samples["attributed"], f"the trace has the stop of each of {stopped} attributed samples")
    lab.check(stopped > 0.8 * total, f"that is {stopped} of {total} samples")
    lab.check(stopped + samples["remainders"]["not_running"] == total,
              f"the vCPUs of the other {total - stopped} samples did not run")

    first = top_row(running["rows"], domain="pv")
    lab.check_leads(first, "sha256_block", "pv, which only hashes")
    lab.check(first["mode"] == "user", f"pv: that is in {first['mode']} mode")


def agent(lab):
    """Guests sample themselves, and dom0 samples one of them, too."""
    recording = lab.recording()
    report = lab.report("--event", "cpu-clock")
    domains = domains_by_name(recording)
    symbols = {symbol["domain"] for symbol in recording["symbols"]
               if symbol["kind"] == "kallsyms" and "agent" in symbol["original"]}
    for name in "pv", "pvh":
        domain = domains[name]
        stream, = streams_of(recording, "agent", domain)
        lab.check(domain["role"] == "active", f"{name} is active")
        check_balanced_stream(lab, stream, name, least=100)
        lab.check(domain["id"] in symbols, f"{name}: its kernel's symbols came from its agent")
        kernel = [row for row in report["rows"] if row["domain"] == name and row["mode"] == "kernel"]
        named = [row for row in kernel if row["function"][0] not in "[0"]
        lab.check(count(kernel) > 0, f"{name}: there are {count(kernel):.0f} kernel samples")
        lab.check(count(named) >= 0.9 * count(kernel),
                  f"{name}: {count(named):.0f} of {count(kernel):.0f} kernel samples have a function")

    samples = report["samples"]
    lab.check(samples["attributed"] > 0.95 * samples["total"],
              f"{samples['attributed']} of {samples['total']} samples have a place in the trace")
    disordered = samples["remainders"]["out_of_order"]
    lab.check(disordered == 0, f"{disordered} samples came out of order")

    rows = report["rows"]
    check_leaf_shares(lab, rows, "pv", "cpu-clock")
    # In emulation the agent itself takes as much time, and its functions have no names here.
    named = [row for row in rows if row["function"][0] not in "[0"]
    lab.check_leads(top_row(named, domain="pvh", mode="user"), "sha256_block", "pvh, which only hashes")
    passive = lab.report("--event", "vcpu-preempted")
    lab.check(count(passive["rows"], domain="pvh", function="sha256_block") > 10,
              "pvh is passive, too: dom0's polls found it hashing")


def agent_stacks(lab):
    """Guests send stacks with their samples, which are unwound by their programs' tables."""
    recording = lab.recording()
    domains = domains_by_name(recording)
    for name in "pv", "pvh":
        source, = [each for each in recording["sources"] if each["name"] == f"agent-{domains[name]['id']}"]
        stacks = source.get("stacks", {})
        lab.check(stacks.get("pieces", 0) > 100 and stacks["left_out"] == 0, f"{name}: its stacks came: {stacks}")
        lab.check(stacks.get("stored_bytes", 0) < stacks.get("raw_bytes", 0) / 2, f"{name}: they are compressed")
        stream, = streams_of(recording, "agent", domains[name])
        check_balanced_stream(lab, stream, name, least=100)

    rows = lab.report("--event", "cpu-clock@agent", "--by", "domain,stack")["rows"]
    stacks = {name: [(row["stack"].split(";"), row["samples"]) for row in rows if row["domain"] == name]
              for name in ("pv", "pvh")}

    def samples_of(name, wanted):
        return sum(samples for stack, samples in stacks[name] if wanted(stack))

    # Neither leaf_a nor alpha's caller has a frame pointer to be found by: tables know alpha.
    leaf = samples_of("pv", lambda stack: stack[-1] == "leaf_a")
    good = samples_of("pv", lambda stack: stack[-2:] == ["alpha", "leaf_a"] and "main" in stack)
    lab.check(leaf > 50 and good >= 0.95 * leaf,
              f"pv: alpha called leaf_a, and main led there, in {good:.0f} of {leaf:.0f} samples")
    # The kernel's chain goes on in the program that called it.
    calls = samples_of("pv", lambda stack: "do_syscall_64" in stack)
    good = samples_of("pv", lambda stack: "do_syscall_64" in stack and "main" in stack)
    lab.check(good > 10 and good >= 0.8 * calls, f"pv: {good:.0f} of {calls:.0f} system calls' chains lead to main")
    hashing = samples_of("pvh", lambda stack: stack[-1] == "sha256_block")
    good = samples_of("pvh", lambda stack: stack[-1] == "sha256_block" and "_start" in stack[0] and "main" in stack)
    lab.check(hashing > 50 and good >= 0.95 * hashing,
              f"pvh: chains of sha256_block lead to the program's start in {good:.0f} of {hashing:.0f} samples")


def agent_threads(lab):
    """Guests record their own threads: on the host's timeline they are where Xen's trace allows it."""
    recording = lab.recording()
    domains = domains_by_name(recording)
    data = lab.run_json("threads", lab.path(), "--format", "json")
    samples = lab.report("--by", "domain,process,thread", "--event", "cpu-clock@agent")["rows"]
    vcpus = {domain["domid"]: domain["vcpus"][0] for domain in lab.summary()["domains"]}
    for name in "pv", "pvh":
        domain, = [each for each in data["domains"] if each["name"] == name]
        rows = [row for row in data["rows"] if row["domain"] == name]
        given = sum(trace["read"] for trace in recording["kernel_traces"] if trace["domain"] == domains[name]["id"])
        lab.check(domain["events"] > 1000 and domain["lost_events"] == 0 and given == domain["events"],
                  f"{name}: its kernel gave {given} events, {domain['events']} came, {domain['lost_events']} were lost")
        check_clock(lab, name, domain["clock"])
        # What threads' vCPUs did is what Xen's trace says.
        sums = {key: sum(row[key] for row in rows) for key in rows[0] if key.endswith("_s")}
        lab.check(sums["untraced_s"] < 0.01 * sums["on_vcpu_s"], f"{name}: {sums['untraced_s']:.3f} s are untraced")
        cycles = {state: found["cycles"] for state, found in vcpus[domains[name]["id"]]["runstates"].items()}
        for keys, state in ((("guest_s", "xen_s"), "running"), (("stolen_s",), "runnable"), (("halted_s",), "blocked")):
            ours = sum(sums[key] for key in keys) / sums["on_vcpu_s"]
            xens = cycles[state] / sum(cycles.values())
            lab.check(abs(ours - xens) < 0.03, f"{name}: {100 * ours:.1f} % {state}, Xen: {100 * xens:.1f} %")
        check_culprits(lab, name, sums)
        check_thread_exits(lab, name, sums)
        check_claims(lab, name)
        # One of two processes did twice the work.
        loads = sorted((row for row in rows if row["thread"] == "labload"), key=lambda row: -row["guest_s"])[:2]
        share = loads[1]["guest_s"] / (loads[0]["guest_s"] + loads[1]["guest_s"])
        lab.check(abs(share - 1 / 3) < 0.02, f"{name}: a third of the work took {100 * share:.1f} % of both's time")
        check_samples_have_threads(lab, samples, name, least=100)


def check_samples_have_threads(lab, samples, name, least):
    """Checks that the samples of a guest's agent have threads."""
    own = [row for row in samples if row["domain"] == name]
    known = sum(row["samples"] for row in own if row["thread"] != "[unknown]")
    lab.check(count(own) > least and known >= 0.99 * count(own),
              f"{name}: {known:.0f} of {count(own):.0f} samples have a thread")


def shown_by_trace_cmd(lab, names, *options):
    """Returns the lines of trace-cmd report, with these options, of each of these guests' trace.dat."""
    with tempfile.TemporaryDirectory() as work:
        subprocess.run([PROGRAM, "threads", lab.path(), "--format", "trace.dat", "-o", f"{work}/dat"], check=True)
        return {name: subprocess.run(["trace-cmd", "report", "-i", f"{work}/dat/{name}.dat", *options],
                                     capture_output=True, text=True, check=True).stdout.splitlines() for name in names}


def check_claims(lab, name):
    """Checks what a guest's kernel says of its idle and stolen time against Xen's trace."""
    claims = lab.run_json("threads", lab.path(), "--proc-stat", "--by", "domain", "--format", "json")["rows"]
    row, = [each for each in claims if each["domain"] == name]
    true = sum(row[key] for key in ("ran_s", "waited_s", "blocked_s", "offline_s", "unknown_s"))
    lab.check(abs(true - row["time_s"]) < 1e-6 and row["unknown_s"] < 0.05 * true,
              f"{name}: between two readings of its /proc/stat went {row['time_s']:.3f} s, {row['unknown_s']:.3f} s of "
              "which are not known")
    # Steal is counted by Xen; a tick that finds a thread counts as a whole one of it; a vCPU that was woken, and waits
    # for a pCPU, counts as idle, too.
    for kind, ours, least, most in (("steal", "waited_s", 0, 0), ("busy", "ran_s", 0.1 * true, 0.1 * true),
                                    ("idle", "blocked_s", 0, row["waited_s"])):
        says, error = row[f"claimed_{kind}_s"], row[f"claimed_{kind}_error_s"]
        lab.check(-least - error <= says - row[ours] <= most + error,
                  f"{name}: it says {kind} {says:.3f} s (+- {error:.3f}), {ours} is {row[ours]:.3f}")


def agent_busy(lab):
    """Guests whose kernels have more events than a channel takes stay in the recording, and losses are counted."""
    recording = lab.recording()
    domains = domains_by_name(recording)
    data = lab.run_json("threads", lab.path(), "--format", "json")
    calls = lab.run_json("threads", lab.path(), "--syscalls", "--format", "json")["rows"]
    lab.check("given up" not in lab.text("record.log"), "no agent was given up")
    for name in "pv", "pvh":
        domain, = [each for each in data["domains"] if each["name"] == name]
        traces = [trace for trace in recording["kernel_traces"] if trace["domain"] == domains[name]["id"]]
        given, lost = (sum(trace[key] for trace in traces) for key in ("read", "lost"))
        lab.check(given == domain["events"] > 20_000, f"{name}: its kernel gave {given} events, {domain['events']} came")
        lab.check(lost == domain["lost_events"], f"{name}: it lost {lost} events, threads says {domain['lost_events']}")
        own = [row for row in data["rows"] if row["domain"] == name]
        unknown = sum(row["lost_s"] for row in own)
        lab.check((unknown > 0) == (lost > 0), f"{name}: {unknown:.3f} s of threads are of lost events")
        made = sum(row["calls"] for row in calls
                   if row["domain"] == name and row["process"] == "labload" and row["call"] == "getppid")
        lab.check(made > 5_000, f"{name}: labload made {made} calls of getppid that are known whole")
        # Its agent answered to the end.
        stream, = streams_of(recording, "agent", domains[name])
        lab.check(stream["complete"], f"{name}: its agent gave its accounts")


def agent_functions(lab):
    """Calls of functions in a running guest and in dom0 are counted, with their callers, and shown by trace-cmd."""
    said = lab.text("record.log")
    lab.check(said.count("has no function that fits 'nosuch_*'") == 2, "both kernels say that no function fits")
    lab.check(said.count("have no times") == 2, "both say that they count calls, as Linux 6.1 has no more in instances")
    calls = lab.run_json("threads", lab.path(), "--calls", "--by", "process", "--format", "json")
    count = {(row["domain"], row["process"], row["function"]): row["calls"] for row in calls}
    made = count.get(("pv", "labload", "__x64_sys_getppid"), 0)
    lab.check(made == 20_000, f"pv: labload called sys_getppid {made} times of 20000")
    read = sum(row["calls"] for row in calls if (row["domain"], row["function"]) == ("Domain-0", "vfs_read"))
    lab.check(read > 100, f"dom0: vfs_read was called {read} times")
    tree = lab.run_json("threads", lab.path(), "--call-tree", "--by", "process", "--format", "json")
    for row, inner in zip(tree, tree[1:]):
        if inner["function"] == "__x64_sys_getppid" and inner["process"] == "labload":
            lab.check(row["depth"] == 0 and inner["depth"] == 1 and "syscall" in row["function"],
                      f"pv: {row['function']} called {inner['function']}")
    lines = shown_by_trace_cmd(lab, ["pv"], "-F", "function")["pv"]
    events = sum("function:" in line for line in lines)
    ours = sum(row["calls"] for row in calls if row["domain"] == "pv")
    lab.check(events == ours, f"trace-cmd report has {events} calls of functions in pv, threads {ours}")


def agent_newer(lab):
    """Guests with the newest Linux record threads, samples, and calls of functions with their times."""
    release = lab.text("guests/guest-pv.log").split("LAB up ")[1].split()[0]
    data = lab.run_json("threads", lab.path(), "--format", "json")
    calls = lab.run_json("threads", lab.path(), "--calls", "--by", "process", "--format", "json")
    tree = lab.run_json("threads", lab.path(), "--call-tree", "--by", "process", "--format", "json")
    samples = lab.report("--by", "domain,process,thread", "--event", "cpu-clock@agent")["rows"]
    shown = shown_by_trace_cmd(lab, ["pv", "pvh"])
    for name in "pv", "pvh":
        domain, = [each for each in data["domains"] if each["name"] == name]
        lab.check(domain["events"] > 40_000 and domain["lost_events"] == 0,
                  f"{name}, Linux {release}: {domain['events']} events came, {domain['lost_events']} were lost")
        lab.check(domain["damaged_bytes"] == domain["malformed_events"] == domain["missed_switches"] == 0,
                  f"{name}: all of them can be read, and no switch is missing")
        check_clock(lab, name, domain["clock"])
        check_samples_have_threads(lab, samples, name, least=50)
        row, = [each for each in calls if (each["domain"], each["process"], each["function"]) ==
                (name, "labload", "__x64_sys_getppid")]
        lab.check(row["calls"] == 20_000, f"{name}: labload called sys_getppid {row['calls']} times of 20000")
        parts = ("guest_s", "xen_s", "stolen_s", "halted_s", "untraced_s", "vcpu_lost_s", "woken_s", "preempted_s",
                 "sleeping_s", "uninterruptible_s", "lost_s")
        time = sum(row[part] for part in parts)
        lab.check(row["total_s"] > 0 and abs(time - row["total_s"]) < 1e-6,
                  f"{name}: that took {row['total_s']:.3f} s, of which {time:.3f} s have a state")
        # Each read of a file is a call of vfs_read by ksys_read.
        pairs = [(outer, inner) for outer, inner in zip(tree, tree[1:])
                 if outer["domain"] == name and (outer["function"], inner["function"]) == ("ksys_read", "vfs_read")]
        reads, inside = (sum(pair[i]["calls"] for pair in pairs) for i in (0, 1))
        lab.check(reads > 100 and 0.98 * reads <= inside <= reads and all(pair[1]["depth"] == 1 for pair in pairs),
                  f"{name}: {inside} of {reads} calls of ksys_read called vfs_read")
        excess = max(pair[1]["total_s"] - pair[0]["total_s"] for pair in pairs)
        lab.check(excess <= 0, f"{name}: vfs_read took no longer than the ksys_read that called it")
        ends = sum("__x64_sys_getppid" in line for line in shown[name])
        lab.check(ends >= 20_000, f"{name}: trace-cmd report names __x64_sys_getppid in {ends} lines")


def check_culprits(lab, name, sums):
    """Checks that waits of a guest's threads have culprits of both schedulers, and that they add up."""
    waits = lab.run_json("threads", lab.path(), "--culprits", "--format", "json")["rows"]
    own = [row for row in waits if row["domain"] == name]
    for state in "stolen", "woken", "preempted":
        time = sum(row["time_s"] for row in own if row["state"] == state)
        lab.check(abs(time - sums[f"{state}_s"]) < 1e-6, f"{name}: culprits of {state} have {time:.6f} s, all of them")
    all_waits = sum(row["time_s"] for row in own)
    unknown = sum(row["time_s"] for row in own if row["by_domain"] == "-")
    lab.check(unknown <= 0.001 * all_waits,
              f"{name}: {100 * unknown / all_waits:.2f} % of {all_waits:.3f} s of waiting have no culprit")
    # Each of the two labloads waits for the other one, and for the other guest's.
    for scheduler, domain in ("kernel", name), ("Xen", "pvh" if name == "pv" else "pv"):
        time = sum(row["time_s"] for row in own if row["process"] == "labload" and row["by_process"] == "labload"
                   and row["scheduler"] == scheduler and row["by_domain"] == domain)
        lab.check(time > 0.1 * all_waits, f"{name}: labload waited {time:.3f} s for that of {domain}, by {scheduler}")


def check_thread_exits(lab, name, sums):
    """Checks that a guest's time in Xen is divided among its threads by reason."""
    exits = [row for row in lab.run_json("threads", lab.path(), "--exits", "--format", "json")["rows"]
             if row["domain"] == name]
    time = sum(row["xen_s"] or 0 for row in exits)
    lab.check(abs(time - sums["xen_s"]) < 1e-6, f"{name}: {time:.6f} s in Xen have a reason, all of them")
    if name == "pv":
        calls = {row["subreason"] for row in exits if row["reason"] == "hypercall" and row["thread"] == "labload"}
        lab.check("iret" in calls, f"pv: labload made the hypercalls {', '.join(sorted(calls))}")
        return
    # The exits of all threads are those of the trace, but for those before its kernel's first event.
    counted = sum(row["entries"] for row in exits if row["reason"] == "VMEXIT_INTR")
    parts = sum(row["xen_s"] for row in exits if row["thread"] == "labload") / time
    lab.check(counted > 100 and parts > 0.1,
              f"pvh: {counted} interrupts stopped its threads; {100 * parts:.1f} % of its time in Xen is of labload")


def check_clock(lab, name, clock):
    """Checks that one offset explains all events of a guest's kernel."""
    lab.check(len(clock["epochs"]) == 1, f"{name}: its clock was set {len(clock['epochs']) - 1} times")
    possible = clock["epochs"][0]["possible_offsets"]
    lab.check(clock["events_outside"] == 0 and clock["contradicting_answers"] == 0,
              f"{name}: {clock['events_outside']} events and {clock['contradicting_answers']} answers contradict")
    lab.check(clock["events_inside"] > 100 * clock["events_untraced"],
              f"{name}: {clock['events_inside']} events are where its vCPU ran, {clock['events_untraced']} are untraced")
    width = possible[-1][1] - possible[0][0]
    lab.check(len(possible) == 1, f"{name}: its offset is in {possible}, {width} cycles")
    is_hosts = possible[0][0] <= 0 <= possible[-1][1]
    lab.check(is_hosts == (name == "pv"), f"{name}: its TSC is {'' if is_hosts else 'not '}the host's")


LEVELS = ["early", "pure", "core", "core_sync", "postcore", "arch", "subsys", "subsys_sync", "fs", "fs_sync", "rootfs",
          "device", "device_sync", "late", "late_sync"]


def boot_levels(lab):
    """Each cycle of a boot is in one phase and state, and the levels of initcalls are those that the kernel has."""
    options = subprocess.run([PROGRAM, "boot", "--kernel-options"], capture_output=True, text=True, check=True).stdout
    for name in "pv", "pvh":
        lab.check(options.strip() in lab.text(f"guests/{name}.cfg"),
                  f"{name}: its kernel has the options that boot prints")
        boot = check_boot(lab, name)
        check_boot_exits(lab, name, boot)
        check_boot_functions(lab, name, boot)


TRACED = "acpi_bus_*,pci_*,crypto_*,xenbus_*"


def boot_functions(lab):
    """Calls of functions in a boot: they add up, and those of initcalls are the initcalls."""
    options = subprocess.run([PROGRAM, "boot", "--kernel-options", "--guest-functions", TRACED], capture_output=True,
                             text=True, check=True).stdout
    for name in "pv", "pvh":
        lab.check(options.strip() in lab.text(f"guests/{name}.cfg"),
                  f"{name}: its kernel has the options that boot prints")
        boot = lab.run_json("boot", lab.path(), "--domain", name, "--format", "json")
        check_boot_clock(lab, name, boot["clock"])
        events = boot["function_events"]
        lab.check(events > 1000, f"{name}: tracing functions made {events:,} events, {boot['function_bytes']:,} bytes")
        levels = [phase["phase"] for phase in boot["phases"] if phase["phase"] in LEVELS]
        lab.check(levels == LEVELS[LEVELS.index("core"):], f"{name}: the levels from core on are there: {levels}")
        check_boot_calls(lab, name, boot)


def check_boot_calls(lab, name, boot):
    """Self times are those of outermost calls, and an initcall takes as long as its call."""
    of_boot = ["boot", lab.path(), "--domain", name, "--format", "json"]
    tree, calls = lab.run_json(*of_boot, "--call-tree"), lab.run_json(*of_boot, "--calls")
    events = sum(2 * row["calls"] + row["cut"] for row in calls)
    lab.check(events == boot["function_events"], f"{name}: calls have {events:,} events of {boot['function_events']:,}")
    cut = sum(row["cut"] for row in calls)
    lab.check(cut < 0.01 * events, f"{name}: {cut} calls are cut")
    for phase in {row["phase"] for row in tree}:
        outer = sum(row["total_s"] or 0 for row in tree if row["phase"] == phase and row["depth"] == 0)
        for rows, what in (tree, "tree"), (calls, "calls"):
            own = sum(row["self_s"] or 0 for row in rows if row["phase"] == phase)
            lab.check(abs(own - outer) < 1e-6, f"{name}, {phase}, {what}: {own:.6f} s of {outer:.6f} s are self")
    outermost = {row["function"]: row for row in tree if row["depth"] == 0}
    compared = 0
    for initcall in boot["initcalls"]:
        call = outermost.get(initcall["function"])
        if call is None or call["calls"] != 1 or call["phase"] != initcall["phase"] or initcall["wall_s"] < 1e-2:
            continue
        compared += 1
        # Another domain may run between the two events at its begin, or at its end.
        more = initcall["wall_s"] - call["total_s"]
        lab.check(0 <= more <= initcall["stolen_s"] + 2e-3,
                  f"{name}: {initcall['function']} takes {initcall['wall_s']:.6f} s, its call {call['total_s']:.6f} s")
    lab.check(compared > 2, f"{name}: {compared} initcalls were compared with their calls")


def boot_smp(lab):
    """A boot begins with the domain's creation, and goes on over vCPUs."""
    boot = check_boot(lab, "pv")
    build, entry = boot["phases"][:2]
    lab.check(build["wall_s"] > 0.1 and build["untraced_s"] > 0.9 * build["wall_s"],
              f"pv: the toolstack builds it for {build['wall_s']:.3f} s, in which it has no vCPU")
    lab.check(entry["begin_s"] == build["wall_s"], "pv: then it begins to run")


def check_boot(lab, name):
    """Checks that a boot has all phases, and that their times add up. Returns the boot."""
    boot = lab.run_json("boot", lab.path(), "--domain", name, "--format", "json")
    phases = {phase["phase"]: phase for phase in boot["phases"]}
    missing = [level for level in LEVELS if level not in phases]
    lab.check(not missing, f"{name}: the boot has all levels; missing: {missing}")
    in_order = [phase["phase"] for phase in boot["phases"] if phase["phase"] in LEVELS]
    lab.check(in_order == LEVELS, f"{name}: and in their order")
    # Each phase is its states, and all phases are the boot.
    states = [key for key in boot["phases"][0] if key.endswith("_s") and key not in ("begin_s", "wall_s")]
    worst = max(abs(sum(phase[key] for key in states) - phase["wall_s"]) for phase in boot["phases"])
    lab.check(worst < 1e-9, f"{name}: states of phases add up, to {worst:.1e} s")
    total = sum(phase["wall_s"] for phase in boot["phases"])
    lab.check(abs(total - boot["boot_s"]) < 1e-9, f"{name}: phases add up to {total:.6f} s")
    untraced = sum(phase["untraced_s"] + phase["trace_lost_s"] for phase in boot["phases"][1:])
    lab.check(untraced < 0.01 * boot["boot_s"], f"{name}: {untraced:.6f} s of {boot['boot_s']:.3f} s are untraced")
    lab.check(boot["trace_bytes"] < 100_000, f"{name}: its boot took {boot['trace_bytes']} bytes to record")
    check_boot_clock(lab, name, boot["clock"])
    check_initcalls(lab, name, boot)
    return boot


def check_boot_clock(lab, name, clock):
    lab.check(clock["events_outside"] == 0, f"{name}: {clock['events_inside']} kernel events are where its vCPU ran, "
              f"{clock['events_outside']} are not; its offset is known to {clock['width']} cycles")
    lab.check((clock["offset"] == 0) == (name == "pv"), f"{name}: its TSC is {clock['offset']} beside the host's")


def check_boot_exits(lab, name, boot):
    """Checks that what a guest's vCPU was in Xen is by the reasons of its exits."""
    in_xen = sum(phase["xen_s"] for phase in boot["phases"])
    by_reason = sum(row["time_s"] for row in boot["exits"])
    if name == "pv":
        lab.check(in_xen == 0 and not boot["exits"], f"{name}: it has no VM exits")
    else:
        lab.check(0 < by_reason <= in_xen and by_reason > 0.8 * in_xen,
                  f"{name}: {by_reason:.3f} s of {in_xen:.3f} s in Xen have an exit's reason")


def check_initcalls(lab, name, boot):
    """The kernel calls each of its initcalls once, at its level."""
    kallsyms = lab.path() / "guests" / str(boot["domain"]["id"]) / "kallsyms"
    listed = [line for line in kallsyms.read_text().splitlines() if " d __initcall__kmod_" in line]
    called = [row for row in boot["initcalls"] if row["phase"] in [*LEVELS, "console"]]
    lab.check(abs(len(called) - len(listed)) <= 2, f"{name}: {len(called)} initcalls were called of {len(listed)}")
    named = [row for row in called if not row["function"].startswith("0x")]
    lab.check(len(named) == len(called), f"{name}: {len(named)} of {len(called)} have a name")
    # None overlaps another one, so their times are those of their levels but for the loop around them.
    for level in "subsys", "device", "late":
        phase, = [phase for phase in boot["phases"] if phase["phase"] == level]
        inside = sum(row["wall_s"] for row in called if row["phase"] == level)
        lab.check(0.8 * phase["wall_s"] < inside <= phase["wall_s"],
                  f"{name}: initcalls of {level} take {inside:.4f} s of its {phase['wall_s']:.4f} s")


def check_boot_functions(lab, name, boot):
    """The times of functions by samples are those that Xen's trace has of their phases."""
    rows = lab.run_json("boot", lab.path(), "--domain", name, "--by", "function", "--format", "json")
    samples = sum(row["samples"] for row in rows)
    lab.check(samples > 200, f"{name}: {samples:.0f} samples are of its boot")
    for phase in boot["phases"]:
        own = [row for row in rows if row["phase"] == phase["phase"]]
        if sum(row["samples"] for row in own) < 30:
            continue
        ran = phase["guest_s"] + phase["xen_s"]
        sampled = sum(row["time_s"] for row in own)
        lab.check(abs(sampled - ran) < 0.02 * ran + 1e-4,
                  f"{name}: functions of {phase['phase']} have {sampled:.4f} s, its vCPU ran {ran:.4f} s")


def shutdown(lab):
    """Each cycle of a shutdown is in one phase and state, and the processes that it ended are known."""
    for name, vcpus in ("pv", 1), ("pvh", 2):
        ended = lab.run_json("shutdown", lab.path(name), "--format", "json")
        lab.check(ended["end"] == "powered off", f"{name} {ended['end']}")
        lab.check(ended["vcpus"] == vcpus, f"{name}: the trace has {ended['vcpus']} vCPUs of it")
        phases = [phase["phase"] for phase in ended["phases"]]
        # Whether the agent runs once more after reboot(2) is chance; in pv it has ended before.
        last = ("after last event",) if name == "pv" else ("after last event", "kernel")
        lab.check(len(phases) == 3 and phases[0] == "user space" and phases[1] in last and phases[2] == "destroy",
                  f"{name}: its phases are {phases}")
        states = [key for key in ended["phases"][0] if key.endswith("_s") and key not in ("begin_s", "wall_s")]
        worst = max(abs(sum(phase[key] for key in states) - vcpus * phase["wall_s"]) for phase in ended["phases"])
        lab.check(worst < 1e-9, f"{name}: states of phases add up, to {worst:.1e} s")
        total = sum(phase["wall_s"] for phase in ended["phases"])
        lab.check(abs(total - ended["shutdown_s"]) < 1e-9, f"{name}: phases add up to {total:.6f} s")
        destroy = ended["phases"][-1]
        lab.check(destroy["wall_s"] > 0 and destroy["guest_s"] == destroy["xen_s"] == 0,
                  f"{name}: no vCPU runs while it is destroyed, for {destroy['wall_s']:.3f} s")
        check_ended_processes(lab, name, ended["processes"])
        check_shutdown_functions(lab, name, ended)
    alone = lab.run_json("shutdown", lab.path("db"), "--format", "json")
    lab.check(alone["end"] == "powered off", f"db {alone['end']}, without an agent")
    phases = [phase["phase"] for phase in alone["phases"]]
    lab.check(phases == ["guest"], f"db: Xen keeps it as long as it is sampled, so its phases are {phases}")
    lab.check(alone["phases"][0]["guest_s"] > 0.1, f"db: it ran for {alone['phases'][0]['guest_s']:.3f} s")


def check_ended_processes(lab, name, rows):
    """Those that obey SIGTERM end soon; the one that does not, more than a second later, by SIGKILL."""
    asked = [row["process"] for row in rows if row["signals"].startswith("SIGTERM")]
    lab.check(len(asked) > 3 and not any("kthread" in process for process in asked),
              f"{name}: these were asked to end: {asked}")
    if name == "pv":  # SIGTERM has ended the agent, too
        lab.check("a signal ended it" in lab.text("pv.log"), "pv: its agent says that a signal ended it")
        return
    stubborn = [row for row in rows if row["signals"] == "SIGTERM, SIGKILL"]
    lab.check([row["wall_s"] > 1 and row["ended"] for row in stubborn] == ["yes"],
              f"{name}: {[(row['process'], round(row['wall_s'], 3)) for row in stubborn]} ended by SIGKILL")
    obedient = [row["wall_s"] for row in rows if row["signals"] == "SIGTERM" and row["ended"] == "yes"]
    lab.check(len(obedient) > 1 and max(obedient) < 1, f"{name}: {len(obedient)} ended by SIGTERM: {obedient} s")


def check_shutdown_functions(lab, name, ended):
    """The agent samples the guest alone: its functions have the time that the vCPUs executed the guest."""
    rows = lab.run_json("shutdown", lab.path(name), "--by", "function", "--format", "json", "-e", "cpu-clock")
    samples = sum(row["samples"] for row in rows)
    named = sum(row["samples"] for row in rows if row["mode"] == "kernel" and row["function"] != "[no symbols]")
    lab.check(name == "pv" or samples > 50, f"{name}: {samples:.0f} samples are of its shutdown")
    lab.check(name == "pv" or named > 20, f"{name}: {named:.0f} of its kernel have a function")
    for phase in ended["phases"]:
        own = [row for row in rows if row["phase"] == phase["phase"]]
        if sum(row["samples"] for row in own) < 30:
            continue
        ran = phase["guest_s"]
        sampled = sum(row["time_s"] for row in own)
        lab.check(abs(sampled - ran) < 0.02 * ran + 1e-4,
                  f"{name}: functions of {phase['phase']} have {sampled:.4f} s, its vCPUs executed it for {ran:.4f} s")


def boot_cost(lab):
    """A guest that records its boot executes hardly more instructions until its first program than its twin."""
    has = {name: [word in lab.text(f"guests/{name}.cfg") for word in ("initcall", TRACED)]
           for name in ("plain", "traced", "called")}
    lab.check(has == {"plain": [False, False], "traced": [True, False], "called": [True, True]},
              "of three equal guests two record their boot, and one its functions, too")
    ran = {name: ran_until_mark(lab, name) for name in has}
    for name, most in ("traced", 1.02), ("called", 1.5):
        ratio = ran[name] / ran["plain"]
        lab.check(0.99 < ratio < most,
                  f"{name} runs {ratio:.4f} times as long: {ran[name]:,} cycles, its twin {ran['plain']:,}")


def boot_sampled(lab):
    """A guest that records its boot, and is sampled meanwhile, executes hardly more instructions than its twin."""
    recording = lab.recording("sampled")
    seconds = (recording["stopped_tsc"] - recording["started_tsc"]) / recording["host"]["clock_hz"]
    event, = (event for event in recording["events"] if "nmis" in event)
    rate = event["nmis"]["logged"] / seconds
    lab.check(rate > 900, f"{event['nmis']['logged']} samples were taken, {rate:.0f} a second")
    plain, ran = (ran_until_mark(lab, name, which=name) for name in ("plain", "sampled"))
    lab.check(1 < ran / plain < 1.05, f"it runs {ran / plain:.4f} times as long: {ran:,} cycles, its twin {plain:,}")


def ran_until_mark(lab, name, which=""):
    """The cycles for which a guest's only vCPU ran until it wrote its first mark."""
    domain = domains_by_name(lab.recording(which))[name]["id"]
    ran, since = 0, None
    for record in lab.dump("--domain", name, which=which):
        if record["event"] == "runstate_change" and record["fields"]["vcpu"]["domid"] == domain:
            change = record["fields"]["change"]
            if change["old"] == "running":
                ran += record["tsc"] - since
            since = record["tsc"] if change["new"] == "running" else None
        elif record["event"] == "guest":
            return ran + record["tsc"] - since
    lab.check(False, f"{name} wrote no mark")
    raise SystemExit(1)


def sources(lab):
    """Each source works with a PV and a PVH guest, roles change, and doctor runs everywhere."""
    for name, words in {
            "doctor-bare.txt": r"^recording +no +/dev/xen/privcmd is missing",
            "doctor.txt": r"^agents +yes .* pv \(xenoscope",
            "guests/guest-pv.log": r"^recording of Xen +no +this is a guest: record in dom0"}.items():
        lab.check(re.search(words, lab.text(name), re.MULTILINE), f"doctor, {name}: {words}")
    if not pathlib.Path("/sys/hypervisor/type").exists():
        said = subprocess.run([PROGRAM, "doctor"], capture_output=True, text=True, check=False)
        lab.check(said.returncode == 0, f"doctor, on a machine without Xen: its status is {said.returncode}")
        lab.check("does not run on Xen" in said.stdout, "doctor, on a machine without Xen: it says so")

    check_poll_counters(lab, lab.recording("vcpu"), "vcpu")
    rows = lab.report("--event", "vcpu-preempted", which="vcpu")["rows"]
    check_leaf_shares(lab, rows, "pvh", "vcpu")
    lab.check_leads(top_row(rows, domain="pv"), "sha256_block", "vcpu: pv, which only hashes")

    report = lab.report(which="trace")
    lab.check_accounting(report, "trace")
    check_leaf_shares(lab, report["rows"], "pvh", "trace")

    recording, report = lab.recording("chains"), lab.report(which="chains")
    check_balanced(lab, recording, "chains")
    lab.check_accounting(report, "chains")
    domains = domains_by_name(recording)
    for name in "Domain-0", "pv":
        callers = sum(stream["callers"] for stream in streams_of(recording, "xenoprof", domains[name]))
        lab.check(callers > 100, f"chains: {callers} callers were found in {name}")
    twins = report["samples"]["placements"]["twin"]
    lab.check(twins > 20, f"chains: {twins} samples of pvh have the time of their NMI")
    check_leaf_shares(lab, report["rows"], "pvh", "chains")

    for which, role in ("active", "active"), ("passive", "passive"), ("again", "active"):
        recording = lab.recording(which)
        domain = domains_by_name(recording)["pv"]
        kept = {source: sum(stream["kept"] for stream in streams_of(recording, source, domain))
                for source in ("agent", "xenoprof")}
        source, other = ("agent", "xenoprof") if role == "active" else ("xenoprof", "agent")
        lab.check(domain["role"] == role, f"{which}: pv is {domain['role']}")
        lab.check_kept(kept[source], 50, f"{which}: pv, by {source}")
        lab.check(kept[other] == 0, f"{which}: {kept[other]} samples of pv are by {other}")
        rows = lab.report("--event", recording["events"][-1]["name"], which=which)["rows"]
        lab.check_leads(top_row(rows, domain="pv", mode="user"), "sha256_block", f"{which}: pv's programs")
    recording = lab.recording("again")
    event = recording["events"][-1]
    kernel = sum(stream["logged"]["kernel"]
                 for stream in streams_of(recording, "agent", domains_by_name(recording)["pv"]))
    lab.check(event["name"] == "cpu-clock", f"again: the agent has an event of its own: {event['name']}")
    lab.check(event["clocked_by"] == "cpu-clock:500", f"again: its clock is {event['clocked_by']}")
    lab.check(kernel == 0, f"again: it has {kernel} samples of the kernel, which were not asked for")


def orc(lab):
    """Chains of Debian's kernels lead to where user mode entered them, by the ORC of their vmlinux."""
    vmlinux = ROOT / "build/lab/vmlinux"
    by = ("--event", "vcpu-preempted", "--by", "domain,mode,stack")
    without = lab.report(*by)
    with_orc = lab.report(*by, *(word for name in ("pv", "pvh")
                                 for word in ("--guest", f"{name}:kernel={vmlinux}")))
    for name in "pv", "pvh":
        note, = (note for note in without["cautions"] if f"in the kernel of {name} " in note)
        lab.check("its vmlinux, which has the ORC, was not given" in note, f"{name}: a report says: {note}")
        note, = (note for note in with_orc["cautions"] if f"in the kernel of {name} " in note)
        ended, chains = map(int, re.match(r"(\d+) of (\d+) ", note).groups())
        without_stack = int((re.findall(r"(\d+) have no stack", note) or ["0"])[0])
        lab.check(chains - without_stack >= 10 and ended >= 0.9 * (chains - without_stack), f"{name}: {note}")
        # A system call's chain has its entry, and is several functions long.
        stacks = [(row["stack"].split(";"), row["samples"]) for row in with_orc["rows"]
                  if row["domain"] == name and row["mode"] == "kernel"]
        entered = sum(samples for stack, samples in stacks if "entry_SYSCALL_64_after_hwframe;do_syscall_64"
                      in ";".join(stack))
        deepest = max((stack for stack, _ in stacks), key=len, default=[])
        lab.check(entered >= 5, f"{name}: {entered:.0f} samples have a chain from a system call")
        lab.check(len(deepest) >= 8, f"{name}: the longest chain is {';'.join(deepest)}")
        # An interrupt's handler has a stack of its own, which its chain leaves.
        handlers = [(stack, samples) for stack, samples in stacks if "handle_softirqs" in stack[1:]
                    or "__do_softirq" in stack[1:] or any(frame.startswith("sysvec_") for frame in stack[1:-1])]
        left = sum(samples for stack, samples in handlers if not any(frame.startswith("[") for frame in stack))
        lab.check(left >= 0.8 * sum(samples for _, samples in handlers),
                  f"{name}: {left:.0f} of {sum(samples for _, samples in handlers):.0f} chains of interrupts are whole")


def modules(lab):
    """Chains that go through a module are whole once its file is there, and say before that it is missing. An archive
    has that file."""
    vmlinux, names = ROOT / "build/lab/vmlinux", lab.directory / "ram.kallsyms"
    recording = lab.recording()
    recorded, = (file for file in recording["symbols"] if file["kind"] == "kallsyms"
                 and file["domain"] == domains_by_name(recording)["ram"]["id"])
    own = re.findall(r"^[0-9a-f]{16} . \S+\s+\[brd\]", lab.text("guests/guest-ram.log"), re.M)
    lab.check(len(own) > 5, f"the guest's kernel has {len(own)} symbols of brd")
    names.write_text((lab.path() / recorded["path"]).read_text() + "\n".join(own) + "\n")
    away = lab.directory / "away.xeno"
    shutil.rmtree(away, ignore_errors=True)
    with_file = f"ram:kernel={vmlinux},kallsyms={names},root={ROOT / 'build/lab/root'}"
    subprocess.run([PROGRAM, "archive", lab.path(), "--guest", with_file, "-o", lab.directory / "archive"], check=True)
    subprocess.run([PROGRAM, "unpack", lab.directory / "archive", "-o", away], check=True)
    for what, word, which, whole in (
            ("without its file", f"ram:kernel={vmlinux},kallsyms={names},root={lab.directory}", "", False),
            ("with it", with_file, "", True),
            ("from an archive", f"ram:kallsyms={names},root={lab.directory}", away, True)):
        report = lab.run_json("report", which or lab.path(), "--format", "json", "--event", "vcpu-preempted", "--by",
                              "domain,mode,stack", "--guest", word)
        met = [(row["stack"].split(";"), row["samples"]) for row in report["rows"] if row["domain"] == "ram"]
        met = [(stack, samples) for stack, samples in met if "brd_submit_bio" in stack and stack[0] != "[no stack]"]
        good = sum(samples for stack, samples in met if "do_syscall_64" in stack)
        found = sum(samples for _, samples in met)
        note, = (note for note in report["cautions"] if "in the kernel of ram " in note)
        if whole:
            lab.check(found >= 10 and good >= 0.9 * found,
                      f"{what}: {good:.0f} of {found:.0f} chains through brd_submit_bio lead to a system call; {note}")
        else:
            lab.check(good == 0 and "modules (brd: its file was not given" in note, f"{what}: {note}")


def programs(lab):
    """Functions and chains of a program that was loaded anywhere, in guests without an agent, whose build-id and
    place come from the guests' memory."""
    names, program = ("pv", "pvh"), ROOT / "build/lab/labload_pie"
    report = lab.report("--event", "vcpu-preempted", "--by", "domain,mode,stack",
                        *(word for name in names for word in
                          ("--guest", f"{name}:kernel={ROOT / 'build/lab/vmlinux'},exe={program}")))
    lab.check_accounting(report, "report")
    for name in names:
        stacks = [(row["stack"].split(";"), row["samples"]) for row in report["rows"] if row["domain"] == name]
        leaves = [(stack, samples) for stack, samples in stacks if stack[-1] == "leaf_a"]
        leaf = sum(samples for _, samples in leaves)
        # Where the vCPU had run on, the sample has no callers.
        chains = [(stack, samples) for stack, samples in leaves if stack[0] != "[no stack]"]
        good = sum(samples for stack, samples in chains if stack[-2:] == ["alpha", "leaf_a"] and "main" in stack)
        lab.check(leaf >= 10, f"{name}: leaf_a has {leaf:.0f} samples")
        lab.check(chains and good >= 0.9 * sum(samples for _, samples in chains), f"{name}: alpha called leaf_a, and "
                  f"main led there, in {good:.0f} of {sum(samples for _, samples in chains):.0f} samples with callers")
        calls = [(stack, samples) for stack, samples in stacks if "do_syscall_64" in stack and "main" in stack]
        lab.check(calls, f"{name}: {sum(samples for _, samples in calls):.0f} system calls' chains lead to main")


def orc_hvm(lab):
    """Interrupts' chains lead from a kernel's stack of interrupts to its task, and on to the program's start: in an
    HVM, a PVH and a PV guest."""
    vmlinux, names = ROOT / "build/lab/vmlinux", ("web", "net", "db")
    report = lab.report("--event", "vcpu-preempted", "--by", "domain,mode,stack",
                        *(word for name in names for word in ("--guest", f"{name}:kernel={vmlinux}")), which="all")
    for name in names:
        note, = (note for note in report["cautions"] if f"in the kernel of {name} " in note)
        ended, chains = map(int, re.match(r"(\d+) of (\d+) ", note).groups())
        # Where the vCPU had run on, there is no stack, or no outer one.
        chains -= sum(map(int, re.findall(r"(\d+) (?:have no stack|end where the stack)", note)))
        lab.check(chains >= 10 and ended >= 0.95 * chains, f"{name}: {note}")
    whole = [(row["stack"].split(";"), row["domain"], row["samples"]) for row in report["rows"]
             if row["mode"] == "kernel" and not row["stack"].startswith("[")]
    # ORC says of thunks for indirect calls that nothing called them.
    thunks = [(stack, samples) for stack, _, samples in whole if "indirect_thunk" in stack[-1]]
    called = sum(samples for stack, samples in thunks if len(stack) > 1)
    lab.check(called == sum(samples for _, samples in thunks), f"{called:.0f} of "
              f"{sum(samples for _, samples in thunks):.0f} chains from thunks of indirect calls have callers")
    for handlers, function in (({"net_rx_action"}, "do_udp"),
                               ({"asm_sysvec_xen_hvm_callback", "exc_xen_hypervisor_callback"}, "main")):
        found = collections.Counter()
        good = collections.Counter()
        for stack, of, samples in whole:
            begin = next((i for i, frame in enumerate(stack) if frame in handlers), None)
            # Threads of the kernel are interrupted, too.
            if begin is None or stack[0] == "ret_from_fork":
                continue
            found[of] += samples
            good[of] += samples if "main" in stack and function in stack[:begin] else 0
        for name in names:
            lab.check(good[name] >= 0.9 * found[name], f"{name}: {function} is below {' or '.join(sorted(handlers))} in "
                      f"{good[name]:.0f} of {found[name]:.0f} chains")
        lab.check(sum(found.values()) >= 5, f"these are {sum(found.values()):.0f} in all")


def frames(lab):
    """Where Xen has frame pointers, chains in Xen lead from its functions to where a guest entered it."""
    check_balanced(lab, lab.recording(), "xenoprof")
    report = lab.report("--by", "domain,mode,stack")
    lab.check_accounting(report, "report")
    stacks = [(row["stack"].split(";"), row["domain"], row["samples"]) for row in report["rows"]
              if row["mode"] == "xen"]
    # At the first instructions of a function, its caller is not in the chain.
    for domain, caller, function in (
            ("pv", "lstar_enter", "pv_hypercall"), ("pv", "pv_hypercall", "do_iret"),
            ("pv", "handle_exception_saved", "do_page_fault"),
            ("pvh", "svm_stgi_label", "svm_vmexit_handler"), ("pvh", "svm_vmexit_handler", "svm_get_insn_len"),
            ("pvh", "__hvm_copy", "hvm_translate_get_page")):
        callers = collections.Counter()
        for stack, of, samples in stacks:
            if of == domain and function in stack[1:]:
                callers[stack[stack.index(function) - 1].split("#")[-1]] += samples
        found = sum(callers.values())
        lab.check(found >= 10, f"{domain}: {function} is in the chains of {found:.0f} samples")
        lab.check(callers[caller] >= 0.85 * found, f"{domain}: {caller} called it in {callers[caller]:.0f} of them")
    deepest = max((stack for stack, of, _ in stacks if of == "pvh"), key=len, default=[])
    lab.check(len(deepest) >= 10, f"pvh: the longest chain is {';'.join(deepest)}")
    check_xen_is_quiet(lab)


def newxen(lab):
    """On a Xen without xenoprof, record takes vcpu and perf."""
    recording = lab.recording("auto")
    lab.check(recording["xen"]["version"].startswith("4.20"), f"this is Xen {recording['xen']['version']}")
    names = [source["name"] for source in recording["sources"]]
    lab.check(names == ["vcpu", "perf"], f"auto took {' and '.join(names)}")
    lab.check(re.search("^note: source vcpu: .* since this Xen has no xenoprof", lab.text("auto.log"),
                        re.MULTILINE), "auto said why it did not take xenoprof")
    lab.check(re.search("^record +yes +uses vcpu for the guests and perf for dom0", lab.text("doctor.txt"),
                        re.MULTILINE), "doctor had said so")
    check_poll_counters(lab, recording, "vcpu")
    rows = lab.report("--event", "vcpu-preempted", which="auto")["rows"]
    lab.check_leads(top_row(rows, domain="pv"), "sha256_block", "vcpu: pv, which only hashes")
    lab.check(count(rows, domain="pvh", function="leaf_a") > 5, "vcpu: pvh was found in leaf_a")
    check_callers(lab, "pvh", "leaf_a", "do_compute", which="chains", least=4)
    check_callers(lab, "pv", "sha256_block", "do_sha256", which="chains")
    report = lab.report("--event", "cpu-clock", which="auto")
    lab.check_accounting(report, "perf")
    report = lab.report(which="trace")
    lab.check_accounting(report, "trace")
    check_leaf_shares(lab, report["rows"], "pvh", "trace")


def ends(lab):
    """Recordings that were ended by force can be read, and later ones clean up after them."""
    for which, signal in ("term", "SIGTERM"), ("hup", "SIGHUP"):
        recording = lab.recording(which)
        check_balanced(lab, recording, which)
        lab.check(recording["stopped_because"] == signal, f"{which}: it says that {signal} ended it")
        lab.check_accounting(lab.report(which=which), which)
    for which, after in ("killed", "after"), ("both", "last"):  # each killed one, and the one after it
        killed, next_one = lab.recording(which), lab.recording(after)
        lab.check(killed["state"] == "recording", f"{which}: it says that it was cut off")
        lab.check_accounting(lab.report(which=which), which)
        lab.check("ended the sampling that a killed recording had left running" in lab.text(f"{after}.log"),
                  f"{after}: it ended what {which} had left, and says so")
        check_balanced(lab, next_one, after)
        nmis = next_one["events"][0]["nmis"]
        lab.check(nmis["logged"] > 0.3 * nmis["sent"],
                  f"{after}: {nmis['logged']} of {nmis['sent']} NMIs were logged")
        lab.check_accounting(lab.report(which=after), after)
        trace = lab.summary(after)["trace"]
        early = (next_one["started_tsc"] - trace["first_tsc"]) / next_one["host"]["clock_hz"]
        lab.check(0 < early < 10, f"{after}: its trace begins {early:.1f} s before sampling, not with the old one")
        # Xen's full buffers lose records until xentrace has read them for the first time.
        lab.check(trace["lost_records"] < 10000, f"{after}: {trace['lost_records']} records were lost")
        lab.check(trace["loss_marks"] <= 1, f"{after}: they were lost in {trace['loss_marks']} stretches")
    lab.check("xentrace" not in lab.text("killed.ps"), "killed: its xentrace has ended, too")
    lab.check(re.search("^xenoprof +yes +left running by a killed recording", lab.text("killed.doctor"),
                        re.MULTILINE), "killed: doctor says what was left")
    lab.check(re.search("^trace +yes +tracing is still on", lab.text("both.doctor"), re.MULTILINE),
              "both: doctor says that Xen still traces")
    for which, doctor in ("polls", "polls.doctor"), ("last", "last.doctor"):
        lab.check_said("^xenoprof +yes +samples Xen", doctor, f"{which}: no sampling is left")
        lab.check_said("^trace +yes +records scheduling", doctor, f"{which}: no tracing is left")
    lab.check("ended the sampling that a killed recording had left running" in lab.text("polls.log"),
              "polls: a recording without xenoprof and trace has ended them, and says so")
    check_xen_is_quiet(lab)


def held(lab):
    """Recordings go on whatever happens to dom0, and a guest records itself."""
    for which in ("clock", "paused", "first"):
        recording = lab.recording(which)
        check_balanced(lab, recording, which)
        lab.check(recording["stopped_because"] == "command ended", f"{which}: it went on to its end")
        lab.check_accounting(lab.report(which=which), which)
        seconds = seconds_of(recording)
        drains, = (source["drains"] for source in recording["sources"])
        lab.check(4 < seconds < 300, f"{which}: it took {seconds:.1f} s by the host's TSC")
        lab.check(drains["most_ns"] < seconds * 1e9 / 2,
                  f"{which}: no more than {drains['most_ns'] / 1e9:.2f} s were from drain to drain")
    told = " ".join(lab.report(which="paused")["changes"])
    lab.check(re.search(r"\bpaused at .*\bunpaused at ", told), f"paused: the report says so: {told}")
    lab.check(lab.text("second.status").strip() != "0", "first: a second record is refused")
    lab.check("is recording" in lab.text("second.log"),
              f"first: the second record says why: {lab.text('second.log').strip()[:100]}")
    console = lab.text("guests/guest-pv.log")
    lab.check("own status=0" in console, "a guest records its own Linux")
    lab.check(re.search(r"(\d+) of \1 samples attributed", console), "its report attributes all samples")


def lost(lab):
    """Buffers are too small: what was lost is reported, and adds up."""
    recording = lab.recording()
    check_balanced(lab, recording, "lost")
    nmis = recording["events"][0]["nmis"]
    seconds = seconds_of(recording)
    lab.check(abs(nmis["sent"] - 1000 * seconds) < 0.05 * nmis["sent"], f"{nmis['sent']} NMIs came in {seconds:.2f} s")
    lab.check(nmis["sent"] == nmis["logged"] + nmis["lost"] + nmis["elsewhere"],
              f"of these {nmis['logged']} were logged, {nmis['lost']} lost, {nmis['elsewhere']} elsewhere")
    lab.check(nmis["logged"] > 100, f"{nmis['logged']} NMIs were logged")
    entries = sum(stream["kept"] + stream["other_counters"] for stream in recording["streams"])
    lab.check(entries // 6 == nmis["logged"], f"{entries} entries are those of {nmis['logged']} NMIs")
    # In QEMU, where one pCPU is always busy, an NMI that is not counted came too soon after another.
    report = lab.report()
    lab.check_accounting(report)
    full = sum(stream["logged"]["lost"] for stream in recording["streams"])
    lab.check(full > 0, f"{full} entries were lost")
    lab.check(report["samples"]["lost_in_buffers"] == full, f"the report has {full} lost entries")
    lab.check("WARNING:" in lab.text("record.log"), "record warned, and said what helps")
    summary = lab.summary()["trace"]
    told = recording["trace"]
    lab.check(told["lost_records"] > 0, f"{told['lost_records']} trace records were lost")
    lab.check(summary["lost_records"] == told["lost_records"],
              f"the summary has {summary['lost_records']} of them")
    lab.check(told["asked_pages"] == 2, f"record asked for {told['asked_pages']} pages")
    lab.check(told["buffer_pages"] == told["asked_pages"], f"Xen has {told['buffer_pages']} pages")
    lab.check(re.search(r"WARNING: in [0-9.]+ % of the time the trace was lost", lab.text("record.log")),
              "record warned of the lost trace")
    # Samples have their domain: shares of time are those of samples, whatever the trace has lost. A buffer that is
    # full drops samples of its own vCPU, and Xen counts them: they are of the domain, too.
    report = lab.report("--by", "domain")
    names = {each["id"]: each["name"] for each in recording["domains"]}
    taken = collections.Counter()
    for stream in recording["streams"]:
        taken[names[stream["domain"]]] += sum(stream["logged"].values())
    samples = report["samples"]["total"]
    for row in report["rows"]:
        sampled = taken[row["domain"]] / taken.total()
        # Both have chance in them: of independent samples, and of the estimate. Three standard errors.
        errors = math.hypot(math.sqrt(sampled * (1 - sampled) / samples), (row["high"] - row["low"]) / 2 / 1.96)
        lab.check(abs(sampled - row["share"]) <= 3 * errors,
                  f"{row['domain']} has {sampled:.3f} of the samples, {row['low']:.3f} to {row['high']:.3f} of time")
    lab.check(report["samples"]["attributed"] > 0.95 * report["samples"]["total"],
              f"{report['samples']['attributed']} of {report['samples']['total']} samples are attributed")


def xentrace(lab):
    """record and doctor say which process has Xen's trace buffers, and how a recording ended."""
    doctor = lab.text("small.doctor")
    lab.check(re.search(r"^record +no", doctor, re.MULTILINE), "small: doctor says that record cannot begin beside it")
    lab.check("another xenoscope" in doctor, "small: doctor says why")
    for which, asked in ("small", 2), ("large", 64):
        trace = lab.recording(which)["trace"]
        lab.check(trace["asked_pages"] == asked, f"{which}: record asked for {trace['asked_pages']} pages")
        lab.check(trace["buffer_pages"] == 2, f"{which}: Xen has {trace['buffer_pages']} pages")
    lab.check("Xen has trace buffers of 2 pages for each pCPU, not of 64" in lab.text("large.log"),
              "large: record says so")
    said, doctor = lab.text("beside.log"), lab.text("beside.doctor")
    who = r"xentrace is running already \(process \d+\)"
    lab.check(lab.text("beside.status").strip() == "1", "beside: record is refused")
    lab.check(re.search(who, said), f"beside: record says why: {said.splitlines()[:1]}")
    lab.check(re.search(r"^record +partly", doctor, re.MULTILINE), "beside: doctor says that record works in part")
    lab.check(re.search(who, doctor), "beside: doctor says why")
    killed = lab.recording("killed")
    lab.check(killed["state"] == "ended_early", f"killed: the recording is {killed['state']}")
    lab.check("was ended by SIGKILL" in killed["stopped_because"], f"killed: {killed['stopped_because']}")
    lab.check(lab.text("killed.status").strip() == "1", "killed: record's status is 1")
    trace = lab.summary("killed")["trace"]
    seconds = (trace["last_tsc"] - trace["first_tsc"]) / killed["host"]["clock_hz"]
    lab.check(seconds > 2, f"killed: {seconds:.1f} s of trace are kept")
    lab.check(trace["records"] > 1000, f"killed: {trace['records']} records are kept")
    lab.check(lab.text("seven.status").strip() == "7", "seven: record ends with its command's status")
    lab.check(lab.recording("seven")["state"] == "complete", "seven: the recording is complete")


def lifecycle(lab):
    """Domains and vCPUs come and go, and the recording goes on."""
    recording, report = lab.recording(), lab.report()
    lab.check_went_on(recording, "lifecycle")
    lab.check_accounting(report)
    happened = {}
    for change in map(json.loads, (lab.path() / "changes.jsonl").read_text().splitlines()):
        name = next(domain["name"] for domain in recording["domains"] if domain["id"] == change["domain"])
        vcpu = f" {change['vcpu']}" if "vcpu" in change else ""
        happened.setdefault(name, []).append(change["kind"] + vcpu)
    for name, wanted in {"stays": ["paused", "unpaused", "vcpu_offline 1"],
                         "goes": ["destroyed"],
                         "comes": ["created", "destroyed"],
                         "moves": ["suspended", "destroyed", "created"]}.items():
        seen = iter(happened.get(name, []))
        lab.check(all(kind in seen for kind in wanted),
                  f"{name}: {', '.join(happened.get(name, []))}")
    told = " ".join(report["changes"])
    lab.check(all(name in told for name in happened), "the report names them")
    for name in "stays", "goes":
        streams = streams_of(recording, "xenoprof", domains_by_name(recording)[name])
        lab.check_kept(sum(stream["kept"] for stream in streams), 100, name)


def later(lab):
    """A domain that is created while dom0 polls vCPUs is polled, too."""
    recording = lab.recording()
    comes = domains_by_name(recording)["comes"]
    stream, = streams_of(recording, "vcpu", comes)
    lab.check(comes["role"] == "passive", f"comes is {comes['role']}")
    lab.check(stream["looks"]["total"] > 10, f"comes was polled {stream['looks']['total']} times")
    check_poll_counters(lab, recording, "vcpu")
    check_callers(lab, "comes", "sha256_block", "do_sha256",
                  "--image", f"comes={ROOT / 'build/lab/labload'}", least=4)
    lab.check_accounting(lab.report("--event", "vcpu-preempted"))


def members(lab):
    """Agents deliver what Xen logs of active domains of xenoprof, whichever process is killed."""
    def kept(which, source, name="web"):
        recording = lab.recording(which)
        return sum(stream["kept"] for stream in streams_of(recording, source, domains_by_name(recording)[name]))

    recording, report = lab.recording("member"), lab.report(which="member")
    web, pvh = (domains_by_name(recording)[name] for name in ("web", "pvh"))
    said = lab.text("member.log")
    for name, domain in ("web", web), ("pvh", pvh):
        lab.check(domain["role"] == "active", f"member: {name} is {domain['role']}")
    lab.check(re.search("web is active: its agent .* takes part in xenoprof", said),
              "member: record says that web takes part in xenoprof")
    lab.check(re.search("pvh: .*it samples cpu-clock instead", said),
              "member: record says what pvh, which cannot take part, samples instead")
    check_balanced(lab, recording, "member")
    lab.check_accounting(report, "member")
    stream, = streams_of(recording, "agent", web)
    logged = stream["logged"]
    lab.check_kept(stream["kept"], 100, "member: web, by its agent")
    lab.check(kept("member", "xenoprof") == 0, f"member: {kept('member', 'xenoprof')} samples of web came by dom0")
    lab.check(logged["xen"] > 0, f"member: Xen logged {logged['xen']} samples of itself for web")
    nmis = recording["events"][0]["nmis"]
    own = (logged["xen"] + logged["kernel"] + logged["user"] + logged["lost"]) / 6
    lab.check(nmis["sent"] == sum(nmis[key] for key in ("logged", "lost", "elsewhere")),
              f"member: of {nmis['sent']} NMIs dom0 logged {nmis['logged']} and lost {nmis['lost']}; "
              f"{nmis['elsewhere']} were elsewhere")
    lab.check(own <= nmis["elsewhere"], f"member: of these web's buffers took {own:.0f}")
    lab.check_leads(top_row(report["rows"], domain="web", mode="user"), "sha256_block", "member: web, which hashes")
    rows = [row for which in ("member", "passive", "left", "again", "after")
            for row in lab.report(which=which)["rows"]]
    check_leaf_shares(lab, rows, "db", "all that end well")

    chains, = streams_of(lab.recording("chains"), "agent", domains_by_name(lab.recording("chains"))["web"])
    lab.check(chains["callers"] > 100, f"chains: {chains['callers']} callers were found in web")
    lab.check(chains["balanced"], "chains: all entries of web are accounted for")
    for which, role, source, other in (("passive", "passive", "xenoprof", "agent"),
                                       ("again", "active", "agent", "xenoprof"),
                                       ("after", "active", "agent", "xenoprof")):
        recording = lab.recording(which)
        is_role = domains_by_name(recording)["web"]["role"]
        lab.check(is_role == role, f"{which}: web is {is_role}")
        lab.check_kept(kept(which, source), 50, f"{which}: web, by {source}")
        lab.check(kept(which, other) == 0, f"{which}: {kept(which, other)} samples of web are by {other}")
        lab.check_leads(top_row(lab.report(which=which)["rows"], domain="web", mode="user"), "sha256_block",
                        f"{which}: web, which hashes")

    lab.check("web: its agent was given up" in lab.text("agent.log"), "agent: record says that web's agent ended")
    lab.check_kept(kept("agent", "agent"), 20, "agent: web, up to the agent's end")
    lab.check("web is not sampled: its sample buffers are in use" in lab.text("left.log"),
              "left: record says that web cannot be sampled")
    lab.check_kept(kept("left", "xenoprof", "db"), 50, "left: db")
    lab.check(lab.recording("killed")["state"] == "recording", "killed: the recorder was cut off")
    lab.check("ended the sampling that a killed recording had left running" in lab.text("after.log"),
              "after: it ended what killed had left")
    for which in "agent", "left", "again", "after", "destroyed":
        recording = lab.recording(which)
        own = [stream for stream in recording["streams"] if stream["source"] == "xenoprof"]
        lab.check(recording["state"] == "complete", f"{which}: the recording is {recording['state']}")
        lab.check(own, f"{which}: dom0 has {len(own)} buffers")
        lab.check(all(stream["balanced"] for stream in own), f"{which}: all samples in them are accounted for")
    # xl pauses it first, on a busy host for longer than an agent has for an answer.
    lab.check(re.search("web: its agent was given up, .*: (its domain has gone|it did not stop)",
                        lab.text("destroyed.log")), "destroyed: record says why web's agent ended")
    lab.check_kept(kept("destroyed", "agent"), 50, "destroyed: web, up to its end")
    lab.check("(null)" not in lab.text("xl-list-after.txt"), "destroyed: Xen has let go of web")
    check_xen_is_quiet(lab)


def agentdies(lab):
    """Agents that are killed or hang cost their own samples, from then on."""
    for which, why in (("killed", "it closed the connection"),
                       ("hung", "it did not stop and give its accounts within 10 s")):
        recording = lab.recording(which)
        pv = domains_by_name(recording)["pv"]
        stream, = streams_of(recording, "agent", pv)
        lab.check_went_on(recording, which)
        lab.check(re.search(f"pv: its agent was given up, .*: {why}", lab.text(f"{which}.log")),
                  f"{which}: record says why pv's agent was given up")
        lab.check_kept(stream["kept"], 50, f"{which}: pv, up to there")
        lab.check(not stream["complete"], f"{which}: pv's accounts are marked as not complete")
        check_poll_counters(lab, recording, which)
        lab.check_accounting(lab.report("--event", "cpu-clock", which=which), f"{which}, cpu-clock")
        report = lab.report("--event", "vcpu-preempted", which=which)
        lab.check_accounting(report, f"{which}, vcpu-preempted")
    lab.check(domains_by_name(lab.recording("silent"))["pv"]["role"] == "passive",
              "silent: an agent that does not answer leaves its domain passive")
    lab.check("pv is sampled by dom0 instead" in lab.text("silent.log"), "silent: record says so")
    for which in "after", "again":
        recording = lab.recording(which)
        pv = domains_by_name(recording)["pv"]
        stream, = streams_of(recording, "agent", pv)
        lab.check(pv["role"] == "active", f"{which}: pv is {pv['role']}")
        check_balanced_stream(lab, stream, f"{which}: pv")


def hostile(lab):
    """An agent that makes the recorder wait costs its own samples and a bounded time, and no other domain's."""
    for which, ended in ("drip", "command ended"), ("twice", "SIGINT"):
        recording = lab.recording(which)
        web, evil = (domains_by_name(recording)[name] for name in ("web", "evil"))
        stream, = streams_of(recording, "agent", web)
        lab.check_went_on(recording, which, ended)
        check_balanced_stream(lab, stream, f"{which}: web")
        lab.check(lab.path(which).joinpath(f"samples/agent-{evil['id']}.samples").exists(),
                  f"{which}: evil has a file of its own")
        lab.check_accounting(lab.report("--event", f"cpu-clock@agent-{web['id']}", which=which), which)
    lab.check("evil: its agent was late" in lab.text("drip.log"), "drip: record says that evil was late")
    lab.check("evil: its kernel's symbols: it did not send its file within 30 s" in lab.text("drip.log"),
              "drip: record says that evil did not send a file in time")
    took = int(lab.text("drip.seconds"))
    lab.check(took < 90, f"drip: 3 s of recording took {took} s in all")
    took = int(lab.text("twice.seconds"))
    lab.check("a signal ended the wait" in lab.text("twice.log"), "twice: the second signal ended the wait")
    lab.check(took < 15, f"twice: record ended {took} s after it")


def drains(lab):
    """Drains come in time, though the requested interval is too long."""
    recording = lab.recording()
    check_balanced(lab, recording, "drains")
    intervals, = (source["drains"] for source in recording["sources"])
    nmis = recording["events"][0]["nmis"]
    full_ms = 600 / 6  # an NMI logs 6 entries; QEMU makes at most one NMI a ms on each pCPU
    logged = max(sum(stream["logged"].values()) for stream in recording["streams"])
    cycles = recording["stopped_tsc"] - recording["started_tsc"]
    really_full_ms = 600 / logged * cycles / recording["host"]["clock_hz"] * 1000
    lost = sum(stream["logged"]["lost"] for stream in recording["streams"])
    longest = intervals["most_ns"] / 1e6
    lab.check(lost == 0 or longest > full_ms,
              f"buffers were full after {full_ms:.0f} ms; drained every {intervals['p50_ns'] / 1e6:.1f} ms, within "
              f"{longest:.1f} ms; {lost} entries of {nmis['logged'] * 6} were lost")
    lab.check(intervals["p50_ns"] / 1e6 < really_full_ms / 2,
              f"drains came in time for buffers that, on the average, were full after {really_full_ms:.0f} ms")
    lab.check(nmis["logged"] > 1000, f"{nmis['logged']} NMIs of {nmis['sent']} were logged")


def boost(lab):
    """dom0 gets its turn in time with a raised weight, which is restored however record ends."""
    weights = {}
    for line in lab.text("weights.txt").splitlines():
        when, *_, weight, _ = line.split()
        weights[when] = int(weight)
    for when in "before", "after", "after-TERM", "doctor":
        lab.check(weights[when] == 256, f"{when}: dom0's weight is {weights[when]}")
    for when in "during-TERM", "during-KILL", "after-KILL":
        lab.check(weights[when] == 2048, f"{when}: dom0's weight is {weights[when]}")
    lab.check_said(r"^weight +yes +restored dom0's weight of 256", "doctor.txt", "doctor")
    lab.check_said(r"^note: raised dom0's weight from 256 to 2048", "boosted.log", "boosted")
    lab.check_said(r"^WARNING: dom0 got its turn too late.* record with --boost", "plain.log", "plain")
    late = {which: lab.recording(which)["sources"][0]["drains"]["p99_ns"] / 1e6 for which in ("plain", "boosted")}
    lab.check(late["boosted"] < late["plain"] / 2,
              f"99 % of drains came within {late['boosted']:.1f} ms, and {late['plain']:.1f} without --boost")


def budget(lab):
    """Slices cost less than the budget once the recorder knows what they cost, and each is a recording."""
    slices = re.findall(r"^(\S+)Z\.xeno: [\d.]+ s, \d+ samples, \d+ lost, ([\d.]+) MB, ([\d.]+) % of a CPU",
                        lab.text("budget.log"), re.M)
    lab.check(len(slices) >= 8, f"there are {len(slices)} slices")
    # The budget is of all time, also of that between two slices. The last one was ended by the signal.
    begins = [datetime.datetime.strptime(begin, "%Y-%m-%dT%H-%M-%S.%f") for begin, *_ in slices]
    lengths = [(end - begin).total_seconds() for begin, end in zip(begins, begins[1:])]
    written = [float(megabytes) / seconds for (_, megabytes, _), seconds in zip(slices, lengths)]
    lab.check(written[0] > 0.3, f"the first slice wrote {written[0]:.2f} MB/s, more than the budget of 0.3")
    kept = [rate <= 0.3 for rate in written]
    # Now and then the recorder tries whether more fits.
    lab.check(sum(kept[-5:]) >= 4, f"of the last five at least four kept it: {[f'{rate:.2f}' for rate in written]}")
    share = [float(share) for *_, share in slices[:-1]]
    lab.check(sum(each <= 50 for each in share[-5:]) >= 4, f"and 50 % of a CPU: {share}")
    steps = re.findall(r"^budget: .*: next slices have ([\d.]+) % of the samples, trace: (.*)", lab.text("budget.log"), re.M)
    lab.check(steps and steps[0][1] != "as asked", f"the recorder said what it lowered: {steps}")
    paths = sorted((lab.directory / "budget").glob("*.xeno"))
    lab.check(len(paths) >= len(slices), f"{len(paths)} slices are in the ring")
    names = {os.stat(path / "symbols/dom0.kallsyms").st_ino for path in paths[:-1]}
    lab.check(len(names) == 1, f"they have {len(names)} file of dom0's symbols, of {len(paths) - 1} names")
    for path in paths[0], paths[-2]:
        report = lab.run_json("report", path, "--format", "json")
        lab.check_accounting(report, path.name)


def nested(lab):
    """What a guest's own guest does is apart from the guest: its VM exits and its time are those that it had."""
    domain = next(each for each in lab.summary()["domains"] if each["name"] == "l1")
    vcpu = domain["vcpus"][0]
    writes = lab.load("l1", "kvm", "kvm")
    exits = vcpu["nested_exits"]["VMEXIT_IOIO"]["count"]
    lab.check(exits == writes, f"L2 wrote to its port {writes} times, and left by it {exits} times")
    runs = vcpu["exits"]["VMEXIT_VMRUN"]["count"]
    lab.check(runs >= writes, f"L1 ran L2 {runs} times")
    hz = lab.recording()["host"]["clock_hz"]
    level = vcpu["guest_levels"]["nested guest"]["cycles"] / hz
    # A round is 20,000 turns of two instructions, and two more; an instruction takes 2 ns.
    truth = writes * 40_003 * 2e-9
    lab.check(abs(level / truth - 1) < 0.05, f"L2 ran for {level:.4f} s, its instructions take {truth:.4f} s")
    report = lab.report("--by", "domain,exit")
    lab.check_accounting(report)
    rows = {row["exit"]: row for row in report["rows"] if row["domain"].split()[-1] == "l1"}
    for context in "guest", "nested guest", "nested transition", "nested VMEXIT_IOIO", "VMEXIT_VMRUN":
        lab.check(rows.get(context, {"samples": 0})["samples"] > 0,
                  f"{context}: {rows.get(context, {'samples': 0})['samples']:.1f} samples")


def livepatch(lab):
    """Functions of Xen's livepatches have names, whenever they were loaded."""
    slow = ROOT / "build/lab/4.17/slow_time.livepatch"
    for which in "loaded", "there":
        rows = lab.report("--by", "mode,image,function", which=which)["rows"]
        first = top_row(rows, mode="xen")
        lab.check((first["image"], first["function"]) == ("[livepatch slow_time]", "get_s_time"),
                  f"{which}: {first['function']} of {first['image']} leads Xen with {first['samples']:.0f} samples")
        named = lab.report("--by", "mode,image,function", "--xen-syms", slow, which=which)["rows"]
        linger = count(named, image="[livepatch slow_time]", function="linger")
        gap = count(rows, image="[livepatch slow_time]", function="[gap]")
        lab.check(gap > 0, f"{which}: {gap:.0f} samples are in code of the livepatch that replaces no function")
        lab.check(linger == gap, f"{which}: its file names {linger:.0f} of them")
        chance = 4 * math.sqrt(0.25 * 0.75 / (first["samples"] + linger))
        share = linger / (first["samples"] + linger)
        lab.check(abs(share - 0.25) < chance, f"{which}: that is {share:.0%} of it; it does a quarter of its turns")
    kinds = {symbol["kind"] for symbol in lab.recording("gone")["symbols"]}
    rows = lab.report("--by", "image", which="gone")["rows"]
    lab.check("livepatches" not in kinds, "gone: the recording has no list of livepatches")
    lab.check(not any("livepatch" in row["image"] for row in rows), "gone: the report names no livepatch")
    pressed = lab.text("xen.log").count("'x' pressed")
    lab.check(pressed == 2, f"the debug key was pressed {pressed} times in three recordings")


def kaslr(lab):
    """The distance by which KASLR moved a guest's kernel is found from samples; the guest confirms it."""
    functions = [line.split() for line in (lab.path() / "symbols/dom0.kallsyms").read_text().splitlines()
                 if "[" not in line and line.split()[1] in "tT"]
    place = {name: int(address, 16) for address, _, name in functions}
    begin, end = place["_stext"], place["_etext"]

    def moved(by):
        """A file with the kallsyms of a guest whose kernel was moved."""
        path = lab.directory / f"{by:x}.kallsyms"
        path.write_text("".join(f"{int(address, 16) + by:016x} {letter} {name}\n"
                                for address, letter, name in functions))
        return path

    # The kernel's package has no symbols; dom0 runs the same kernel at its link address.
    vmlinux = lab.directory / "vmlinux"
    options = lab.directory / "vmlinux.options"
    options.write_text("".join(
        f"--add-symbol {name}=.text:{int(address, 16) - begin:#x},function,"
        f"{'global' if letter == 'T' else 'local'}\n"
        for address, letter, name in functions if begin <= int(address, 16) < end))
    subprocess.run(["objcopy", f"@{options}", ROOT / "build/lab/vmlinux", vmlinux], check=True)

    shifts = set()
    for name in "web", "db":
        wanted = int(re.search(r"^([0-9a-f]+) T _stext", lab.text(f"guests/guest-{name}.log"), re.M)[1], 16) - begin
        shifts.add(wanted)
        done = subprocess.run([PROGRAM, "report", lab.path(), "--guest", f"{name}:kernel={vmlinux}"],
                              capture_output=True, text=True, check=True)
        found = re.search(r"'s kernel was moved by (0x[0-9a-f]+): then (\d+) of (\d+) sampled", done.stderr)
        lab.check(found, f"{name}: a shift was found, by {found and found[2]} of {found and found[3]} addresses")
        lab.check(found and int(found[1], 16) == wanted,
                  f"{name}: it is {found and found[1]}, and the guest says {wanted:#x}")
        by_samples, by_text = (
            {row["function"]: row["samples"] for row in
             lab.report("--by", "domain,mode,function", "--guest", f"{name}:{given}")["rows"]
             if row["domain"] == name and row["mode"] == "kernel"}
            for given in (f"kernel={vmlinux}", f"kallsyms={moved(wanted)}"))
        lab.check(len(by_text) > 50, f"{name}: its kallsyms names {len(by_text)} sampled functions")
        lab.check(by_samples == by_text, f"{name}: the {len(by_samples)} functions by samples are the same")
    lab.check(len(shifts) == 2, "the two kernels were moved by different distances")
    lab.check(0 not in shifts, "both kernels were moved")


def exits_of(summary, domain):
    """The (reason, handler event, its number) of a domain's exits of vCPU 0, each with its figures."""
    vcpu, = next(each for each in summary["domains"] if each["name"] == domain)["vcpus"]
    return vcpu, {(reason, event, number): figures
                  for reason, of_reason in vcpu["exits"].items()
                  for event, of_event in of_reason.get("parts", {}).items()
                  for number, figures in of_event.get("parts", {"": of_event}).items()}


def check_causes(lab, rows, access, function):
    """Checks that most accesses of a device come from one function of the guest."""
    found = {}
    for name, row in rows.items():
        if name.split(", ")[-1] == access:
            found[row["symbol"]] = found.get(row["symbol"], 0) + row["count"]
    most = max(found, key=found.get, default="nothing")
    lab.check(most == function, f"{access} comes from {most}, as it should from {function}")


def check_rounds(lab, which, domain):
    """Checks the exits of standalone/devices.S, which repeats rounds of known work."""
    vcpu, exits = exits_of(lab.summary(which), domain)
    rounds = exits["VMEXIT_HLT", "hlt", ""]["count"]
    lab.check(rounds > 10, f"{domain}: halts {rounds} times, once a round")
    for each_round, exit_of in ((8, ("VMEXIT_CPUID", "cpuid", "leaf 0x1")),
                                (8, ("VMEXIT_MSR", "msr_read", "APIC_BASE")),
                                (8, ("VMEXIT_IOIO", "io_write", "0x3ff (COM1)")),
                                (8, ("VMEXIT_IOIO", "io_read", "0x3ff (COM1)")),
                                (1, ("VMEXIT_IOIO", "io_read", "0x1f0 (IDE)")),
                                (8, ("VMEXIT_IOIO", "io_read", "0xcfc (PCI)")),
                                (8, ("VMEXIT_IOIO", "io_read", "0x71 (RTC)")),
                                (16, ("VMEXIT_IOIO", "io_read", "0x40 (PIT)")),
                                (8, ("VMEXIT_IOIO", "io_read", "0xb008 (ACPI PM timer)")),
                                (8, ("VMEXIT_NPF", "mmio_read", "0xa0000 (VGA)")),
                                (8, ("VMEXIT_NPF", "mmio_read", "0xfed000f0 (HPET)")),
                                (8, ("VMEXIT_NPF", "mmio_read", "0xfec00000 (IO-APIC)")),
                                (8, ("VMEXIT_NPF", "mmio_read", "0xfee00390 (LAPIC TMCCT)"))):
        found = exits.get(exit_of, {"count": 0})["count"]
        # The first round and the last may not be whole.
        lab.check(abs(found - each_round * rounds) <= 2 * each_round,
                  f"{domain}: {' '.join(exit_of)}: {found}, {each_round} a round")
    ports = vcpu["io_ports"]
    serial = ports["0x3ff (COM1) write"]
    lab.check(serial.get("waits") == serial["count"],
              f"{domain}: it waited for its device model in {serial.get('waits')} of {serial['count']} writes")
    lab.check(serial.get("waited", 0) < serial["cycles"], f"{domain}: the waits are a part of these exits' time")
    lab.check("waits" not in ports["0x40 (PIT) read"], f"{domain}: it did not wait for what Xen emulates")
    check_causes(lab, vcpu["port_eip"], "io_write 0x3ff (COM1)", "use_serial_line")
    check_causes(lab, vcpu["port_eip"], "io_read 0xcfc (PCI)", "read_pci_configuration")
    check_causes(lab, vcpu["port_eip"], "io_read 0x1f0 (IDE)", "read_disk")


def check_behalf_of_threads(lab):
    """Samples of xenoprof are on behalf of the domain whose process dom0's kernel had put on the vCPU."""
    report = lab.report("--by", "domain,behalf,process,mode", which="behalf")
    lab.check_accounting(report, "behalf")
    rows = [row for row in report["rows"] if row["domain"] == "Domain-0"]
    for behalf, process in ("devices", "xen-qemu-system"), ("web", "xen-qemu-system"), ("db", "3.xvda-0"):
        of = [row for row in rows if row["behalf"] == behalf]
        lab.check(all(row["process"].startswith(process) for row in of),
                  f"behalf: processes that work for {behalf} begin with {process}")
        for in_xen in False, True:
            samples = sum(row["samples"] for row in of if (row["mode"] == "xen") == in_xen)
            lab.check(samples > 10, f"behalf: {samples:.0f} samples of them {'in Xen' if in_xen else 'in dom0'}")
    lab.check(all(row["behalf"] == "-" for row in rows if not
                  row["process"].startswith(("xen-qemu-system", "3.xvda"))), "behalf: other processes work for none")
    guests = [row for row in report["rows"] if row["domain"] != "Domain-0"]
    lab.check(all(row["behalf"] == "-" for row in guests), "behalf: guests work for none")


def hvm(lab):
    """HVM guests with device models: each access of a device is there, with the code that caused it."""
    for which in "devices", "linux":
        check_balanced(lab, lab.recording(which), which)
        lab.check_accounting(lab.report(which=which), which)
    check_rounds(lab, "devices", "devices")
    rows = lab.report("--by", "domain,mode,function", which="devices")["rows"]
    lab.check_leads(top_row(rows, domain="devices", mode="kernel"), "compute", "devices")
    rows = lab.report("--by", "domain,exit,subreason", which="devices")["rows"]
    lab.check(count(rows, domain="devices", exit="VMEXIT_IOIO") > 50,
              f"devices: {count(rows, domain='devices', exit='VMEXIT_IOIO'):.0f} samples are of accesses of ports")
    lab.check(count(rows, domain="devices", exit="VMEXIT_IOIO", subreason="-") < 1,
              "devices: it is known of which")
    vcpu, exits = exits_of(lab.summary("linux"), "web")
    sent = exits.get(("VMEXIT_IOIO", "io_write", "0x3f8 (COM1)"), {"count": 0})["count"]
    lab.check(sent > 100, f"linux: it wrote {sent} bytes to its serial line")
    check_causes(lab, vcpu["port_eip"], "io_write 0x3f8 (COM1)", "io_serial_out")
    report = lab.report("--by", "domain,behalf,process", which="perf")
    lab.check_accounting(report, "perf")
    for behalf, process in ("devices", "xen-qemu-system"), ("web", "xen-qemu-system"), ("db", "3.xvda-0"):
        top = max((row for row in report["rows"] if row["behalf"] == behalf), key=lambda row: row["samples"],
                  default={"process": "nothing", "samples": 0})
        lab.check(top["process"].startswith(process), f"perf: {top['process']} works on behalf of {behalf}")
        lab.check(top["samples"] > 20, f"perf: {top['samples']:.0f} samples of it")
    lab.check(all(row["behalf"] == "-" for row in report["rows"] if not
                  row["process"].startswith(("xen-qemu-system", "3.xvda"))), "perf: other processes work for none")
    check_behalf_of_threads(lab)
    check_xen_is_quiet(lab)


def check_event_counts(lab, which, events):
    """Checks that samples times period are the same for events that count the same: instructions that are executed."""
    recording, counted = lab.recording(which), []
    for name, period in events.items():
        samples = lab.report("--event", name, which=which)["samples"]["total"]
        counted.append((samples * period, math.sqrt(max(samples, 1)) * period))
        lab.check(samples > 500, f"{which}: {samples:.0f} samples of {name}")
    executed = seconds_of(recording) * 1e9 / 2  # an instruction takes two nanoseconds: -icount shift=1
    for (total, error), name in zip(counted, events):
        lab.check(abs(total - executed) < 4 * error + 0.03 * executed,
                  f"{which}: {name} counted {total / 1e9:.3f} G, {executed / 1e9:.3f} G instructions ran")


def events(lab):
    """Events of performance counters are sampled at their rates, in their modes and domains."""
    check_event_counts(lab, "one", {"cpu_clk_unhalted": 763937})
    check_event_counts(lab, "two", {"cpu_clk_unhalted": 1999993, "retired_instructions": 1000003})
    rows = lab.report("--by", "domain,mode,function", which="one")["rows"]
    lab.check_leads(top_row(rows, domain="pv", mode="user"), "sha256_block", "one")
    for mode in "user", "kernel", "xen":
        report = lab.report("--by", "mode", which=mode)
        lab.check_accounting(report, mode)
        # Xen runs in the guests' ring 0: what it counted as it left a guest is logged as the guest's kernel.
        others = sum(row["samples"] for row in report["rows"] if row["mode"] != mode)
        at_exits = report["samples"]["placements"]["at_exit"]
        lab.check(others <= at_exits, f"{mode}: {others:.0f} samples are of other modes, {at_exits} were at exits")
        lab.check(count(report["rows"], mode=mode) > 50, f"{mode}: {count(report['rows'], mode=mode):.0f} samples")
    check_xen_is_quiet(lab)


def ipc(lab):
    """Cycles and instructions are both executed instructions: each function has one of the other."""
    rows = lab.report("--by", "domain,function", "--limit", "0")["rows"]
    rows = [row for row in rows if row["samples"] >= 20]
    held = sum(row["ipc_low"] <= 1 and (row["ipc_high"] is None or row["ipc_high"] >= 1) for row in rows)
    lab.check(len(rows) > 20, f"{len(rows)} functions have 20 samples")
    lab.check(held >= 0.9 * len(rows), f"{held} of {len(rows)} intervals of instructions per cycle hold 1")
    check_xen_is_quiet(lab)


def agent_events(lab):
    """Agents sample their guests by hardware counters, and dom0 samples itself by its own."""
    domains = domains_by_name(lab.recording())
    for name in "pv", "pvh":
        stream, = streams_of(lab.recording(), "agent", domains[name])
        check_balanced_stream(lab, stream, name, least=500)
        report = lab.report("--event", "cycles@agent", "-d", name)
        lab.check_accounting(report, name)
        lab.check_leads(top_row(report["rows"], mode="user"), "sha256_block", name)
    check_xen_is_quiet(lab)


def stat(lab):
    """Totals of domains and vCPUs, estimated from samples, hold those that the run time says: 2 ns for an instruction."""
    held, rows = 0, json.loads(lab.text("stat.json"))["rows"]
    executed = {row["domain"]: row["count"] / 2 for row in rows if row["event"] == "run-time"}
    estimated = [row for row in rows if row["kind"] == "estimated"]
    for row in estimated:
        held += row["low"] <= executed[row["domain"]] <= row["high"]
    lab.check({row["domain"] for row in estimated} >= {"Domain-0", "pv", "pvh"}, f"{len(estimated)} totals of vCPUs")
    lab.check(held >= len(estimated) - 1, f"{held} of {len(estimated)} intervals hold the total")
    for name in "stat.txt", "pv.txt":
        lab.check_said(r"^ *pv .*cpu_clk_unhalted +estimated", name, "by domain")
    lab.check_said(r"page-faults +exact", "command.txt", "a command of dom0")
    lab.check_said(r"page-faults +exact", "intervals.txt", "intervals")
    check_xen_is_quiet(lab)


def stat_agents(lab):
    """Agents read the counters of their guests' kernels, and Xen the time of its pCPU."""
    active = json.loads(lab.text("active.json"))
    rows = {(row["domain"], row["event"]): row for row in active["rows"]}
    for domain in "Domain-0", "pv", "pvh":
        lab.check(rows[domain, "page-faults"]["kind"] == "exact", f"{domain}: page faults are counted")
        lab.check(rows[domain, "cycles"]["kind"] == "not counted", f"{domain}: nothing counts cycles here")
        clock = rows[domain, "cpu-clock"]["count"] / 1e9 / active["seconds"]
        lab.check(0.8 < clock < 1.2, f"{domain}: its one CPU counted for {clock:.2f} of the time")
    # labload fault touches 256 fresh pages, and then sleeps; sha256 touches none.
    faults = [rows[domain, "page-faults"]["count"] for domain in ("pv", "pvh")]
    lab.check(faults[0] >= 256 and faults[1] < 50, f"the guests had {faults[0]} and {faults[1]} page faults")
    lab.check_said(r"pv +0 .* page-faults +exact", "intervals.txt", "intervals")
    pcpu = json.loads(lab.text("pcpu.json"))
    ran = [row["count"] / 1e9 for row in pcpu["rows"] if row["event"] == "run-time" and row["pcpu"] == 0]
    lab.check(len(ran) == 1 and 0.5 < ran[0] <= pcpu["seconds"],
              f"pCPU 0 ran for {ran} of {pcpu['seconds']:.1f} s")
    check_xen_is_quiet(lab)


def vpmu(lab):
    """Samples that dom0 takes of all domains belong to those that ran."""
    for which in "asleep", "busy":
        report = lab.report("--by", "domain,function", which=which)
        lab.check_accounting(report, which)
        # Xen keeps one sample until dom0 has taken it, and drops others.
        held = {check["domain"]: check["held_seconds"] / check["seconds"] for check in report["placing_checks"]}
        lab.check(held["Domain-0"] < 0.2 < held["pv"] < 1 and 0.2 < held["pvh"] < 1,
                  f"{which}: samples were held for " + ", ".join(f"{part:.0%} of {name}" for name, part in held.items()))
        for guest in "pv", "pvh":
            lab.check_leads(top_row(report["rows"], domain=guest), "sha256_block", f"{which}: {guest}")
    of_dom0 = count(report["rows"], domain="Domain-0")
    lab.check(of_dom0 > 50, f"busy: {of_dom0:.0f} samples are of dom0, though each is taken when dom0 runs")
    lab.check_said(r"^vPMU +yes +mode all: perf samples Xen and all domains$", "doctor.txt", "vPMU")
    lab.check_said(r"^perf +yes +samples Xen and all domains, by hardware counters$", "doctor.txt", "vPMU")
    check_xen_is_quiet(lab)


def check_modes_of_vpmu(lab):
    """In mode self dom0 samples itself, in mode hv also Xen when it works for dom0."""
    for which, function in ("self", "sha256_block"), ("hv", None):
        report = lab.report("--by", "domain,mode,function", which=which)
        lab.check_accounting(report, which)
        xen = count(report["rows"], mode="xen")
        if function:
            lab.check_leads(top_row(report["rows"], mode="user"), function, which)
            lab.check(xen == 0, f"{which}: no sample is of Xen: {xen:.0f}")
        else:
            lab.check(xen > 20, f"{which}: {xen:.0f} samples are of Xen")
    check_xen_is_quiet(lab)


def vpmu_modes(lab):
    """The vPMU's modes for dom0 alone, beside xenoprof."""
    check_modes_of_vpmu(lab)


def vpmu_newer(lab):
    """The same on a Xen without xenoprof."""
    check_modes_of_vpmu(lab)


def shared(lab):
    """A guest's owner sees its own part of dom0's recording, and nothing of its neighbour."""
    lab.check_said(r"pvh: has its own part of the recording", "first.log", "record")
    console = lab.text("guests/guest-pvh.log")
    report = console[console.find("While runnable"):]
    lab.check("shared status=0" in report, "the guest reports what dom0 shared")
    lab.check(re.search(r"other 1.* s +\d", report), "it waited for another domain, which has no name")
    lab.check(not re.search(r"\bpv\b", report), "the name of its neighbour is not there")
    lab.check("HLT" in report or "VMEXIT" in report, "its VM exits are there")
    lab.check("sha256_block" in report, "its function is there")


# The scenarios in the order in which `lab all` runs them.
CHECKS = {check.__name__: check for check in
      (ci, counts, hyper, marks, threads, held, lost, xentrace, drains, boost, budget, nested, polls, orc, modules,
       programs, orc_hvm, frames, agent, agent_stacks, agent_threads, agent_functions, agent_newer, agent_busy,
       boot_levels, boot_functions, boot_smp, boot_cost, boot_sampled, shutdown, agentdies, hostile, sources, members,
       newxen, ends, lifecycle, later, livepatch, kaslr, hvm, ratio, events, ipc, agent_events, stat, stat_agents, vpmu,
       vpmu_modes, vpmu_newer, shared)}
