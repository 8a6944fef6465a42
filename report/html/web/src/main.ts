// The page: its views, the keys that switch between them, and its colour themes.
import { readPage } from "./data";
import { h, hideTip } from "./dom";
import { flameView } from "./flame";
import { exitsView } from "./exits";
import { diffView, overview } from "./overview";
import { domainList } from "./domains";
import { Figures, Selection, selectionState } from "./selection";
import { timeStrip } from "./strip";
import { TableView, tableView, RowFilter } from "./table";
import { timelineView } from "./timeline";
import { Remember, View, addressOf } from "./view";

const page = readPage(document.getElementById("data")?.textContent ?? "{}");
document.title = page.title;

const themes = ["auto", "light", "dark"];
let theme = "auto";
const dark = matchMedia("(prefers-color-scheme: dark)");
function applyTheme(): void {
  document.documentElement.dataset.theme = theme === "auto" ? (dark.matches ? "dark" : "light") : theme;
  document.dispatchEvent(new Event("theme"));
}
dark.addEventListener("change", applyTheme);
applyTheme();

const figures = new Figures(page);
let selection: Selection = {};
/** The page's data for what is selected: the views are made of it. */
let selected = page;

const views: [string, (remember: Remember) => View][] = [];
let functions: TableView | undefined;
/** Opens the functions' view with the filters of a row of another view. */
function drillDown(where: RowFilter[]): void {
  show(views.findIndex(([name]) => name === FUNCTIONS));
  functions?.drillDown(where); // one step, with that to the view
}
const FUNCTIONS = "Functions";
const TIMELINE = "Timeline";
const { report, flame, exits, timeline, diff } = page;
if (diff !== undefined) views.push(["Differences", () => ({ element: diffView(page, diff) })]);
if (report !== undefined)
  views.push(["Overview", () => ({ element: overview(selected, selected.report ?? report, drillDown) })]);
if (flame !== undefined)
  views.push(["Flame graph", (remember) => flameView(selected, selected.flame ?? flame, remember)]);
if (report !== undefined) views.push([FUNCTIONS, (remember) => (functions = tableView(selected, remember))]);
if (exits !== undefined && exits.length > 0)
  views.push([
    "VM exits",
    (remember) => exitsView(selected, selected.exits ?? [], figures.exitLengths, drillDown, remember),
  ]);
const { activity } = figures;
if (timeline !== undefined && activity !== undefined && timeline.vcpus.length > 0)
  views.push([TIMELINE, (remember) => timelineView(page, timeline, activity, remember, selection)]);

const main = h("main", { tabindex: -1 });
const made: (View | undefined)[] = [];
const queries: string[] = views.map(() => ""); // the last state of each view, as in its address
let shown = 0;
/** The address that this page has set last, to know those that the user goes to. */
let address = "";
const tabs = views.map(([name], i) =>
  h("button", { role: "tab", "aria-selected": "false", click: () => open(i) }, name, h("kbd", {}, i + 1)),
);
const nameOf = (i: number): string => views[i][0].toLowerCase().replaceAll(" ", "-");
const hz = report?.cpu_hz ?? 1e9;
const begin = timeline?.begin_seconds ?? 0;
function selectionOf(query: URLSearchParams): Selection {
  const [from, to] = (query.get("range") ?? "").split("-").map((text) => (Number.parseFloat(text) - begin) * hz);
  const [first, last] = [Math.max(from, 0), Math.min(to, figures.length)];
  const domain = query.get("only") ?? undefined;
  const isKnown = domain !== undefined && figures.domains.includes(domain);
  return { range: first < last ? [first, last] : undefined, domain: isKnown ? domain : undefined };
}
function setAddress(isStep: boolean): void {
  const state = new URLSearchParams(selectionState(page, selection)).toString();
  const next = addressOf(nameOf(shown), [queries[shown], state].filter((text) => text !== "").join("&"));
  if (next === address) return;
  address = next;
  if (isStep) location.hash = next;
  else location.replace(next);
}
/** Shows a view without a change of the address. */
function show(i: number): View {
  const view = (made[i] ??= views[i][1]((state, isStep) => {
    queries[i] = new URLSearchParams(state).toString();
    if (i === shown) setAddress(isStep);
  }));
  hideTip();
  shown = i;
  main.replaceChildren(view.element);
  tabs.forEach((tab, k) => tab.setAttribute("aria-selected", String(k === i)));
  return view;
}
function open(i: number): void {
  if (views[i] === undefined) return;
  show(i);
  setAddress(true);
}
/** Makes the views anew for a selection, each with its state; the timeline is of all and follows. */
function select(next: Selection, isStep: boolean): void {
  if (selectionText(next) === selectionText(selection)) return;
  selection = next;
  selected = figures.select(selection);
  strip?.show(selection);
  domains?.show(selection);
  for (let i = 0; i < made.length; i++) {
    if (made[i]?.select !== undefined) made[i]?.select?.(selection);
    else made[i] = undefined;
  }
  const view = show(shown);
  if (queries[shown] !== "") view.restore?.(new URLSearchParams(queries[shown]));
  setAddress(isStep);
}
const selectionText = ({ range, domain }: Selection): string => JSON.stringify([range, domain]);
const hasTimes = flame?.over_time !== undefined || timeline !== undefined;
const selectRange = (range: Selection["range"]): void => select({ ...selection, range }, true);
const strip = diff === undefined && hasTimes ? timeStrip(figures, selectRange) : undefined;
const domains =
  figures.domains.length > 1 ? domainList(figures, (domain) => select({ ...selection, domain }, true)) : undefined;
/** Shows what the address says: the user's, or that of Back and Forward. */
function follow(): void {
  if (location.hash === address && address !== "") return;
  const [name = "", query = ""] = location.hash.slice(1).split("?", 2);
  const i = Math.max(
    views.findIndex((_, k) => nameOf(k) === name),
    0,
  );
  const before = queries[i];
  const wanted = new URLSearchParams(query);
  const next = selectionOf(wanted);
  for (const key of ["range", "only"]) wanted.delete(key);
  const isNew = made[i] === undefined || selectionText(next) !== selectionText(selection);
  const own = wanted.toString();
  shown = i;
  queries[i] = own;
  select(next, false);
  const view = show(i);
  if (before !== own || (isNew && own !== "")) view.restore?.(wanted);
  setAddress(false);
}
const themeButton = h(
  "button",
  {
    title: "Colours: auto (as the system), light, dark (t)",
    click: () => {
      theme = themes[(themes.indexOf(theme) + 1) % themes.length] ?? "auto";
      themeButton.textContent = `colours: ${theme}`;
      applyTheme();
    },
  },
  "colours: auto",
);

document.addEventListener("keydown", (event) => {
  const typing =
    (event.target instanceof HTMLInputElement && event.target.type !== "checkbox") ||
    event.target instanceof HTMLSelectElement;
  if (typing || event.ctrlKey || event.metaKey || event.altKey) {
    if (typing && (event.key === "Escape" || event.key === "Enter")) {
      const field = event.target;
      if (event.key === "Escape" && field.type === "search") {
        // Browsers clear a search field on Escape without an input event.
        event.preventDefault();
        field.value = "";
        field.dispatchEvent(new Event("input"));
      }
      field.blur();
    }
    return;
  }
  const number = Number(event.key);
  if (number >= 1 && number <= views.length) open(number - 1);
  else if (event.key === "Escape" && event.target === document.body) select({}, true);
  else if (event.key === "/") {
    event.preventDefault();
    main.querySelector<HTMLInputElement>(".search")?.focus();
  } else if (event.key === "t") themeButton.click();
});

document
  .getElementById("app")
  ?.append(
    h(
      "header",
      {},
      h("h1", {}, page.title),
      h(
        "span",
        { class: "soft" },
        `xenoscope; keys: ${views.length > 1 ? `1 to ${views.length}: views, ` : ""}/: search, t: colours`,
      ),
      themeButton,
    ),
    strip?.element ?? "",
    h(
      "div",
      { id: "body" },
      domains?.element ?? "",
      h("div", { id: "views" }, h("nav", { role: "tablist" }, ...tabs), main),
    ),
  );
addEventListener("hashchange", follow);
addEventListener("pointerdown", hideTip);
follow();
