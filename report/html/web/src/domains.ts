// The domains at the left, as xentop would list them: a choice filters all views. Only the rows that can be seen are
// elements, so that hundreds of domains are a short list, too.
import { ACTIVITIES, GUEST, RUNNABLE, UNDIVIDED, XEN } from "./activity";
import { h, percent, s, searchField, short } from "./dom";
import { Figures, Selection } from "./selection";

const ROW = 46;
const SPARK_WIDTH = 48;
const SPARK_HEIGHT = 16;
const SPARK_POINTS = 32;

interface Row {
  name: string;
  /** Of the time of all domains in the range. */
  share: number;
  /** Of the domain's own time; undefined: not known. */
  xen?: number;
  /** Of the range: waiting for a pCPU, summed over vCPUs. */
  waiting?: number;
  /** Exits a second. */
  exits?: number;
}
const SORTS: [key: "share" | "xen" | "waiting" | "exits" | "name", words: string][] = [
  ["share", "share"],
  ["xen", "in Xen"],
  ["waiting", "waiting"],
  ["exits", "exits a second"],
  ["name", "name"],
];

function rowsOf(figures: Figures, range: Selection["range"]): Row[] {
  const { page, activity, exitCounts, length } = figures;
  const [from, to] = range ?? [0, length];
  const seconds = (to - from) / (page.report?.cpu_hz ?? 1e9) || 1;
  const parts = exitCounts?.partsIn(from, to);
  const exits = new Map<string, number>();
  (page.exits ?? []).forEach((exit, i) => {
    if (exit.at_most) return;
    exits.set(exit.domain, (exits.get(exit.domain) ?? 0) + exit.count * (parts?.[i] ?? 1));
  });
  const sampled = figures.select({ range }).domains ?? [];
  const known = new Map(sampled.map((domain) => [domain.name, domain]));
  const names = figures.domains;
  const spent = new Map(names.map((name) => [name, activity?.within(name, from, to) ?? []]));
  const ran = (name: string): number =>
    [GUEST, XEN, UNDIVIDED].reduce((sum, k) => sum + (spent.get(name)?.[k] ?? 0), 0);
  const all = names.reduce((sum, name) => sum + ran(name), 0);
  return names.map((name) => {
    const domain = known.get(name);
    const inXen = domain?.modes.xen;
    return {
      name,
      share: all > 0 ? ran(name) / all : (domain?.share ?? 0),
      xen: inXen !== undefined && domain !== undefined && domain.share > 0 ? inXen / domain.share : undefined,
      waiting: activity === undefined ? undefined : (spent.get(name)?.[RUNNABLE] ?? 0) / (to - from || 1),
      exits: exits.has(name) ? (exits.get(name) ?? 0) / seconds : undefined,
    };
  });
}

export interface DomainList {
  element: HTMLElement;
  show: (selection: Selection) => void;
}

export function domainList(figures: Figures, choose: (domain: string | undefined) => void): DomainList {
  let selection: Selection = {};
  let rows: Row[] = [];
  let shown: Row[] = [];
  let words = "";
  let sort: (typeof SORTS)[number][0] = "share";
  const pinned = new Set<string>();
  const sparks = new Map<string, string>();

  /** The path of a domain's time on pCPUs over all of the time. */
  function spark(name: string): string {
    const known = sparks.get(name);
    if (known !== undefined) return known;
    const sums = figures.activity?.series(name);
    if (sums === undefined) return "";
    const points = new Float64Array(SPARK_POINTS);
    const bins = sums.length / ACTIVITIES.length;
    for (let i = 0; i < bins; i++) {
      const at = Math.floor((i / bins) * SPARK_POINTS);
      for (const k of [GUEST, XEN, UNDIVIDED]) points[at] += sums[i * ACTIVITIES.length + k];
    }
    const most = Math.max(...points) || 1;
    const path =
      `M0 ${SPARK_HEIGHT}` +
      [...points]
        .map((value, i) => {
          const x = ((i + 0.5) / SPARK_POINTS) * SPARK_WIDTH;
          return `L${x.toFixed(1)} ${(SPARK_HEIGHT - (value / most) * (SPARK_HEIGHT - 2)).toFixed(1)}`;
        })
        .join("") +
      `L${SPARK_WIDTH} ${SPARK_HEIGHT}Z`;
    sparks.set(name, path);
    return path;
  }

  const space = h("div", { class: "space", role: "listbox", "aria-label": "Domains" });
  const scroller = h("div", { class: "list", tabindex: -1, scroll: () => draw() }, space);
  const number = h("span", { class: "soft" });

  function item(row: Row, i: number): HTMLElement {
    const said = [
      row.xen === undefined ? "" : `Xen ${percent(row.xen, 0)}`,
      row.waiting === undefined || row.waiting < 0.0005 ? "" : `waits ${percent(row.waiting, 1)}`,
      row.exits === undefined ? "" : `${short(row.exits)}/s`,
    ].filter((text) => text !== "");
    const isChosen = selection.domain === row.name;
    const step = (): void => choose(isChosen ? undefined : row.name);
    return h(
      "div",
      {
        class: isChosen ? "domain chosen" : "domain",
        role: "option",
        tabindex: 0,
        "aria-selected": String(isChosen),
        style: `top:${i * ROW}px`,
        title: isChosen ? "Click to see all domains" : `Show ${row.name} alone`,
        click: step,
        keydown: (event: KeyboardEvent) => {
          if (event.key === "Enter") step();
        },
      },
      h(
        "button",
        {
          class: "pin",
          title: pinned.has(row.name) ? "Unpin" : "Pin to the top",
          click: (event: MouseEvent) => {
            event.stopPropagation();
            if (!pinned.delete(row.name)) pinned.add(row.name);
            arrange();
          },
        },
        pinned.has(row.name) ? "★" : "☆",
      ),
      h("b", {}, row.name),
      h("b", { class: "n" }, percent(row.share, 1)),
      h("span", { class: "soft" }, said.join(" · ")),
      s(
        "svg",
        {
          width: SPARK_WIDTH,
          height: SPARK_HEIGHT,
          viewBox: `0 0 ${SPARK_WIDTH} ${SPARK_HEIGHT}`,
          "aria-hidden": "true",
        },
        s("path", { d: spark(row.name), class: "hist" }),
      ),
    );
  }
  function draw(): void {
    const first = Math.max(Math.floor(scroller.scrollTop / ROW) - 2, 0);
    const last = Math.min(Math.ceil((scroller.scrollTop + (scroller.clientHeight || 800)) / ROW) + 2, shown.length);
    space.replaceChildren(...shown.slice(first, last).map((row, i) => item(row, first + i)));
  }
  function arrange(): void {
    shown = rows.filter(({ name }) => name.toLowerCase().includes(words));
    const isPinned = (row: Row): number => (pinned.has(row.name) || row.name === selection.domain ? 1 : 0);
    shown.sort(
      (a, b) =>
        isPinned(b) - isPinned(a) ||
        (sort === "name" ? a.name.localeCompare(b.name, "en", { numeric: true }) : (b[sort] ?? -1) - (a[sort] ?? -1)) ||
        b.share - a.share,
    );
    number.textContent = shown.length === rows.length ? `${rows.length} domains` : `${shown.length} of ${rows.length}`;
    space.style.height = `${shown.length * ROW}px`;
    draw();
  }
  const search = searchField("Domains", (text) => {
    words = text;
    arrange();
  });
  search.classList.remove("search"); // the key / is for the search of the view
  search.placeholder = "Search domains";
  const order = h(
    "select",
    {
      "aria-label": "Order of domains",
      change: () => {
        sort = SORTS[order.selectedIndex]?.[0] ?? "share";
        arrange();
      },
    },
    ...SORTS.map(([, text]) => h("option", {}, text)),
  );
  function show(next: Selection): void {
    const isSame = rows.length > 0 && String(next.range) === String(selection.range);
    selection = next;
    if (!isSame) rows = rowsOf(figures, next.range);
    arrange();
  }
  new ResizeObserver(() => draw()).observe(scroller);
  show({});
  return {
    element: h(
      "aside",
      { id: "domains" },
      h("div", { class: "tools" }, search, h("label", {}, "by ", order), number),
      scroller,
    ),
    show,
  };
}
