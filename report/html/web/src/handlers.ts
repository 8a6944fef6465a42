// The handlers of kernels' interrupts: which of them ran on each vCPU, and lanes of them on vCPUs and pCPUs.
import { colour } from "./canvas";
import { count, time } from "./format";
import { Intervals, intervalRows } from "./intervals";
import type { Handlers as HandlersData } from "./page_data";
import { clipped } from "./threads";
import type { Layer, Track } from "./tracks";

/** What runs on a vCPU; a softirq may be interrupted by a handler, which is drawn over it. */
const KINDS = ["softirq", "irq"] as const;
type Kind = (typeof KINDS)[number];

export class Handlers {
  private readonly vcpus: Map<string, number>;
  private readonly intervals: (row: number) => Intervals;

  constructor(private readonly of: HandlersData) {
    this.vcpus = new Map(of.vcpus.map((name, i) => [name, i]));
    this.intervals = intervalRows(of.rows);
  }
  /** Those of a vCPU, by its name; undefined: none is known. */
  onVcpu(name: string, kind: Kind): Intervals | undefined {
    const vcpu = this.vcpus.get(name);
    if (vcpu === undefined) return undefined;
    return this.intervals(2 * vcpu + (kind === "irq" ? 0 : 1));
  }
  /** What an interval is called. */
  nameOf(of: Intervals, i: number): string {
    const several = of.several.get(i)?.count;
    return several === undefined ? (this.of.names[of.code[i]] ?? "") : `${count(several)} short ones`;
  }
}

/** A part of an interval of a vCPU's handlers. */
interface Part {
  of: Intervals;
  i: number;
  begin: number;
  end: number;
  on: string;
}

function layerOf(handlers: Handlers, hz: number, parts: Part[], kind: Kind): Layer {
  const paint = colour(kind);
  return {
    begin: parts.map(({ begin }) => begin),
    end: parts.map(({ end }) => end),
    paint: (k) => {
      const { of, i } = parts[k];
      const part = (of.several.get(i)?.parts[0] ?? 1) / (of.several.has(i) ? of.end[i] - of.begin[i] || 1 : 1);
      return [[part, paint]];
    },
    label: (k) => handlers.nameOf(parts[k].of, parts[k].i),
    lines: (k, when) => {
      const { of, i, begin, end, on } = parts[k];
      return [handlers.nameOf(of, i), `on ${on}`, `${time((end - begin) / hz)}, from ${when(begin)}`];
    },
  };
}

function laneOf(handlers: Handlers, hz: number, title: string, partsOf: (kind: Kind) => Part[]): Track | undefined {
  const layers = KINDS.map((kind) => layerOf(handlers, hz, partsOf(kind), kind));
  return layers.some(({ begin }) => begin.length > 0) ? { title, height: 12, layers } : undefined;
}

/** The handlers on a vCPU; undefined where none is known. */
export function vcpuHandlers(handlers: Handlers, hz: number, vcpu: string): Track | undefined {
  return laneOf(handlers, hz, "interrupts", (kind) => {
    const of = handlers.onVcpu(vcpu, kind);
    return of === undefined ? [] : Array.from(of.begin, (begin, i) => ({ of, i, begin, end: of.end[i], on: vcpu }));
  });
}

/** The handlers on the vCPUs that ran on a pCPU, while they did; undefined where none is known. */
export function pcpuHandlers(
  handlers: Handlers,
  hz: number,
  ran: Intervals,
  vcpuOf: (i: number) => string,
): Track | undefined {
  return laneOf(handlers, hz, "in kernels", (kind) => {
    const parts: Part[] = [];
    ran.begin.forEach((begin, k) => {
      const on = ran.several.has(k) ? "" : vcpuOf(k);
      const of = on === "" ? undefined : handlers.onVcpu(on, kind);
      if (of === undefined) return;
      for (const part of clipped(of, begin, ran.end[k])) parts.push({ ...part, of, on });
    });
    return parts;
  });
}
