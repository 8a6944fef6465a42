// The differences of two profiles: as a flame graph and as a table.
import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import type { Diff, DiffRow, Page } from "./data";
import { DiffGraph, SIGNIFICANT, numberOf } from "./diff_graph";
import { amount, count, intervalWords, percent } from "./format";
import { NameCell, SearchField } from "./parts";
import { ViewProps, changed } from "./view";

/** Rows that are drawn. */
const MOST_ROWS = 500;

/** A difference with its interval, on a scale from -most to most. */
function Bar(props: { row: DiffRow; most: number; figure: (value: number) => string }): JSX.Element {
  const { row, most, figure } = props;
  const width = 260;
  const at = (value: number): number => width / 2 + (Math.min(Math.max(value / most, -1), 1) * (width - 8)) / 2;
  const [low, high, value] = ["low", "high", "difference"].map((key) => numberOf(row, key));
  return (
    <svg width={width} height={18} viewBox={`0 0 ${width} 18`} class="bar">
      <title>{`${figure(value)}; 95 % interval: ${figure(low)} to ${figure(high)}`}</title>
      <path d={`M${width / 2} 0V18`} stroke="var(--line)" />
      <rect
        x={Math.min(at(0), at(value))}
        y={3}
        width={Math.abs(at(value) - at(0))}
        height={12}
        fill={value > 0 ? "var(--exit)" : "var(--running)"}
        opacity={0.55}
      />
      <path d={`M${at(low)} 9H${at(high)}M${at(low)} 5V13M${at(high)} 5V13`} class="whisker" />
    </svg>
  );
}

function Rows(props: { page: Page; rows: DiffRow[]; figure: (value: number) => string }): JSX.Element {
  const { by, words } = props.page;
  const { figure } = props;
  const rows = props.rows.slice(0, MOST_ROWS);
  const size = (row: DiffRow): number => Math.max(Math.abs(numberOf(row, "low")), Math.abs(numberOf(row, "high")));
  const most = Math.max(...rows.map(size), 1e-9);
  return (
    <table id="table-diff">
      <thead>
        <tr>
          {["before", "after", "difference"].map((name) => (
            <th class="n" title={words.diff[name]}>
              {name}
            </th>
          ))}
          <th title={intervalWords(words.diff)}>95 % interval</th>
          <th class="n" title={words.diff.p}>
            p
          </th>
          {by.map((column) => (
            <th title={words.profile[column]}>{column}</th>
          ))}
          <th title={words.diff.note}>note</th>
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => {
          const [before, after, difference, p] = ["before", "after", "difference", "p"].map((key) =>
            numberOf(row, key),
          );
          return (
            <tr>
              <td class="n">{figure(before)}</td>
              <td class="n">{figure(after)}</td>
              <td class="n">{(difference > 0 ? "+" : "") + figure(difference)}</td>
              <td>
                <Bar row={row} most={most} figure={figure} />
              </td>
              <td class="n">{p < 0.001 ? "<0.001" : p.toFixed(3)}</td>
              {by.map((column) => (
                <NameCell name={String(row[column] ?? "")} />
              ))}
              <td class="soft">{String(row.note ?? "")}</td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}

function Side({ name, of }: { name: string; of: Diff["before"] }): JSX.Element {
  return (
    <>
      <b>{`${name}: `}</b>
      {`${of.name}, ${count(of.samples)} samples`}
      <br />
    </>
  );
}

export function DifferencesView({ page, diff, query, remember }: { page: Page; diff: Diff } & ViewProps): JSX.Element {
  const hasSignificant = useMemo(() => diff.rows.some((row) => numberOf(row, "p") < SIGNIFICANT), [diff]);
  const isAll = !hasSignificant || query.get("all") === "true";
  const words = query.get("find") ?? "";
  const find = (text: string): void => remember(changed(query, { find: text || undefined }), false);
  const figure = diff.of === "work" ? amount : percent;
  const rows = diff.rows.filter(
    (row) =>
      (isAll || numberOf(row, "p") < SIGNIFICANT) &&
      page.by.some((column) =>
        String(row[column] ?? "")
          .toLowerCase()
          .includes(words.toLowerCase()),
      ),
  );
  return (
    <section>
      <p>
        <Side name="before" of={diff.before} />
        <Side name="after" of={diff.after} />
        <b>compared: </b>
        {`${diff.compared}; p is corrected for ${count(diff.comparisons)} comparisons`}
      </p>
      <DiffGraph page={page} diff={diff} figure={figure} choose={find} />
      <div class="tools">
        <SearchField label="Filter" value={words} change={find} />
        <label>
          <input
            type="checkbox"
            checked={!isAll}
            disabled={!hasSignificant}
            onChange={() => remember(changed(query, { all: isAll ? undefined : "true" }), true)}
          />
          {" significant differences only (corrected p < 0.05)"}
        </label>
        <span class="soft">{`${rows.length} of ${diff.rows.length} rows`}</span>
      </div>
      <div class="scroll">
        <Rows page={page} rows={rows} figure={figure} />
      </div>
    </section>
  );
}
