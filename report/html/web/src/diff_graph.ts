// The differences of two profiles as a flame graph: as wide as the larger of both, coloured where they differ.
import { Diff, DiffRow, Page } from "./data";
import { CanvasView, colour, h, hideTip, showTip } from "./dom";
import { Layout, ROW, layOut, rowsOf } from "./flame_layout";
import { Node } from "./flame_tree";

/** Rows whose corrected p is below this are coloured. */
const SIGNIFICANT = 0.05;

type Leaf = Node & { row?: DiffRow };
const number = (row: DiffRow, key: string): number => Number(row[key] ?? 0);

function newNode(name: string, parent: Leaf | null): Leaf {
  return { name, kind: "group", samples: 0, cycles: 0, children: new Map(), parent };
}

/** The rows by their columns; a node's `samples` are the larger of both sides, summed over its rows. */
function treeOf(diff: Diff, by: string[]): Leaf {
  const root = newNode("all", null);
  for (const row of diff.rows) {
    const width = Math.max(number(row, "before"), number(row, "after"));
    let node = root;
    node.samples += width;
    for (const column of by) {
      const name = String(row[column] ?? "");
      let child = node.children.get(name);
      if (child === undefined) node.children.set(name, (child = newNode(name, node)));
      node = child;
      node.samples += width;
    }
    node.row = row;
  }
  return root;
}

/** The graph; `choose` gets the name of a frame that was clicked. */
export function diffGraph(
  page: Page,
  diff: Diff,
  figure: (value: number) => string,
  choose: (name: string) => void,
): HTMLElement {
  const root = treeOf(diff, page.by);
  const weight = (node: Node): number => node.samples;
  let layout: Layout = { boxes: [], crowds: [] };
  const most = diff.rows.reduce((max, row) => Math.max(max, Math.abs(number(row, "difference"))), 0);
  const picture = new CanvasView((context) => {
    layout = layOut(root, root, weight, picture.width, 0, ROW);
    context.font = `13px ui-monospace, "DejaVu Sans Mono", monospace`;
    context.textBaseline = "middle";
    const letter = context.measureText("m").width;
    const [ground, more, less, ink] = ["group", "exit", "running", "fg"].map(colour);
    for (const { node, x, y, w } of layout.boxes) {
      const { row } = node as Leaf;
      context.fillStyle = ground;
      context.fillRect(x, y, Math.max(w - (w > 3 ? 1 : 0), 0.4), ROW - 1);
      if (row !== undefined && number(row, "p") < SIGNIFICANT) {
        const difference = number(row, "difference");
        context.globalAlpha = 0.25 + 0.55 * Math.sqrt(Math.abs(difference) / (most || 1));
        context.fillStyle = difference > 0 ? more : less;
        context.fillRect(x, y, Math.max(w - (w > 3 ? 1 : 0), 0.4), ROW - 1);
        context.globalAlpha = 1;
      }
      const room = Math.floor((w - 8) / letter);
      if (room < 3) continue;
      context.fillStyle = ink;
      context.fillText(node.name.length <= room ? node.name : `${node.name.slice(0, room - 1)}…`, x + 4, y + ROW / 2);
    }
  });
  picture.setHeight(rowsOf(root, root) * ROW + 4);
  const { canvas } = picture;
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", "Differences as a flame graph; the table has the same rows");
  const at = (event: MouseEvent): Leaf | undefined => {
    const box = canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    return layout.boxes.find((b) => y >= b.y && y < b.y + ROW && x >= b.x && x < b.x + Math.max(b.w, 1))?.node;
  };
  canvas.addEventListener("pointermove", (event) => {
    const node = at(event);
    if (node === undefined) return hideTip();
    const { row } = node;
    const p = row === undefined ? 1 : number(row, "p");
    showTip(event.clientX, event.clientY, [
      node.name,
      ...(row === undefined
        ? []
        : [
            `${figure(number(row, "before"))} before, ${figure(number(row, "after"))} after`,
            `difference ${figure(number(row, "difference"))}, ` +
              `95 % interval: ${figure(number(row, "low"))} to ${figure(number(row, "high"))}`,
            p < SIGNIFICANT ? `more than chance: p ${p < 0.001 ? "<0.001" : p.toFixed(3)}` : "may be chance",
          ]),
    ]);
  });
  canvas.addEventListener("pointerleave", hideTip);
  canvas.addEventListener("click", (event) => {
    const node = at(event);
    if (node !== undefined) choose(node === root ? "" : node.name);
  });
  return h(
    "div",
    { id: "diff-graph" },
    h(
      "div",
      { class: "legend" },
      ...[
        ["exit", "more after"],
        ["running", "less after"],
        ["group", "may be chance (corrected p ≥ 0.05), or a group"],
      ].map(([name, text]) => h("span", {}, h("i", { style: `background:var(--${name})` }), text)),
      h("span", { class: "soft" }, "as wide as the larger of before and after; click to filter the table"),
    ),
    canvas,
  );
}
