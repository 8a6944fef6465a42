// The columns by which a view groups, as chips in any order: a click adds or removes a column, dragging and the arrow
// keys move it.
import { Flame, Page, kindOf } from "./data";
import { h } from "./dom";

/** The columns of the page's rows by which views group. A stack is "function" for the reader, and has subreasons. */
export function columnsOf(flame: Flame): string[] {
  const columns = flame.columns.map((column) => (column === "stack" ? "function" : column));
  const has = flame.stacks.some((stack) => stack.some((code, i) => i % 2 === 1 && kindOf(code) === "subreason"));
  return has ? [...columns, "subreason"] : columns;
}

/** The columns with another one: groups come before functions, and their lines behind them. */
function withColumn(by: string[], column: string): string[] {
  const at = column === "line" ? -1 : by.findIndex((each) => each === "line" || each === "function");
  const end = column === "function" ? by.indexOf("line") : at;
  return end < 0 ? [...by, column] : [...by.slice(0, end), column, ...by.slice(end)];
}

/** Columns of an address, if the page has all of them, each once. */
export function parseColumns(text: string | null, known: string[]): string[] | undefined {
  const by = text?.split(",") ?? [];
  const usable = by.length > 0 && by.every((column, i) => known.includes(column) && by.indexOf(column) === i);
  return usable ? by : undefined;
}

export interface ColumnChips {
  element: HTMLElement;
  /** Shows other columns, without telling of a change. */
  show: (by: string[]) => void;
}

export function columnChips(page: Page, known: string[], change: (by: string[]) => void): ColumnChips {
  let shown: string[] = [];
  const element = h("span", { class: "chips", role: "group", "aria-label": "Columns" });
  let dragged: string | undefined;

  /** Columns of the report that the page's rows do not have cannot be with others. */
  function set(columns: string[], focus: string): void {
    const by = columns.filter((column) => known.includes(column));
    show(by);
    change(by);
    element.querySelector<HTMLElement>(`[data-column="${focus}"]`)?.focus();
  }
  /** Moves a column to the place of another. */
  function move(column: string, to: number): void {
    const by = shown.filter((each) => each !== column);
    by.splice(Math.min(Math.max(to, 0), by.length), 0, column);
    if (by.join() !== shown.join()) set(by, column);
  }
  function chip(column: string): HTMLElement {
    const at = shown.indexOf(column);
    const isOn = at >= 0;
    const isLast = isOn && shown.length === 1;
    const how = isOn ? "Click: remove; drag or arrow keys: move" : "Click: add";
    return h(
      "button",
      {
        class: isOn ? "chip on" : "chip",
        "data-column": column,
        "aria-pressed": String(isOn),
        draggable: isOn ? "true" : undefined,
        title: `${page.words.profile[column] ?? column}. ${how}`,
        click: () => {
          if (!isLast) set(isOn ? shown.filter((each) => each !== column) : withColumn(shown, column), column);
        },
        keydown: (event: KeyboardEvent) => {
          const by = event.key === "ArrowLeft" ? -1 : event.key === "ArrowRight" ? 1 : 0;
          if (by === 0 || !isOn) return;
          event.preventDefault();
          move(column, at + by);
        },
        dragstart: (event: DragEvent) => {
          dragged = column;
          event.dataTransfer?.setData("text/plain", column); // Firefox drags nothing without data
        },
        dragend: () => (dragged = undefined),
        dragover: (event: DragEvent) => {
          if (dragged !== undefined && isOn) event.preventDefault();
        },
        drop: (event: DragEvent) => {
          event.preventDefault();
          if (dragged !== undefined && isOn) move(dragged, at);
        },
      },
      column,
    );
  }
  function show(by: string[]): void {
    shown = by;
    const off = known.filter((column) => !by.includes(column));
    element.replaceChildren(
      ...by.flatMap((column, i) => [...(i > 0 ? [h("span", { class: "soft" }, "›")] : []), chip(column)]),
      ...(off.length > 0 ? [h("span", { class: "soft" }, "+")] : []),
      ...off.map(chip),
    );
  }
  return { element, show };
}
