// The profile as a flame graph by any grouping. It grows downwards; a click enlarges a frame. Of one function it is a
// sandwich: its callers above it, what it called below.
import { codePanel } from "./code";
import { columnChips, columnsOf, parseColumns } from "./columns";
import { Flame, Page } from "./data";
import { CanvasView, Child, colour, count, h, hideTip, percent, searchField, short, showTip } from "./dom";
import { Box, Crowd, Layout, ROW, layOut, rowsOf, sortedChildren } from "./flame_layout";
import { Node, Sandwich, flameTree, invertedTree, pathTo, sandwich } from "./flame_tree";
import { functionList } from "./functions";
import { Remember, State, View } from "./view";

/** What the graph is by at first, and those of it that the page has. */
const FIRST = ["domain", "mode", "function", "line"];

/** Paints the frames of a layout; faded are those that only lead to what is enlarged. */
function paint(
  context: CanvasRenderingContext2D,
  { boxes, crowds }: Layout,
  marks: { isHit: (node: Node) => boolean; isEdged: (node: Node) => boolean; isFaded: (node: Node) => boolean },
): void {
  context.font = `13px ui-monospace, "DejaVu Sans Mono", monospace`;
  context.textBaseline = "middle";
  const letter = context.measureText("m").width;
  const [ink, edge] = [colour("frame-fg"), colour("fg")];
  const colours: Record<string, string> = {};
  for (const kind of ["group", "user", "kernel", "xen", "found"]) colours[kind] = colour(kind);
  for (const { node, x, y, w } of boxes) {
    const hit = marks.isHit(node);
    context.globalAlpha = marks.isFaded(node) ? 0.45 : 1;
    context.fillStyle = (hit ? colours.found : colours[node.kind]) ?? "#999";
    context.fillRect(x, y, Math.max(w - (w > 3 ? 1 : 0), 0.4), ROW - 1);
    context.globalAlpha = 1;
    if (marks.isEdged(node)) {
      context.strokeStyle = edge;
      context.lineWidth = 1.5;
      context.strokeRect(x + 0.75, y + 0.75, Math.max(w - 2.5, 0.5), ROW - 2.5);
    }
    const room = Math.floor((w - 8) / letter);
    if (room < 3) continue;
    context.fillStyle = hit || marks.isFaded(node) ? edge : ink;
    const name = /:\d+$/.test(node.name) ? node.name.replace(/^.*\//, "") : node.name; // a line without directories
    context.fillText(name.length <= room ? name : `${name.slice(0, room - 1)}…`, x + 4, y + ROW / 2);
  }
  context.globalAlpha = 0.3;
  for (const { node, x, y, w } of crowds) {
    context.fillStyle = colours[node.kind] ?? "#999";
    context.fillRect(x, y, w, ROW - 1);
  }
  context.globalAlpha = 1;
}

export function flameView(page: Page, flame: Flame, remember: Remember): View {
  const known = columnsOf(flame);
  const first = FIRST.filter((column) => known.includes(column));
  let by = first;
  let isInverted = false;
  /** The function whose callers and callees are shown; undefined: the graph is of all. */
  let of: string | undefined;
  let sides: Sandwich | undefined;
  /** The root of the frames that grow downwards. */
  let root = flameTree(flame, by);
  /** All samples that are shown without a function alone. */
  const all = root;
  let shown = root;
  let words = "";
  let hover: Node | null = null;
  let focus: Node = root;
  let layouts: Layout[] = [];
  const weight = (node: Node): number => (page.is_time ? node.cycles : node.samples);
  const sorted = (node: Node): Node[] => sortedChildren(node, weight);
  const isAbove = (node: Node): boolean => sides !== undefined && pathTo(node)[0] === sides.callers;
  /** What is enlarged of a tree. */
  const shownOf = (tree: Node): Node => (pathTo(shown)[0] === tree ? shown : tree);
  const matches = (node: Node): boolean =>
    (words !== "" && node.name.toLowerCase().includes(words)) || node.name === lit;
  /** The function that the list points at. */
  let lit: string | undefined;
  const list = functionList(
    page,
    flame,
    (name) => {
      lit = name;
      picture.redraw();
    },
    (name) => choose(name === of ? undefined : name),
  );

  const code = codePanel(page);
  const about = h("div", { class: "about", "aria-live": "polite" });
  const found = h("span", { class: "soft" });
  const crumbs = h("div", { class: "crumbs" });

  function describe(node: Node): string {
    const cycles = page.is_time ? `, ${short(node.cycles)} cycles` : "";
    const parts = [`${percent(weight(node) / (weight(all) || 1))} of all`];
    if (of !== undefined && node.parent !== null) parts.push(`${percent(weight(node) / (weight(root) || 1))} of ${of}`);
    if (shown.parent !== null) parts.push(`${percent(weight(node) / (weight(shown) || 1))} of ${shown.name}`);
    return `${parts.join(", ")}; ${count(node.samples)} samples${cycles}`;
  }

  const rowsAbove = (): number => (sides === undefined ? 0 : rowsOf(sides.callers, shownOf(sides.callers)) - 1);
  const picture = new CanvasView((context) => {
    const y = rowsAbove() * ROW;
    layouts = [layOut(root, shownOf(root), weight, picture.width, y, ROW)];
    if (sides !== undefined)
      layouts.unshift(layOut(sides.callers, shownOf(sides.callers), weight, picture.width, y, -ROW));
    const leading = new Set(pathTo(shown).slice(0, -1));
    context.fillStyle = colour("bg");
    context.fillRect(0, 0, picture.width, picture.height);
    for (const layout of layouts) {
      paint(context, layout, {
        isHit: matches,
        isEdged: (node) => hover === node || focus === node || (node.parent === null && of !== undefined),
        isFaded: (node) => leading.has(node),
      });
    }
  });

  function draw(): void {
    picture.setHeight(Math.max((rowsAbove() + rowsOf(root, shownOf(root))) * ROW + 4, 120));
    picture.redraw();
    const links: Child[] = [];
    const path = pathTo(shown);
    path.forEach((node, i) => {
      if (i > 0) links.push(isAbove(shown) ? " ‹ " : " › ");
      links.push(i + 1 < path.length ? h("button", { click: () => show(node) }, node.name) : node.name);
    });
    crumbs.replaceChildren(...links.map((link) => (link instanceof window.Node ? link : String(link))));
    alone.replaceChildren(
      of === undefined
        ? ""
        : h(
            "button",
            { click: () => choose(undefined), title: "Show all functions" },
            `callers and callees of ${of} ×`,
          ),
    );
    inverted.disabled = of !== undefined;
    about.textContent = `${focus.name}: ${describe(focus)}`;
    list.choose(of);
    code.show(of);
    if (words === "") {
      found.textContent = "";
    } else {
      let sum = 0;
      const visit = (node: Node): void => {
        if (matches(node)) sum += weight(node);
        else for (const child of node.children.values()) visit(child);
      };
      visit(shown);
      found.textContent =
        `matched: ${percent(sum / (weight(shown) || 1))}` + (shown === all ? "" : ` of ${shown.name}`);
    }
  }
  /** The grouping, the function alone, and the frames from the root to the one that is enlarged. */
  function state(): State {
    const key = isAbove(shown) ? "from" : "in";
    const frames = pathTo(shown)
      .slice(1)
      .map((node): [string, string] => [key, `${node.kind} ${node.name}`]);
    const reading: State = of !== undefined ? [["of", of]] : isInverted ? [["inverted", "true"]] : [];
    const grouping: State = by.join() === first.join() ? [] : [["by", by.join()]];
    return [...grouping, ...reading, ...frames];
  }
  function show(node: Node): void {
    shown = node;
    focus = node;
    hideTip();
    draw();
    remember(state(), true);
  }
  /** Makes the trees anew. */
  function regrow(): void {
    sides = of === undefined ? undefined : sandwich(flame, by, of);
    if (sides === undefined) of = undefined;
    root = sides?.callees ?? (isInverted ? invertedTree(flame, by) : flameTree(flame, by));
    shown = focus = root;
  }
  function regroup(): void {
    regrow();
    show(root);
  }
  /** Shows a function between its callers and callees; undefined: all functions. */
  function choose(name: string | undefined): void {
    of = name;
    regroup();
  }
  function restore(wanted: URLSearchParams): void {
    by = parseColumns(wanted.get("by"), known) ?? first;
    chips.show(by);
    isInverted = inverted.checked = wanted.get("inverted") === "true";
    of = wanted.get("of") ?? undefined;
    regrow();
    const above = wanted.getAll("from");
    if (sides !== undefined && above.length > 0) shown = sides.callers;
    for (const key of above.length > 0 ? above : wanted.getAll("in")) shown = shown.children.get(key) ?? shown;
    if (shown === sides?.callers) shown = root;
    focus = shown;
    draw();
    remember(state(), false);
  }
  function under<Kind extends Box>(event: MouseEvent, boxes: Kind[]): Kind | undefined {
    const box = picture.canvas.getBoundingClientRect();
    const x = event.clientX - box.left;
    const y = event.clientY - box.top;
    return boxes.find((b) => y >= b.y && y < b.y + ROW && x >= b.x && x < b.x + Math.max(b.w, 1));
  }
  /** The frame at a point; the one function that is between two trees is of the lower. */
  function at(event: MouseEvent): Node | null {
    const node =
      under(
        event,
        layouts.flatMap(({ boxes }) => boxes),
      )?.node ?? null;
    return node !== null && node === sides?.callers ? root : node;
  }
  picture.canvas.setAttribute("role", "img");
  picture.canvas.setAttribute(
    "aria-label",
    "Flame graph; arrow keys move, Enter enlarges, Escape goes back, c shows callers and callees",
  );
  picture.canvas.addEventListener("mousemove", (event) => {
    const node = at(event);
    if (node !== hover) {
      hover = node;
      list.light(node?.name);
      picture.redraw();
    }
    const crowd: Crowd | undefined =
      node === null
        ? under(
            event,
            layouts.flatMap(({ crowds }) => crowds),
          )
        : undefined;
    if (node !== null) showTip(event.clientX, event.clientY, [node.name, describe(node)]);
    else if (crowd !== undefined) {
      showTip(event.clientX, event.clientY, [
        `other frames of ${crowd.node.name}, too narrow to draw`,
        `${percent(crowd.weight / (weight(all) || 1))} of all; click ${crowd.node.name} to enlarge it`,
      ]);
    } else hideTip();
  });
  picture.canvas.addEventListener("mouseleave", () => {
    hover = null;
    list.light(undefined);
    hideTip();
    picture.redraw();
  });
  let clicked: Node | null = null;
  picture.canvas.addEventListener("click", (event) => {
    // The first of two clicks enlarges the frame, which then may be elsewhere.
    if (event.detail > 1) return;
    clicked = at(event);
    if (clicked !== null && clicked !== shown) show(clicked);
  });
  const chooseIfFunction = (node: Node | null): void => {
    if (node !== null && node.name !== of && list.has(node.name)) choose(node.name);
  };
  picture.canvas.addEventListener("dblclick", () => chooseIfFunction(clicked));
  /** The frame that an arrow key goes to. */
  function neighbour(key: string): Node | undefined {
    const above = isAbove(focus);
    const inward = focus.parent === sides?.callers ? root : (focus.parent ?? focus);
    if (key === "ArrowDown") return above ? inward : (sorted(focus)[0] ?? focus);
    if (key === "ArrowUp" && focus === root) return sides === undefined ? root : (sorted(sides.callers)[0] ?? root);
    if (key === "ArrowUp") return above ? (sorted(focus)[0] ?? focus) : inward;
    if (key !== "ArrowLeft" && key !== "ArrowRight") return undefined;
    const siblings = focus.parent === null || focus === shown ? [focus] : sorted(focus.parent);
    return siblings[siblings.indexOf(focus) + (key === "ArrowLeft" ? -1 : 1)] ?? focus;
  }
  picture.canvas.addEventListener("keydown", (event) => {
    const next = neighbour(event.key);
    if (next !== undefined) focus = next;
    else if (event.key === "Enter") return show(focus);
    else if (event.key === "c") return chooseIfFunction(focus);
    else if (event.key !== "Escape") return;
    else if (shown === root && of !== undefined) return choose(undefined);
    else {
      const outer = shown.parent ?? shown;
      return show(outer === sides?.callers ? root : outer);
    }
    event.preventDefault();
    draw();
  });

  const inverted = h("input", {
    type: "checkbox",
    change: () => {
      isInverted = inverted.checked;
      regroup();
    },
  });
  const alone = h("span");
  const chips = columnChips(page, known, (columns) => {
    by = columns;
    regroup();
  });
  chips.show(by);
  const search = searchField("Search functions", (text) => {
    words = text;
    draw();
  });
  draw();
  const element = h(
    "section",
    {},
    h(
      "div",
      { class: "tools" },
      h("span", {}, "by ", chips.element),
      h("label", { title: "From the innermost functions to their callers" }, inverted, " inverted"),
      alone,
      search,
      h("button", { click: () => show(root) }, "Reset zoom"),
      found,
    ),
    h(
      "div",
      { class: "legend" },
      ...[
        ["group", "group"],
        ["user", "user mode"],
        ["kernel", "kernel"],
        ["xen", "Xen"],
        ["found", "search match"],
      ].map(([kind, text]) => h("span", {}, h("i", { style: `background:var(--${kind})` }), text)),
      h("span", { class: "soft" }, "click a frame to enlarge it; double click a function for its callers and callees"),
    ),
    crumbs,
    h("div", { class: "beside" }, h("div", {}, picture.canvas, about, code.element), list.element),
  );
  return { element, restore };
}
