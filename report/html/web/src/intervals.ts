// The intervals of a row of the timeline: report/html/interval_track.h.
import { Numbers } from "./packed";

/** What an entry for several neighbours has of each part: runstates running, runnable, blocked; guest, Xen. */
export const PARTS = 3;
/** The part of intervals that are of none of them. */
export const NO_PART = 3;

/** The entries of a row, by index; instants in cycles. */
export interface Intervals {
  begin: Float64Array;
  end: Float64Array;
  /** What an interval is; -1: the entry is for several, `several` has it. */
  code: Int32Array;
  part: Uint8Array;
  several: Map<number, { count: number; parts: number[] }>;
}

/** The entries of a row, which are read when they are first asked for: most rows of a wide host are not in view. */
export function lazyIntervals(bytes: () => Uint8Array): Intervals {
  let made: Intervals | undefined;
  const read = (): Intervals => (made ??= readIntervals(bytes()));
  return {
    get begin() {
      return read().begin;
    },
    get end() {
      return read().end;
    },
    get code() {
      return read().code;
    },
    get part() {
      return read().part;
    },
    get several() {
      return read().several;
    },
  };
}

export function readIntervals(bytes: Uint8Array): Intervals {
  const numbers = new Numbers(bytes);
  const begin: number[] = [];
  const end: number[] = [];
  const code: number[] = [];
  const part: number[] = [];
  const several = new Map<number, { count: number; parts: number[] }>();
  let at = 0;
  while (numbers.more) {
    const head = numbers.next();
    at += numbers.nextSigned();
    begin.push(at);
    at += numbers.next();
    end.push(at);
    code.push(head === 0 ? -1 : (head - 1) >> 2);
    part.push(head === 0 ? NO_PART : (head - 1) & 3);
    if (head === 0) {
      const count = numbers.next();
      several.set(begin.length - 1, { count, parts: Array.from({ length: PARTS }, () => numbers.next()) });
    }
  }
  return {
    begin: Float64Array.from(begin),
    end: Float64Array.from(end),
    code: Int32Array.from(code),
    part: Uint8Array.from(part),
    several,
  };
}

/** The index of the first entry that ends after `at`. */
export function firstAfter(end: ArrayLike<number>, at: number): number {
  let low = 0;
  let high = end.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (end[middle] <= at) low = middle + 1;
    else high = middle;
  }
  return low;
}
