// The profile as a flame graph by any grouping. It grows downwards; a click enlarges a frame.
import { columnChips, columnsOf, parseColumns } from "./columns";
import { Flame, NO_LINE, Page, stackFrames } from "./data";
import { CanvasView, Child, colour, count, h, hideTip, percent, searchField, short, showTip } from "./dom";
import { functionList } from "./functions";
import { Remember, State, View } from "./view";

interface Node {
  name: string;
  kind: string;
  samples: number;
  cycles: number;
  children: Map<string, Node>;
  parent: Node | null;
}

/** What the graph is by at first, and those of it that the page has. */
const FIRST = ["domain", "mode", "function", "line"];

function newNode(name: string, kind: string, parent: Node | null): Node {
  return { name, kind, samples: 0, cycles: 0, children: new Map(), parent };
}

/** The frames of a row for one of the columns: names, and the kinds that colour them. */
function framesOf(flame: Flame, row: number[], by: string[], column: string, mode: string): [string, string][] {
  const at = flame.columns.indexOf(column === "function" ? "stack" : column);
  const value = row[at] ?? 0;
  if (column !== "function") {
    const name = flame.strings[value] ?? "";
    if (column === "line") return name === NO_LINE ? [] : [[name, mode]];
    return [column === "mode" ? [`[${name}]`, name] : [name, "group"]];
  }
  return stackFrames(flame, value)
    .filter((frame) => !(frame.kind === "exit" && by.includes("exit")))
    .map((frame) => [frame.name, frame.mode]);
}

/** How the stacks of a tree are read. */
interface Reading {
  /** From the innermost function to its callers. */
  inverted: boolean;
  /** Only stacks with this function, from it on: what it called, or its callers. */
  of?: string;
}

/** The frames of a row, from the root of the tree on; none if the row is not in the tree. */
function pathOf(
  flame: Flame,
  row: number[],
  by: string[],
  mode: string,
  { inverted, of }: Reading,
): [string, string][] {
  const frames = (columns: string[]): [string, string][] =>
    columns.flatMap((column) => framesOf(flame, row, by, column, mode));
  if (!inverted && of === undefined) return frames(by);
  const stack = frames(["function"]);
  const names = stack.map(([name]) => name);
  const groups = by.filter((column) => column !== "function" && column !== "line");
  if (of !== undefined && !names.includes(of)) return [];
  if (!inverted) return [...stack.slice(names.indexOf(of ?? "")), ...frames(by.filter((column) => column === "line"))];
  const end = of === undefined ? stack.length : names.lastIndexOf(of) + 1;
  return [...stack.slice(0, end).reverse(), ...frames(groups)];
}

export function tree(flame: Flame, by: string[], reading: Reading = { inverted: false }): Node {
  const root = newNode("all", "group", null);
  const samplesAt = flame.columns.length;
  const modeAt = flame.columns.indexOf("mode");
  for (const row of flame.rows) {
    const mode = flame.strings[row[modeAt] ?? 0] ?? "";
    const path: Node[] = [root];
    let node = root;
    const frames = pathOf(flame, row, by, mode, reading);
    if (frames.length === 0) continue;
    for (const [name, kind] of frames) {
      const key = `${kind} ${name}`;
      let child = node.children.get(key);
      if (child === undefined) {
        child = newNode(name, kind, node);
        node.children.set(key, child);
      }
      node = child;
      path.push(node);
    }
    for (const each of path) {
      each.samples += row[samplesAt] ?? 0;
      each.cycles += row[samplesAt + 1] ?? 0;
    }
  }
  return root;
}

export function flameView(page: Page, flame: Flame, remember: Remember): View {
  const ROW = 21;
  const known = columnsOf(flame);
  const first = FIRST.filter((column) => known.includes(column));
  let by = first;
  let reading: Reading = { inverted: false };
  let root = tree(flame, by);
  let shown = root;
  let words = "";
  let hover: Node | null = null;
  let focus: Node = root;
  let boxes: { node: Node; x: number; y: number; w: number }[] = [];
  // Adjacent frames that are too narrow to draw.
  let crowds: { node: Node; x: number; y: number; w: number; weight: number }[] = [];
  const weight = (node: Node): number => (page.is_time ? node.cycles : node.samples);
  const sorted = (node: Node): Node[] => [...node.children.values()].sort((a, b) => weight(b) - weight(a));
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
    (name) => read({ ...reading, of: name }),
  );

  const about = h("div", { class: "about", "aria-live": "polite" });
  const found = h("span", { class: "soft" });
  const crumbs = h("div", { class: "crumbs" });

  function describe(node: Node): string {
    const cycles = page.is_time ? `, ${short(node.cycles)} cycles` : "";
    const whole = weight(root) || 1;
    const part = weight(shown) || 1;
    const within = shown === root ? "" : `, ${percent(weight(node) / part)} of ${shown.name}`;
    const all = reading.of ?? "all";
    return `${percent(weight(node) / whole)} of ${all}${within}; ${count(node.samples)} samples${cycles}`;
  }

  function depthOf(node: Node): number {
    let deepest = 0;
    for (const child of node.children.values()) deepest = Math.max(deepest, depthOf(child));
    return deepest + 1;
  }

  const picture = new CanvasView((context) => {
    boxes = [];
    crowds = [];
    context.font = `13px ui-monospace, "DejaVu Sans Mono", monospace`;
    context.textBaseline = "middle";
    const letter = context.measureText("m").width;
    const background = colour("bg");
    const ink = colour("frame-fg");
    const edge = colour("fg");
    const colours: Record<string, string> = {};
    for (const kind of ["group", "user", "kernel", "xen", "found"]) colours[kind] = colour(kind);
    const place = (node: Node, x: number, w: number, y: number): void => {
      boxes.push({ node, x, y, w });
      const hit = matches(node);
      context.fillStyle = (hit ? colours.found : colours[node.kind]) ?? "#999";
      context.fillRect(x, y, Math.max(w - (w > 3 ? 1 : 0), 0.4), ROW - 1);
      if (hover === node || focus === node) {
        context.strokeStyle = edge;
        context.lineWidth = 1.5;
        context.strokeRect(x + 0.75, y + 0.75, Math.max(w - 2.5, 0.5), ROW - 2.5);
      }
      const room = Math.floor((w - 8) / letter);
      if (room >= 3) {
        context.fillStyle = hit ? edge : ink;
        const name = /:\d+$/.test(node.name) ? node.name.replace(/^.*\//, "") : node.name; // a line without directories
        const text = name.length <= room ? name : `${name.slice(0, room - 1)}…`;
        context.fillText(text, x + 4, y + ROW / 2);
      }
      let at = x;
      const whole = weight(node) || 1;
      let rest = [...node.children.values()].reduce((sum, child) => sum + Math.max(weight(child), 0), 0);
      for (const child of sorted(node)) {
        const width = (Math.max(weight(child), 0) / whole) * w;
        if (width < 0.4) break; // all that follow are as narrow
        place(child, at, width, y + ROW);
        at += width;
        rest -= Math.max(weight(child), 0);
      }
      const narrow = (rest / whole) * w; // width of the frames that are too narrow to draw
      if (narrow > 1) {
        crowds.push({ node, x: at, y: y + ROW, w: narrow, weight: rest });
        context.globalAlpha = 0.3;
        context.fillStyle = colours[node.kind] ?? "#999";
        context.fillRect(at, y + ROW, narrow, ROW - 1);
        context.globalAlpha = 1;
      }
    };
    context.fillStyle = background;
    context.fillRect(0, 0, picture.width, picture.height);
    place(shown, 0, picture.width, 0);
  });

  function draw(): void {
    picture.setHeight(Math.max(depthOf(shown) * ROW + 4, 120));
    picture.redraw();
    const path: Node[] = [];
    for (let node: Node | null = shown; node !== null; node = node.parent) path.unshift(node);
    const links: Child[] = [];
    path.forEach((node, i) => {
      if (i > 0) links.push(" › ");
      links.push(i + 1 < path.length ? h("button", { click: () => show(node) }, node.name) : node.name);
    });
    crumbs.replaceChildren(...links.map((link) => (link instanceof window.Node ? link : String(link))));
    alone.replaceChildren(
      reading.of === undefined
        ? ""
        : h(
            "button",
            { click: () => read({ inverted: reading.inverted }), title: "Show all functions" },
            `${reading.inverted ? "callers" : "callees"} of ${reading.of} ×`,
          ),
    );
    about.textContent = `${focus.name}: ${describe(focus)}`;
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
        `matched: ${percent(sum / (weight(shown) || 1))}` + (shown === root ? "" : ` of ${shown.name}`);
    }
  }
  /** The grouping, and the frames from the root to the one that is enlarged. */
  function state(): State {
    const frames: State = [];
    for (let node = shown; node.parent !== null; node = node.parent)
      frames.unshift(["in", `${node.kind} ${node.name}`]);
    const read: State = [
      ...(reading.inverted ? [["inverted", "true"] as [string, string]] : []),
      ...(reading.of === undefined ? [] : [["of", reading.of] as [string, string]]),
    ];
    const grouping: State = by.join() === first.join() ? [] : [["by", by.join()]];
    return [...grouping, ...read, ...frames];
  }
  function show(node: Node): void {
    shown = node;
    focus = node;
    hideTip();
    draw();
    remember(state(), true);
  }
  function restore(wanted: URLSearchParams): void {
    by = parseColumns(wanted.get("by"), known) ?? first;
    chips.show(by);
    reading = { inverted: wanted.get("inverted") === "true", of: wanted.get("of") ?? undefined };
    inverted.checked = reading.inverted;
    root = tree(flame, by, reading);
    if (root.children.size === 0) root = tree(flame, by, (reading = { inverted: reading.inverted }));
    shown = root;
    for (const key of wanted.getAll("in")) shown = shown.children.get(key) ?? shown;
    focus = shown;
    draw();
    remember(state(), false);
  }
  function under<Box extends { x: number; y: number; w: number }>(event: MouseEvent, all: Box[]): Box | undefined {
    const box = picture.canvas.getBoundingClientRect();
    const x = event.clientX - box.left;
    const y = event.clientY - box.top;
    return all.find((b) => y >= b.y && y < b.y + ROW && x >= b.x && x < b.x + Math.max(b.w, 1));
  }
  const at = (event: MouseEvent): Node | null => under(event, boxes)?.node ?? null;
  picture.canvas.setAttribute("role", "img");
  picture.canvas.setAttribute("aria-label", "Flame graph; arrow keys move, Enter enlarges, Escape goes back");
  picture.canvas.addEventListener("mousemove", (event) => {
    const node = at(event);
    if (node !== hover) {
      hover = node;
      list.light(node?.name);
      picture.redraw();
    }
    const crowd = node === null ? under(event, crowds) : undefined;
    if (node !== null) showTip(event.clientX, event.clientY, [node.name, describe(node)]);
    else if (crowd !== undefined) {
      showTip(event.clientX, event.clientY, [
        `other frames of ${crowd.node.name}, too narrow to draw`,
        `${percent(crowd.weight / (weight(root) || 1))} of all; click ${crowd.node.name} to enlarge it`,
      ]);
    } else hideTip();
  });
  picture.canvas.addEventListener("mouseleave", () => {
    hover = null;
    list.light(undefined);
    hideTip();
    picture.redraw();
  });
  picture.canvas.addEventListener("click", (event) => {
    const node = at(event);
    if (node !== null) show(node);
  });
  picture.canvas.addEventListener("keydown", (event) => {
    const siblings = focus.parent === null || focus === shown ? [focus] : sorted(focus.parent);
    const i = siblings.indexOf(focus);
    if (event.key === "ArrowDown") focus = sorted(focus)[0] ?? focus;
    else if (event.key === "ArrowUp") focus = focus === shown ? focus : (focus.parent ?? focus);
    else if (event.key === "ArrowLeft") focus = siblings[i - 1] ?? focus;
    else if (event.key === "ArrowRight") focus = siblings[i + 1] ?? focus;
    else if (event.key === "Enter") return show(focus);
    else if (event.key === "Escape") return show(shown.parent ?? shown);
    else return;
    event.preventDefault();
    draw();
  });

  function regroup(): void {
    root = tree(flame, by, reading);
    show(root);
  }
  function read(next: Reading): void {
    reading = next;
    regroup();
  }
  const inverted = h("input", { type: "checkbox", change: () => read({ ...reading, inverted: inverted.checked }) });
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
    ),
    crumbs,
    h("div", { class: "beside" }, h("div", {}, picture.canvas, about), list.element),
  );
  return { element, restore };
}
