"""Compares the shares of report.json with the instructions that truth.txt counted.

usage: lab_counts.py DIR. Prints a line for each function that ran for 1 % or more of the guest's
program, or of Xen; exits 1 when a share is further from the truth than chance explains.
"""
import bisect
import collections
import glob
import json
import math
import subprocess
import sys

# Two-sided, about one in 10^5 by chance; some ten shares are looked at.
DEVIATIONS = 4.4
# Samples begin and end half a second before and after the count.
SLACK = 0.01


def symbols(lines):
    """[(address, name)] from lines of nm or kallsyms, sorted."""
    table = []
    for line in lines:
        address, _, name = line.split()[:3]
        table.append((int(address, 16), name))
    return sorted(table)


def counted(directory, table):
    """Instructions by function, of the blocks that lie inside the table."""
    starts = [address for address, _ in table]
    result = collections.Counter()
    with open(f"{directory}/truth.txt") as file:
        for line in file:
            address, instructions, count = line.split()
            where = bisect.bisect_right(starts, int(address, 16)) - 1
            if where >= 0 and int(address, 16) < starts[-1] + 4096:
                result[table[where][1]] += int(instructions) * int(count)
    return result


def compare(title, truth, sampled):
    """Prints truth beside sample shares; False if one is too far off."""
    instructions, samples = sum(truth.values()), sum(sampled.values())
    print(f"{title}: {instructions} instructions, {samples} samples")
    if samples == 0:
        print("FAILED no samples")
        return False
    good = True
    for name, count in truth.most_common():
        share = count / instructions
        if share < 0.01:
            break
        seen = sampled[name] / samples
        allowed = DEVIATIONS * math.sqrt(share * (1 - share) / samples) + SLACK
        fine = abs(seen - share) <= allowed
        good = good and fine
        print(f"{'ok     ' if fine else 'FAILED '}{name}: {100 * share:.2f} % of the instructions, "
              f"{100 * seen:.2f} % of the samples (within {100 * allowed:.2f})")
    return good


def read(path):
    """The lines of a file that may have been compressed with zstd."""
    found = glob.glob(path) or glob.glob(path + ".zst")
    command = ["zstd", "-dc"] if found[0].endswith(".zst") else ["cat"]
    return subprocess.run(command + found, capture_output=True, text=True, check=True).stdout.splitlines()


def main(directory):
    with open(f"{directory}/report.json") as file:
        rows = json.load(file)["rows"]
    program = collections.Counter()
    xen = collections.Counter()
    with open(f"{directory}/labload.symbols") as file:
        labload = symbols(file)
    names = {name for _, name in labload}
    for row in rows:
        if row["mode"] == "xen":
            xen[row["function"]] += row["samples"]
        elif row["mode"] == "user" and row["function"] in names:
            program[row["function"]] += row["samples"]
    good = compare("labload", counted(directory, labload), program)
    table = [entry for entry in symbols(read(f"{directory}/ratio.xeno/symbols/xensyms"))]
    good = compare("Xen", counted(directory, table), xen) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
