// The domains at the left, as xentop would list them: a choice filters all views. Only the rows that can be seen are
// elements, so that hundreds of domains are a short list, too.
import type { JSX } from "preact";
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { ACTIVITIES, GUEST, RUNNABLE, UNDIVIDED, XEN } from "./activity";
import { percent, short } from "./format";
import type { Figures, Selection } from "./selection";

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
  const parts = range === undefined ? undefined : exitCounts?.partsIn(from, to);
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

/** The path of a domain's time on pCPUs over all of the time; undefined: not known. */
function sparkOf(figures: Figures, name: string): string | undefined {
  const sums = figures.activity?.series(name);
  if (sums === undefined) return undefined;
  const points = new Float64Array(SPARK_POINTS);
  const bins = sums.length / ACTIVITIES.length;
  for (let i = 0; i < bins; i++) {
    const at = Math.floor((i / bins) * SPARK_POINTS);
    for (const k of [GUEST, XEN, UNDIVIDED]) points[at] += sums[i * ACTIVITIES.length + k];
  }
  const most = Math.max(...points) || 1;
  const line = [...points].map((value, i) => {
    const x = ((i + 0.5) / SPARK_POINTS) * SPARK_WIDTH;
    return `L${x.toFixed(1)} ${(SPARK_HEIGHT - (value / most) * (SPARK_HEIGHT - 2)).toFixed(1)}`;
  });
  return `M0 ${SPARK_HEIGHT}${line.join("")}L${SPARK_WIDTH} ${SPARK_HEIGHT}Z`;
}

function Spark({ figures, name }: { figures: Figures; name: string }): JSX.Element {
  const path = useMemo(() => sparkOf(figures, name), [figures, name]);
  return (
    <svg width={SPARK_WIDTH} height={SPARK_HEIGHT} viewBox={`0 0 ${SPARK_WIDTH} ${SPARK_HEIGHT}`} aria-hidden="true">
      {path === undefined ? null : <path d={path} class="hist" />}
    </svg>
  );
}

function Item(props: {
  figures: Figures;
  row: Row;
  top: number;
  isChosen: boolean;
  isPinned: boolean;
  choose: () => void;
  pin: () => void;
}): JSX.Element {
  const { row, isChosen, isPinned, choose } = props;
  const said = [
    row.xen === undefined ? "" : `Xen ${percent(row.xen, 0)}`,
    row.waiting === undefined || row.waiting < 0.0005 ? "" : `waits ${percent(row.waiting, 1)}`,
    row.exits === undefined ? "" : `${short(row.exits)}/s`,
  ].filter((text) => text !== "");
  return (
    <div
      class={isChosen ? "domain chosen" : "domain"}
      role="option"
      tabIndex={0}
      aria-selected={isChosen}
      style={{ top: `${props.top}px` }}
      title={isChosen ? "Click to see all domains" : `Show ${row.name} alone`}
      onClick={choose}
      onKeyDown={(event) => {
        if (event.key === "Enter" && event.target === event.currentTarget) choose();
      }}
    >
      <button
        class="pin"
        title={isPinned ? "Unpin" : "Pin to the top"}
        onClick={(event) => {
          event.stopPropagation();
          props.pin();
        }}
      >
        {isPinned ? "★" : "☆"}
      </button>
      <b>{row.name}</b>
      <b class="n">{percent(row.share, 1)}</b>
      <span class="soft">{said.join(" · ")}</span>
      <Spark figures={props.figures} name={row.name} />
    </div>
  );
}

interface Props {
  figures: Figures;
  selection: Selection;
  choose: (domain: string | undefined) => void;
}

export function DomainList({ figures, selection, choose }: Props): JSX.Element {
  const { range, domain } = selection;
  const [words, setWords] = useState("");
  const [sort, setSort] = useState<(typeof SORTS)[number][0]>("share");
  const [pinned, setPinned] = useState<ReadonlySet<string>>(new Set());
  const [{ top, height }, setScroll] = useState({ top: 0, height: 800 });
  const scroller = useRef<HTMLDivElement>(null);
  const rows = useMemo(() => rowsOf(figures, range), [figures, String(range)]);
  const look = (): void => {
    const list = scroller.current;
    if (list !== null) setScroll({ top: list.scrollTop, height: list.clientHeight || 800 });
  };
  useLayoutEffect(() => {
    const observer = new ResizeObserver(look);
    if (scroller.current !== null) observer.observe(scroller.current);
    return () => observer.disconnect();
  }, []);
  const shown = useMemo(() => {
    const isFirst = (row: Row): number => (pinned.has(row.name) || row.name === domain ? 1 : 0);
    return rows
      .filter(({ name }) => name.toLowerCase().includes(words.toLowerCase()))
      .sort(
        (a, b) =>
          isFirst(b) - isFirst(a) ||
          (sort === "name"
            ? a.name.localeCompare(b.name, "en", { numeric: true })
            : (b[sort] ?? -1) - (a[sort] ?? -1)) ||
          b.share - a.share,
      );
  }, [rows, words, sort, pinned, domain]);
  function pin(name: string): void {
    const next = new Set(pinned);
    if (!next.delete(name)) next.add(name);
    setPinned(next);
  }
  const first = Math.max(Math.floor(top / ROW) - 2, 0);
  const last = Math.min(Math.ceil((top + height) / ROW) + 2, shown.length);
  return (
    <aside id="domains">
      <div class="tools">
        <input
          type="search"
          placeholder="Search domains"
          aria-label="Domains"
          value={words}
          onInput={(event) => setWords(event.currentTarget.value)}
        />
        <label>
          {"by "}
          <select
            aria-label="Order of domains"
            onChange={(event) => setSort(SORTS[event.currentTarget.selectedIndex][0])}
          >
            {SORTS.map(([key, text]) => (
              <option selected={key === sort}>{text}</option>
            ))}
          </select>
        </label>
        <span class="soft">
          {shown.length === rows.length ? `${rows.length} domains` : `${shown.length} of ${rows.length}`}
        </span>
      </div>
      <div class="list" tabIndex={-1} ref={scroller} onScroll={look}>
        <div class="space" role="listbox" aria-label="Domains" style={{ height: `${shown.length * ROW}px` }}>
          {shown.slice(first, last).map((row, i) => (
            <Item
              key={row.name}
              figures={figures}
              row={row}
              top={(first + i) * ROW}
              isChosen={row.name === domain}
              isPinned={pinned.has(row.name)}
              choose={() => choose(row.name === domain ? undefined : row.name)}
              pin={() => pin(row.name)}
            />
          ))}
        </div>
      </div>
    </aside>
  );
}
