// Where the frames of a flame graph are: rows downwards or upwards from a root.
import { Node, pathTo } from "./flame_tree";

export const ROW = 21;
/** Frames narrower than this are not drawn. */
const NARROWEST = 0.4;

export interface Box {
  node: Node;
  x: number;
  y: number;
  w: number;
}
/** Adjacent frames below a node that are too narrow to draw; `weight` is that of all of them. */
export interface Crowd extends Box {
  weight: number;
}
export interface Layout {
  boxes: Box[];
  crowds: Crowd[];
}
export type Weight = (node: Node) => number;

export const sortedChildren = (node: Node, weight: Weight): Node[] =>
  [...node.children.values()].sort((a, b) => weight(b) - weight(a));

/** Number of rows from `root` to the deepest frame below `shown`. */
export function rowsOf(root: Node, shown: Node): number {
  const deepest = (node: Node): number => 1 + Math.max(0, ...[...node.children.values()].map(deepest));
  return pathTo(shown).length - pathTo(root).length + deepest(shown);
}

/**
 * Places the frames from `root` on in [0, width), each row `step` pixels from the one before. The frames from the root
 * to `shown` have the whole width.
 */
export function layOut(root: Node, shown: Node, weight: Weight, width: number, y: number, step: number): Layout {
  const out: Layout = { boxes: [], crowds: [] };
  const wide = new Set(pathTo(shown));
  const place = (node: Node, x: number, w: number, at: number): void => {
    out.boxes.push({ node, x, y: at, w });
    const next = node === shown ? undefined : [...node.children.values()].find((child) => wide.has(child));
    if (next !== undefined) return place(next, x, w, at + step);
    const whole = weight(node) || 1;
    let right = x;
    let rest = [...node.children.values()].reduce((sum, child) => sum + Math.max(weight(child), 0), 0);
    for (const child of sortedChildren(node, weight)) {
      const own = (Math.max(weight(child), 0) / whole) * w;
      if (own < NARROWEST) break; // all that follow are as narrow
      place(child, right, own, at + step);
      right += own;
      rest -= Math.max(weight(child), 0);
    }
    const narrow = (rest / whole) * w;
    if (narrow > 1) out.crowds.push({ node, x: right, y: at + step, w: narrow, weight: rest });
  };
  place(root, 0, width, y);
  return out;
}
