// The profile as a table by any grouping. A click on a row shows its rows by the next column: the exit reasons of a
// domain, their functions, the lines of a function.
import type { JSX } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { ColumnChips, columnsOf, parseColumns } from "./columns";
import type { Page } from "./data";
import { count, intervalWords, percent, short } from "./format";
import { NameCell, SearchField, SortHeading, Whisker, choosable } from "./parts";
import { Level, RowFilter, Sum, tableRows } from "./rows";
import { State, ViewProps, changed } from "./view";

/** The order of columns for opening rows: a row opens by the first of these that it does not have yet. */
const DRILL_DOWN_COLUMNS = ["domain", "exit", "function", "line"];

/** Rows that are shown at first. */
const FIRST_ROWS = 100;

/** What is said of intervals that the page has computed. */
const WIDE = "sums over rows and slightly wide";
const SCALED = "estimated from those of the whole";

const knownColumns = (page: Page): string[] => (page.flame === undefined ? page.by : columnsOf(page.flame));

/** The column by which rows with these filters open; undefined: they are the last. */
function below(page: Page, where: RowFilter[]): string | undefined {
  const known = knownColumns(page);
  return DRILL_DOWN_COLUMNS.find((column) => known.includes(column) && !where.some(([said]) => said === column));
}
/** The state of a level; nothing of the page's own grouping. */
function stateOf(page: Page, { by, where }: Level): State {
  if (where.length === 0 && by.join() === page.by.join()) return [];
  return [["by", by.join(",")], ...where.map(([column, said]): [string, string] => ["is", `${column}=${said}`])];
}
/** The state that shows the rows with these filters; undefined: they do not open. */
export function drillDownState(page: Page, where: RowFilter[]): State | undefined {
  const column = below(page, where);
  return column === undefined ? undefined : stateOf(page, { by: [column], where });
}
function levelOf(page: Page, query: URLSearchParams): Level {
  const known = knownColumns(page);
  const by = parseColumns(query.get("by"), [...known, ...page.by]);
  const where = query.getAll("is").map((text): RowFilter => {
    const at = Math.max(text.indexOf("="), 0);
    return [text.slice(0, at), text.slice(at + 1)];
  });
  return by === undefined || !where.every(([column]) => known.includes(column))
    ? { by: page.by, where: [] }
    : { by, where };
}

/** The rows of a level, sorted and limited as the reader wants it. */
function Rows(props: {
  page: Page;
  level: Level;
  shown: Sum[];
  open?: (row: Sum, byKeys: boolean) => void;
  next: string;
}): JSX.Element {
  const { page, level, shown, open } = props;
  const [sort, setSort] = useState("share");
  const [isDescending, setDescending] = useState(true);
  const [limit, setLimit] = useState(FIRST_ROWS);
  const column = level.by.indexOf(sort);
  const value = (row: Sum): number => (sort === "samples" ? row.samples : sort === "cycles" ? row.cycles : row.share);
  const sorted = [...shown].sort((a, b) => {
    const order = column >= 0 ? (a.words[column] ?? "").localeCompare(b.words[column] ?? "") : value(a) - value(b);
    return (isDescending ? -order : order) || b.share - a.share;
  });
  const rows = sorted.slice(0, limit);
  const most = Math.max(...rows.map((row) => row.high), 0);
  const heading = (name: string, isNumber: boolean): JSX.Element => (
    <SortHeading
      name={name}
      title={page.words.profile[name] ?? ""}
      isNumber={isNumber}
      order={sort !== name ? undefined : isDescending ? "descending" : "ascending"}
      sort={() => {
        setDescending(sort === name ? !isDescending : isNumber);
        setSort(name);
      }}
    />
  );
  return (
    <>
      <table id="table-functions">
        <thead>
          <tr>
            {heading("samples", true)}
            {heading("share", true)}
            <th title={intervalWords(page.words.profile)}>95 % interval</th>
            {page.is_time ? heading("cycles", true) : null}
            {level.by.map((name) => heading(name, false))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr
              {...(open === undefined
                ? {}
                : { ...choosable((byKeys) => open(row, byKeys)), title: `by ${props.next}` })}
            >
              <td class="n">{count(row.samples)}</td>
              <td class="n">{percent(row.share)}</td>
              <td>
                <Whisker {...row} most={most} />
              </td>
              {page.is_time ? <td class="n">{short(row.cycles)}</td> : null}
              {row.words.map((name) => (
                <NameCell name={name} />
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {shown.length > limit ? (
        <p>
          <button onClick={() => setLimit(limit * 5)}>{`${shown.length - limit} more`}</button>
        </p>
      ) : null}
    </>
  );
}

/** The filters as steps: each leads to the rows by its column. */
function Crumbs({ where, show }: { where: RowFilter[]; show: (length: number) => void }): JSX.Element {
  const words = ["all", ...where.map(([, said]) => said)];
  return (
    <div class="crumbs" aria-label="Filters of the rows">
      {words.map((said, i) => (
        <>
          {i > 0 ? " › " : ""}
          {i < where.length ? <button onClick={() => show(i)}>{said}</button> : <span>{said}</span>}
        </>
      ))}
    </div>
  );
}

/** What is said of rows that the page does not have. */
const leftOut = ({ rows, samples, share }: NonNullable<Page["rows_left_out"]>): string =>
  `; ${count(rows)} more, with ${count(Math.round(samples * 10) / 10)} samples (${percent(share)}) together, are in ` +
  "--format json only";

export function FunctionsView({ page, query, remember }: { page: Page } & ViewProps): JSX.Element {
  const level = levelOf(page, query);
  const { by, where } = level;
  const known = knownColumns(page);
  const words = query.get("find") ?? "";
  const { rows, exact } = tableRows(page, level);
  const wanted = words.toLowerCase();
  const shown = rows.filter((row) => wanted === "" || row.words.some((word) => word.toLowerCase().includes(wanted)));
  const total = shown.reduce((sum, row) => sum + row.samples, 0);
  const next = below(page, [...where, ...by.map((name): RowFilter => [name, ""])]);
  const opens = next === undefined || !by.every((column) => known.includes(column)) ? undefined : next;

  const show = (to: Level): void => remember(stateOf(page, to), true);
  /** The rows with the first filters, by the column of the next one. */
  const showOuter = (filters: number): void =>
    show(filters === 0 ? { by: page.by, where: [] } : { by: [where[filters][0]], where: where.slice(0, filters) });
  const key = JSON.stringify(level);
  const place = useRef<HTMLDivElement>(null);
  const byKeys = useRef(false);
  useLayoutEffect(() => {
    if (byKeys.current) place.current?.querySelector<HTMLElement>("tbody tr")?.focus();
    byKeys.current = false;
  }, [key]);
  function open(row: Sum, wasKey: boolean): void {
    byKeys.current = wasKey;
    const state = drillDownState(page, [...where, ...by.map((name, i): RowFilter => [name, row.words[i] ?? ""])]);
    if (state !== undefined) remember(state, true);
  }
  function up(event: KeyboardEvent): void {
    if (event.key === "Escape" && !(event.target instanceof HTMLInputElement) && where.length > 0)
      showOuter(where.length - 1);
  }
  return (
    <section onKeyDown={up}>
      <div class="tools">
        <ColumnChips page={page} known={known} by={by} change={(columns) => show({ by: columns, where })} />
        <SearchField
          label="Filter"
          value={words}
          change={(text) => remember(changed(query, { find: text || undefined }), false)}
        />
        <span class="soft">
          {`${count(shown.length)} ${shown.length === 1 ? "row" : "rows"}, ` +
            `${count(Math.round(total * 10) / 10)} samples; shares are parts of ` +
            (page.selection === undefined ? "all time" : "the selection") +
            (exact ? "" : `; intervals are ${page.selection === undefined ? WIDE : SCALED}`) +
            (exact && page.rows_left_out !== undefined ? leftOut(page.rows_left_out) : "") +
            (opens === undefined ? "" : `; click a row to see its rows by ${opens}`)}
        </span>
      </div>
      <Crumbs where={where} show={showOuter} />
      <div class="scroll" ref={place}>
        <Rows
          key={key}
          page={page}
          level={level}
          shown={shown}
          open={opens === undefined ? undefined : open}
          next={opens ?? ""}
        />
      </div>
    </section>
  );
}
