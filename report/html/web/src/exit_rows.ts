// VM exits, added up by any columns of theirs.
import type { Exit } from "./data";
import type { Lengths } from "./lengths";

/** The exits that are the same in the columns of the view. */
export interface ExitRow {
  words: string[];
  count: number;
  cycles: number;
  /** The time of some of them is known by a bound only. */
  isBound: boolean;
  /** The exits of which it is; of an exit that is divided, all of it. */
  exits: Exit[];
  /** How long they took; undefined where that is not known of a part of an exit. */
  lengths?: Lengths & { isSum: boolean };
}

/** The length below which the part `p` of the exits is, evenly spread over the logarithm in an octave. */
function percentile(octaves: number[], p: number): number {
  let left = p * octaves.reduce((sum, n) => sum + n, 0);
  const i = octaves.findIndex((n) => n > 0 && (left -= n) <= 0);
  return i < 0 ? 0 : 2 ** (i + 1 + left / octaves[i]);
}

function together(one: ExitRow["lengths"], other: Lengths): ExitRow["lengths"] {
  if (one === undefined) return { ...other, isSum: false };
  const octaves = one.octaves.map((n, i) => n + (other.octaves[i] ?? 0));
  const [p5, p50, p95] = [0.05, 0.5, 0.95].map((p) => percentile(octaves, p));
  return { p5, p50, p95, octaves, isSum: true };
}

/** An exit's rows by what it was about: its figures, divided as the whole trace divides them. */
function partsOf(exit: Exit): { subreason: string; count: number; cycles: number }[] {
  const parts = exit.parts ?? [];
  const [counts, cycles] = [1, 2].map((k) => parts.reduce((sum, part) => sum + (part[k] as number), 0));
  if (counts === 0) return [{ subreason: "-", count: exit.count, cycles: exit.cycles }];
  return parts.map(([subreason, n, length]) => ({
    subreason,
    count: (exit.count * n) / counts,
    cycles: cycles > 0 ? (exit.cycles * length) / cycles : 0,
  }));
}

export function exitRows(exits: Exit[], by: string[], lengthsOf: (exit: Exit) => Lengths | undefined): ExitRow[] {
  const rows = new Map<string, ExitRow>();
  const add = (words: string[], exit: Exit, figures: { count: number; cycles: number }): ExitRow => {
    const key = words.join("\u0000");
    const row = rows.get(key) ?? { words, count: 0, cycles: 0, isBound: false, exits: [] };
    rows.set(key, row);
    row.isBound ||= exit.at_most;
    row.exits.push(exit);
    row.count += figures.count;
    row.cycles += figures.cycles;
    return row;
  };
  for (const exit of exits) {
    const wordsOf = (subreason: string): string[] =>
      by.map((column) => (column === "domain" ? exit.domain : column === "exit" ? exit.name : subreason));
    if (by.includes("subreason")) {
      for (const part of partsOf(exit)) add(wordsOf(part.subreason), exit, part);
    } else {
      const row = add(wordsOf(""), exit, exit);
      const lengths = lengthsOf(exit);
      if (lengths !== undefined) row.lengths = together(row.lengths, lengths);
    }
  }
  return [...rows.values()];
}
