// The profile as a tree by any grouping: an icicle to click into, and a table of its columns.
import { Flame, Page } from "./data";
import { Picture, Child, colour, count, h, hideTip, percent, short, showTip, whisker } from "./dom";

interface Node {
  name: string;
  kind: string;
  samples: number;
  cycles: number;
  children: Map<string, Node>;
  parent: Node | null;
}

const GROUPINGS = [
  "domain,mode,stack",
  "domain,exit,stack",
  "exit,domain,stack",
  "domain,image,stack",
  "mode,stack",
  "domain,exit,mode,stack",
  "domain,vcpu,mode,stack",
];

function newNode(name: string, kind: string, parent: Node | null): Node {
  return { name, kind, samples: 0, cycles: 0, children: new Map(), parent };
}

/** The frames of a row for one column: names and what they are coloured by. */
function framesOf(flame: Flame, row: number[], column: string, mode: string): [string, string][] {
  const at = flame.columns.indexOf(column);
  const value = row[at] ?? 0;
  if (column !== "stack") {
    const name = flame.strings[value] ?? "";
    return [column === "mode" ? [`[${name}]`, name] : [column === "vcpu" ? `vCPU ${name}` : name, "group"]];
  }
  const frames: [string, string][] = [];
  const stack = flame.stacks[value] ?? [];
  for (let i = 0; i + 1 < stack.length; i += 2) {
    frames.push([flame.strings[stack[i] ?? 0] ?? "", ["user", "kernel", "xen"][stack[i + 1] ?? 0] ?? mode]);
  }
  return frames;
}

export function tree(flame: Flame, by: string[]): Node {
  const root = newNode("all", "group", null);
  const samplesAt = flame.columns.length;
  const modeAt = flame.columns.indexOf("mode");
  for (const row of flame.rows) {
    const mode = flame.strings[row[modeAt] ?? 0] ?? "";
    const path: Node[] = [root];
    let node = root;
    for (const column of by) {
      for (const [name, kind] of framesOf(flame, row, column, mode)) {
        const key = `${kind} ${name}`;
        let child = node.children.get(key);
        if (child === undefined) {
          child = newNode(name, kind, node);
          node.children.set(key, child);
        }
        node = child;
        path.push(node);
      }
    }
    for (const each of path) {
      each.samples += row[samplesAt] ?? 0;
      each.cycles += row[samplesAt + 1] ?? 0;
    }
  }
  return root;
}

export function flameView(page: Page, flame: Flame): HTMLElement {
  const ROW = 21;
  const usable = GROUPINGS.filter((text) => text.split(",").every((c) => flame.columns.includes(c)));
  let by = (usable[0] ?? "stack").split(",");
  let root = tree(flame, by);
  let shown = root;
  let words = "";
  let hover: Node | null = null;
  let focus: Node = root;
  let boxes: { node: Node; x: number; y: number; w: number }[] = [];
  const weight = (node: Node): number => (page.is_time ? node.cycles : node.samples);
  const sorted = (node: Node): Node[] => [...node.children.values()].sort((a, b) => weight(b) - weight(a));
  const matches = (node: Node): boolean => words !== "" && node.name.toLowerCase().includes(words);

  const about = h("div", { class: "about", "aria-live": "polite" });
  const found = h("span", { class: "soft" });
  const crumbs = h("div", { class: "crumbs" });

  function describe(node: Node): string {
    const cycles = page.is_time ? `, ${short(node.cycles)} cycles` : "";
    const whole = weight(root) || 1;
    const part = weight(shown) || 1;
    const within = shown === root ? "" : `, ${percent(weight(node) / part)} of ${shown.name}`;
    return `${percent(weight(node) / whole)} of all${within}; ${count(node.samples)} samples${cycles}`;
  }

  function depthOf(node: Node): number {
    let deepest = 0;
    for (const child of node.children.values()) deepest = Math.max(deepest, depthOf(child));
    return deepest + 1;
  }

  const picture = new Picture((context) => {
    boxes = [];
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
        const text = node.name.length <= room ? node.name : `${node.name.slice(0, room - 1)}…`;
        context.fillText(text, x + 4, y + ROW / 2);
      }
      let at = x;
      const whole = weight(node) || 1;
      let rest = [...node.children.values()].reduce((sum, child) => sum + Math.max(weight(child), 0), 0);
      for (const child of sorted(node)) {
        const width = (Math.max(weight(child), 0) / whole) * w;
        if (width < 0.4) break; // and so are all that follow
        place(child, at, width, y + ROW);
        at += width;
        rest -= Math.max(weight(child), 0);
      }
      const narrow = (rest / whole) * w; // of those too narrow to be drawn
      if (narrow > 1) {
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
    about.textContent = `${focus.name}: ${describe(focus)}`;
    if (words === "") {
      found.textContent = "";
    } else {
      let sum = 0;
      const visit = (node: Node): void => {
        if (matches(node)) sum += weight(node);
        else for (const child of node.children.values()) visit(child);
      };
      visit(root);
      found.textContent = `matched: ${percent(sum / (weight(root) || 1))}`;
    }
  }
  function show(node: Node): void {
    shown = node;
    focus = node;
    draw();
  }
  const at = (event: MouseEvent): Node | null => {
    const box = picture.canvas.getBoundingClientRect();
    const x = event.clientX - box.left;
    const y = event.clientY - box.top;
    const hit = boxes.find((b) => y >= b.y && y < b.y + ROW && x >= b.x && x < b.x + Math.max(b.w, 1));
    return hit?.node ?? null;
  };
  picture.canvas.setAttribute("role", "img");
  picture.canvas.setAttribute("aria-label", "Flame graph; arrow keys move, Enter enlarges, Escape goes back");
  picture.canvas.addEventListener("mousemove", (event) => {
    const node = at(event);
    if (node !== hover) {
      hover = node;
      picture.redraw();
    }
    if (node === null) hideTip();
    else showTip(event.clientX, event.clientY, [node.name, describe(node)]);
  });
  picture.canvas.addEventListener("mouseleave", () => {
    hover = null;
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

  const choice = h(
    "select",
    {
      "aria-label": "Grouping",
      change: () => {
        by = choice.value.split(",");
        root = tree(flame, by);
        show(root);
      },
    },
    ...usable.map((text) => h("option", { value: text }, text.replaceAll(",", " › ").replace("stack", "function"))),
  );
  const search = h("input", {
    type: "search",
    class: "search",
    placeholder: "Search functions ( / )",
    "aria-label": "Search functions",
    input: () => {
      words = search.value.toLowerCase();
      draw();
    },
  });
  draw();
  return h(
    "section",
    {},
    h("div", { class: "tools" }, h("label", {}, "by ", choice), search, h("button", { click: () => show(root) }, "Whole"), found),
    h(
      "div",
      { class: "legend" },
      ...[["group", "group"], ["user", "user mode"], ["kernel", "kernel"], ["xen", "Xen"], ["found", "found"]].map(
        ([kind, text]) => h("span", {}, h("i", { style: `background:var(--${kind})` }), text),
      ),
    ),
    crumbs,
    picture.canvas,
    about,
  );
}

interface Sum {
  words: string[];
  samples: number;
  share: number;
  cycles: number;
  low: number;
  high: number;
}

/** The rows of a grouping. Those of the report's own columns have its intervals; else variances add up. */
export function tableRows(page: Page, by: string[]): { rows: Sum[]; exact: boolean } {
  const report = page.report;
  const same = by.length === page.by.length && by.every((column, i) => column === page.by[i]);
  if (report !== undefined && (same || page.flame === undefined)) {
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
  const at = by.map((column) => flame.columns.indexOf(column === "function" ? "stack" : column));
  const sums = new Map<string, Sum & { variance: number }>();
  const figures = flame.columns.length;
  const whole = flame.rows.reduce((sum, row) => sum + (row[figures + (page.is_time ? 1 : 0)] ?? 0), 0) || 1;
  for (const row of flame.rows) {
    const names = at.map((column, i) => {
      const value = row[column] ?? 0;
      if (by[i] !== "function") return flame.strings[value] ?? "";
      const stack = flame.stacks[value] ?? [];
      return flame.strings[stack[stack.length - 2] ?? 0] ?? "";
    });
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

export function tableView(page: Page): HTMLElement {
  const own = page.by.join(",");
  const groupings = [own];
  const flame = page.flame;
  if (flame !== undefined) {
    for (const text of ["domain,function", "function", "domain,exit,function", "exit,function", "exit",
                        "domain,exit", "domain,mode", "image", "domain,image,function", "mode", "domain,vcpu"]) {
      const known = text.split(",").every((c) => flame.columns.includes(c === "function" ? "stack" : c));
      if (known && !groupings.includes(text)) groupings.push(text);
    }
  }
  let by = own.split(",");
  let words = "";
  let sort = "share";
  let descending = true;
  let limit = 200;
  const place = h("div", { class: "scroll" });
  const note = h("span", { class: "soft" });

  function draw(): void {
    const { rows, exact } = tableRows(page, by);
    const shown = rows.filter((row) => words === "" || row.words.some((word) => word.toLowerCase().includes(words)));
    const column = by.indexOf(sort);
    const value = (row: Sum): number =>
      sort === "samples" ? row.samples : sort === "cycles" ? row.cycles : row.share;
    shown.sort((a, b) => {
      const order = column >= 0 ? (a.words[column] ?? "").localeCompare(b.words[column] ?? "") : value(a) - value(b);
      return (descending ? -order : order) || b.share - a.share;
    });
    const most = Math.max(...shown.slice(0, limit).map((row) => row.high), 0);
    const total = shown.reduce((sum, row) => sum + row.samples, 0);
    note.textContent =
      `${count(shown.length)} rows, ${count(Math.round(total * 10) / 10)} samples; intervals: 95 %` +
      (exact ? "" : ", of sums of rows (a little wide)");
    const heading = (name: string, numeric: boolean): HTMLElement =>
      h(
        "th",
        { class: numeric ? "n" : "", title: page.words[name] ?? "",
          "aria-sort": sort === name ? (descending ? "descending" : "ascending") : "none" },
        h("button", {
          tabindex: 0,
          click: () => {
            descending = sort === name ? !descending : numeric;
            sort = name;
            draw();
          },
        }, name, sort === name ? (descending ? " ▾" : " ▴") : ""),
      );
    place.replaceChildren(
      h(
        "table",
        { id: "table-functions" },
        h("thead", {}, h("tr", {}, ...["samples", "share"].map((n) => heading(n, true)),
          h("th", { title: page.words.low ?? "" }, "95 % interval"),
          ...(page.is_time ? [heading("cycles", true)] : []), ...by.map((n) => heading(n, false)))),
        h("tbody", {}, ...shown.slice(0, limit).map((row) =>
          h("tr", {}, h("td", { class: "n" }, count(row.samples)), h("td", { class: "n" }, percent(row.share)),
            h("td", {}, whisker(row.share, row.low, row.high, most)),
            ...(page.is_time ? [h("td", { class: "n" }, short(row.cycles))] : []),
            ...row.words.map((word) => h("td", { class: "name" }, word))))),
      ),
      shown.length > limit
        ? h("p", {}, h("button", { click: () => { limit *= 5; draw(); } }, `${shown.length - limit} more`))
        : "",
    );
  }
  const choice = h("select", { "aria-label": "Columns", change: () => { by = choice.value.split(","); sort = "share"; descending = true; limit = 200; draw(); } },
    ...groupings.map((text) => h("option", { value: text }, text.replaceAll(",", ", "))));
  const search = h("input", { type: "search", class: "search", placeholder: "Filter ( / )", "aria-label": "Filter",
    input: () => { words = search.value.toLowerCase(); draw(); } });
  draw();
  return h("section", {}, h("div", { class: "tools" }, h("label", {}, "by ", choice), search, note), place);
}
