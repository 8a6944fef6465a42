// The columns by which a view groups, as chips in any order: a click adds or removes a column, dragging and the arrow
// keys move it.
import { Fragment, type JSX } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { Flame, Page, kindOf } from "./data";

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

export function ColumnChips(props: {
  page: Page;
  known: string[];
  by: string[];
  change: (by: string[]) => void;
}): JSX.Element {
  const { page, known, by } = props;
  const place = useRef<HTMLSpanElement>(null);
  const dragged = useRef<string | undefined>(undefined);
  /** The chip that was used: it has the focus again when it is elsewhere. */
  const used = useRef<string | undefined>(undefined);
  useLayoutEffect(() => {
    if (used.current !== undefined)
      place.current?.querySelector<HTMLElement>(`[data-column="${used.current}"]`)?.focus();
    used.current = undefined;
  }, [by.join()]);

  /** Columns of the report that the page's rows do not have cannot be with others. */
  function set(columns: string[], column: string): void {
    used.current = column;
    props.change(columns.filter((each) => known.includes(each)));
  }
  /** Moves a column to the place of another. */
  function move(column: string, to: number): void {
    const next = by.filter((each) => each !== column);
    next.splice(Math.min(Math.max(to, 0), next.length), 0, column);
    if (next.join() !== by.join()) set(next, column);
  }
  function chip(column: string): JSX.Element {
    const at = by.indexOf(column);
    const isOn = at >= 0;
    const isLast = isOn && by.length === 1;
    const how = isOn ? "Click: remove; drag or arrow keys: move" : "Click: add";
    return (
      <button
        key={column}
        class={isOn ? "chip on" : "chip"}
        data-column={column}
        aria-pressed={isOn}
        draggable={isOn}
        title={`${page.words.profile[column] ?? column}. ${how}`}
        onClick={() => {
          if (!isLast) set(isOn ? by.filter((each) => each !== column) : withColumn(by, column), column);
        }}
        onKeyDown={(event) => {
          const step = event.key === "ArrowLeft" ? -1 : event.key === "ArrowRight" ? 1 : 0;
          if (step === 0 || !isOn) return;
          event.preventDefault();
          move(column, at + step);
        }}
        onDragStart={(event) => {
          dragged.current = column;
          event.dataTransfer?.setData("text/plain", column); // Firefox drags nothing without data
        }}
        onDragEnd={() => (dragged.current = undefined)}
        onDragOver={(event) => {
          if (dragged.current !== undefined && isOn) event.preventDefault();
        }}
        onDrop={(event) => {
          event.preventDefault();
          if (dragged.current !== undefined && isOn) move(dragged.current, at);
        }}
      >
        {column}
      </button>
    );
  }
  const off = known.filter((column) => !by.includes(column));
  return (
    <span>
      {"by "}
      <span class="chips" role="group" aria-label="Columns" ref={place}>
        {by.map((column, i) => (
          <Fragment key={column}>
            {i > 0 ? <span class="soft">›</span> : null}
            {chip(column)}
          </Fragment>
        ))}
        {off.length > 0 ? <span class="soft">+</span> : null}
        {off.map(chip)}
      </span>
    </span>
  );
}
