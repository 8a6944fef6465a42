// An axis of time: from cycles of the page to pixels, with ticks at round seconds of the clock of --from and --to.
import { type ScaleLinear, scaleLinear } from "d3-scale";
import { instant } from "./format";

/** The clock of a page: its first instant in seconds since the trace's first record, and cycles a second. */
export interface PageClock {
  begin: number;
  hz: number;
}

/** The scale from cycles in [from, to) to pixels in [left, right). */
export const timeScale = (from: number, to: number, left: number, right: number): ScaleLinear<number, number> =>
  scaleLinear([from, to], [left, right]);

/** Some five to ten round instants in the domain of a scale. */
export function timeTicks(
  scale: ScaleLinear<number, number>,
  { begin, hz }: PageClock,
): { x: number; label: string }[] {
  const seconds = scale.copy().domain(scale.domain().map((at) => begin + at / hz));
  const ticks = seconds.ticks(7);
  const step = ticks.length > 1 ? ticks[1] - ticks[0] : (scale.domain()[1] - scale.domain()[0]) / hz;
  return ticks.map((at) => ({ x: seconds(at), label: instant(at, step) }));
}
