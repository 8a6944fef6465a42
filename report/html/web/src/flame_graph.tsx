// The picture of a flame graph: frames that can be pointed at, clicked, and reached by keys. It grows downwards; of one
// function it is a sandwich: its callers above it, what it called below.
import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import { Canvas, Size, colour, pointIn } from "./canvas";
import { Frame, Layout, ROW, boxAt, frameText, layOut, rowsOf } from "./flame_layout";
import type { Node } from "./flame_tree";
import { percent } from "./format";
import { hideTip, showTip } from "./tip";

export interface Trees {
  /** The root of the frames that grow downwards. */
  root: Frame;
  /** That of those that grow upwards. */
  callers?: Frame;
}
/** The outermost frame of the tree that the frame is in. */
export const rootOf = (frame: Frame): Frame => frame.ancestors()[frame.depth];

interface Marks {
  isHit: (node: Node) => boolean;
  isEdged: (frame: Frame) => boolean;
  isFaded: (frame: Frame) => boolean;
}

/** Paints the frames of a layout; faded are those that only lead to what is enlarged. */
function paint(context: CanvasRenderingContext2D, { boxes, crowds }: Layout, marks: Marks): void {
  const [ink, edge] = [colour("frame-fg"), colour("fg")];
  const colours: Record<string, string> = {};
  for (const kind of ["group", "user", "kernel", "xen", "found"]) colours[kind] = colour(kind);
  for (const box of boxes) {
    const { frame, x, y, w } = box;
    const hit = marks.isHit(frame.data);
    const faded = marks.isFaded(frame);
    context.globalAlpha = faded ? 0.45 : 1;
    context.fillStyle = (hit ? colours.found : colours[frame.data.kind]) ?? "#999";
    context.fillRect(x, y, Math.max(w - (w > 3 ? 1 : 0), 0.4), ROW - 1);
    context.globalAlpha = 1;
    if (marks.isEdged(frame)) {
      context.strokeStyle = edge;
      context.lineWidth = 1.5;
      context.strokeRect(x + 0.75, y + 0.75, Math.max(w - 2.5, 0.5), ROW - 2.5);
    }
    const { name } = frame.data;
    const short = /:\d+$/.test(name) ? name.replace(/^.*\//, "") : name; // a line without directories
    frameText(context, short, hit || faded ? edge : ink, box);
  }
  context.globalAlpha = 0.3;
  for (const { frame, x, y, w } of crowds) {
    context.fillStyle = colours[frame.data.kind] ?? "#999";
    context.fillRect(x, y, w, ROW - 1);
  }
  context.globalAlpha = 1;
}

interface Props {
  trees: Trees;
  /** The frame that is enlarged. */
  shown: Frame;
  /** The frame whose figures are said; the arrow keys move it. */
  focus: Frame;
  /** Whether all frames are of one function. */
  isAlone: boolean;
  isHit: (node: Node) => boolean;
  describe: (frame: Frame) => string;
  point: (frame: Frame | undefined) => void;
  move: (focus: Frame) => void;
  show: (frame: Frame) => void;
  /** Shows the function between its callers and callees; undefined: all functions. */
  choose: (name: string | undefined) => void;
}

/** The frame that an arrow key goes to; undefined: it is none. */
function neighbour(key: string, focus: Frame, shown: Frame, { root, callers }: Trees): Frame | undefined {
  const isAbove = callers !== undefined && rootOf(focus) === callers;
  const outward = focus.children?.[0] ?? focus;
  const inward = focus.parent === callers ? root : (focus.parent ?? focus);
  if (key === "ArrowDown") return isAbove ? inward : outward;
  if (key === "ArrowUp" && focus === root) return callers?.children?.[0] ?? root;
  if (key === "ArrowUp") return isAbove ? outward : inward;
  if (key !== "ArrowLeft" && key !== "ArrowRight") return undefined;
  const siblings = focus.parent === null || focus === shown ? [focus] : (focus.parent.children ?? []);
  return siblings[siblings.indexOf(focus) + (key === "ArrowLeft" ? -1 : 1)] ?? focus;
}

export function FlameGraph(props: Props): JSX.Element {
  const { trees, shown, focus, isAlone, isHit, describe, point, move, show, choose } = props;
  const { root, callers } = trees;
  const [hover, setHover] = useState<Frame>();
  const clicked = useRef<Frame | undefined>(undefined);
  const top = rootOf(shown);
  /** What is enlarged of a tree. */
  const shownOf = (tree: Frame): Frame => (top === tree ? shown : tree);
  const above = callers === undefined ? 0 : rowsOf(shownOf(callers)) - 1;
  const layouts = (width: number): Layout[] => [
    ...(callers === undefined ? [] : [layOut(callers, shownOf(callers), width, above * ROW, -ROW)]),
    layOut(root, shownOf(root), width, above * ROW, ROW),
  ];

  function draw(context: CanvasRenderingContext2D, { width, height }: Size): void {
    const leading = new Set(shown.ancestors().slice(1));
    context.fillStyle = colour("bg");
    context.fillRect(0, 0, width, height);
    for (const layout of layouts(width))
      paint(context, layout, {
        isHit,
        isEdged: (frame) => hover === frame || focus === frame || (frame.parent === null && isAlone),
        isFaded: (frame) => leading.has(frame),
      });
  }
  /** The frame at a point; the one function that is between two trees is of the lower. */
  function at(event: MouseEvent, of: Layout[]): Frame | undefined {
    const found = boxAt(
      of.flatMap(({ boxes }) => boxes),
      pointIn(event),
    )?.frame;
    return found !== undefined && found === callers ? root : found;
  }
  const layoutsOf = (event: MouseEvent): Layout[] => layouts((event.currentTarget as Element).clientWidth);
  function onMove(event: MouseEvent): void {
    const of = layoutsOf(event);
    const frame = at(event, of);
    if (frame !== hover) {
      setHover(frame);
      point(frame);
    }
    if (frame !== undefined) return showTip(event.clientX, event.clientY, [frame.data.name, describe(frame)]);
    const crowd = boxAt(
      of.flatMap(({ crowds }) => crowds),
      pointIn(event),
    );
    if (crowd === undefined) return hideTip();
    const { name } = crowd.frame.data;
    showTip(event.clientX, event.clientY, [
      `other frames of ${name}, too narrow to draw`,
      `${percent(crowd.weight / (root.value || 1))} of ${root.data.name}; click ${name} to enlarge it`,
    ]);
  }
  function onKey(event: KeyboardEvent): void {
    const next = neighbour(event.key, focus, shown, trees);
    const outer = shown.parent ?? shown;
    if (next !== undefined) move(next);
    else if (event.key === "Enter") show(focus);
    else if (event.key === "c") choose(focus.data.name);
    else if (event.key !== "Escape") return;
    else if (shown === root && isAlone) choose(undefined);
    else show(outer === callers ? root : outer);
    event.preventDefault();
  }
  return (
    <Canvas
      height={Math.max((above + rowsOf(shownOf(root))) * ROW + 4, 120)}
      label="Flame graph; arrow keys move, Enter enlarges, Escape goes back, c shows callers and callees"
      draw={draw}
      onMouseMove={onMove}
      onMouseLeave={() => {
        setHover(undefined);
        point(undefined);
        hideTip();
      }}
      onClick={(event) => {
        // The first of two clicks enlarges the frame, which then may be elsewhere.
        if (event.detail > 1) return;
        clicked.current = at(event, layoutsOf(event));
        if (clicked.current !== undefined && clicked.current !== shown) show(clicked.current);
      }}
      onDblClick={() => {
        if (clicked.current !== undefined) choose(clicked.current.data.name);
      }}
      onKeyDown={onKey}
    />
  );
}
