// Elements, numbers and tips. All text is inserted as text, never as markup: names come from guests.

type Attributes = Record<string, string | number | boolean | ((event: never) => void) | undefined>;
export type Child = Node | string | number | null | undefined;

const SVG = "http://www.w3.org/2000/svg";

function fill(element: Element, attributes: Attributes, children: Child[]): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name, value as EventListener);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children) {
    if (child === null || child === undefined) continue;
    element.append(child instanceof Node ? child : String(child));
  }
}

export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  fill(element, attributes, children);
  return element;
}

export function s(tag: string, attributes: Attributes = {}, ...children: Child[]): SVGElement {
  const element = document.createElementNS(SVG, tag);
  fill(element, attributes, children);
  return element;
}

/** A field to search with, which the key / moves to; `onWords` gets its text in small letters. */
export function searchField(label: string, onWords: (words: string) => void): HTMLInputElement {
  const field = h("input", {
    type: "search",
    class: "search",
    placeholder: `${label} ( / )`,
    "aria-label": label,
    input: () => onWords(field.value.toLowerCase()),
  });
  return field;
}

/** A cell with a name; only long names are broken into lines. */
export const nameCell = (name: string): HTMLElement =>
  h("td", { class: name.length <= 32 ? "name whole" : "name" }, name);

export const percent = (share: number, digits = 2): string => `${(share * 100).toFixed(digits)}%`;

export function count(value: number): string {
  const whole = Math.abs(value - Math.round(value)) < 0.05;
  return value.toLocaleString("en-US", {
    minimumFractionDigits: whole ? 0 : 1,
    maximumFractionDigits: whole ? 0 : 1,
  });
}

export function short(value: number): string {
  const units: [number, string][] = [
    [1e12, " T"],
    [1e9, " G"],
    [1e6, " M"],
    [1e3, " k"],
  ];
  for (const [size, unit] of units) {
    if (Math.abs(value) >= size) {
      const scaled = value / size;
      return scaled.toFixed(scaled >= 100 ? 1 : 2) + unit;
    }
  }
  return String(Math.round(value));
}

/** Like short, also for values below 1. */
export function amount(value: number): string {
  return Math.abs(value) >= 1000 || value === 0 ? short(value) : value.toPrecision(3);
}

export function time(seconds: number): string {
  const size = Math.abs(seconds);
  if (size === 0) return "0 s";
  if (size >= 1) return `${seconds.toFixed(3)} s`;
  if (size >= 1e-3) return `${(seconds * 1e3).toFixed(3)} ms`;
  if (size >= 1e-6) return `${(seconds * 1e6).toFixed(3)} µs`;
  return `${Math.round(seconds * 1e9)} ns`;
}

/** An instant, with enough digits to differ from instants that are `step` away. */
export function instant(seconds: number, step: number): string {
  return `${seconds.toFixed(Math.min(Math.max(Math.ceil(-Math.log10(step) - 1e-9), 0), 9))} s`;
}

/** The distance of the labels of an axis: 1, 2 or 5 times a power of ten, some five to ten in the span. */
export function axisStep(span: number): number {
  const power = 10 ** Math.floor(Math.log10(span / 6));
  return power * ([5, 2].find((times) => span / (power * times) >= 5) ?? 1);
}

const tip = h("div", { id: "tip", role: "status" });
export function showTip(x: number, y: number, lines: string[]): void {
  if (!tip.isConnected) document.body.append(tip);
  tip.replaceChildren(...lines.map((line, i) => h(i === 0 ? "b" : "div", {}, line)));
  tip.style.display = "block";
  const width = tip.offsetWidth;
  const height = tip.offsetHeight;
  tip.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - width - 8))}px`;
  tip.style.top = `${y + 18 + height > innerHeight ? Math.max(4, y - height - 10) : y + 18}px`;
}
export function hideTip(): void {
  tip.style.display = "none";
}

/** A canvas as wide as its parent, sharp on every screen; `draw` is called when the size changes. */
export class CanvasView {
  readonly canvas = h("canvas", { tabindex: 0 });
  width = 0;
  height = 0;
  private due = 0;

  constructor(private readonly draw: (context: CanvasRenderingContext2D) => void) {
    new ResizeObserver(() => this.redraw()).observe(this.canvas);
    document.addEventListener("theme", () => this.redraw());
  }
  setHeight(height: number): void {
    this.height = height;
    this.canvas.style.height = `${height}px`;
  }
  redraw(): void {
    cancelAnimationFrame(this.due);
    this.due = requestAnimationFrame(() => {
      this.width = this.canvas.clientWidth;
      if (this.width === 0) return;
      const scale = devicePixelRatio || 1;
      this.canvas.width = Math.round(this.width * scale);
      this.canvas.height = Math.round(this.height * scale);
      const context = this.canvas.getContext("2d");
      if (context === null) return;
      context.setTransform(scale, 0, 0, scale, 0, 0);
      context.clearRect(0, 0, this.width, this.height);
      this.draw(context);
    });
  }
}

export function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

/** The description of a column of intervals, made of those of its bounds. */
export const intervalWords = (words: Record<string, string>): string =>
  `low: ${words.low ?? ""}; high: ${words.high ?? ""}`;

/** A share with its 95 % interval, on a scale from 0 to `most`. */
export function whisker(share: number, low: number, high: number, most: number): SVGElement {
  const width = 150;
  const at = (value: number): number => 2 + (Math.min(Math.max(value, 0), most) / (most || 1)) * (width - 4);
  const mark = (x: number): SVGElement => s("path", { d: `M${x} 4V14`, class: "whisker" });
  return s(
    "svg",
    {
      width,
      height: 18,
      viewBox: `0 0 ${width} 18`,
      class: "bar",
      role: "img",
      "aria-label": `${percent(share)}, between ${percent(low)} and ${percent(high)}`,
    },
    s("title", {}, `${percent(share)}; 95 % interval: ${percent(low)} to ${percent(high)}`),
    s("rect", { x: 2, y: 3, width: Math.max(at(share) - 2, 0), height: 12, class: "fill" }),
    s("path", { d: `M${at(low)} 9H${at(high)}`, class: "whisker" }),
    mark(at(low)),
    mark(at(high)),
  );
}
