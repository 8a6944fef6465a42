// Where the frames of a flame graph are: rows downwards or upwards from a root. d3-hierarchy divides the width.
import { type HierarchyRectangularNode, hierarchy, partition } from "d3-hierarchy";
import type { Node } from "./flame_tree";

export const ROW = 21;
/** Frames narrower than this are not drawn. */
const NARROWEST = 0.4;

/** A node with its place, x0 to x1, in the whole, 0 to 1. */
export type Frame = HierarchyRectangularNode<Node>;

export interface Rectangle {
  x: number;
  y: number;
  w: number;
}
export interface Box extends Rectangle {
  frame: Frame;
}
/** Adjacent frames below a node that are too narrow to draw; `weight` is that of all of them. */
export interface Crowd extends Box {
  weight: number;
}
export interface Layout {
  boxes: Box[];
  crowds: Crowd[];
}

/** The tree, each node as wide as its weight, wider children first. No node weighs less than its children. */
export function partitioned(tree: Node, weight: (node: Node) => number): Frame {
  const root = hierarchy(tree, (node) => node.children.values());
  root.each((node) => ((node as { value: number }).value = Math.max(weight(node.data), 0)));
  root.sort((a, b) => (b.value ?? 0) - (a.value ?? 0));
  return partition<Node>()(root);
}

/** The depth of the deepest frame below `shown`, in rows from the root. */
export const rowsOf = (shown: Frame): number => shown.depth + shown.height + 1;

/**
 * Places the frames from `root` on in [0, width), each row `step` pixels from the one before. The frames from the root
 * to `shown` have the whole width.
 */
export function layOut(root: Frame, shown: Frame, width: number, y: number, step: number): Layout {
  const out: Layout = { boxes: [], crowds: [] };
  for (const frame of shown.ancestors()) out.boxes.push({ frame, x: 0, y: y + frame.depth * step, w: width });
  const scale = width / (shown.x1 - shown.x0 || 1);
  const xOf = (at: number): number => (at - shown.x0) * scale;
  const below = (frame: Frame): void => {
    for (const child of frame.children ?? []) {
      const box = { x: xOf(child.x0), y: y + child.depth * step, w: (child.x1 - child.x0) * scale };
      if (box.w < NARROWEST) {
        // All that follow are as narrow.
        const last = frame.children?.[frame.children.length - 1] ?? child;
        const w = xOf(last.x1) - box.x;
        const weight = ((last.x1 - child.x0) / (root.x1 - root.x0 || 1)) * (root.value ?? 0);
        if (w > 1) out.crowds.push({ ...box, w, frame, weight });
        return;
      }
      out.boxes.push({ ...box, frame: child });
      below(child);
    }
  };
  below(shown);
  return out;
}

/** The first of the boxes that is at a point. */
export const boxAt = <Kind extends Box>(boxes: Kind[], [x, y]: [number, number]): Kind | undefined =>
  boxes.find((b) => y >= b.y && y < b.y + ROW && x >= b.x && x < b.x + Math.max(b.w, 1));

/** Writes the name of a frame into its box, shortened to the room that it has; nothing where there is hardly any. */
export function frameText(context: CanvasRenderingContext2D, name: string, ink: string, { x, y, w }: Rectangle): void {
  context.font = `13px ui-monospace, "DejaVu Sans Mono", monospace`;
  context.textBaseline = "middle";
  const room = Math.floor((w - 8) / context.measureText("m").width);
  if (room < 3) return;
  context.fillStyle = ink;
  context.fillText(name.length <= room ? name : `${name.slice(0, room - 1)}…`, x + 4, y + ROW / 2);
}
