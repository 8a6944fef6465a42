// The threads of domains whose kernels' events were recorded: which of them ran on each vCPU, and what each did.
import type { ThreadItem, Threads as ThreadsData } from "./page_data";
import { Intervals, firstAfter, intervalRows } from "./intervals";

/** By guests::ThreadState: the words, and the colour of style.css. */
export const THREAD_STATES: [words: string, colour: string][] = [
  ["running", "running"],
  ["in Xen", "exit"],
  ["waiting for a pCPU", "runnable"],
  ["halted", "blocked"],
  ["on a vCPU of which nothing is known", "bracket"],
  ["on a vCPU whose records were lost", "lost"],
  ["woken, in its kernel's queue", "queued"],
  ["preempted, in its kernel's queue", "queued"],
  ["sleeping", "blocked"],
  ["sleeping, uninterruptible", "blocked"],
  ["not known: events were lost", "lost"],
];

/** By what lanes of threads are coloured. */
export const THREAD_COLOURS = ["thread", "process", "container"] as const;
export type ThreadColours = (typeof THREAD_COLOURS)[number];

const numbered = (name: string, number: number): string => (number === 0 ? name : `${name} (${number})`);
export const processName = ({ process, pid }: ThreadItem): string =>
  process === "" && pid === 0 ? "[other threads]" : numbered(process, pid);
export const threadName = ({ name, tid }: ThreadItem): string => numbered(name, tid);

export class Threads {
  readonly list: ThreadItem[];
  private readonly vcpus: Map<string, number>;
  private readonly intervals: (row: number) => Intervals;
  /** By ThreadColours: the number of the colour of each thread of the list. */
  private readonly places: Record<ThreadColours, number[]>;

  constructor(readonly of: ThreadsData) {
    this.list = of.list;
    this.vcpus = new Map(of.vcpus.map((name, i) => [name, i]));
    this.intervals = intervalRows(of.rows);
    const placesOf = (key: (thread: ThreadItem) => string): number[] => {
      const places = new Map<string, number>();
      return of.list.map((thread) => {
        const name = `${thread.domain}\u0000${key(thread)}`;
        const place = places.get(name) ?? places.size;
        places.set(name, place);
        return place;
      });
    };
    this.places = {
      thread: of.list.map((_, i) => i),
      process: placesOf(processName),
      container: placesOf(({ container }) => container),
    };
  }

  /** The threads on a vCPU, by its name; undefined: its kernel's events were not recorded. */
  onVcpu(name: string): Intervals | undefined {
    const i = this.vcpus.get(name);
    return i === undefined ? undefined : this.intervals(i);
  }
  /** The thread that an interval of a vCPU is of: its place in the list; -1: it is not there, or they are several. */
  threadOf(of: Intervals, i: number): number {
    return of.several.has(i) ? -1 : (this.of.numbers[of.code[i]] ?? -1);
  }
  statesOf(thread: number): Intervals {
    return this.intervals(this.of.vcpus.length + thread);
  }
  placeOf(thread: number, by: ThreadColours): number {
    return this.places[by][thread] ?? -1;
  }
}

/** The parts of intervals that are in [from, to), each with the interval's number. */
export function clipped(of: Intervals, from: number, to: number): { i: number; begin: number; end: number }[] {
  const found: { i: number; begin: number; end: number }[] = [];
  for (let i = firstAfter(of.end, from); i < of.begin.length && of.begin[i] < to; i++)
    found.push({ i, begin: Math.max(of.begin[i], from), end: Math.min(of.end[i], to) });
  return found;
}

/** What threads did in [from, to), in cycles: ran, could have run, slept. */
export function spentBy(of: Intervals[], from: number, to: number): number[] {
  const sums = [0, 0, 0];
  for (const own of of) {
    for (const { i, begin, end } of clipped(own, from, to)) {
      const several = own.several.get(i)?.parts;
      const part = (end - begin) / (own.end[i] - own.begin[i] || 1);
      if (several !== undefined) several.forEach((cycles, k) => (sums[k] += cycles * part));
      else if (own.part[i] < sums.length) sums[own.part[i]] += end - begin;
    }
  }
  return sums;
}
