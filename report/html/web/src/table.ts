// The profile as a table by any grouping. A click on a row shows its rows by the next column: the exit reasons of a
// domain, their functions, the lines of a function.
import { columnChips, columnsOf, parseColumns } from "./columns";
import { Flame, Page, stackFrames, subreasonOf } from "./data";
import { count, h, intervalWords, nameCell, percent, searchField, short, whisker } from "./dom";
import { Remember, State, View } from "./view";

interface Sum {
  words: string[];
  samples: number;
  share: number;
  cycles: number;
  low: number;
  high: number;
}
/** A column and the text that rows must have in it. */
export type RowFilter = [column: string, words: string];
interface Level {
  by: string[];
  where: RowFilter[];
}

/** The order of columns for opening rows: a row opens by the first of these that it does not have yet. */
const DRILL_DOWN_COLUMNS = ["domain", "exit", "function", "line"];
const inFlame = (column: string): string => (column === "function" ? "stack" : column);

/** What is said of intervals that the page has computed. */
const WIDE = "sums over rows and slightly wide";
const SCALED = "estimated from those of the whole";

/** The rows of a grouping. The report's own grouping has its intervals; in others the variances are summed. */
export function tableRows(page: Page, { by, where }: Level): { rows: Sum[]; exact: boolean } {
  const report = page.report;
  const same = by.length === page.by.length && by.every((column, i) => column === page.by[i]);
  const isWhole = same && where.length === 0 && page.selection === undefined;
  if (report !== undefined && (isWhole || page.flame === undefined)) {
    return {
      exact: true,
      rows: report.rows.map((row) => ({
        words: by.map((column) => String(row[column] ?? "")),
        samples: row.samples,
        share: row.share,
        cycles: row.cycles ?? 0,
        low: row.low,
        high: row.high,
      })),
    };
  }
  const flame = page.flame as Flame;
  const stackAt = flame.columns.indexOf("stack");
  const wordsOf = (row: number[], column: string): string => {
    if (column === "subreason") return subreasonOf(flame, row[stackAt] ?? 0);
    const value = row[flame.columns.indexOf(inFlame(column))] ?? 0;
    if (column !== "function") return flame.strings[value] ?? "";
    const functions = stackFrames(flame, value).filter((frame) => frame.kind === "function");
    return functions[functions.length - 1]?.name ?? "";
  };
  const sums = new Map<string, Sum & { variance: number }>();
  const figures = flame.columns.length;
  const whole = flame.rows.reduce((sum, row) => sum + (row[figures + (page.is_time ? 1 : 0)] ?? 0), 0) || 1;
  for (const row of flame.rows) {
    if (!where.every(([column, words]) => wordsOf(row, column) === words)) continue;
    const names = by.map((column) => wordsOf(row, column));
    const key = names.join("\u0000");
    let sum = sums.get(key);
    if (sum === undefined) {
      sum = { words: names, samples: 0, share: 0, cycles: 0, low: 0, high: 0, variance: 0 };
      sums.set(key, sum);
    }
    sum.samples += row[figures] ?? 0;
    sum.cycles += row[figures + 1] ?? 0;
    sum.variance += row[figures + 2] ?? 0;
  }
  const rows = [...sums.values()];
  for (const row of rows) {
    row.share = (page.is_time ? row.cycles : row.samples) / whole;
    const half = 1.96 * Math.sqrt(row.variance);
    row.low = Math.max(row.share - half, 0);
    row.high = Math.min(row.share + half, 1);
  }
  return { rows, exact: false };
}

export interface TableView extends View {
  /** Shows the rows that match these filters. */
  drillDown(where: RowFilter[]): void;
}

export function tableView(page: Page, remember: Remember): TableView {
  const columns = page.flame === undefined ? page.by : columnsOf(page.flame);
  const known = (column: string): boolean => columns.includes(column);
  const top: Level = { by: page.by, where: [] };
  let levels: Level[] = [top];
  let words = "";
  let sort = "share";
  let descending = true;
  let limit = 200;
  const place = h("div", { class: "scroll" });
  const crumbs = h("div", { class: "crumbs", "aria-label": "Filters of the rows" });
  const note = h("span", { class: "soft" });
  const level = (): Level => levels[levels.length - 1] ?? top;

  function below(where: RowFilter[]): string | undefined {
    return DRILL_DOWN_COLUMNS.find((column) => known(column) && !where.some(([said]) => said === column));
  }
  /** The columns of the last level, and its filters: column=words. */
  function state(): State {
    if (levels.length === 1 && level().by.join() === top.by.join()) return [];
    const { by, where } = level();
    return [["by", by.join(",")], ...where.map(([column, said]): [string, string] => ["is", `${column}=${said}`])];
  }
  function restore(wanted: URLSearchParams): void {
    const by = parseColumns(wanted.get("by"), [...columns, ...page.by]);
    const where = wanted.getAll("is").map((text): RowFilter => {
      const at = Math.max(text.indexOf("="), 0);
      return [text.slice(0, at), text.slice(at + 1)];
    });
    if (by === undefined || !where.every(([column]) => known(column))) return show([top], false);
    const next: Level = { by, where };
    show(where.length === 0 ? [next] : [top, next], false);
  }
  function show(next: Level[], isStep = true): void {
    levels = next;
    words = "";
    search.value = "";
    sort = "share";
    descending = true;
    limit = 200;
    const byKeys = place.contains(document.activeElement);
    draw();
    if (byKeys) place.querySelector<HTMLElement>("tbody tr")?.focus();
    remember(state(), isStep);
  }
  function drillDown(where: RowFilter[]): void {
    const all = [...level().where, ...where];
    const column = below(all);
    if (column !== undefined) show([...levels, { by: [column], where: all }]);
  }

  function draw(): void {
    const { by, where } = level();
    const { rows, exact } = tableRows(page, level());
    const shown = rows.filter((row) => words === "" || row.words.some((word) => word.toLowerCase().includes(words)));
    const column = by.indexOf(sort);
    const value = (row: Sum): number => (sort === "samples" ? row.samples : sort === "cycles" ? row.cycles : row.share);
    shown.sort((a, b) => {
      const order = column >= 0 ? (a.words[column] ?? "").localeCompare(b.words[column] ?? "") : value(a) - value(b);
      return (descending ? -order : order) || b.share - a.share;
    });
    const most = Math.max(...shown.slice(0, limit).map((row) => row.high), 0);
    const total = shown.reduce((sum, row) => sum + row.samples, 0);
    const next = below([...where, ...by.map((name): RowFilter => [name, ""])]);
    const open = next === undefined || !by.every(known) ? undefined : next;
    const all = page.selection === undefined ? "all time" : "the selection";
    note.textContent =
      `${count(shown.length)} ${shown.length === 1 ? "row" : "rows"}, ` +
      `${count(Math.round(total * 10) / 10)} samples; shares are parts of ${all}` +
      (exact ? "" : `; intervals are ${page.selection === undefined ? WIDE : SCALED}`) +
      (open === undefined ? "" : `; click a row to see its rows by ${open}`);
    chips.show(by);
    crumbs.replaceChildren(
      ...levels.flatMap((each, i) => {
        const added = each.where.slice(levels[i - 1]?.where.length ?? 0);
        const text = i === 0 ? "all" : added.map(([, word]) => word).join(", ");
        return [
          i > 0 ? " › " : "",
          i + 1 < levels.length
            ? h("button", { click: () => show(levels.slice(0, i + 1)) }, text)
            : h("span", {}, text),
        ];
      }),
    );
    const heading = (name: string, numeric: boolean): HTMLElement =>
      h(
        "th",
        {
          class: numeric ? "n" : "",
          title: page.words.profile[name] ?? "",
          "aria-sort": sort === name ? (descending ? "descending" : "ascending") : "none",
        },
        h(
          "button",
          {
            tabindex: 0,
            click: () => {
              descending = sort === name ? !descending : numeric;
              sort = name;
              draw();
            },
          },
          name,
          sort === name ? (descending ? " ▾" : " ▴") : "",
        ),
      );
    const line = (row: Sum): HTMLElement => {
      const down = (): void => drillDown(by.map((name, i): RowFilter => [name, row.words[i] ?? ""]));
      return h(
        "tr",
        open === undefined
          ? {}
          : {
              class: "choose",
              tabindex: 0,
              title: `by ${open}`,
              click: down,
              keydown: (event: KeyboardEvent) => {
                if (event.key === "Enter") down();
              },
            },
        h("td", { class: "n" }, count(row.samples)),
        h("td", { class: "n" }, percent(row.share)),
        h("td", {}, whisker(row.share, row.low, row.high, most)),
        ...(page.is_time ? [h("td", { class: "n" }, short(row.cycles))] : []),
        ...row.words.map(nameCell),
      );
    };
    place.replaceChildren(
      h(
        "table",
        { id: "table-functions" },
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            ...["samples", "share"].map((n) => heading(n, true)),
            h("th", { title: intervalWords(page.words.profile) }, "95 % interval"),
            ...(page.is_time ? [heading("cycles", true)] : []),
            ...by.map((n) => heading(n, false)),
          ),
        ),
        h("tbody", {}, ...shown.slice(0, limit).map(line)),
      ),
      shown.length > limit
        ? h(
            "p",
            {},
            h(
              "button",
              {
                click: () => {
                  limit *= 5;
                  draw();
                },
              },
              `${shown.length - limit} more`,
            ),
          )
        : "",
    );
  }
  const chips = columnChips(page, columns, (by) => show([...levels.slice(0, -1), { by, where: level().where }]));
  const search = searchField("Filter", (text) => {
    words = text;
    draw();
  });
  draw();
  return {
    element: h(
      "section",
      {
        keydown: (event: KeyboardEvent) => {
          if (event.key === "Escape" && levels.length > 1 && event.target !== search) show(levels.slice(0, -1));
        },
      },
      h("div", { class: "tools" }, h("span", {}, "by ", chips.element), search, note),
      crumbs,
      place,
    ),
    restore,
    drillDown: (where: RowFilter[]) => {
      levels = [top];
      drillDown(where);
    },
  };
}
