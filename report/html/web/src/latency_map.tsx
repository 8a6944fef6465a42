// A heat map of how long VM exits took over time: a column for each bin of time, the length on a logarithmic axis.
import { type ScaleLinear, type ScaleLogarithmic, scaleLog } from "d3-scale";
import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { Canvas, Size, colour, pointIn } from "./canvas";
import type { Exit, Page } from "./data";
import { count, instant, time } from "./format";
import { heatShades, shadeOf } from "./heat";
import { type Cells, type ExitLengths, stepBegin } from "./lengths";
import { timeScale, timeTicks } from "./time_axis";
import { hideTip, showTip } from "./tip";

const HEIGHT = 250;
const LEFT = 74;
const RIGHT = 10;
const TOP = 8;
const BOTTOM = 26;

/** The part of the way from few to many that a number is: its logarithm. */
const heatPart = (value: number, most: number): number => Math.log1p(value) / Math.log1p(Math.max(most, 1));

interface Scales {
  x: ScaleLinear<number, number>;
  /** Of lengths in seconds. */
  y: ScaleLogarithmic<number, number>;
}

function drawAxes(context: CanvasRenderingContext2D, { x, y }: Scales, clock: { begin: number; hz: number }): void {
  const [left, right] = x.range();
  context.font = "11px system-ui, DejaVu Sans, sans-serif";
  context.fillStyle = colour("soft");
  context.strokeStyle = colour("line");
  context.textBaseline = "middle";
  context.textAlign = "right";
  const [least, largest] = y.domain();
  // Of many powers of ten only these.
  const powers = Math.log10(largest / least);
  for (const length of y.ticks().filter((each) => powers < 2.4 || Math.log10(each) % 1 === 0)) {
    context.fillText(time(length).replace(/\.0+ /, " "), left - 6, y(length));
    context.beginPath();
    context.moveTo(left, y(length));
    context.lineTo(right, y(length));
    context.stroke();
  }
  context.textAlign = "left";
  for (const tick of timeTicks(x, clock)) {
    context.fillRect(tick.x, HEIGHT - BOTTOM, 1, 4);
    if (tick.x + context.measureText(tick.label).width < right)
      context.fillText(tick.label, tick.x + 3, HEIGHT - BOTTOM + 13);
  }
}

interface Props {
  page: Page;
  lengths: ExitLengths;
  exits: Exit[];
}

/** Nothing where the lengths are not known. */
export function LatencyMap({ page, lengths, exits }: Props): JSX.Element | null {
  const cells = useMemo(() => lengths.cells(exits), [lengths, exits]);
  if (cells === undefined || page.timeline === undefined) return null;
  return <LengthsOverTime page={page} lengths={lengths} exits={exits} cells={cells} />;
}

function LengthsOverTime({ page, lengths, cells }: Props & { cells: Cells }): JSX.Element {
  const { first, last, bins, counts } = cells;
  const { sums } = lengths;
  const clock = { begin: page.timeline?.begin_seconds ?? 0, hz: page.report?.cpu_hz ?? 1e9 };
  const [from, to] = page.selection?.range ?? [0, page.timeline?.length ?? 0];
  const most = counts.reduce((a, b) => Math.max(a, b), 0);
  const secondsOf = (step: number): number => stepBegin(step) / clock.hz;
  const scales = (width: number): Scales => ({
    x: timeScale(from, to, LEFT, Math.max(width - RIGHT, LEFT + 1)),
    y: scaleLog([secondsOf(first), secondsOf(last + 1)], [HEIGHT - BOTTOM, TOP]),
  });
  function draw(context: CanvasRenderingContext2D, { width }: Size): void {
    const { x, y } = scales(width);
    drawAxes(context, { x, y }, clock);
    const shades = heatShades();
    const right = x(to);
    context.save();
    context.beginPath();
    context.rect(LEFT, TOP, right - LEFT, HEIGHT - TOP - BOTTOM);
    context.clip();
    for (let bin = 0; bin < bins; bin++) {
      const [begin, end] = [x(sums.beginOf(bin)), x(sums.beginOf(bin + 1))];
      if (end < LEFT || begin > right) continue;
      for (let step = first; step <= last; step++) {
        const value = counts[(step - first) * bins + bin];
        if (value === 0) continue;
        const [top, bottom] = [y(secondsOf(step + 1)), y(secondsOf(step))];
        context.fillStyle = `rgb(${shadeOf(shades, heatPart(value, most)).join()})`;
        context.fillRect(begin, top, Math.max(end - begin, 1), Math.max(bottom - top, 1));
      }
    }
    context.restore();
  }
  function point(event: PointerEvent): void {
    const [px, py] = pointIn(event);
    const { x, y } = scales((event.currentTarget as Element).clientWidth);
    const [at, length] = [x.invert(px), y.invert(py)];
    const bin = Math.floor((at - sums.beginOf(0)) / sums.width);
    let step = first;
    while (step < last && secondsOf(step + 1) <= length) step++;
    const isInside = at >= from && at < to && bin >= 0 && bin < bins && py > TOP && py <= HEIGHT - BOTTOM;
    const value = isInside ? counts[(step - first) * bins + bin] : 0;
    if (value === 0) return hideTip();
    showTip(event.clientX, event.clientY, [
      `${count(value)} ${value === 1 ? "exit" : "exits"}`,
      `took ${time(secondsOf(step))} to ${time(secondsOf(step + 1))}`,
      `in ${time(sums.width / clock.hz)}, from ` +
        instant(clock.begin + sums.beginOf(bin) / clock.hz, sums.width / clock.hz),
    ]);
  }
  return (
    <div class="latency">
      <Canvas
        height={HEIGHT}
        label="Time that exits took, over time"
        draw={draw}
        onPointerMove={point}
        onPointerLeave={hideTip}
      />
      <div class="legend">
        <span>
          {"number of exits, logarithmic: 1 "}
          <i class="ramp" />
          {count(most)}
        </span>
      </div>
    </div>
  );
}
