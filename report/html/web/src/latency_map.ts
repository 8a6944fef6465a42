// A heat map of how long VM exits took over time: a column for each bin of time, the length on a logarithmic axis.
import { CanvasView, axisStep, colour, count, h, hideTip, instant, showTip, time } from "./dom";
import { heatShades, shadeOf } from "./heat";
import { Cells, ExitLengths, stepBegin } from "./lengths";
import { Exit, Page } from "./data";

const HEIGHT = 250;
const LEFT = 74;
const RIGHT = 10;
const TOP = 8;
const BOTTOM = 26;

/** The part of the way from few to many that a number is: its logarithm. */
const heatPart = (value: number, most: number): number => Math.log1p(value) / Math.log1p(Math.max(most, 1));

export function latencyMap(page: Page, lengths: ExitLengths, exits: Exit[]): HTMLElement | null {
  const cells: Cells | undefined = lengths.cells(exits);
  const { timeline, selection } = page;
  if (cells === undefined || timeline === undefined) return null;
  const origin = timeline.begin_seconds;
  const { first, last, bins, counts } = cells;
  const hz = page.report?.cpu_hz ?? 1e9;
  const { sums } = lengths;
  const [from, to] = selection?.range ?? [0, timeline.length];
  const [low, high] = [stepBegin(first), stepBegin(last + 1)].map(Math.log2);
  const most = counts.reduce((a, b) => Math.max(a, b), 0);
  const plot = (): number => Math.max(picture.width - LEFT - RIGHT, 1);
  const xOf = (at: number): number => LEFT + ((at - from) / (to - from)) * plot();
  const yOf = (cycles: number): number =>
    HEIGHT - BOTTOM - ((Math.log2(cycles) - low) / (high - low)) * (HEIGHT - TOP - BOTTOM);
  const seconds = (cycles: number): number => origin + cycles / hz;

  function axes(context: CanvasRenderingContext2D): void {
    context.font = "11px system-ui, DejaVu Sans, sans-serif";
    context.fillStyle = colour("soft");
    context.strokeStyle = colour("line");
    context.textBaseline = "middle";
    context.textAlign = "right";
    // 1, 10, 100 ns and so on; where there are few, 2 and 5 of them, too.
    const [least, largest] = [2 ** low / hz, 2 ** high / hz];
    const marks = high - low < 8 ? [1, 2, 5] : [1];
    for (let power = Math.floor(Math.log10(least)); power <= Math.log10(largest); power++) {
      for (const mark of marks) {
        const length = mark * 10 ** power;
        if (length < least || length > largest) continue;
        const y = yOf(length * hz);
        context.fillText(time(length).replace(/\.0+ /, " "), LEFT - 6, y);
        context.beginPath();
        context.moveTo(LEFT, y);
        context.lineTo(LEFT + plot(), y);
        context.stroke();
      }
    }
    context.textAlign = "left";
    const span = (to - from) / hz;
    const step = axisStep(span);
    for (let at = Math.ceil(seconds(from) / step) * step; at <= seconds(to); at += step) {
      const x = xOf((at - origin) * hz);
      context.fillRect(x, HEIGHT - BOTTOM, 1, 4);
      const label = instant(at, step);
      if (x + context.measureText(label).width < LEFT + plot()) context.fillText(label, x + 3, HEIGHT - BOTTOM + 13);
    }
  }
  const picture = new CanvasView((context) => {
    axes(context);
    const shades = heatShades();
    context.save();
    context.beginPath();
    context.rect(LEFT, TOP, plot(), HEIGHT - TOP - BOTTOM);
    context.clip();
    for (let bin = 0; bin < bins; bin++) {
      const x = xOf(sums.beginOf(bin));
      const right = xOf(sums.beginOf(bin) + sums.width);
      if (right < LEFT || x > LEFT + plot()) continue;
      for (let step = first; step <= last; step++) {
        const value = counts[(step - first) * bins + bin];
        if (value === 0) continue;
        const [top, bottom] = [yOf(stepBegin(step + 1)), yOf(stepBegin(step))];
        context.fillStyle = `rgb(${shadeOf(shades, heatPart(value, most)).join()})`;
        context.fillRect(x, top, Math.max(right - x, 1), Math.max(bottom - top, 1));
      }
    }
    context.restore();
  });
  picture.setHeight(HEIGHT);
  picture.canvas.setAttribute("role", "img");
  picture.canvas.setAttribute("aria-label", "Time that exits took, over time");
  picture.canvas.addEventListener("pointermove", (event) => {
    const box = picture.canvas.getBoundingClientRect();
    const at = from + ((event.clientX - box.left - LEFT) / plot()) * (to - from);
    const bin = Math.floor((at - sums.beginOf(0)) / sums.width);
    const y = event.clientY - box.top;
    for (let step = first; step <= last; step++) {
      if (y > yOf(stepBegin(step)) || y <= yOf(stepBegin(step + 1)) || at < from || at > to) continue;
      const value = bin >= 0 && bin < bins ? counts[(step - first) * bins + bin] : 0;
      if (value === 0) break;
      return showTip(event.clientX, event.clientY, [
        `${count(value)} ${value === 1 ? "exit" : "exits"}`,
        `took ${time(stepBegin(step) / hz)} to ${time(stepBegin(step + 1) / hz)}`,
        `in ${time(sums.width / hz)}, from ${instant(seconds(sums.beginOf(bin)), sums.width / hz)}`,
      ]);
    }
    hideTip();
  });
  picture.canvas.addEventListener("pointerleave", hideTip);
  return h(
    "div",
    { class: "latency" },
    picture.canvas,
    h(
      "div",
      { class: "legend" },
      h("span", {}, "number of exits, logarithmic: 1 ", h("i", { class: "ramp" }), count(most)),
    ),
  );
}
