// The code of a function: its source or its instructions, each line with its samples by VM exit.
import { Code, Page } from "./data";
import { count, h, percent } from "./dom";

/** Columns of exits; functions of Xen run for more. */
const MOST_EXITS = 6;

export interface CodePanel {
  element: HTMLElement;
  /** Shows the code of the functions of this name; undefined: none. */
  show: (name: string | undefined) => void;
}

export function codePanel(page: Page): CodePanel {
  const element = h("section", { id: "code", "aria-label": "Code" });
  let shown: string | undefined;
  let chosen = 0;

  function table({ lines, exits, samples }: Code): HTMLElement {
    const columns = exits.slice(0, MOST_EXITS);
    const hottest = lines.reduce((most, line) => Math.max(most, line[2]), 0);
    const rows = lines.map(([place, code, own, byExit]) => {
      const part = own / (samples || 1);
      return h(
        "tr",
        { class: own === 0 ? "" : own === hottest ? "hot hottest" : "hot" },
        h("td", { class: "n", style: `--part:${(part * 100).toFixed(2)}%` }, own === 0 ? "" : percent(part, 1)),
        ...columns.map((_, k) => h("td", { class: "n soft" }, (byExit[k] ?? 0) > 0 ? count(byExit[k]) : "")),
        h("td", { class: "n soft" }, place),
        h("td", { class: "code" }, code),
      );
    });
    return h(
      "table",
      {},
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          h("th", { class: "n", title: "Of the function's samples" }, "self"),
          ...columns.map((exit) => h("th", { class: "n", title: `Samples in ${exit}` }, exit.replace("VMEXIT_", ""))),
          h("th", { class: "n" }, "line"),
          h("th", {}, "code"),
        ),
      ),
      h("tbody", {}, ...rows),
    );
  }
  function draw(): void {
    const only = page.selection?.domain;
    const found = (page.code ?? []).filter(
      (each) => each.function === shown && (only === undefined || each.domain === only),
    );
    if (shown === undefined) return element.replaceChildren();
    const code = found[chosen] ?? found[0];
    if (code === undefined) {
      return element.replaceChildren(
        h(
          "p",
          { class: "soft" },
          `The page has no code of ${shown}: it has few samples, or its file was not there when the page was made. ` +
            "--kernel, --xen-syms and --image name files.",
        ),
      );
    }
    const tabs = found.map((each, i) =>
      h(
        "button",
        { class: each === code ? "chip on" : "chip", click: () => ((chosen = i), draw()) },
        `${each.domain}: ${each.image}`,
      ),
    );
    const body = h("div", { class: "listing", tabindex: 0 }, table(code));
    element.replaceChildren(
      h(
        "h2",
        {},
        code.title,
        h(
          "span",
          { class: "soft" },
          `${count(code.samples)} samples${page.selection?.range === undefined ? "" : " of the whole recording"}` +
            "; a sample is a few instructions after the counted one",
        ),
      ),
      h("p", { class: "tools" }, ...tabs),
      body,
    );
    const hot = body.querySelector<HTMLElement>(".hottest");
    if (hot !== null) requestAnimationFrame(() => (body.scrollTop = hot.offsetTop - body.clientHeight / 2));
  }
  function show(name: string | undefined): void {
    if (name === shown) return;
    shown = name;
    chosen = 0;
    draw();
  }
  return { element, show };
}
