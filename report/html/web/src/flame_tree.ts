// The profile as a tree of frames: from the roots of stacks, from their leaves, or from one function.
import { Flame, NO_LINE, stackFrames, subreasonOf } from "./data";

export interface Node {
  name: string;
  kind: string;
  samples: number;
  cycles: number;
  children: Map<string, Node>;
  parent: Node | null;
}

/** A name, and the kind that colours it. */
type Frame = [name: string, kind: string];

/** The frames of a row for one of the columns. */
function framesOf(flame: Flame, row: number[], by: string[], column: string): Frame[] {
  const mode = flame.strings[row[flame.columns.indexOf("mode")] ?? 0] ?? "";
  if (column === "subreason") return [[subreasonOf(flame, row[flame.columns.indexOf("stack")] ?? 0), "group"]];
  const value = row[flame.columns.indexOf(column === "function" ? "stack" : column)] ?? 0;
  if (column !== "function") {
    const name = flame.strings[value] ?? "";
    if (column === "line") return name === NO_LINE ? [] : [[name, mode]];
    return [column === "mode" ? [`[${name}]`, name] : [name, "group"]];
  }
  return stackFrames(flame, value)
    .filter((frame) => frame.kind === "function" || frame.kind === "inlined" || !by.includes(frame.kind))
    .map((frame) => [frame.name, frame.mode]);
}

/** A tree of the paths of rows; a row without a path is not in it. */
function grow(root: Node, flame: Flame, pathOf: (row: number[]) => Frame[] | undefined): Node {
  const samplesAt = flame.columns.length;
  const add = (node: Node, row: number[]): void => {
    node.samples += row[samplesAt] ?? 0;
    node.cycles += row[samplesAt + 1] ?? 0;
  };
  for (const row of flame.rows) {
    const path = pathOf(row);
    if (path === undefined) continue;
    let node = root;
    add(node, row);
    for (const [name, kind] of path) {
      const key = `${kind} ${name}`;
      let child = node.children.get(key);
      if (child === undefined) node.children.set(key, (child = newNode(name, kind, node)));
      add((node = child), row);
    }
  }
  return root;
}

function newNode(name: string, kind: string, parent: Node | null): Node {
  return { name, kind, samples: 0, cycles: 0, children: new Map(), parent };
}
const isGroup = (column: string): boolean => column !== "function" && column !== "line";

/** From the first column down to the innermost functions and their lines. */
export function flameTree(flame: Flame, by: string[]): Node {
  return grow(newNode("all", "group", null), flame, (row) => by.flatMap((column) => framesOf(flame, row, by, column)));
}

/** From the innermost functions to their callers, then the groups. */
export function invertedTree(flame: Flame, by: string[]): Node {
  return grow(newNode("all", "group", null), flame, (row) => [
    ...framesOf(flame, row, by, "function").reverse(),
    ...by.filter(isGroup).flatMap((column) => framesOf(flame, row, by, column)),
  ]);
}

/** The trees on both sides of a function, which is the root of both. */
export interface Sandwich {
  callers: Node;
  callees: Node;
}

/**
 * What called a function, then the groups; and what it called, with lines. A function that is in a stack several times
 * is taken at its outermost place, so that each sample counts once. Undefined: no stack has it.
 */
export function sandwich(flame: Flame, by: string[], name: string): Sandwich | undefined {
  const placeIn = (stack: Frame[]): number => stack.findIndex(([each]) => each === name);
  let kind: string | undefined;
  const side = (pathOf: (row: number[], stack: Frame[], at: number) => Frame[]): Node =>
    grow(newNode(name, "", null), flame, (row) => {
      const stack = framesOf(flame, row, by, "function");
      const at = placeIn(stack);
      if (at < 0) return undefined;
      kind ??= stack[at][1];
      return pathOf(row, stack, at);
    });
  const callers = side((row, stack, at) => [
    ...stack.slice(0, at).reverse(),
    ...by.filter(isGroup).flatMap((column) => framesOf(flame, row, by, column)),
  ]);
  const callees = side((row, stack, at) => [
    ...stack.slice(at + 1),
    ...(by.includes("line") ? framesOf(flame, row, by, "line") : []),
  ]);
  if (kind === undefined) return undefined;
  callers.kind = callees.kind = kind;
  return { callers, callees };
}

/** The frames from the root to the node, both included. */
export function pathTo(node: Node): Node[] {
  const path: Node[] = [];
  for (let each: Node | null = node; each !== null; each = each.parent) path.unshift(each);
  return path;
}
