// Draws the timeline's rows: each interval, or, where more of them are in view than can be seen, the bins that the
// command has made.
import type { ScaleLinear } from "d3-scale";
import { colour } from "./canvas";
import type { Timeline } from "./data";
import { drawHeat } from "./heat_track";
import { firstAfter } from "./intervals";
import { type PageClock, timeTicks } from "./time_axis";
import { type Row, TOP } from "./timeline_rows";
import type { ThreadColours, Threads } from "./threads";
import { DOMAINS, type Layer, type Track, inkOn } from "./tracks";

/** Room at the left for titles, and at the right for what is written beside rows. */
export const LEFT = 150;
export const RIGHT = 110;

type Context = CanvasRenderingContext2D;

/** How lanes of threads are painted. */
export interface ThreadPaint {
  threads: Threads;
  by: ThreadColours;
  /** The thread that is followed: the others are pale. */
  followed?: number;
}
function paintThread({ threads, by, followed }: ThreadPaint, thread: number): string {
  const place = threads.placeOf(thread, by);
  return place < 0 || (followed !== undefined && followed !== thread)
    ? colour("blocked")
    : DOMAINS[place % DOMAINS.length][0];
}

/** From cycles of the page to pixels; its domain is what is in view. */
export type TimeScale = ScaleLinear<number, number>;

function drawAxis(context: Context, x: TimeScale, clock: PageClock, height: number): void {
  context.fillStyle = colour("soft");
  context.strokeStyle = colour("line");
  context.lineWidth = 1;
  context.font = "12px system-ui, DejaVu Sans, sans-serif";
  context.textBaseline = "middle";
  for (const tick of timeTicks(x, clock)) {
    context.beginPath();
    context.moveTo(tick.x, TOP - 6);
    context.lineTo(tick.x, height);
    context.stroke();
    if (tick.x + 4 + context.measureText(tick.label).width < x.range()[1]) context.fillText(tick.label, tick.x + 4, 11);
  }
}

function drawBins(context: Context, timeline: Timeline, track: Track, y: number, x: TimeScale): void {
  const { bins } = track;
  if (bins === undefined) return;
  const [left, right] = x.range();
  const perPixel = (x.invert(1) - x.invert(0)) / timeline.bin;
  const step = Math.max(1, Math.floor(perPixel / 64));
  for (let px = left; px < right; px++) {
    const first = Math.floor(x.invert(px) / timeline.bin);
    const last = Math.min(Math.max(Math.ceil(x.invert(px + 1) / timeline.bin), first + 1), timeline.bins);
    if (first < 0 || first >= timeline.bins) continue;
    const sums = new Map<string, number>();
    let n = 0;
    for (let bin = first; bin < last; bin += step, n++) {
      for (const [part, paint] of bins.draw(bin * bins.each)) sums.set(paint, (sums.get(paint) ?? 0) + part);
    }
    let at = y + track.height;
    for (const [paint, part] of sums) {
      const tall = (part / n / 255) * track.height;
      context.fillStyle = paint;
      context.fillRect(px, at - tall, 1, tall);
      at -= tall;
    }
  }
}

function drawLayer(context: Context, track: Track, layer: Layer, y: number, x: TimeScale, of?: ThreadPaint): void {
  const { thread } = layer;
  const paintOf =
    thread === undefined || of === undefined
      ? layer.paint
      : (i: number): [number, string][] => [[1, paintThread(of, thread(i))]];
  const [from, to] = x.domain();
  const [left, end] = x.range();
  let drawn = -1;
  const { begin: begins, end: ends } = layer;
  for (let i = firstAfter(ends, from); i < begins.length && begins[i] < to; i++) {
    const begin = Math.max(x(begins[i]), left);
    const right = x(ends[i]);
    if (right < drawn && right - begin < 1) continue;
    const width = Math.max(right - begin, 1);
    let bottom = y + track.height;
    let ground = "";
    for (const [part, paint] of paintOf(i)) {
      const tall = Math.min(part, 1) * track.height;
      context.fillStyle = ground = paint;
      context.fillRect(begin, bottom - tall, width > 3 ? width - 0.5 : width, tall);
      bottom -= tall;
    }
    drawn = Math.ceil(right);
    const room = Math.floor((Math.min(right, end) - begin - 8) / 7.4);
    const label = room >= 4 ? (layer.label?.(i) ?? "") : "";
    if (label === "") continue;
    context.fillStyle = inkOn(ground);
    context.font = `${track.height > 15 ? 12 : 10}px system-ui, DejaVu Sans, sans-serif`;
    context.fillText(label.length <= room ? label : `${label.slice(0, room - 1)}…`, begin + 4, y + track.height / 2);
  }
}

function drawTitle(context: Context, { track, group, depth, isOpen, y }: Row): void {
  const isFirst = group !== undefined;
  const middle = y + Math.min(track.height, 22) / 2;
  context.fillStyle = colour(isFirst ? "fg" : "soft");
  context.textBaseline = "middle";
  context.font = `${isFirst ? 13 : 11}px ui-monospace, DejaVu Sans Mono, monospace`;
  const sign = group?.below === undefined ? "" : isOpen ? "▾ " : "▸ ";
  const title = sign + track.title;
  const room = (isFirst ? 18 : 19) - depth;
  const text = title.length > room ? `${title.slice(0, room - 1)}…` : title;
  context.fillText(text, (isFirst ? 4 : 18) + depth * 8, middle);
  if (track.heat === undefined) return;
  context.font = "11px system-ui, DejaVu Sans, sans-serif";
  context.fillStyle = colour("soft");
  context.fillText(`shade: part ${track.heat.words}`, 18 + depth * 8, middle + 16);
}

function drawTrack(context: Context, timeline: Timeline, { track, y }: Row, x: TimeScale, of?: ThreadPaint): void {
  const [from, to] = x.domain();
  const [left, right] = x.range();
  context.save();
  context.beginPath();
  context.rect(left, y, right - left, track.height);
  context.clip();
  // Bars while each can be seen; else bins, which show the part of each state in each pixel.
  const main: Layer | undefined = track.layers[0];
  const inView = main === undefined ? Infinity : firstAfter(main.end, to) - firstAfter(main.end, from);
  if (track.heat !== undefined)
    drawHeat(context, track.heat, { ...timeline, from, to }, { x: left, y, width: right - left });
  const isBinned = track.bins !== undefined && inView > (right - left) / 3;
  if (isBinned) drawBins(context, timeline, track, y, x);
  for (const layer of isBinned ? track.layers.slice(1) : track.layers) drawLayer(context, track, layer, y, x, of);
  context.restore();
}

export function drawTimeline(
  context: Context,
  { width, height }: { width: number; height: number },
  timeline: Timeline,
  rows: Row[],
  x: TimeScale,
  clock: PageClock,
  of?: ThreadPaint,
): void {
  const [from, to] = x.domain();
  drawAxis(context, x, clock, height);
  context.font = "13px ui-monospace, DejaVu Sans Mono, monospace";
  context.textAlign = "right";
  context.fillText("ran  waited", width - 2, 11);
  context.textAlign = "left";
  for (const row of rows) {
    drawTitle(context, row);
    if (row.group?.beside !== undefined) {
      context.textAlign = "right";
      context.font = "12px ui-monospace, DejaVu Sans Mono, monospace";
      context.fillStyle = colour("fg");
      context.fillText(row.group.beside(from, to), width - 2, row.y + Math.min(row.track.height, 22) / 2);
      context.textAlign = "left";
    }
    drawTrack(context, timeline, row, x, of);
  }
}
