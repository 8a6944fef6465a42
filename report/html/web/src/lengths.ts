// How long VM exits took, over time: the page's counts by exit, length and bin.
import { Exit, Timeline } from "./data";
import { Sums } from "./over_time";
import { Numbers, unpack } from "./packed";

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

/** How long exits took, in cycles. */
export interface Lengths {
  p5: number;
  p50: number;
  p95: number;
  /** How many took 2^i to 2^(i+1). */
  octaves: number[];
}

/** What ExitLengths.sums are of. */
interface Things {
  /** The places of exits. */
  places: Map<string, number>;
  /** The things of `sums`, by exit. */
  things: number[][];
  /** By thing of `sums`. */
  steps: number[];
}

function readThings(exits: Exit[], timeline: Timeline): Things {
  const numbers = new Numbers(unpack(timeline.exit_length_steps));
  const steps: number[] = [];
  const things = exits.map(() => {
    const own: number[] = [];
    let step = 0;
    for (let n = numbers.next(); n > 0; n--) {
      step += numbers.next();
      own.push(steps.length);
      steps.push(step);
    }
    return own;
  });
  return { places: new Map(exits.map((exit, i) => [keyOf(exit), i])), things, steps };
}

export class ExitLengths {
  readonly sums: Sums;
  /** Read when they are first asked for. */
  private made: Things | undefined;

  constructor(
    private readonly exits: Exit[],
    private readonly timeline: Timeline,
  ) {
    this.sums = new Sums(timeline.exit_lengths);
  }

  private get of(): Things {
    return (this.made ??= readThings(this.exits, this.timeline));
  }

  private thingsOf(exits: Exit[]): number[] {
    return exits.flatMap((exit) => this.of.things[this.of.places.get(keyOf(exit)) ?? -1] ?? []);
  }
  private stepOf(thing: number): number {
    return this.of.steps[thing] ?? 0;
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
  /** The lengths of all of the exit, with the percentiles that the command has computed. */
  whole(exit: Exit): Lengths {
    const octaves = noOctaves();
    for (const thing of this.thingsOf([exit])) {
      const octave = Math.floor(this.stepOf(thing) / STEPS);
      this.sums.forEach(thing, (_, count) => (octaves[octave] += count));
    }
    return { p5: exit.p5, p50: exit.p50, p95: exit.p95, octaves };
  }
  /** The exit's lengths in [from, to), with percentiles of the counts by length. */
  within(exit: Exit, from: number, to: number): Lengths {
    const octaves = noOctaves();
    const steps: [step: number, count: number][] = [];
    for (const thing of this.thingsOf([exit])) {
      const step = this.stepOf(thing);
      const count = this.sums.amountIn(thing, from, to);
      steps.push([step, count]);
      octaves[Math.floor(step / STEPS)] += count;
    }
    const all = steps.reduce((sum, [, count]) => sum + count, 0);
    const [p5, p50, p95] = [0.05, 0.5, 0.95].map((p) => {
      let left = p * all;
      const at = steps.find(([, count]) => (left -= count) <= 0);
      return at === undefined ? 0 : stepBegin(at[0] + 1) + (left / at[1]) * (stepBegin(at[0] + 1) - stepBegin(at[0]));
    });
    return { p5, p50, p95, octaves };
  }
}

const noOctaves = (): number[] => new Array<number>(64).fill(0);
const keyOf = ({ domain, name }: Exit): string => `${domain}\u0000${name}`;
