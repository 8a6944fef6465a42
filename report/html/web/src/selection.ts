// The selected range of time and domain, and the page's figures of these alone.
import { Activity, GUEST, RUNNABLE, UNDIVIDED, XEN } from "./activity";
import { Exit, Flame, Page, ReportRow } from "./data";
import { ExitLengths } from "./lengths";
import { Sums } from "./over_time";
import type { State } from "./view";

export interface Selection {
  /** A range of cycles of the page; undefined: all of the time. */
  range?: [from: number, to: number];
  domain?: string;
}
export const isAll = (selection: Selection): boolean => selection.range === undefined && selection.domain === undefined;

/** The selection in the address, beside the state of a view: the time of --from and --to, and the domain. */
export function selectionState(page: Page, { range, domain }: Selection): State {
  const hz = page.report?.cpu_hz ?? 1e9;
  const begin = page.timeline?.begin_seconds ?? 0;
  const state: State = [];
  if (range !== undefined) state.push(["range", range.map((at) => (begin + at / hz).toFixed(9)).join("-")]);
  if (domain !== undefined) state.push(["only", domain]);
  return state;
}

/** What selections are computed from, decoded once. */
export class Figures {
  readonly rows?: Sums;
  readonly exitCounts?: Sums;
  readonly exitCycles?: Sums;
  readonly exitLengths?: ExitLengths;
  readonly activity?: Activity;
  /** All of the time, in cycles of the page. */
  readonly length: number;
  private latest: { key: string; page: Page } | undefined;

  constructor(readonly page: Page) {
    const { flame, timeline } = page;
    if (flame?.over_time !== undefined) this.rows = new Sums(flame.over_time);
    if (timeline !== undefined) {
      this.exitCounts = new Sums(timeline.exit_counts);
      this.exitCycles = new Sums(timeline.exit_cycles);
      this.exitLengths = new ExitLengths(page.exits ?? [], timeline);
      this.activity = new Activity(timeline);
    }
    this.length = timeline?.length ?? page.seconds * (page.report?.cpu_hz ?? 1e9);
  }

  /** The names of all domains that were sampled or traced. */
  get domains(): string[] {
    return [...new Set([...(this.page.domains ?? []).map(({ name }) => name), ...(this.activity?.domains ?? [])])];
  }

  /** The page as a recording of the selection alone would give it, but for what is said to be of the whole. */
  select(selection: Selection): Page {
    if (isAll(selection)) return this.page;
    // The list of domains and the views ask for the same.
    const key = JSON.stringify([selection.range, selection.domain]);
    if (this.latest?.key !== key) this.latest = { key, page: this.compute(selection) };
    return this.latest.page;
  }

  private compute(selection: Selection): Page {
    const { page } = this;
    const flame = page.flame === undefined ? undefined : this.flameOf(page.flame, selection);
    const domains = flame === undefined ? page.domains : this.domainsOf(flame, selection);
    const report =
      page.report === undefined || flame === undefined
        ? page.report
        : {
            ...page.report,
            rows: [] as ReportRow[], // views take the rows of the flame graph
            samples: { ...page.report.samples, attributed: sumOf(flame, "samples") },
            cycles: { ...page.report.cycles, attributed: sumOf(flame, "cycles") },
          };
    const [from, to] = selection.range ?? [0, this.length];
    return {
      ...page,
      seconds: (page.seconds * (to - from)) / (this.length || 1),
      flame,
      domains,
      report,
      exits: page.exits === undefined ? undefined : this.exitsOf(page.exits, selection),
      selection,
    };
  }

  /** Rows with the part of their samples and cycles in the range. */
  private flameOf(flame: Flame, { range, domain }: Selection): Flame {
    const [samples, cycles, variance] = [0, 1, 2].map((i) => flame.columns.length + i);
    const parts = range === undefined || this.rows === undefined ? undefined : this.rows.partsIn(...range);
    const at = flame.columns.indexOf("domain");
    const weight = this.page.is_time ? cycles : samples;
    const sum = (of: number[][], column: number): number => of.reduce((all, row) => all + row[column], 0);
    const pairs: [whole: number[], here: number[]][] = [];
    flame.rows.forEach((row, i) => {
      const part = parts?.[i] ?? 1;
      if (part === 0 || (domain !== undefined && flame.strings[row[at]] !== domain)) return;
      const here = [...row];
      here[samples] *= part;
      here[cycles] *= part;
      pairs.push([row, here]);
    });
    const rows = pairs.map(([, here]) => here);
    // The variance of a share p among n samples is in proportion to p (1 - p) / n, also after this change of both.
    const spreadIn = (of: number[][]): ((row: number[]) => number) => {
      const [n, all] = [sum(of, samples) || 1, sum(of, weight) || 1];
      return (row) => ((row[weight] / all) * (1 - row[weight] / all)) / n;
    };
    const [before, after] = [spreadIn(flame.rows), spreadIn(rows)];
    for (const [whole, here] of pairs)
      here[variance] = before(whole) > 0 ? (whole[variance] * after(here)) / before(whole) : 0;
    return { ...flame, rows };
  }

  private domainsOf(flame: Flame, { range, domain }: Selection): Page["domains"] {
    const { page, activity } = this;
    const [samples, cycles] = [flame.columns.length, flame.columns.length + 1];
    const [at, modeAt] = ["domain", "mode"].map((column) => flame.columns.indexOf(column));
    const weight = page.is_time ? cycles : samples;
    const whole = flame.rows.reduce((sum, row) => sum + row[weight], 0) || 1;
    const n = flame.rows.reduce((all, row) => all + row[samples], 0) || 1;
    const rowsOf = new Map<string, number[][]>();
    for (const row of flame.rows) {
      const own = rowsOf.get(flame.strings[row[at]]);
      if (own === undefined) rowsOf.set(flame.strings[row[at]], [row]);
      else own.push(row);
    }
    const [from, to] = range ?? [0, this.length];
    const ran = (name: string): number => {
      const spent = activity?.within(name, from, to) ?? [];
      return (spent[GUEST] ?? 0) + (spent[XEN] ?? 0) + (spent[UNDIVIDED] ?? 0);
    };
    const wanted = (page.domains ?? []).filter(({ name }) => domain === undefined || name === domain);
    const allRan = wanted.reduce((sum, { name }) => sum + ran(name), 0);
    return wanted.map((each) => {
      const rows = rowsOf.get(each.name) ?? [];
      const modes: Record<string, number> = {};
      for (const row of rows) {
        const mode = flame.strings[row[modeAt]];
        modes[mode] = (modes[mode] ?? 0) + row[weight] / whole;
      }
      const sum = (column: number): number => rows.reduce((all, row) => all + row[column], 0);
      // The trace measures domains exactly; samples do it with their error.
      const traced = each.low === each.high && allRan > 0;
      const share = traced ? ran(each.name) / allRan : sum(weight) / whole;
      const half = traced ? 0 : 1.96 * Math.sqrt((share * (1 - share)) / n);
      return {
        ...each,
        samples: sum(samples),
        cycles: traced ? ran(each.name) : sum(cycles),
        share,
        low: Math.max(share - half, 0),
        high: Math.min(share + half, 1),
        modes,
        waited: activity?.within(each.name, from, to)[RUNNABLE],
        ran: activity === undefined ? undefined : ran(each.name),
      };
    });
  }

  private exitsOf(exits: Exit[], { range, domain }: Selection): Exit[] {
    const counts = range === undefined ? undefined : this.exitCounts?.partsIn(...range);
    const cycles = range === undefined ? undefined : this.exitCycles?.partsIn(...range);
    return exits
      .map((exit, i) => ({
        ...exit,
        count: Math.round(exit.count * (counts?.[i] ?? 1)),
        cycles: Math.round(exit.cycles * (cycles?.[i] ?? 1)),
      }))
      .filter((exit) => (domain === undefined || exit.domain === domain) && (exit.count > 0 || exit.cycles > 0))
      .sort((a, b) => b.cycles - a.cycles);
  }
}

function sumOf(flame: Flame, figure: "samples" | "cycles"): number {
  const at = flame.columns.length + (figure === "samples" ? 0 : 1);
  return flame.rows.reduce((sum, row) => sum + row[at], 0);
}
