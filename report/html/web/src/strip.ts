// The strip of time that stays on screen: what pCPUs did, who waited, exits per second. A range that is dragged over it
// is what all views are then of.
import { ACTIVITIES } from "./activity";
import { clockError, timeOfDay } from "./clock";
import { CanvasView, axisStep, colour, count, h, hideTip, instant, percent, short, showTip, time } from "./dom";
import { Figures, Selection } from "./selection";

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

export interface Strip {
  element: HTMLElement;
  show: (selection: Selection) => void;
}

export function timeStrip(figures: Figures, choose: (range: Selection["range"]) => void): Strip | undefined {
  const { page, length } = figures;
  const hz = page.report?.cpu_hz ?? 1e9;
  const begin = page.timeline?.begin_seconds ?? 0;
  if (activityStack(figures, undefined) === undefined && sampleStack(figures, undefined) === undefined)
    return undefined;

  let selection: Selection = {};
  let stack: Stack | undefined;
  let exits: { values: Float64Array; most: number } | undefined;
  let dragged: [number, number] | undefined;

  const words = h("span", { class: "soft", id: "selected" });
  const clear = h("button", { click: () => choose(undefined), title: "All of the time (Esc)" }, "All of the time");
  const legend = h("span", { class: "legend" });

  const plotWidth = (): number => Math.max(picture.width - LEFT - RIGHT, 1);
  const xOf = (at: number): number => LEFT + (at / length) * plotWidth();
  const atX = (x: number): number => Math.min(Math.max((x - LEFT) / plotWidth(), 0), 1) * length;
  const when = (at: number): string => instant(begin + at / hz, length / hz / 1000);

  /** The mean of values in the bins of a pixel. */
  function mean(values: Float64Array, of: { width: number; begin: number }, from: number, to: number): number {
    const first = Math.max(Math.floor((from - of.begin) / of.width), 0);
    const last = Math.min(Math.max(Math.ceil((to - of.begin) / of.width), first + 1), values.length);
    let sum = 0;
    for (let i = first; i < last; i++) sum += values[i];
    return last > first ? sum / (last - first) : 0;
  }

  const picture: CanvasView = new CanvasView((context) => {
    if (stack === undefined) return;
    const floor = HEIGHT - BOTTOM;
    const tall = floor - TOP;
    const painted = stack.areas.map((area) => colour(area.name));
    for (let x = LEFT; x < LEFT + plotWidth(); x++) {
      let y = floor;
      stack.areas.forEach((area, k) => {
        const part = mean(area.values, stack as Stack, atX(x), atX(x + 1)) / (stack as Stack).top;
        context.fillStyle = painted[k];
        context.fillRect(x, y - part * tall, 1, part * tall);
        y -= part * tall;
      });
    }
    if (exits !== undefined && figures.exitCounts !== undefined) {
      context.strokeStyle = colour("fg");
      context.lineWidth = 1;
      context.beginPath();
      const sums = figures.exitCounts;
      exits.values.forEach((value, i) => {
        const x = xOf(sums.beginOf(i) + sums.width / 2);
        context.lineTo(Math.min(Math.max(x, LEFT), LEFT + plotWidth()), floor - (value / (exits?.most ?? 1)) * tall);
      });
      context.stroke();
    }
    axis(context, floor);
    const range = dragged ?? selection.range;
    if (range !== undefined) {
      context.fillStyle = colour("bg");
      context.globalAlpha = 0.65;
      context.fillRect(LEFT, TOP, xOf(range[0]) - LEFT, tall);
      context.fillRect(xOf(range[1]), TOP, LEFT + plotWidth() - xOf(range[1]), tall);
      context.globalAlpha = 1;
      context.strokeStyle = colour("accent");
      context.lineWidth = 2;
      context.strokeRect(xOf(range[0]), TOP, Math.max(xOf(range[1]) - xOf(range[0]), 1), tall);
    }
  });
  function axis(context: CanvasRenderingContext2D, floor: number): void {
    const span = length / hz;
    const step = axisStep(span);
    context.fillStyle = colour("soft");
    context.strokeStyle = colour("line");
    context.lineWidth = 1;
    context.font = "11px system-ui, DejaVu Sans, sans-serif";
    context.textBaseline = "alphabetic";
    context.textAlign = "center";
    for (let at = Math.ceil(begin / step) * step; at <= begin + span; at += step) {
      const x = xOf((at - begin) * hz);
      context.beginPath();
      context.moveTo(x, floor);
      context.lineTo(x, floor + 4);
      context.stroke();
      context.fillText(instant(at, step), x, HEIGHT - 3);
    }
    context.textAlign = "left";
  }

  const canvas = picture.canvas;
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", "Activity over time; drag to select a range, Escape selects all");
  let grabbed: number | undefined;
  const at = (event: PointerEvent): number => atX(event.clientX - canvas.getBoundingClientRect().left);
  canvas.addEventListener("pointerdown", (event) => {
    grabbed = at(event);
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    const here = at(event);
    if (grabbed !== undefined) {
      dragged = [Math.min(grabbed, here), Math.max(grabbed, here)];
      say();
      picture.redraw();
      return hideTip();
    }
    if (stack === undefined) return;
    const pixel = length / plotWidth();
    const sums = figures.exitCounts;
    showTip(event.clientX, event.clientY, [
      when(here),
      ...[timeOfDay(page, here)].filter((text) => text !== undefined),
      ...stack.areas.map(
        (area) => `${area.words}: ${(stack as Stack).describe(mean(area.values, stack as Stack, here, here + pixel))}`,
      ),
      ...(exits === undefined || sums === undefined
        ? []
        : [
            `${short(
              mean(exits.values, { width: sums.width, begin: sums.beginOf(0) }, here, here + 1) / (sums.width / hz),
            )} VM exits a second`,
          ]),
    ]);
  });
  canvas.addEventListener("pointerup", () => {
    const range = dragged;
    grabbed = undefined;
    dragged = undefined;
    if (range !== undefined && xOf(range[1]) - xOf(range[0]) >= 3) choose(range);
    else show(selection);
  });
  canvas.addEventListener("pointerleave", hideTip);
  canvas.addEventListener("dblclick", () => choose(undefined));
  canvas.addEventListener("keydown", (event) => {
    if (event.key === "Escape") choose(undefined);
  });

  function say(): void {
    const range = dragged ?? selection.range;
    clear.disabled = range === undefined;
    const estimated = page.flame?.without_time ?? 0;
    const [from, to] = range ?? [0, length];
    const day = timeOfDay(page, from);
    words.title = day === undefined ? "" : `to ${timeOfDay(page, to)}; ${clockError(page)}`;
    words.textContent =
      `${when(from)} to ${when(to)}` +
      (range === undefined ? "" : `: ${time((to - from) / hz)}`) +
      (day === undefined ? "" : `; from ${day}`) +
      (range === undefined
        ? "; drag to select a range"
        : estimated >= 0.005
          ? `; estimated: ${percent(estimated, 0)} of the samples are known by an interval only and count evenly`
          : "");
  }
  function show(next: Selection): void {
    if (stack === undefined || next.domain !== selection.domain) {
      stack = activityStack(figures, next.domain) ?? sampleStack(figures, next.domain);
      const { exitCounts } = figures;
      const all = page.exits ?? [];
      const values = exitCounts?.series(
        (key) => all[key]?.at_most === false && (next.domain === undefined || all[key].domain === next.domain),
      );
      exits = values === undefined || all.length === 0 ? undefined : { values, most: Math.max(...values, 1) };
      legend.replaceChildren(
        ...(stack?.areas ?? [])
          .filter((area) => area.values.some((value) => value > 0))
          .map((area) => h("span", {}, h("i", { style: `background:var(--${area.name})` }), area.words)),
        ...(exits === undefined || figures.exitCounts === undefined
          ? []
          : [
              h(
                "span",
                {},
                h("i", { class: "line" }),
                `VM exits, at most ${short(exits.most / (figures.exitCounts.width / hz))} a second`,
              ),
            ]),
      );
    }
    selection = next;
    say();
    picture.redraw();
  }
  picture.setHeight(HEIGHT);
  show({});
  return { element: h("div", { id: "strip" }, h("div", { class: "tools" }, words, clear, legend), canvas), show };
}
