"""Compares report.json, exits.json and summary.json of the lab's scenario ci with the guests' consoles.

usage: lab_truth.py DIR. Prints `ok ...` or `FAILED ...` a check; exits 1 if one failed.
"""
import json
import re
import sys

TOLERANCE = 0.01
failed = False


def check(good, text):
    global failed
    failed = failed or not good
    print(("ok     " if good else "FAILED ") + text)


def domain_ids(directory):
    """Domain ids by name, from what `xl list` printed before the recording."""
    ids = {}
    with open(f"{directory}/xl-list.txt") as lines:
        for line in list(lines)[1:]:
            name, number = line.split()[:2]
            ids[name] = int(number)
    return ids


def counted(directory, guest, work, piece):
    """What labload in the guest says it did: the calls of its last line for this work."""
    with open(f"{directory}/guests/guest-{guest}.log", errors="replace") as log:
        lines = [line for line in log if line.startswith(f"LOAD {work} ")]
    return int(re.search(rf" {piece}=\d+/(\d+)", lines[-1]).group(1))


def leader_in_guest(report, ids, name):
    """The function with the most samples in the user mode of the domain."""
    rows = [row for row in report["rows"] if row["domid"] == ids[name] and row["mode"] == "user"]
    return max(rows, key=lambda row: row["samples"], default={"function": "nothing"})["function"]


def main(directory):
    with open(f"{directory}/report.json") as file:
        report = json.load(file)
    with open(f"{directory}/exits.json") as file:
        exits = json.load(file)
    with open(f"{directory}/summary.json") as file:
        summary = json.load(file)
    ids = domain_ids(directory)

    samples = report["samples"]
    accounted = samples["attributed"] + sum(samples["remainders"].values())
    check(abs(accounted - samples["total"]) < 0.5 < samples["total"],
          f"every sample is accounted for: {accounted:.0f} of {samples['total']:.0f}")

    # A report names a domain by its name, or by d and its number.
    names = ("pv", str(ids["pv"]), f"d{ids['pv']}")
    rows = [row for row in report["rows"] if str(row["domain"]) in names]
    leader = max(rows, key=lambda row: row["samples"], default={"function": "nothing", "samples": 0})
    check(leader["function"] == "sha256_block",
          f"guest pv only hashes; {leader['function']} leads its profile with {leader['samples']:.0f} samples")

    wanted = counted(directory, "pvh", "cpuid", "cpuid")
    seen = sum(vcpu.get("exits", {}).get("VMEXIT_CPUID", {"count": 0})["count"]
               for domain in summary["domains"] if domain["domid"] == ids["pvh"]
               for vcpu in domain["vcpus"])
    check(abs(seen - wanted) <= TOLERANCE * wanted,
          f"guest pvh did {wanted} CPUIDs; {seen} CPUID exits were counted")

    # The interrupted exits of the trace are another sample of the same guest.
    busiest = leader_in_guest(report, ids, "pvh")
    found = leader_in_guest(exits, ids, "pvh")
    check(found == busiest, f"{busiest} leads pvh's user mode in the samples, {found} in the trace's own")

    lost = summary["trace"]["lost_records"]
    check(lost == 0, f"{lost} trace records were lost")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
