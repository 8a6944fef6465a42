// The functions beside the flame graph: self and total of each. Pointing at one highlights its frames; pointing at a
// frame highlights its function.
import { Flame, Page, stackFrames } from "./data";
import { h, percent } from "./dom";

/** Rows of the list; the rest is small. */
const MOST = 100;

interface Row {
  name: string;
  kind: string;
  self: number;
  total: number;
}

/** The functions of all stacks, each counted once in a stack. */
function functionsOf(page: Page, flame: Flame): Row[] {
  const at = flame.columns.indexOf("stack");
  const weight = flame.columns.length + (page.is_time ? 1 : 0);
  const rows = new Map<string, Row>();
  for (const row of flame.rows) {
    const stack = stackFrames(flame, row[at] ?? 0).filter((frame) => frame.kind === "function");
    const seen = new Set<string>();
    stack.forEach(({ name, mode }, i) => {
      const key = `${mode} ${name}`;
      let of = rows.get(key);
      if (of === undefined) rows.set(key, (of = { name, kind: mode, self: 0, total: 0 }));
      if (!seen.has(key)) of.total += row[weight] ?? 0;
      seen.add(key);
      if (i + 1 === stack.length) of.self += row[weight] ?? 0;
    });
  }
  return [...rows.values()];
}

export interface FunctionList {
  element: HTMLElement;
  /** Highlights the function of a frame; undefined: none. */
  light: (name: string | undefined) => void;
  /** Marks the function that is shown alone; undefined: none. */
  choose: (name: string | undefined) => void;
  has: (name: string) => boolean;
}

export function functionList(
  page: Page,
  flame: Flame,
  point: (name: string | undefined) => void,
  choose: (name: string) => void,
): FunctionList {
  const all = functionsOf(page, flame);
  const whole = all.reduce((sum, row) => sum + row.self, 0) || 1;
  const hasChains = all.some((row) => row.total > row.self);
  let by: "self" | "total" = "self";
  const body = h("tbody");
  const elements = new Map<string, HTMLElement[]>();
  function line(row: Row): HTMLElement {
    const cell = (value: number): HTMLElement =>
      h("td", { class: "n", style: `--part:${((value / whole) * 100).toFixed(2)}%` }, percent(value / whole, 1));
    const element = h(
      "tr",
      {
        class: "choose",
        tabindex: 0,
        title: `Callers and callees of ${row.name}`,
        click: () => choose(row.name),
        keydown: (event: KeyboardEvent) => {
          if (event.key === "Enter") choose(row.name);
        },
        pointerenter: () => point(row.name),
        pointerleave: () => point(undefined),
      },
      cell(row.self),
      hasChains ? cell(row.total) : null,
      h("td", { class: "name", title: row.name }, h("i", { class: row.kind }), row.name),
    );
    elements.set(row.name, [...(elements.get(row.name) ?? []), element]);
    return element;
  }
  let chosen: string | undefined;
  function draw(): void {
    elements.clear();
    const sorted = [...all].sort((a, b) => b[by] - a[by] || b.total - a.total);
    body.replaceChildren(...sorted.slice(0, MOST).map(line));
    mark(chosen);
  }
  function mark(name: string | undefined): void {
    for (const each of body.querySelectorAll(".chosen")) each.classList.remove("chosen");
    chosen = name;
    for (const each of elements.get(name ?? "") ?? []) each.classList.add("chosen");
  }
  const names = new Set(all.map(({ name }) => name));
  const heading = (key: typeof by): HTMLElement =>
    h(
      "th",
      { class: "n", title: key === "self" ? "in the function itself" : "in it and what it called" },
      h("button", { click: () => ((by = key), draw()) }, key),
    );
  draw();
  let lit: HTMLElement[] = [];
  return {
    element: h(
      "div",
      { id: "functions" },
      h(
        "table",
        {},
        h("thead", {}, h("tr", {}, heading("self"), hasChains ? heading("total") : null, h("th", {}, "function"))),
        body,
      ),
      all.length > MOST ? h("p", { class: "soft" }, `${all.length - MOST} more: Functions`) : null,
    ),
    light: (name) => {
      for (const element of lit) element.classList.remove("lit");
      lit = name === undefined ? [] : (elements.get(name) ?? []);
      for (const element of lit) element.classList.add("lit");
    },
    choose: mark,
    has: (name) => names.has(name),
  };
}
