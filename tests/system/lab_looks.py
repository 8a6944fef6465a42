"""Checks running.json, preempted.json and recording.json of the lab's scenario looks.

usage: lab_looks.py DIR. Prints `ok ...` or `FAILED ...` a check; exits 1 if one failed.
"""
import json
import sys

failed = False


def check(good, text):
    global failed
    failed = failed or not good
    print(("ok     " if good else "FAILED ") + text)


def load(directory, name):
    with open(f"{directory}/{name}") as file:
        return json.load(file)


def main(directory):
    recording = load(directory, "looks.xeno/recording.json")
    running = load(directory, "running.json")
    preempted = load(directory, "preempted.json")

    looks = [stream["looks"] for stream in recording["streams"]]
    total = sum(look["total"] for look in looks)
    kinds = ("blocked", "running", "preempted", "failed")
    check(total == sum(look[kind] for look in looks for kind in kinds) > 100,
          f"every look is accounted for: {total}")
    check(sum(look["failed"] for look in looks) == 0, "Xen answered each look")
    check(sum(look["running"] for look in looks) == running["samples"]["total"] > 30,
          f"{running['samples']['total']} looks found a running vCPU, and are its samples")
    check(sum(look["preempted"] for look in looks) == preempted["samples"]["total"],
          f"{preempted['samples']['total']} looks found a vCPU without a pCPU, and are its samples")

    # A vCPU may be preempted between the look at its state and its stop.
    samples = running["samples"]
    stopped = samples["placements"]["stopped"]
    check(stopped == samples["attributed"] and stopped + samples["remainders"]["not_running"] ==
          samples["total"] and stopped > 0.8 * samples["total"],
          f"the trace saw the vCPU stop in {stopped} of {samples['total']}, the others did not run")

    rows = [row for row in running["rows"] if row["domain"] == "pv"]
    leader = max(rows, key=lambda row: row["samples"], default={"function": "nothing", "samples": 0})
    check(leader["function"] == "sha256_block" and leader["mode"] == "user",
          f"guest pv only hashes; {leader['function']} leads with {leader['samples']:.0f} samples")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
