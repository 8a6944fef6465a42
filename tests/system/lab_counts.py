"""Compares shares of samples with counts of instructions.

There is a check for each function that ran for 1 % or more of the guest's program, or of Xen. It fails when
the share of samples is further from the truth than chance explains.
"""
import bisect
import collections
import glob
import math
import subprocess

# Limit in standard deviations: two-sided, chance exceeds it once in 10^5; about ten shares are compared.
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


def counts(truth):
    """(address, domain, state, instructions) of each line of a file that scripts/lab/truth/counter.c wrote."""
    with open(truth) as file:
        for line in file:
            address, vcpu, state, count = line.split()
            yield int(address, 16), int(vcpu, 16) >> 16, state, int(count, 16)


def function_at(table, starts, address):
    """The function of the table at the address; None outside of it."""
    where = bisect.bisect_right(starts, address) - 1
    return table[where][1] if where >= 0 and address < starts[-1] + 4096 else None


def counted(truth, table):
    """The number of instructions by function, for addresses inside the table."""
    starts = [address for address, _ in table]
    result = collections.Counter()
    for address, _, _, count in counts(truth):
        if name := function_at(table, starts, address):
            result[name] += count
    return result


def compare(check, title, truth, sampled):
    """Checks the shares of samples against those of instructions."""
    instructions, samples = sum(truth.values()), sum(sampled.values())
    check(samples > 0, f"{title}: {instructions} instructions, {samples} samples")
    if samples == 0:
        return
    for name, count in truth.most_common():
        share = count / instructions
        if share < 0.01:
            break
        seen = sampled[name] / samples
        allowed = DEVIATIONS * math.sqrt(share * (1 - share) / samples) + SLACK
        check(abs(seen - share) <= allowed,
              f"{name}: {100 * share:.2f} % of the instructions, "
              f"{100 * seen:.2f} % of the samples (within {100 * allowed:.2f})")


def read(path):
    """The lines of a file that may have been compressed with zstd."""
    found = glob.glob(str(path)) or glob.glob(f"{path}.zst")
    command = ["zstd", "-dc"] if found[0].endswith(".zst") else ["cat"]
    return subprocess.run(command + found, capture_output=True, text=True, check=True).stdout.splitlines()


def compare_all(check, rows, truth, labload_symbols, xensyms):
    """Compares the rows of a report by domain, mode and function with the file of counts `truth`."""
    program = collections.Counter()
    xen = collections.Counter()
    labload = symbols(labload_symbols)
    names = {name for _, name in labload}
    for row in rows:
        if row["mode"] == "xen":
            xen[row["function"]] += row["samples"]
        elif row["mode"] == "user" and row["function"] in names:
            program[row["function"]] += row["samples"]
    compare(check, "labload", counted(truth, labload), program)
    compare(check, "Xen", counted(truth, symbols(read(xensyms))), xen)
