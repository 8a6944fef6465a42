"""Holds Perfetto's thread states of each domain's machine against `threads --format json`: machines.py RESULTS THREADS,
RESULTS of query.mjs with the statements that `machines.py` alone prints, one a line."""

import collections
import json
import sys

UNKNOWN = 0x7FFF0000  # threads with this number or a larger one: it is not known who ran there
STATEMENTS = [
    "select raw_id, tid, state, ts, thread_state.dur from thread_state join thread using (utid) "
    "join machine on machine.id = machine_id where raw_id > 0",
    "select raw_id, cpu, sched.ts, sched.dur, tid from sched join thread using (utid) "
    "join machine on machine.id = machine_id where raw_id > 0 order by raw_id, cpu, sched.ts, sched.id",
    "select raw_id, tid, slice.name, count(*), sum(slice.dur) from slice "
    "join thread_track on track_id = thread_track.id join thread using (utid) join machine on machine.id = thread.machine_id where raw_id > 0 group by 1, 2, 3",
    "select raw_id, tid, count(*), sum(irq_context is null and waker_utid is not null) from thread_state "
    "join thread using (utid) join machine on machine.id = machine_id where raw_id > 0 and state = 'R' group by 1, 2",
    "select raw_id, into_thread.tid, count(*) from flow join slice s on s.id = slice_in "
    "join thread_track t on t.id = s.track_id join thread into_thread using (utid) "
    "join machine on machine.id = into_thread.machine_id group by 1, 2",
]
if len(sys.argv) == 1:
    print("\n".join(STATEMENTS))
    sys.exit(0)

states, runs, slices, woken, flows = json.load(open(sys.argv[1]))
threads = json.load(open(sys.argv[2]))
# By machine and thread: rows of thread_state; by machine and CPU: runs. Those that are still open have no length.
rows, on_cpu = collections.defaultdict(list), collections.defaultdict(list)
for machine, tid, state, ts, dur in states:
    rows[machine, tid].append((state, ts, dur))
for machine, cpu, ts, dur, tid in runs:
    on_cpu[machine, cpu].append((ts, dur, tid))
said = {(machine, tid, name): (count, dur) for machine, tid, name, count, dur in slices}
flows_into = {(machine, tid): count for machine, tid, count in flows}
wakers = {(machine, tid): count for machine, tid, _, count in woken}
# Runs that begin without a switch to the thread: it is the first on the CPU, or follows what is not known.
found = collections.Counter()
for (machine, _), of_cpu in on_cpu.items():
    for before, run in zip([None, *of_cpu], of_cpu):
        found[machine, run[2]] += before is None or before[2] >= UNKNOWN
ours = collections.defaultdict(list)
ids = {domain["name"]: domain["id"] + 1 for domain in threads["domains"]}
for row in threads["rows"]:
    if row["tid"]:
        ours[ids[row["domain"]], row["tid"]].append(row)


def of_states(key, wanted, end):
    """Returns number and nanoseconds of the states, those that are open up to the end."""
    mine = [(ts, dur) for state, ts, dur in rows[key] if wanted(state)]
    return len(mine), sum(dur if dur >= 0 else max(end - ts, 0) for ts, dur in mine)


def total(of, name):
    return sum(row[name] for row in of)


# Ours end with the domain's last event: a time that one open state gives for all of the machine.
ends, end_errors = {}, {}
for key, of in ours.items():
    open_rows = [(state, ts) for state, ts, dur in rows[key] if dur < 0]
    if key[0] in ends or len(open_rows) != 1:
        continue
    state, ts = open_rows[0]
    if state != "Running" and (state != "S" or total(of, "lost_s")):
        continue
    name = "on_vcpu_s" if state == "Running" else "sleeping_s"
    wanted = (lambda s: s == "Running") if state == "Running" else (lambda s: s in ("S", "I"))
    closed = [dur for s, _, dur in rows[key] if wanted(s) and dur >= 0]
    ends[key[0]] = ts + total(of, name) * 1e9 - sum(closed)
    end_errors[key[0]] = len(closed) + 1

checks = [(f"machines {sorted(ends)}", sorted(ends) == sorted(ids.values())), (f"{len(ours)} threads", len(ours) >= 10)]
compared = 0
for key, of in sorted(ours.items()):
    machine, tid = key
    what = f"machine {machine}, {of[0]['thread']} ({tid}):"
    end = ends.get(machine, 0)
    lost = total(of, "lost_s") * 1e9
    tolerance = len(rows[key]) + 1 + end_errors.get(machine, 0)  # each state may be wrong by a nanosecond

    def agree(name, theirs, mine, exact=True):
        global compared
        compared += exact
        # Where events were lost, a wait is in Perfetto until the thread is seen again.
        good = abs(theirs - mine) <= tolerance if exact else -tolerance <= theirs - mine <= lost + tolerance
        checks.append((f"{what} {name} {theirs} ns, ours {mine:.0f}", good))

    count, ran = of_states(key, lambda s: s == "Running", end)
    agree("ran", ran, total(of, "on_vcpu_s") * 1e9)
    checks.append((f"{what} {count} runs, {found[key]} of them found, ours {total(of, 'switches')}",
                   count - found[key] == total(of, "switches")))
    count, _ = of_states(key, lambda s: s == "R+", end)
    checks.append((f"{what} {count} times preempted, ours {total(of, 'preemptions')}",
                   count == total(of, "preemptions")))
    for name, wanted, mine in (
        ("ready", lambda s: s in ("R", "R+"), total(of, "woken_s") + total(of, "preempted_s")),
        ("sleeping", lambda s: s in ("S", "I"), total(of, "sleeping_s")),
        ("uninterruptible", lambda s: s == "D", total(of, "uninterruptible_s")),
    ):
        agree(name, of_states(key, wanted, end)[1], mine * 1e9, exact=not lost)
    for name in ("stolen", "halted", "untraced"):
        agree(name, said.get((machine, tid, name), (0, 0))[1], total(of, f"{name}_s") * 1e9)
    agree("events lost", said.get((machine, tid, "events lost"), (0, 0))[1], lost)
for (machine, cpu), of_cpu in on_cpu.items():
    gaps = [b[0] - a[0] - a[1] for a, b in zip(of_cpu, of_cpu[1:])]
    checks.append((f"machine {machine}, CPU {cpu}: {len(of_cpu)} runs follow each other", not any(gaps)))
checks.append((f"{compared} lengths are compared", compared >= 100))
checks.append((f"{sum(wakers.values())} wakers", sum(wakers.values()) >= 100))
checks.append((f"{sum(flows_into.values())} flows", sum(flows_into.values()) >= 100))
for key, count in flows_into.items():
    checks.append((f"flows into {key}: {count}, wakers {wakers.get(key, 0)}", count <= wakers.get(key, 0)))
for text, good in checks:
    if not good:
        print("not so:", text)
sys.exit(not all(good for _, good in checks))
