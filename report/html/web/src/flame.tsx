// The profile as a flame graph by any grouping, with the functions and the code of one beside it.
import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { CodePanel } from "./code";
import { ColumnChips, columnsOf, parseColumns } from "./columns";
import type { Flame, Page } from "./data";
import { FlameGraph, Trees, rootOf } from "./flame_graph";
import { Frame, partitioned } from "./flame_layout";
import { Node, flameTree, invertedTree, sandwich } from "./flame_tree";
import { count, percent, short } from "./format";
import { FunctionList, functionsOf } from "./functions";
import { Legend, SearchField } from "./parts";
import { hideTip } from "./tip";
import { State, ViewProps, changed } from "./view";

/** What the graph is by at first, and those of it that the page has. */
const FIRST = ["domain", "mode", "function", "line"];

const LEGEND: [colour: string, words: string][] = [
  ["group", "group"],
  ["user", "user mode"],
  ["kernel", "kernel"],
  ["xen", "Xen"],
  ["found", "search match"],
];

/** What the graph is of: its columns, and how it is read. */
interface Reading {
  by: string[];
  isInverted: boolean;
  /** The function whose callers and callees are shown; undefined: the graph is of all. */
  of?: string;
}

function treesOf(flame: Flame, { by, isInverted, of }: Reading, weight: (node: Node) => number): Trees {
  const sides = of === undefined ? undefined : sandwich(flame, by, of);
  if (sides !== undefined)
    return { root: partitioned(sides.callees, weight), callers: partitioned(sides.callers, weight) };
  return { root: partitioned(isInverted ? invertedTree(flame, by) : flameTree(flame, by), weight) };
}

const keyOf = ({ data }: Frame): string => `${data.kind} ${data.name}`;

/** The frame that the address names: by its path from the root, down or up. */
function shownFrame({ root, callers }: Trees, query: URLSearchParams): Frame {
  const up = query.getAll("from");
  const isUp = callers !== undefined && up.length > 0;
  let shown = isUp ? callers : root;
  for (const key of isUp ? up : query.getAll("in")) {
    const next = shown.children?.find((child) => keyOf(child) === key);
    if (next === undefined) break;
    shown = next;
  }
  return shown === callers ? root : shown;
}

function stateOf(reading: Reading, first: string[], shown: Frame | undefined, { callers }: Partial<Trees>): State {
  const { by, isInverted, of } = reading;
  const key = shown !== undefined && rootOf(shown) === callers ? "from" : "in";
  const path = shown?.ancestors().reverse().slice(1) ?? [];
  return [
    ...(by.join() === first.join() ? [] : ([["by", by.join()]] as State)),
    ...(isInverted ? ([["inverted", "true"]] as State) : []),
    ...(of === undefined ? [] : ([["of", of]] as State)),
    ...path.map((frame): [string, string] => [key, keyOf(frame)]),
  ];
}

/** The sum of the outermost frames whose names have these words, from a frame on. */
function matched(frame: Frame, words: string): number {
  if (frame.data.name.toLowerCase().includes(words)) return frame.value ?? 0;
  return (frame.children ?? []).reduce((sum, child) => sum + matched(child, words), 0);
}

function Crumbs({ shown, isUp, show }: { shown: Frame; isUp: boolean; show: (frame: Frame) => void }): JSX.Element {
  return (
    <div class="crumbs">
      {shown
        .ancestors()
        .reverse()
        .map((frame, i) => (
          <>
            {i > 0 ? (isUp ? " ‹ " : " › ") : ""}
            {frame === shown ? frame.data.name : <button onClick={() => show(frame)}>{frame.data.name}</button>}
          </>
        ))}
    </div>
  );
}

export function FlameView({ page, flame, query, remember }: { page: Page; flame: Flame } & ViewProps): JSX.Element {
  const known = useMemo(() => columnsOf(flame), [flame]);
  const first = FIRST.filter((column) => known.includes(column));
  const weight = (node: Node): number => (page.is_time ? node.cycles : node.samples);
  const functions = useMemo(() => functionsOf(page, flame), [page, flame]);
  const wanted = query.get("of") ?? undefined;
  const reading: Reading = {
    by: parseColumns(query.get("by"), known) ?? first,
    isInverted: query.get("inverted") === "true",
    of: functions.some(({ name }) => name === wanted) ? wanted : undefined,
  };
  const { by, isInverted, of } = reading;
  const trees = useMemo(() => treesOf(flame, reading, weight), [flame, by.join(), isInverted, of]);
  const all = useMemo(
    () => flame.rows.reduce((sum, row) => sum + row[flame.columns.length + (page.is_time ? 1 : 0)], 0),
    [flame],
  );
  const shown = useMemo(() => shownFrame(trees, query), [trees, query]);
  const [moved, move] = useState<Frame>(shown);
  // The arrow keys begin anew at what is enlarged.
  const [enlarged, setEnlarged] = useState(shown);
  if (enlarged !== shown) {
    setEnlarged(shown);
    move(shown);
  }
  const focus = enlarged === shown ? moved : shown;
  const [lit, light] = useState<string>();
  const words = (query.get("find") ?? "").toLowerCase();

  const value = (frame: Frame): number => frame.value ?? 0;
  function describe(frame: Frame): string {
    const parts = [`${percent(value(frame) / (all || 1))} of all`];
    if (of !== undefined && frame.parent !== null)
      parts.push(`${percent(value(frame) / (value(trees.root) || 1))} of ${of}`);
    if (shown.parent !== null) parts.push(`${percent(value(frame) / (value(shown) || 1))} of ${shown.data.name}`);
    const cycles = page.is_time ? `, ${short(frame.data.cycles)} cycles` : "";
    return `${parts.join(", ")}; ${count(frame.data.samples)} samples${cycles}`;
  }
  const find: State = words === "" ? [] : [["find", query.get("find") ?? ""]];
  function show(frame: Frame): void {
    hideTip();
    remember([...stateOf(reading, first, frame, trees), ...find], true);
  }
  function read(change: Partial<Reading>): void {
    hideTip();
    remember([...stateOf({ ...reading, ...change }, first, undefined, {}), ...find], true);
  }
  function choose(name: string | undefined): void {
    if (name === undefined || (name !== of && functions.some((row) => row.name === name))) read({ of: name });
  }
  const isUp = trees.callers !== undefined && rootOf(shown) === trees.callers;
  return (
    <section>
      <div class="tools">
        <ColumnChips page={page} known={known} by={by} change={(columns) => read({ by: columns })} />
        <label title="From the innermost functions to their callers">
          <input
            type="checkbox"
            checked={isInverted}
            disabled={of !== undefined}
            onChange={() => read({ isInverted: !isInverted })}
          />
          {" inverted"}
        </label>
        {of === undefined ? null : (
          <button onClick={() => read({ of: undefined })} title="Show all functions">
            {`callers and callees of ${of} ×`}
          </button>
        )}
        <SearchField
          label="Search functions"
          value={query.get("find") ?? ""}
          change={(text) => remember(changed(query, { find: text || undefined }), false)}
        />
        <button onClick={() => show(trees.root)}>Reset zoom</button>
        <span class="soft">
          {words === ""
            ? ""
            : `matched: ${percent(matched(shown, words) / (value(shown) || 1))}` +
              (shown.parent === null && of === undefined ? "" : ` of ${shown.data.name}`)}
        </span>
      </div>
      <Legend of={LEGEND}>
        <span class="soft">click a frame to enlarge it; double click a function for its callers and callees</span>
      </Legend>
      <Crumbs shown={shown} isUp={isUp} show={show} />
      <div class="beside">
        <div>
          <FlameGraph
            trees={trees}
            shown={shown}
            focus={focus}
            isAlone={of !== undefined}
            isHit={({ name }) => (words !== "" && name.toLowerCase().includes(words)) || name === lit}
            describe={describe}
            point={(frame) => light(frame?.data.name)}
            move={move}
            show={show}
            choose={choose}
          />
          <div class="about" aria-live="polite">{`${focus.data.name}: ${describe(focus)}`}</div>
          {of === undefined ? null : <CodePanel key={of} page={page} name={of} />}
        </div>
        <FunctionList
          all={functions}
          lit={lit}
          chosen={of}
          point={light}
          choose={(name) => read({ of: name === of ? undefined : name })}
        />
      </div>
    </section>
  );
}
