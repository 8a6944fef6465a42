// What the command writes into the page: report/html/page.cc and its neighbours.

export interface Metrics {
  samples: number;
  share: number;
  low: number;
  high: number;
  cycles: number | null;
}
export type ReportRow = Metrics & { [column: string]: string | number | null };

/** As `report --format json`. */
export interface Report {
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

export interface Exit {
  domain: string;
  name: string;
  count: number;
  cycles: number;
  p5: number;
  p50: number;
  p95: number;
  /** How many took 2^i to 2^(i+1) cycles. */
  octaves: number[];
}

export interface Timeline {
  /** Cycles, as all times here; they count from the first instant shown. */
  length: number;
  vcpus: { domain: string; name: string; runs: boolean }[];
  pcpus: number[];
  bin: number;
  bins: number;
  /** By vCPU: base64 of bins * [guest, Xen, running, runnable, blocked], each of 255. */
  vcpu_bins: string[];
  /** By pCPU: base64 of bins * [busy of 255, number of who ran most, its upper byte]. */
  pcpu_bins: string[];
  exact: boolean;
  /** [vcpu, pcpu, state, cause, begin, length]... where exact. */
  runs: number[];
  /** [vcpu, pcpu, name + 1 or 0 for guest, begin, length]... where exact. */
  segments: number[];
  /** [vcpu, mode, function, begin, length, count]...; length 1: an instant. */
  samples: number[];
  samples_left_out: number;
  /** One of so many is in the list. */
  kept_samples: number;
  /** [pcpu, begin, length, records]... */
  lost: number[];
  strings: string[];
}

export interface Flame {
  columns: string[];
  strings: string[];
  stacks: number[][];
  /** A row: the columns' strings (of "stack": its number), then samples, cycles, variance of the share. */
  rows: number[][];
}

/** What "line" says where nothing is known. */
export const NO_LINE = "[no line]";

export interface DiffRow {
  [column: string]: string | number | boolean | null;
}
export interface Page {
  title: string;
  by: string[];
  seconds: number;
  is_time: boolean;
  /** What columns mean, by kind of table: report/profile/column_help.cc. */
  words: Record<"profile" | "overview" | "checks" | "exits" | "diff", Record<string, string>>;
  /** How far samples and trace agree, and what has no name: as the text report says it. */
  notes?: string[];
  report?: Report;
  domains?: (Metrics & { name: string; domid: number; modes: Record<string, number> })[];
  flame?: Flame;
  exits?: Exit[];
  timeline?: Timeline;
  diff?: {
    before: { name: string; samples: number };
    after: { name: string; samples: number };
    of: string;
    compared: string;
    comparisons: number;
    rows: DiffRow[];
  };
}
