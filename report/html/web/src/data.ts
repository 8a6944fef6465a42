// The data that the command writes into the page: report/html/page*.cc.

import type { Selection } from "./selection";

export interface Metrics {
  samples: number;
  share: number;
  low: number;
  high: number;
  cycles: number | null;
}
export type ReportRow = Metrics & { [column: string]: string | number | null };

/** A statement about the recording: report/findings. */
export interface Finding {
  rule: string;
  domid: number | null;
  text: string;
  advice: string;
  /** The time that it concerns and its 95 % interval; null where it is not known, or exact. */
  seconds: number | null;
  low: number | null;
  high: number | null;
  figures: Record<string, string | number>;
  command: string;
}

/** The output of `report --format json`. */
export interface Report {
  findings: Finding[];
  samples: {
    total: number;
    attributed: number;
    remainders: Record<string, number>;
    placements: Record<string, number>;
    lost_in_buffers: number;
    damaged: number;
    outside_range: number;
    repaired_addresses: number;
    stale_addresses: number;
  };
  event: string;
  changes: string[];
  cautions: string[];
  cycles: { attributed: number | null; unsampled: number };
  trace: { nmi_exits: number; lost_records: number; lost_cycles: number };
  cpu_hz: number;
  cpu_hz_source: string;
  checks: { domain: string; sampled: number; traced: number; error: number; agrees: boolean }[];
  rows: ReportRow[];
}

/** Amounts over time of things that are numbered: correlate/binned_sums.h. */
export interface OverTime {
  /** The begin of the first bin, and the length of each, in cycles as the timeline has them. */
  begin: number;
  width: number;
  bins: number;
  /** Amounts are multiples of this. */
  unit: number;
  /** Packed, for each thing: the number of its bins; for each of them its distance from the one before, the amount. */
  packed: string;
}

export interface Exit {
  domain: string;
  name: string;
  count: number;
  cycles: number;
  /** What a PV guest did in Xen: the trace knows its end only as the vCPU's next record, so lengths are bounds. */
  at_most: boolean;
  p5: number;
  p50: number;
  p95: number;
  /** Number of exits that took 2^i to 2^(i+1) cycles. */
  octaves: number[];
  /** What they were about in the whole trace, most cycles first; absent where the trace was not analysed as a whole. */
  parts?: [subreason: string, count: number, cycles: number][];
}

export interface Timeline {
  /** Cycles, as all times here; instants count from the first one shown. */
  length: number;
  /** The first instant, in seconds since the trace's first record: the time of --from, --to and of dump. */
  begin_seconds: number;
  /** Its TSC: a number that may have more digits than a double. */
  begin_tsc: string;
  vcpus: { domain: string; name: string; runs: boolean }[];
  pcpus: number[];
  bin: number;
  bins: number;
  /**
   * Packed: for each vCPU bins * [guest, Xen, running, runnable, blocked], each as a part of 255; then for each pCPU
   * bins * [busy part of 255, vCPU that ran longest: low byte, high byte].
   */
  bin_bytes: string;
  /**
   * Packed: the intervals (intervals.ts) of what ran on each pCPU, of its interrupts, of each vCPU's runstates and of
   * each vCPU's exits; each as long as `interval_bytes` says.
   */
  intervals: string;
  interval_bytes: number[];
  /** Intervals of fewer cycles are shown together where there are neighbours like them; 0: each is shown. */
  together_below: number;
  /** The number and the cycles of each of the page's exits. */
  exit_counts: OverTime;
  exit_cycles: OverTime;
  /** The number of exits by length: of each thing the page's exit, and the step of the length (lengths.ts). */
  exit_lengths: OverTime;
  exit_length_steps: [exit: number, step: number][];
  /** By the code of a runstate: its state, its cause, the pCPU, and 1 more than the pCPU that woke it; 0: not known. */
  run_kinds: [state: number, cause: number, pcpu: number, waker: number][];
  /** By the code of a segment: "guest", or the exit. */
  segment_kinds: string[];
  /** By the code of a pCPU's interval: the vCPU. */
  vcpu_numbers: number[];
  /** [vcpu, mode, function, begin, length, count]...; length 1: an instant. */
  samples: number[];
  samples_left_out: number;
  /** N where one of N samples is in the list. */
  kept_samples: number;
  /** [pcpu, begin, length, records]... */
  lost: number[];
  strings: string[];
}

export interface Flame {
  columns: string[];
  strings: string[];
  /** [name, mode | kind << 2]..., outermost first. */
  stacks: number[][];
  /** A row: the strings of the columns (the number of a "stack"), then samples, cycles, variance of the share. */
  rows: number[][];
  /** The samples of each row; without a trace only where they have a time. */
  over_time?: OverTime;
  /** The part of all samples whose time is known only to be in an interval longer than a bin of `over_time`. */
  without_time: number;
}

const MODES = ["user", "kernel", "xen"];
const KINDS = ["function", "inlined", "exit", "subreason"];

/** The kind of a frame by its code in a stack. */
export const kindOf = (code: number): string => KINDS[code >> 2] ?? "";

export interface StackFrame {
  name: string;
  mode: string;
  /** "function"; "inlined" into the frame before it; "exit" and "subreason" say why Xen ran. */
  kind: string;
}

/** The frames of the stack with this number, outermost first. */
export function stackFrames(flame: Flame, stack: number): StackFrame[] {
  const packed = flame.stacks[stack] ?? [];
  const frames: StackFrame[] = [];
  for (let i = 0; i + 1 < packed.length; i += 2) {
    const code = packed[i + 1] ?? 0;
    frames.push({
      name: flame.strings[packed[i] ?? 0] ?? "",
      mode: MODES[code & 3] ?? "group",
      kind: kindOf(code),
    });
  }
  return frames;
}

/** What the VM exit was about for which Xen ran; "-" outside of exits. */
export function subreasonOf(flame: Flame, stack: number): string {
  return stackFrames(flame, stack).find((frame) => frame.kind === "subreason")?.name ?? NO_SUBREASON;
}
const NO_SUBREASON = "-";

/** The text of "line" where no line is known. */
export const NO_LINE = "[no line]";

export interface Domain extends Metrics {
  name: string;
  domid: number;
  modes: Record<string, number>;
  /** Cycles for which its vCPUs waited for a pCPU, and ran; in a selection, where there is a trace. */
  waited?: number;
  ran?: number;
}

export interface DiffRow {
  [column: string]: string | number | boolean | null;
}
export interface Page {
  title: string;
  by: string[];
  seconds: number;
  is_time: boolean;
  /** The time of day at the page's first instant, in ms since 1970, and by how much it may be wrong. */
  clock?: { begin_utc_ms: number; error_ms: number };
  /** Descriptions of columns, by kind of table: report/profile/column_help.cc. */
  words: Record<"profile" | "overview" | "checks" | "exits" | "diff", Record<string, string>>;
  /** The notes of the text report: disagreements of samples and trace, samples without names. */
  notes?: string[];
  report?: Report;
  domains?: Domain[];
  flame?: Flame;
  exits?: Exit[];
  timeline?: Timeline;
  /** What a page of a selection is of; set by the page itself. */
  selection?: Selection;
  diff?: {
    before: { name: string; samples: number };
    after: { name: string; samples: number };
    of: string;
    compared: string;
    comparisons: number;
    rows: DiffRow[];
  };
}
