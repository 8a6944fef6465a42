// The differences of two profiles as a flame graph: as wide as the larger of both, coloured where they differ.
import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { Canvas, Size, colour, pointIn } from "./canvas";
import type { Diff, DiffRow, Page } from "./data";
import { Box, ROW, boxAt, frameText, layOut, partitioned } from "./flame_layout";
import type { Node } from "./flame_tree";
import { Legend } from "./parts";
import { hideTip, showTip } from "./tip";

/** Rows whose corrected p is below this are coloured. */
export const SIGNIFICANT = 0.05;

type Leaf = Node & { row?: DiffRow };
export const numberOf = (row: DiffRow, key: string): number => Number(row[key] ?? 0);

function newNode(name: string, parent: Leaf | null): Leaf {
  return { name, kind: "group", samples: 0, cycles: 0, children: new Map(), parent };
}

/** The rows by their columns; a node's `samples` are the larger of both sides, summed over its rows. */
function treeOf(diff: Diff, by: string[]): Leaf {
  const root = newNode("all", null);
  for (const row of diff.rows) {
    const width = Math.max(numberOf(row, "before"), numberOf(row, "after"));
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

const LEGEND: [colour: string, words: string][] = [
  ["exit", "more after"],
  ["running", "less after"],
  ["group", "may be chance (corrected p ≥ 0.05), or a group"],
];

/** The graph; `choose` gets the name of a frame that was clicked, nothing for the whole. */
export function DiffGraph(props: {
  page: Page;
  diff: Diff;
  figure: (value: number) => string;
  choose: (name: string) => void;
}): JSX.Element {
  const { page, diff, figure, choose } = props;
  const tree = useMemo(() => partitioned(treeOf(diff, page.by), (node) => node.samples), [diff, page]);
  const most = useMemo(
    () => diff.rows.reduce((max, row) => Math.max(max, Math.abs(numberOf(row, "difference"))), 0),
    [diff],
  );
  const boxes = (width: number): Box[] => layOut(tree, tree, width, 0, ROW).boxes;

  function draw(context: CanvasRenderingContext2D, { width }: Size): void {
    const [ground, more, less, ink] = ["group", "exit", "running", "fg"].map(colour);
    for (const { frame, x, y, w } of boxes(width)) {
      const { row } = frame.data as Leaf;
      context.fillStyle = ground;
      context.fillRect(x, y, Math.max(w - (w > 3 ? 1 : 0), 0.4), ROW - 1);
      if (row !== undefined && numberOf(row, "p") < SIGNIFICANT) {
        const difference = numberOf(row, "difference");
        context.globalAlpha = 0.25 + 0.55 * Math.sqrt(Math.abs(difference) / (most || 1));
        context.fillStyle = difference > 0 ? more : less;
        context.fillRect(x, y, Math.max(w - (w > 3 ? 1 : 0), 0.4), ROW - 1);
        context.globalAlpha = 1;
      }
      frameText(context, frame.data.name, ink, { x, y, w });
    }
  }
  const at = (event: MouseEvent): Leaf | undefined =>
    boxAt(boxes((event.currentTarget as Element).clientWidth), pointIn(event))?.frame.data;
  function point(event: PointerEvent): void {
    const node = at(event);
    if (node === undefined) return hideTip();
    const { row } = node;
    const p = row === undefined ? 1 : numberOf(row, "p");
    showTip(event.clientX, event.clientY, [
      node.name,
      ...(row === undefined
        ? []
        : [
            `${figure(numberOf(row, "before"))} before, ${figure(numberOf(row, "after"))} after`,
            `difference ${figure(numberOf(row, "difference"))}, ` +
              `95 % interval: ${figure(numberOf(row, "low"))} to ${figure(numberOf(row, "high"))}`,
            p < SIGNIFICANT ? `more than chance: p ${p < 0.001 ? "<0.001" : p.toFixed(3)}` : "may be chance",
          ]),
    ]);
  }
  return (
    <div id="diff-graph">
      <Legend of={LEGEND}>
        <span class="soft">as wide as the larger of before and after; click to filter the table</span>
      </Legend>
      <Canvas
        height={(tree.height + 1) * ROW + 4}
        label="Differences as a flame graph; the table has the same rows"
        draw={draw}
        onPointerMove={point}
        onPointerLeave={hideTip}
        onClick={(event) => {
          const node = at(event);
          if (node !== undefined) choose(node === tree.data ? "" : node.name);
        }}
      />
    </div>
  );
}
