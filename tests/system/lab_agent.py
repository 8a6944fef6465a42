"""Checks agent.json, passive.json and recording.json of the lab's scenario agent.

usage: lab_agent.py DIR. Prints `ok ...` or `FAILED ...` a check; exits 1 if one failed.
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


def count(rows, **wanted):
    return sum(row["samples"] for row in rows
               if all(row[key] == value for key, value in wanted.items()))


def main(directory):
    recording = load(directory, "agent.xeno/recording.json")
    report = load(directory, "agent.json")
    passive = load(directory, "passive.json")

    domains = {domain["name"]: domain for domain in recording["domains"]}
    streams = {stream["domain"]: stream for stream in recording["streams"]
               if stream["source"] == "agent"}
    symbols = {symbol["domain"] for symbol in recording["symbols"]
               if symbol["kind"] == "kallsyms" and "agent" in symbol["original"]}
    for name in "pv", "pvh":
        domain = domains[name]
        stream = streams[domain["id"]]
        check(domain["role"] == "active", f"{name} is active")
        check(stream["complete"] and stream["balanced"] and stream["kept"] > 100,
              f"{name}: all of {stream['kept']} samples are accounted for")
        check(domain["id"] in symbols, f"{name}: its kernel's symbols came from its agent")
        kernel = [row for row in report["rows"] if row["domain"] == name and row["mode"] == "kernel"]
        named = [row for row in kernel if row["function"][0] not in "[0"]
        check(count(named) >= 0.9 * count(kernel) > 0,
              f"{name}: {count(named):.0f} of {count(kernel):.0f} kernel samples have a function")

    samples = report["samples"]
    check(samples["attributed"] > 0.9 * samples["total"],
          f"{samples['attributed']} of {samples['total']} samples have a place in the trace")

    rows = report["rows"]
    a, b = (count(rows, domain="pv", function=name) for name in ("leaf_a", "leaf_b"))
    check(a + b > 50 and 2 < a / max(b, 1) < 4.5,
          f"pv does leaf_a three times as often as leaf_b: {a:.0f} and {b:.0f} samples")
    user = [row for row in rows if row["domain"] == "pvh" and row["mode"] == "user"]
    leader = max(user, key=lambda row: row["samples"], default={"function": "none", "samples": 0})
    check(leader["function"] == "sha256_block",
          f"pvh only hashes; {leader['function']} leads with {leader['samples']:.0f} samples")
    check(count(passive["rows"], domain="pvh", function="sha256_block") > 10,
          "pvh is passive, too: dom0's looks found it hashing")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
