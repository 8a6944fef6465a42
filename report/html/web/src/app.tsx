// The page's frame: what stays on screen, the views, the keys that switch between them, and its colour themes. The
// page's address has which view is shown, its state and the selection; everything is rendered from that.
import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { DifferencesView } from "./differences";
import { DomainList } from "./domains";
import { ExitsView } from "./exits";
import { FlameView } from "./flame";
import { Overview } from "./overview";
import type { RowFilter } from "./rows";
import { type Figures, type Selection, selectionState } from "./selection";
import { TimeStrip } from "./strip";
import { FunctionsView, drillDownState } from "./table";
import { TimelineView } from "./timeline";
import { hideTip } from "./tip";
import { TracesView } from "./traces";
import { type Groups, timelineGroups } from "./tracks";
import { type Remember, type State, type ViewProps, addressOf } from "./view";

const FUNCTIONS = "Functions";

interface View {
  name: string;
  render: (shared: Shared) => JSX.Element;
}
/** What the app gives to each view. */
interface Shared extends ViewProps {
  figures: Figures;
  /** The page's data for what is selected. */
  page: Figures["page"];
  selection: Selection;
  drillDown: (where: RowFilter[]) => void;
  /** The rows of the timeline, of a page that has one. */
  groups: () => Groups;
}

/** The views that the page has data for. */
function viewsOf({ page, activity, exitLengths }: Figures): View[] {
  const { diff, report, flame, exits, timeline, traces } = page;
  const views: View[] = [];
  if (diff !== undefined)
    views.push({ name: "Differences", render: (shared) => <DifferencesView {...shared} diff={diff} /> });
  if (report !== undefined)
    views.push({
      name: "Overview",
      render: ({ page: of, drillDown }) => <Overview page={of} report={of.report ?? report} drillDown={drillDown} />,
    });
  if (flame !== undefined)
    views.push({
      name: "Flame graph",
      render: (shared) => <FlameView {...shared} flame={shared.page.flame ?? flame} />,
    });
  if (report !== undefined) views.push({ name: FUNCTIONS, render: (shared) => <FunctionsView {...shared} /> });
  if (exits !== undefined && exits.length > 0)
    views.push({
      name: "VM exits",
      render: (shared) => <ExitsView {...shared} exits={shared.page.exits ?? []} lengths={exitLengths} />,
    });
  if (traces !== undefined)
    views.push({ name: "Traces", render: () => <TracesView tables={traces} hz={page.traces_hz ?? 1e9} /> });
  if (timeline !== undefined && activity !== undefined && timeline.vcpus.length > 0)
    views.push({
      name: "Timeline",
      render: (shared) => <TimelineView {...shared} page={page} timeline={timeline} groups={shared.groups()} />,
    });
  return views;
}

/** What is shown: the number of the view, the state of each, the selection. */
interface Place {
  view: number;
  queries: string[];
  selection: Selection;
}

const slug = ({ name }: View): string => name.toLowerCase().replaceAll(" ", "-");

function addressIn(figures: Figures, views: View[], { view, queries, selection }: Place): string {
  const selected = new URLSearchParams(selectionState(figures.page, selection)).toString();
  return addressOf(slug(views[view]), [queries[view], selected].filter((text) => text !== "").join("&"));
}

/** Reads an address, which may be anything; the other views keep their states. */
function placeIn(figures: Figures, views: View[], address: string, queries: string[]): Place {
  const [name = "", query = ""] = address.slice(1).split("?", 2);
  const view = Math.max(
    views.findIndex((each) => slug(each) === name),
    0,
  );
  const { page, length } = figures;
  const wanted = new URLSearchParams(query);
  const hz = page.report?.cpu_hz ?? 1e9;
  const begin = page.timeline?.begin_seconds ?? 0;
  const [from, to] = (wanted.get("range") ?? "").split("-").map((text) => (Number.parseFloat(text) - begin) * hz);
  const [first, last] = [Math.max(from, 0), Math.min(to, length)];
  const domain = wanted.get("only") ?? undefined;
  const selection: Selection = {
    range: first < last ? [first, last] : undefined,
    domain: domain !== undefined && figures.domains.includes(domain) ? domain : undefined,
  };
  for (const key of ["range", "only"]) wanted.delete(key);
  return { view, selection, queries: queries.map((own, i) => (i === view ? wanted.toString() : own)) };
}

/** Browsers limit how often the address changes: what is no step is put there when it has come to rest. */
const SETTLED_MS = 200;

/** The place that the address names, and how to go to another. A step can be undone by Back. */
function usePlace(
  figures: Figures,
  views: View[],
): [Place, (change: (place: Place) => Place, isStep: boolean) => void] {
  const [place, setPlace] = useState(() =>
    placeIn(
      figures,
      views,
      location.hash,
      views.map(() => ""),
    ),
  );
  const latest = useRef(place);
  /** The address that this page has set last, to know those that the user goes to. */
  const address = useRef("");
  const settling = useRef(0);
  function setAddress(isStep: boolean): void {
    clearTimeout(settling.current);
    const next = addressIn(figures, views, latest.current);
    if (next === address.current) return;
    address.current = next;
    if (isStep) location.hash = next;
    else location.replace(next);
  }
  function change(of: (place: Place) => Place, isStep: boolean): void {
    if (isStep) setAddress(false); // what has not come to rest belongs to the place that is left
    latest.current = of(latest.current);
    setPlace(latest.current);
    clearTimeout(settling.current);
    if (isStep) setAddress(true);
    else settling.current = window.setTimeout(() => setAddress(false), SETTLED_MS);
  }
  useEffect(() => {
    const follow = (): void => {
      if (location.hash === address.current) return;
      latest.current = placeIn(figures, views, location.hash, latest.current.queries);
      setPlace(latest.current);
      setAddress(false);
    };
    addEventListener("hashchange", follow);
    setAddress(false);
    return () => removeEventListener("hashchange", follow);
  }, []);
  return [place, change];
}

/** A number that changes when the colours of the theme do. */
function useThemeChanges(): number {
  const [themes, setThemes] = useState(0);
  useEffect(() => {
    const next = (): void => setThemes((before) => before + 1);
    document.addEventListener("theme", next);
    return () => document.removeEventListener("theme", next);
  }, []);
  return themes;
}

/** What is made when it is first asked for. */
function lazy<T>(make: () => T): () => T {
  let made: { value: T } | undefined;
  return () => (made ??= { value: make() }).value;
}

const THEMES = ["auto", "light", "dark"] as const;

/** The colours that are chosen, and what chooses the next. */
function useTheme(): [theme: (typeof THEMES)[number], next: () => void] {
  const [theme, setTheme] = useState<(typeof THEMES)[number]>("auto");
  useLayoutEffect(() => {
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const apply = (): void => {
      document.documentElement.dataset.theme = theme === "auto" ? (dark.matches ? "dark" : "light") : theme;
      document.dispatchEvent(new Event("theme"));
    };
    apply();
    dark.addEventListener("change", apply);
    return () => dark.removeEventListener("change", apply);
  }, [theme]);
  return [theme, () => setTheme(THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length])];
}

/** Whether a key is text for a field; Escape and Enter leave the field. */
function isForField(event: KeyboardEvent): boolean {
  const field = event.target;
  const isField =
    (field instanceof HTMLInputElement && field.type !== "checkbox") || field instanceof HTMLSelectElement;
  if (!isField) return event.ctrlKey || event.metaKey || event.altKey;
  if (event.key === "Escape" && field.type === "search") {
    // Browsers clear a search field on Escape without an input event.
    event.preventDefault();
    field.value = "";
    field.dispatchEvent(new Event("input", { bubbles: true }));
  }
  if (event.key === "Escape" || event.key === "Enter") field.blur();
  return true;
}

/** Calls the handler for keys that are not text. */
function useKeys(handle: (event: KeyboardEvent) => void): void {
  const latest = useRef(handle);
  latest.current = handle;
  useEffect(() => {
    const listen = (event: KeyboardEvent): void => {
      if (!isForField(event)) latest.current(event);
    };
    document.addEventListener("keydown", listen);
    return () => document.removeEventListener("keydown", listen);
  }, []);
}

export function App({ figures }: { figures: Figures }): JSX.Element {
  const { page } = figures;
  const views = useMemo(() => viewsOf(figures), [figures]);
  const [place, change] = usePlace(figures, views);
  const [theme, nextTheme] = useTheme();
  const { view, queries, selection } = place;
  const themes = useThemeChanges();
  const groups = useMemo(
    () =>
      lazy(() =>
        page.timeline === undefined || figures.activity === undefined
          ? { groups: [], runsOn: () => undefined }
          : timelineGroups(page.timeline, figures.activity, page.report?.cpu_hz ?? 1e9),
      ),
    [figures, themes],
  );
  const selectionKey = JSON.stringify([selection.range, selection.domain]);
  const selected = useMemo(() => figures.select(selection), [figures, selectionKey]);
  const query = useMemo(() => new URLSearchParams(queries[view]), [view, queries[view]]);

  function open(i: number, state?: State): void {
    if (views[i] === undefined) return;
    hideTip();
    const own = state === undefined ? undefined : new URLSearchParams(state).toString();
    change(
      (from) => ({ ...from, view: i, queries: from.queries.map((each, k) => (k === i ? (own ?? each) : each)) }),
      true,
    );
  }
  function select(next: Selection): void {
    if (JSON.stringify([next.range, next.domain]) !== selectionKey)
      change((from) => ({ ...from, selection: next }), true);
  }
  const remember: Remember = (state, isStep) =>
    change((from) => {
      const own = new URLSearchParams(state).toString();
      return { ...from, queries: from.queries.map((each, k) => (k === view ? own : each)) };
    }, isStep);
  const drillDown = (where: RowFilter[]): void => {
    const state = drillDownState(selected, where);
    if (state !== undefined)
      open(
        views.findIndex(({ name }) => name === FUNCTIONS),
        state,
      );
  };
  useKeys((event) => {
    const number = Number(event.key);
    if (number >= 1 && number <= views.length) open(number - 1);
    else if (event.key === "Escape" && event.target === document.body) select({});
    else if (event.key === "/") {
      event.preventDefault();
      document.querySelector<HTMLInputElement>("main .search")?.focus();
    } else if (event.key === "t") nextTheme();
  });
  useEffect(() => {
    addEventListener("pointerdown", hideTip);
    return () => removeEventListener("pointerdown", hideTip);
  }, []);

  // These are rendered again only for another selection, not for each step of a view.
  const strip = useMemo(
    () =>
      page.diff !== undefined ? null : (
        <TimeStrip figures={figures} selection={selection} choose={(range) => select({ ...selection, range })} />
      ),
    [figures, selectionKey],
  );
  const domains = useMemo(
    () =>
      figures.domains.length < 2 ? null : (
        <DomainList figures={figures} selection={selection} choose={(domain) => select({ ...selection, domain })} />
      ),
    [figures, selectionKey],
  );
  const shown = views[view];
  return (
    <>
      <header>
        <h1>{page.title}</h1>
        <span class="soft">
          {`xenoscope; keys: ${views.length > 1 ? `1 to ${views.length}: views, ` : ""}/: search, t: colours`}
        </span>
        <button
          title="Colours: auto (as the system), light, dark (t)"
          onClick={nextTheme}
        >{`colours: ${theme}`}</button>
      </header>
      {strip}
      <div id="body">
        {domains}
        <div id="views">
          <nav role="tablist">
            {views.map(({ name }, i) => (
              <button role="tab" aria-selected={i === view} onClick={() => open(i)}>
                {name}
                <kbd>{i + 1}</kbd>
              </button>
            ))}
          </nav>
          <main tabIndex={-1} key={shown.name}>
            {shown.render({ figures, page: selected, selection, query, remember, drillDown, groups })}
          </main>
        </div>
      </div>
    </>
  );
}
