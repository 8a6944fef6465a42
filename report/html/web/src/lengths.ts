// How long VM exits took, over time: the page's counts by exit, length and bin.
import { Exit, Timeline } from "./data";
import { Sums } from "./over_time";

/** The steps of lengths in an octave, each of equal length: report/html/page_exit_list.h. */
const STEPS = 4;
/** The length in cycles at which a step begins. */
export const stepBegin = (step: number): number => 2 ** Math.floor(step / STEPS) * (1 + (step % STEPS) / STEPS);

/** Numbers of exits, by step and bin. */
export interface Cells {
  /** The first step and the last. */
  first: number;
  last: number;
  bins: number;
  /** (last - first + 1) * bins, by step. */
  counts: Float64Array;
}

export class ExitLengths {
  readonly sums: Sums;
  private readonly places: Map<string, number>;
  /** The things of `sums`, by exit. */
  private readonly things: number[][];

  constructor(
    exits: Exit[],
    private readonly timeline: Timeline,
  ) {
    this.sums = new Sums(timeline.exit_lengths);
    this.places = new Map(exits.map((exit, i) => [keyOf(exit), i]));
    this.things = exits.map(() => []);
    timeline.exit_length_steps.forEach(([exit], thing) => this.things[exit]?.push(thing));
  }

  private thingsOf(exits: Exit[]): number[] {
    return exits.flatMap((exit) => this.things[this.places.get(keyOf(exit)) ?? -1] ?? []);
  }
  private stepOf(thing: number): number {
    return this.timeline.exit_length_steps[thing]?.[1] ?? 0;
  }
  /** The numbers of these exits; undefined: none. */
  cells(exits: Exit[]): Cells | undefined {
    const things = this.thingsOf(exits);
    if (things.length === 0) return undefined;
    const steps = things.map((thing) => this.stepOf(thing));
    const [first, last] = [Math.min(...steps), Math.max(...steps)];
    const { bins } = this.sums;
    const counts = new Float64Array((last - first + 1) * bins);
    for (const thing of things) {
      const row = (this.stepOf(thing) - first) * bins;
      this.sums.forEach(thing, (bin, count) => (counts[row + bin] += count));
    }
    return { first, last, bins, counts };
  }
  /** The exit's lengths in [from, to): percentiles, and numbers by octave. */
  within(exit: Exit, from: number, to: number): Pick<Exit, "p5" | "p50" | "p95" | "octaves"> {
    const octaves = exit.octaves.map(() => 0);
    const steps: [step: number, count: number][] = [];
    for (const thing of this.thingsOf([exit])) {
      const step = this.stepOf(thing);
      const count = this.sums.amountIn(thing, from, to);
      steps.push([step, count]);
      octaves[Math.floor(step / STEPS)] += count;
    }
    steps.sort((a, b) => a[0] - b[0]);
    const all = steps.reduce((sum, [, count]) => sum + count, 0);
    const [p5, p50, p95] = [0.05, 0.5, 0.95].map((p) => {
      let left = p * all;
      const at = steps.find(([, count]) => (left -= count) <= 0);
      return at === undefined ? 0 : stepBegin(at[0] + 1) + (left / at[1]) * (stepBegin(at[0] + 1) - stepBegin(at[0]));
    });
    return { p5, p50, p95, octaves };
  }
}

const keyOf = ({ domain, name }: Exit): string => `${domain}\u0000${name}`;
