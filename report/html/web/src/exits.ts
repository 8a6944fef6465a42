// VM exits as a pivot: by domain, reason and what the exit was about, in any order; with their distributions and how
// long they took over time. What PV guests did in Xen is among them, as far as the trace knows it.
import { columnChips, parseColumns } from "./columns";
import { Exit, Page } from "./data";
import { count, h, nameCell, percent, searchField, short, time } from "./dom";
import { histogram } from "./histogram";
import { latencyMap } from "./latency_map";
import type { ExitLengths } from "./lengths";
import type { RowFilter } from "./table";
import { Remember, State, View } from "./view";

/** Rows that are drawn at first: hosts with hundreds of domains have more. */
const MOST_ROWS = 100;

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

/** The exits that are the same in the columns of the view. */
interface Row {
  words: string[];
  count: number;
  cycles: number;
  /** The time of some of them is known by a bound only. */
  isBound: boolean;
  /** The exits of which it is; of an exit that is divided, all of it. */
  exits: Exit[];
  /** How long they took; undefined where that is not known of a part of an exit. */
  lengths?: Pick<Exit, "p5" | "p50" | "p95" | "octaves"> & { isSum: boolean };
}

/** The length below which the part `p` of the exits is, evenly spread over the logarithm in an octave. */
function percentile(octaves: number[], p: number): number {
  let left = p * octaves.reduce((sum, n) => sum + n, 0);
  const i = octaves.findIndex((n) => n > 0 && (left -= n) <= 0);
  return i < 0 ? 0 : 2 ** (i + 1 + left / octaves[i]);
}

function together(one: Row["lengths"], exit: Exit): Row["lengths"] {
  if (one === undefined) return { ...exit, isSum: false };
  const octaves = one.octaves.map((n, i) => n + (exit.octaves[i] ?? 0));
  const [p5, p50, p95] = [0.05, 0.5, 0.95].map((p) => percentile(octaves, p));
  return { p5, p50, p95, octaves, isSum: true };
}

/** An exit's rows by what it was about: its figures, divided as the whole trace divides them. */
function partsOf(exit: Exit): { subreason: string; count: number; cycles: number }[] {
  const parts = exit.parts ?? [];
  const [counts, cycles] = [1, 2].map((k) => parts.reduce((sum, part) => sum + (part[k] as number), 0));
  if (counts === 0) return [{ subreason: "-", count: exit.count, cycles: exit.cycles }];
  return parts.map(([subreason, n, length]) => ({
    subreason,
    count: (exit.count * n) / counts,
    cycles: cycles > 0 ? (exit.cycles * length) / cycles : 0,
  }));
}

export function exitRows(exits: Exit[], by: string[]): Row[] {
  const rows = new Map<string, Row>();
  const add = (words: string[], exit: Exit, figures: { count: number; cycles: number }): Row => {
    const key = words.join("\u0000");
    const row = rows.get(key) ?? { words, count: 0, cycles: 0, isBound: false, exits: [] };
    rows.set(key, row);
    row.isBound ||= exit.at_most;
    row.exits.push(exit);
    row.count += figures.count;
    row.cycles += figures.cycles;
    return row;
  };
  for (const exit of exits) {
    const wordsOf = (subreason: string): string[] =>
      by.map((column) => (column === "domain" ? exit.domain : column === "exit" ? exit.name : subreason));
    if (by.includes("subreason")) {
      for (const part of partsOf(exit)) add(wordsOf(part.subreason), exit, part);
    } else {
      const row = add(wordsOf(""), exit, exit);
      row.lengths = together(row.lengths, exit);
    }
  }
  return [...rows.values()];
}

export function exitsView(
  page: Page,
  exits: Exit[],
  exitLengths: ExitLengths | undefined,
  drillDown: (where: RowFilter[]) => void,
  remember: Remember,
): View {
  const hz = page.report?.cpu_hz ?? 1e9;
  // Percentiles of a range are made of counts by length.
  const isPart = page.selection?.range !== undefined;
  const hasParts = exits.some((exit) => exit.parts !== undefined);
  const known = [...FIRST, ...(hasParts ? ["subreason"] : [])];
  const all = { count: 0, cycles: 0 };
  for (const exit of exits.filter((each) => !each.at_most)) {
    all.count += exit.count;
    all.cycles += exit.cycles;
  }
  const hasBounds = exits.some((exit) => exit.at_most);
  let by = FIRST;
  let sort = "cycles";
  let words = "";
  let inCycles = false;
  let limit = MOST_ROWS;
  /** The words of the row whose distribution is shown; undefined: the first. */
  let chosen: string[] | undefined;
  const place = h("div", { class: "scroll short" });
  const detail = h("div", { "aria-live": "polite" });
  const note = h("span", { class: "soft" });
  const span = (cycles: number): string => (inCycles ? short(cycles) : time(cycles / hz));
  const figure = (row: Row, key: Figure): number => {
    if (key === "count" || key === "cycles") return row[key];
    if (key === "share") return row.isBound ? NaN : row.cycles / (all.cycles || 1);
    if (key === "each") return row.count > 0 ? row.cycles / row.count : NaN;
    return row.lengths?.[key] ?? NaN;
  };
  /** Parts of exits have no lengths of their own. */
  const hasLengths = (): boolean => !by.includes("subreason");
  const figures = (): readonly Figure[] => (hasLengths() ? NUMBERS : NUMBERS.slice(0, 4));
  const isFigure = (key: string): key is Figure => (NUMBERS as readonly string[]).includes(key);

  function text(row: Row, key: Figure): string {
    const value = figure(row, key);
    if (Number.isNaN(value)) return "–";
    if (key === "count") return count(Math.round(value));
    if (key === "share") return percent(value);
    const isAbout = key.startsWith("p") && (isPart || row.lengths?.isSum === true);
    return (row.isBound ? "≤ " : isAbout ? "~" : "") + span(value);
  }
  function state(): State {
    const grouping: State = by.join() === FIRST.join() ? [] : [["by", by.join()]];
    return [...grouping, ...(chosen ?? []).map((name, i): [string, string] => [by[i], name])];
  }
  function choose(row: Row, element: HTMLElement): void {
    place.querySelectorAll(".chosen").forEach((other) => other.classList.remove("chosen"));
    element.classList.add("chosen");
    const { lengths } = row;
    // The functions of PV guests are not known by hypercall.
    const where = by
      .map((column, i): RowFilter => [column, row.words[i]])
      .filter(([column]) => column === "domain" || !row.isBound);
    const functions =
      where.length === 0
        ? ""
        : h("p", { class: "tools" }, h("button", { click: () => drillDown(where) }, "Show its functions"));
    if (lengths === undefined) return detail.replaceChildren(functions);
    const of = row.words[by.indexOf("exit")] ?? "VM exits";
    const domain = row.words[by.indexOf("domain")];
    const end = row.isBound ? "time until its vCPU's next record" : "time until the guest resumed or waited for a pCPU";
    detail.replaceChildren(
      h("h2", {}, `${of}${domain === undefined ? "" : ` of ${domain}`}: ${end}`),
      exitLengths === undefined ? "" : (latencyMap(page, exitLengths, row.exits) ?? ""),
      histogram(lengths.octaves, `Median ${time(lengths.p50 / hz)}`, hz, true),
      functions,
    );
  }
  function step(row: Row, element: HTMLElement): void {
    chosen = row.words;
    choose(row, element);
    remember(state(), true);
  }
  function heading(key: string, name: string): HTMLElement {
    const isNumber = isFigure(key);
    const isSorted = sort === key;
    return h(
      "th",
      {
        class: isNumber ? "n" : "",
        title: page.words.exits[key] ?? "",
        "aria-sort": isSorted ? (isNumber ? "descending" : "ascending") : "none",
      },
      key === "octaves"
        ? name
        : h("button", { click: () => ((sort = key), draw()) }, name, isSorted ? (isNumber ? " ▾" : " ▴") : ""),
    );
  }
  function line(row: Row): HTMLElement {
    const element: HTMLElement = h(
      "tr",
      {
        class: "choose",
        tabindex: 0,
        click: () => step(row, element),
        keydown: (event: KeyboardEvent) => {
          if (event.key === "Enter") step(row, element);
        },
      },
      ...row.words.map(nameCell),
      ...figures().map((key) => h("td", { class: "n" }, text(row, key))),
      row.lengths === undefined
        ? null
        : h("td", {}, histogram(row.lengths.octaves, `Median ${time(row.lengths.p50 / hz)}`, hz, false)),
    );
    return element;
  }
  function draw(): void {
    const rows = exitRows(exits, by).filter((row) => row.words.join(" ").toLowerCase().includes(words));
    const column = by.indexOf(sort);
    rows.sort((a, b) => {
      // Bounds are no times to be compared with times.
      const bounds = sort === "count" ? 0 : Number(a.isBound) - Number(b.isBound);
      const order = isFigure(sort)
        ? bounds || (figure(b, sort) || 0) - (figure(a, sort) || 0)
        : a.words[column]?.localeCompare(b.words[column] ?? "");
      return order || b.cycles - a.cycles;
    });
    const at = Math.max(
      rows.findIndex((row) => row.words.join("\u0000") === chosen?.join("\u0000")),
      0,
    );
    limit = Math.max(limit, at < rows.length ? at + 1 : 0);
    const headings = [
      ...by.map((name) => heading(name, name)),
      ...figures().map((key) => heading(key, TITLES[key])),
      ...(hasLengths() ? [heading("octaves", `${time(2 ** 6 / hz)} to ${time(2 ** 36 / hz)}`)] : []),
    ];
    const lines = rows.slice(0, limit).map(line);
    const total: Row = { words: [], count: 0, cycles: 0, isBound: false, exits: [] };
    for (const row of rows) {
      total.isBound ||= row.isBound;
      total.count += row.count;
      total.cycles += row.cycles;
    }
    place.replaceChildren(
      h(
        "table",
        { id: "table-exits" },
        h("thead", {}, h("tr", {}, ...headings)),
        h("tbody", {}, ...lines),
        h(
          "tfoot",
          {},
          h(
            "tr",
            {},
            h("td", { colspan: by.length }, h("b", {}, rows.length === 1 ? "1 row" : `all ${count(rows.length)} rows`)),
            ...figures().map((key) => h("td", { class: "n" }, text(total, key).replace("–", ""))),
            hasLengths() ? h("td") : null,
          ),
        ),
      ),
      rows.length > limit
        ? h("button", { click: () => ((limit *= 5), draw()) }, `${count(rows.length - limit)} more`)
        : "",
    );
    chips.show(by);
    note.textContent = hasLengths()
      ? "Select a row to see how long its exits took."
      : "An exit is divided as its subreasons divide it in the whole recording.";
    if (hasBounds) note.textContent += " ≤: of PV guests the trace has when they entered Xen, not when they left.";
    if (at < rows.length) choose(rows[at], lines[at]);
    else detail.replaceChildren();
  }
  const chips = columnChips(page, known, (columns) => {
    by = columns;
    chosen = undefined;
    draw();
    remember(state(), true);
  });
  const search = searchField("Filter", (wanted) => {
    words = wanted;
    draw();
  });
  const unit = h("input", { type: "checkbox", change: () => ((inCycles = unit.checked), draw()) });
  function restore(wanted: URLSearchParams): void {
    by = parseColumns(wanted.get("by"), known) ?? FIRST;
    const wordsOf = by.map((column) => wanted.get(column));
    chosen = wordsOf.every((word) => word !== null) ? wordsOf : undefined;
    words = search.value = "";
    draw();
    requestAnimationFrame(() => place.querySelector(".chosen")?.scrollIntoView({ block: "nearest" }));
    remember(state(), false);
  }
  draw();
  const element = h(
    "section",
    {},
    h(
      "div",
      { class: "tools" },
      h("span", {}, "by ", chips.element),
      search,
      h("label", { title: "Show cycles in place of time" }, unit, " cycles"),
      note,
    ),
    place,
    detail,
  );
  return { element, restore };
}
