// The intervals of a row of the timeline: report/html/interval_track.h.
import type { PackedTracks } from "./page_data";
import { Numbers, packedRows } from "./packed";

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

/** A row's columns of numbers. */
const COLUMNS = 3;

/** The rows by their number. Each is read when it is first asked for: most rows of a wide host are not in view. */
export function intervalRows({ packed, bytes, unit }: PackedTracks): (row: number) => Intervals {
  const column = packedRows(packed, bytes);
  const known: (Intervals | undefined)[] = [];
  const columns = (row: number): Uint8Array[] => Array.from({ length: COLUMNS }, (_, k) => column(COLUMNS * row + k));
  return (row) => (known[row] ??= lazyIntervals(() => readIntervals(columns(row), unit)));
}

/** Whether the row has an interval. */
export function hasIntervals({ bytes }: PackedTracks, row: number): boolean {
  return (bytes[COLUMNS * row] ?? 0) > 0;
}

function lazyIntervals(readAll: () => Intervals): Intervals {
  let made: Intervals | undefined;
  const read = (): Intervals => (made ??= readAll());
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

function readIntervals(columns: Uint8Array[], unit: number): Intervals {
  const [heads, gaps, lengths] = columns.map((bytes) => new Numbers(bytes)) as [Numbers, Numbers, Numbers];
  const begin: number[] = [];
  const end: number[] = [];
  const code: number[] = [];
  const part: number[] = [];
  const several = new Map<number, { count: number; parts: number[] }>();
  let at = 0;
  while (heads.more) {
    const head = heads.next();
    at += unit * gaps.nextSigned();
    begin.push(at);
    at += unit * lengths.next();
    end.push(at);
    code.push(head === 0 ? -1 : (head - 1) >> 2);
    part.push(head === 0 ? NO_PART : (head - 1) & 3);
    if (head === 0) {
      const count = lengths.next();
      several.set(begin.length - 1, { count, parts: Array.from({ length: PARTS }, () => unit * lengths.next()) });
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
