// The strip of time that stays on screen: what pCPUs did, who waited, exits per second. A range that is dragged over it
// is what all views are then of; its edges can be moved.
import { type BrushBehavior, type D3BrushEvent, brushX } from "d3-brush";
import type { ScaleLinear } from "d3-scale";
import { select } from "d3-selection";
import type { JSX } from "preact";
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { ACTIVITIES } from "./activity";
import { Canvas, Size, colour, pointIn } from "./canvas";
import { clockError, timeOfDay } from "./clock";
import { count, instant, percent, short, time } from "./format";
import type { Figures, Selection } from "./selection";
import { timeScale, timeTicks } from "./time_axis";
import { hideTip, showTip } from "./tip";

const HEIGHT = 92;
const LEFT = 22;
const RIGHT = 22;
const TOP = 14;
const BOTTOM = 18;
/** Bins of activity, from the bottom, with their words; what is blocked is the rest. */
const AREAS: [name: (typeof ACTIVITIES)[number], words: string][] = [
  ["guest", "in guests"],
  ["running", "running"],
  ["exit", "in Xen"],
  ["runnable", "waiting for a pCPU"],
];
const MODES: [name: string, words: string][] = [
  ["user", "user mode"],
  ["kernel", "kernel"],
  ["xen", "Xen"],
];

/** Series of equal bins, as areas on each other, in a unit of the strip's own. */
interface Stack {
  width: number; // cycles of a bin
  begin: number; // of the first bin
  areas: { name: string; words: string; values: Float64Array }[];
  /** The value of the upper edge. */
  top: number;
  describe: (value: number) => string;
}

/** pCPUs that are busy, and vCPUs that wait, at a time. */
function activityStack(figures: Figures, domain: string | undefined): Stack | undefined {
  const { activity } = figures;
  if (activity === undefined) return undefined;
  const { bin, bins, pcpus } = activity.timeline;
  const sums = activity.series(domain);
  const areas = AREAS.map(([name, words]) => {
    const k = ACTIVITIES.indexOf(name);
    return {
      name,
      words,
      values: Float64Array.from({ length: bins }, (_, i) => sums[i * ACTIVITIES.length + k] / bin),
    };
  });
  let top = domain === undefined ? pcpus.length : 0;
  // Short bursts of waiting may be cut off; the mean of a screen's pixel is seldom higher.
  const perPixel = Math.max(1, Math.floor(bins / 512));
  for (let i = 0; i < bins; i += perPixel) {
    let sum = 0;
    for (let k = i; k < Math.min(i + perPixel, bins); k++) for (const area of areas) sum += area.values[k];
    top = Math.max(top, sum / Math.min(perPixel, bins - i));
  }
  return {
    width: bin,
    begin: 0,
    areas,
    top: top || 1,
    describe: (value) => (domain === undefined ? percent(value / pcpus.length, 1) + " of the pCPUs" : value.toFixed(2)),
  };
}

/** Samples by mode, where no trace says more. */
function sampleStack(figures: Figures, domain: string | undefined): Stack | undefined {
  const { rows } = figures;
  const flame = figures.page.flame;
  if (rows === undefined || flame === undefined) return undefined;
  const [at, modeAt] = ["domain", "mode"].map((column) => flame.columns.indexOf(column));
  const of = (key: number, mode: string): boolean => {
    const row = flame.rows[key];
    return flame.strings[row[modeAt]] === mode && (domain === undefined || flame.strings[row[at]] === domain);
  };
  const areas = MODES.map(([name, words]) => ({ name, words, values: rows.series((key) => of(key, name)) }));
  let top = 0;
  for (let i = 0; i < rows.bins; i++)
    top = Math.max(
      top,
      areas.reduce((sum, area) => sum + area.values[i], 0),
    );
  return {
    width: rows.width,
    begin: rows.beginOf(0),
    areas,
    top: top || 1,
    describe: (value) => `${count(value)} samples`,
  };
}

interface Exits {
  values: Float64Array;
  /** The most in a bin. */
  most: number;
}
function exitsOf({ page, exitCounts }: Figures, domain: string | undefined): Exits | undefined {
  const all = page.exits ?? [];
  const values = exitCounts?.series(
    (key) => all[key]?.at_most === false && (domain === undefined || all[key].domain === domain),
  );
  return values === undefined || all.length === 0 ? undefined : { values, most: Math.max(...values, 1) };
}

/** The mean of values in the bins of [from, to). */
function mean(values: Float64Array, of: { width: number; begin: number }, from: number, to: number): number {
  const first = Math.max(Math.floor((from - of.begin) / of.width), 0);
  const last = Math.min(Math.max(Math.ceil((to - of.begin) / of.width), first + 1), values.length);
  let sum = 0;
  for (let i = first; i < last; i++) sum += values[i];
  return last > first ? sum / (last - first) : 0;
}

type Scale = ScaleLinear<number, number>;
const FLOOR = HEIGHT - BOTTOM;

function drawStack(context: CanvasRenderingContext2D, stack: Stack, scale: Scale): void {
  const painted = stack.areas.map((area) => colour(area.name));
  const [left, right] = scale.range();
  for (let x = left; x < right; x++) {
    let y = FLOOR;
    stack.areas.forEach((area, k) => {
      const part = mean(area.values, stack, scale.invert(x), scale.invert(x + 1)) / stack.top;
      context.fillStyle = painted[k];
      context.fillRect(x, y - part * (FLOOR - TOP), 1, part * (FLOOR - TOP));
      y -= part * (FLOOR - TOP);
    });
  }
}

function Words(props: { figures: Figures; range: Selection["range"]; when: (at: number) => string }): JSX.Element {
  const { figures, range, when } = props;
  const { page, length } = figures;
  const estimated = page.flame?.without_time ?? 0;
  const [from, to] = range ?? [0, length];
  const day = timeOfDay(page, from);
  const isEstimated = range !== undefined && estimated >= 0.005;
  const about = [
    ...(day === undefined ? [] : [`to ${timeOfDay(page, to)}; ${clockError(page)}`]),
    ...(isEstimated
      ? [`${percent(estimated, 0)} of the samples are known by an interval only and count evenly in it`]
      : []),
  ];
  return (
    <span class="soft" id="selected" title={about.join("; ")}>
      {`${when(from)} to ${when(to)}` +
        (range === undefined ? "" : `: ${time((to - from) / (page.report?.cpu_hz ?? 1e9))}`) +
        (day === undefined ? "" : `; from ${day}`) +
        (range === undefined
          ? "; drag to select a range"
          : isEstimated
            ? `; estimated: ${percent(estimated, 0)} of the samples have no exact time`
            : "")}
    </span>
  );
}

interface Props {
  figures: Figures;
  selection: Selection;
  choose: (range: Selection["range"]) => void;
}

export function TimeStrip({ figures, selection, choose }: Props): JSX.Element | null {
  const { page, length, exitCounts } = figures;
  const clock = { begin: page.timeline?.begin_seconds ?? 0, hz: page.report?.cpu_hz ?? 1e9 };
  const { domain } = selection;
  const stack = useMemo(() => activityStack(figures, domain) ?? sampleStack(figures, domain), [figures, domain]);
  const exits = useMemo(() => exitsOf(figures, domain), [figures, domain]);
  const [dragged, setDragged] = useState<[number, number]>();
  const range = dragged ?? selection.range;
  const scaleOf = (width: number): Scale => timeScale(0, length, LEFT, Math.max(width - RIGHT, LEFT + 1));
  const when = (at: number): string => instant(clock.begin + at / clock.hz, length / clock.hz / 1000);

  function draw(context: CanvasRenderingContext2D, { width }: Size): void {
    const scale = scaleOf(width);
    const [left, right] = scale.range();
    if (stack !== undefined) drawStack(context, stack, scale);
    if (exits !== undefined && exitCounts !== undefined) {
      context.strokeStyle = colour("fg");
      context.lineWidth = 1;
      context.beginPath();
      exits.values.forEach((value, i) => {
        const x = scale(exitCounts.beginOf(i) + exitCounts.width / 2);
        context.lineTo(Math.min(Math.max(x, left), right), FLOOR - (value / exits.most) * (FLOOR - TOP));
      });
      context.stroke();
    }
    context.fillStyle = colour("soft");
    context.font = "11px system-ui, DejaVu Sans, sans-serif";
    context.textAlign = "center";
    for (const { x, label } of timeTicks(scale, clock)) {
      context.fillRect(x, FLOOR, 1, 4);
      context.fillText(label, x, HEIGHT - 3);
    }
    if (range === undefined) return;
    context.fillStyle = colour("bg");
    context.globalAlpha = 0.65;
    context.fillRect(left, TOP, scale(range[0]) - left, FLOOR - TOP);
    context.fillRect(scale(range[1]), TOP, right - scale(range[1]), FLOOR - TOP);
    context.globalAlpha = 1;
  }
  function point(event: PointerEvent): void {
    if (stack === undefined || dragged !== undefined) return hideTip();
    const scale = scaleOf((event.currentTarget as Element).clientWidth);
    const here = scale.clamp(true).invert(pointIn(event)[0]);
    const pixel = length / (scale.range()[1] - LEFT);
    showTip(event.clientX, event.clientY, [
      when(here),
      ...[timeOfDay(page, here)].filter((text) => text !== undefined),
      ...stack.areas.map((area) => `${area.words}: ${stack.describe(mean(area.values, stack, here, here + pixel))}`),
      ...(exits === undefined || exitCounts === undefined
        ? []
        : [
            `${short(
              mean(exits.values, { width: exitCounts.width, begin: exitCounts.beginOf(0) }, here, here + 1) /
                (exitCounts.width / clock.hz),
            )} VM exits a second`,
          ]),
    ]);
  }
  // Without a trace there may be no time to select in.
  if (stack === undefined || length === 0) return null;
  return (
    <div id="strip">
      <div class="tools">
        <Words figures={figures} range={range} when={when} />
        <button disabled={range === undefined} onClick={() => choose(undefined)} title="All of the time (Esc)">
          All of the time
        </button>
        <span class="legend">
          {stack.areas
            .filter((area) => area.values.some((value) => value > 0))
            .map((area) => (
              <span>
                <i style={{ background: `var(--${area.name})` }} />
                {area.words}
              </span>
            ))}
          {exits === undefined || exitCounts === undefined ? null : (
            <span>
              <i class="line" />
              {`VM exits, at most ${short(exits.most / (exitCounts.width / clock.hz))} a second`}
            </span>
          )}
        </span>
      </div>
      <div class="plot" onPointerMove={point} onPointerLeave={hideTip}>
        <Canvas height={HEIGHT} label="Activity over time; drag to select a range, Escape selects all" draw={draw} />
        <Brush scaleOf={scaleOf} range={selection.range} drag={setDragged} choose={choose} />
      </div>
    </div>
  );
}

/** Over the picture: the range that is dragged, and the edges by which it is changed. */
function Brush(props: {
  scaleOf: (width: number) => Scale;
  range: Selection["range"];
  /** Gets the range while it is dragged; undefined when that has ended. */
  drag: (range: Selection["range"]) => void;
  choose: (range: Selection["range"]) => void;
}): JSX.Element {
  const place = useRef<SVGSVGElement>(null);
  const brush = useRef<BrushBehavior<unknown> | undefined>(undefined);
  const latest = useRef(props);
  latest.current = props;
  /** Puts the edges where the range is, in the width that there is now. */
  function fit(): void {
    const svg = place.current;
    const behaviour = brush.current;
    if (svg === null || behaviour === undefined || svg.clientWidth === 0) return;
    const scale = latest.current.scaleOf(svg.clientWidth);
    const [left, right] = scale.range();
    behaviour.extent([
      [left, TOP],
      [right, FLOOR],
    ]);
    const { range } = latest.current;
    const group = select<SVGSVGElement, unknown>(svg).select<SVGGElement>("g");
    group.call(behaviour);
    behaviour.move(group, range === undefined ? null : [scale(range[0]), scale(range[1])]);
  }
  useLayoutEffect(() => {
    const svg = place.current;
    if (svg === null) return undefined;
    const changed = ({ sourceEvent, selection, type }: D3BrushEvent<unknown>): void => {
      if (sourceEvent === undefined || sourceEvent === null) return; // moved by fit()
      const scale = latest.current.scaleOf(svg.clientWidth);
      const pixels = selection as [number, number] | null;
      const range = pixels?.map((x) => scale.invert(x)) as Selection["range"];
      if (type === "brush") return latest.current.drag(range);
      latest.current.drag(undefined);
      // A click selects nothing and leaves what was selected.
      if (pixels !== null && pixels[1] - pixels[0] >= 3) latest.current.choose(range);
      else fit();
    };
    brush.current = brushX<unknown>().on("brush end", changed);
    const observer = new ResizeObserver(fit);
    observer.observe(svg);
    return () => observer.disconnect();
  }, []);
  useLayoutEffect(fit, [String(props.range)]);
  return (
    <svg ref={place} onDblClick={() => props.choose(undefined)}>
      <g />
    </svg>
  );
}
