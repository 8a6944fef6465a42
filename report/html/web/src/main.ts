// The page: its views, the keys that switch between them, and its colour themes.
import { Page } from "./data";
import { h, hideTip } from "./dom";
import { flameView } from "./flame";
import { diffView, exitsView, overview } from "./overview";
import { TableView, tableView, RowFilter } from "./table";
import { timelineView } from "./timeline";

const page = JSON.parse(document.getElementById("data")?.textContent ?? "{}") as Page;
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

const views: [string, () => HTMLElement][] = [];
let functions: TableView | undefined;
/** Opens the functions' view with the filters of a row of another view. */
function drillDown(where: RowFilter[]): void {
  open(views.findIndex(([name]) => name === FUNCTIONS));
  functions?.drillDown(where);
}
const FUNCTIONS = "Functions";
const { report, flame, exits, timeline, diff } = page;
if (diff !== undefined) views.push(["Differences", () => diffView(page, diff)]);
if (report !== undefined) views.push(["Overview", () => overview(page, report, drillDown)]);
if (flame !== undefined) views.push(["Flame graph", () => flameView(page, flame)]);
if (report !== undefined) views.push([FUNCTIONS, () => (functions = tableView(page)).element]);
if (exits !== undefined && exits.length > 0) views.push(["VM exits", () => exitsView(page, exits, drillDown)]);
if (timeline !== undefined && timeline.vcpus.length > 0) views.push(["Timeline", () => timelineView(page, timeline)]);

const main = h("main", { tabindex: -1 });
const made: (HTMLElement | undefined)[] = [];
const tabs = views.map(([name], i) =>
  h("button", { role: "tab", "aria-selected": "false", click: () => open(i) }, name, h("kbd", {}, i + 1)),
);
function open(i: number): void {
  const view = views[i];
  if (view === undefined) return;
  hideTip();
  made[i] ??= view[1]();
  main.replaceChildren(made[i]);
  tabs.forEach((tab, k) => tab.setAttribute("aria-selected", String(k === i)));
  location.replace(`#${view[0].toLowerCase().replaceAll(" ", "-")}`);
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
    h("nav", { role: "tablist" }, ...tabs),
    main,
  );
const wanted = views.findIndex(([name]) => `#${name.toLowerCase().replaceAll(" ", "-")}` === location.hash);
open(Math.max(wanted, 0));
