// VM exits as a pivot: by domain, reason and what the exit was about, in any order; with their distributions and how
// long they took over time. What PV guests did in Xen is among them, as far as the trace knows it.
import type { JSX } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { ColumnChips, parseColumns } from "./columns";
import type { Exit, Page } from "./data";
import { ExitRow, exitRows } from "./exit_rows";
import { count, percent, short, time } from "./format";
import { Histogram } from "./histogram";
import { LatencyMap } from "./latency_map";
import type { ExitLengths } from "./lengths";
import { NameCell, SearchField, SortHeading, choosable } from "./parts";
import type { RowFilter } from "./rows";
import { State, ViewProps, changed } from "./view";

/** Rows that are drawn at first: hosts with hundreds of domains have more. */
const MOST_ROWS = 50;

const FIRST = ["domain", "exit"];
const NUMBERS = ["count", "cycles", "share", "each", "p5", "p50", "p95"] as const;
type Figure = (typeof NUMBERS)[number];
const TITLES: Record<Figure, string> = {
  count: "count",
  cycles: "in Xen",
  share: "of all exits",
  each: "mean",
  p5: "5 %",
  p50: "median",
  p95: "95 %",
};

const isFigure = (key: string): key is Figure => (NUMBERS as readonly string[]).includes(key);

/** What is known of a row; NaN: nothing. */
function figureOf(row: ExitRow, key: Figure, allCycles: number): number {
  if (key === "count" || key === "cycles") return row[key];
  if (key === "share") return row.isBound ? NaN : row.cycles / (allCycles || 1);
  if (key === "each") return row.count > 0 ? row.cycles / row.count : NaN;
  return row.lengths?.[key] ?? NaN;
}
const keyOf = (words: string[]): string => words.join("\u0000");

function sumOf(rows: ExitRow[]): ExitRow {
  const total: ExitRow = { words: [], count: 0, cycles: 0, isBound: false, exits: [] };
  for (const row of rows) {
    total.isBound ||= row.isBound;
    total.count += row.count;
    total.cycles += row.cycles;
  }
  return total;
}

/** How long the exits of a row took. */
function Detail(props: {
  page: Page;
  row: ExitRow;
  by: string[];
  lengths: ExitLengths | undefined;
  drillDown: (where: RowFilter[]) => void;
}): JSX.Element {
  const { page, row, by, lengths } = props;
  const hz = page.report?.cpu_hz ?? 1e9;
  // The functions of PV guests are not known by hypercall.
  const where = by
    .map((column, i): RowFilter => [column, row.words[i]])
    .filter(([column]) => column === "domain" || !row.isBound);
  const functions =
    where.length === 0 ? null : (
      <p class="tools">
        <button onClick={() => props.drillDown(where)}>Show its functions</button>
      </p>
    );
  if (row.lengths === undefined) return <>{functions}</>;
  const of = row.words[by.indexOf("exit")] ?? "VM exits";
  const domain = row.words[by.indexOf("domain")];
  const end = row.isBound ? "time until its vCPU's next record" : "time until the guest resumed or waited for a pCPU";
  return (
    <>
      <h2>{`${of}${domain === undefined ? "" : ` of ${domain}`}: ${end}`}</h2>
      {lengths === undefined ? null : <LatencyMap page={page} lengths={lengths} exits={row.exits} />}
      <Histogram octaves={row.lengths.octaves} median={`Median ${time(row.lengths.p50 / hz)}`} hz={hz} isWide />
      {functions}
    </>
  );
}

type Props = {
  page: Page;
  exits: Exit[];
  lengths: ExitLengths | undefined;
  drillDown: (where: RowFilter[]) => void;
} & ViewProps;

export function ExitsView({ page, exits, lengths, drillDown, query, remember }: Props): JSX.Element {
  const [sort, setSort] = useState("cycles");
  const [inCycles, setInCycles] = useState(false);
  const [limit, setLimit] = useState(MOST_ROWS);
  const place = useRef<HTMLDivElement>(null);
  const hz = page.report?.cpu_hz ?? 1e9;
  const known = [...FIRST, ...(exits.some((exit) => exit.parts !== undefined) ? ["subreason"] : [])];
  const by = parseColumns(query.get("by"), known) ?? FIRST;
  const wordsOf = by.map((column) => query.get(column));
  /** The row whose distribution is shown; undefined: the first. */
  const wanted = wordsOf.every((word) => word !== null) ? keyOf(wordsOf) : undefined;
  useLayoutEffect(() => {
    if (wanted !== undefined) place.current?.querySelector(".chosen")?.scrollIntoView({ block: "nearest" });
  }, [wanted]);

  const range = page.selection?.range;
  // Parts of exits have no lengths of their own; percentiles of a range are made of counts by length.
  const hasLengths = !by.includes("subreason");
  const figures: readonly Figure[] = hasLengths ? NUMBERS : NUMBERS.slice(0, 4);
  const allCycles = exits.reduce((sum, exit) => sum + (exit.at_most ? 0 : exit.cycles), 0);
  function text(row: ExitRow, key: Figure): string {
    const value = figureOf(row, key, allCycles);
    if (Number.isNaN(value)) return "–";
    if (key === "count") return count(Math.round(value));
    if (key === "share") return percent(value);
    const isAbout = key.startsWith("p") && (range !== undefined || row.lengths?.isSum === true);
    return (row.isBound ? "≤ " : isAbout ? "~" : "") + (inCycles ? short(value) : time(value / hz));
  }
  const words = query.get("find") ?? "";
  const rows = exitRows(exits, by, (exit) =>
    range === undefined ? lengths?.whole(exit) : lengths?.within(exit, ...range),
  ).filter((row) => row.words.join(" ").toLowerCase().includes(words.toLowerCase()));
  const column = by.indexOf(sort);
  rows.sort((a, b) => {
    // Bounds are no times to be compared with times.
    const bounds = sort === "count" ? 0 : Number(a.isBound) - Number(b.isBound);
    const order = isFigure(sort)
      ? bounds || (figureOf(b, sort, allCycles) || 0) - (figureOf(a, sort, allCycles) || 0)
      : a.words[column]?.localeCompare(b.words[column] ?? "");
    return order || b.cycles - a.cycles;
  });
  const at = Math.max(
    rows.findIndex((row) => keyOf(row.words) === wanted),
    0,
  );
  const shown = rows.slice(0, Math.max(limit, at + 1));
  const heading = (key: string, name: string): JSX.Element => (
    <SortHeading
      name={name}
      title={page.words.exits[key] ?? ""}
      isNumber={isFigure(key)}
      order={sort !== key ? undefined : isFigure(key) ? "descending" : "ascending"}
      sort={() => setSort(key)}
    />
  );
  const grouping = (columns: string[]): State => (columns.join() === FIRST.join() ? [] : [["by", columns.join()]]);
  const find: State = words === "" ? [] : [["find", words]];
  const choose = (row: ExitRow): void =>
    remember([...grouping(by), ...row.words.map((name, i): [string, string] => [by[i], name]), ...find], true);
  const total = sumOf(rows);
  return (
    <section>
      <div class="tools">
        <ColumnChips
          page={page}
          known={known}
          by={by}
          change={(columns) => remember([...grouping(columns), ...find], true)}
        />
        <SearchField
          label="Filter"
          value={words}
          change={(value) => remember(changed(query, { find: value || undefined }), false)}
        />
        <label title="Show cycles in place of time">
          <input type="checkbox" checked={inCycles} onChange={(event) => setInCycles(event.currentTarget.checked)} />
          {" cycles"}
        </label>
        <span class="soft">
          {(hasLengths
            ? "Select a row to see how long its exits took."
            : "An exit is divided as its subreasons divide it in the whole recording.") +
            (exits.some((exit) => exit.at_most)
              ? " ≤: of PV guests the trace has when they entered Xen, not when they left."
              : "")}
        </span>
      </div>
      <div class="scroll short" ref={place}>
        <table id="table-exits">
          <thead>
            <tr>
              {by.map((name) => heading(name, name))}
              {figures.map((key) => heading(key, TITLES[key]))}
              {hasLengths ? (
                <th title={page.words.exits.octaves}>{`${time(2 ** 6 / hz)} to ${time(2 ** 36 / hz)}`}</th>
              ) : null}
            </tr>
          </thead>
          <tbody>
            {shown.map((row, i) => (
              <tr {...choosable(() => choose(row))} class={i === at ? "choose chosen" : "choose"}>
                {row.words.map((name) => (
                  <NameCell name={name} />
                ))}
                {figures.map((key) => (
                  <td class="n">{text(row, key)}</td>
                ))}
                {row.lengths === undefined ? null : (
                  <td>
                    <Histogram octaves={row.lengths.octaves} median={`Median ${time(row.lengths.p50 / hz)}`} hz={hz} />
                  </td>
                )}
              </tr>
            ))}
          </tbody>
          <tfoot>
            <tr>
              <td colSpan={by.length}>
                <b>{rows.length === 1 ? "1 row" : `all ${count(rows.length)} rows`}</b>
              </td>
              {figures.map((key) => (
                <td class="n">{text(total, key).replace("–", "")}</td>
              ))}
              {hasLengths ? <td /> : null}
            </tr>
          </tfoot>
        </table>
        {rows.length > shown.length ? (
          <button onClick={() => setLimit(limit * 5)}>{`${count(rows.length - shown.length)} more`}</button>
        ) : null}
      </div>
      <div aria-live="polite">
        {rows[at] === undefined ? null : (
          <Detail page={page} row={rows[at]} by={by} lengths={lengths} drillDown={drillDown} />
        )}
      </div>
    </section>
  );
}
