// The functions beside the flame graph: self and total of each. Pointing at one highlights its frames; pointing at a
// frame highlights its function.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Flame, Page, stackFrames } from "./data";
import { percent } from "./format";
import { choosable } from "./parts";

/** Rows of the list; the rest is small. */
const MOST = 100;

export interface FunctionSums {
  name: string;
  kind: string;
  self: number;
  total: number;
}

/** The functions of all stacks, each counted once in a stack. */
export function functionsOf(page: Page, flame: Flame): FunctionSums[] {
  const at = flame.columns.indexOf("stack");
  const weight = flame.columns.length + (page.is_time ? 1 : 0);
  const rows = new Map<string, FunctionSums>();
  for (const row of flame.rows) {
    const stack = stackFrames(flame, row[at] ?? 0).filter((frame) => frame.kind === "function");
    const seen = new Set<string>();
    stack.forEach(({ name, mode }, i) => {
      const key = `${mode} ${name}`;
      let of = rows.get(key);
      if (of === undefined) rows.set(key, (of = { name, kind: mode, self: 0, total: 0 }));
      if (!seen.has(key)) of.total += row[weight] ?? 0;
      seen.add(key);
      if (i + 1 === stack.length) of.self += row[weight] ?? 0;
    });
  }
  return [...rows.values()];
}

export function FunctionList(props: {
  all: FunctionSums[];
  /** The function that is pointed at, and the one that is shown alone. */
  lit: string | undefined;
  chosen: string | undefined;
  point: (name: string | undefined) => void;
  choose: (name: string) => void;
}): JSX.Element {
  const { all, lit, chosen, point, choose } = props;
  const [by, setBy] = useState<"self" | "total">("self");
  const whole = all.reduce((sum, row) => sum + row.self, 0) || 1;
  const hasChains = all.some((row) => row.total > row.self);
  const sorted = [...all].sort((a, b) => b[by] - a[by] || b.total - a.total);
  const heading = (key: typeof by): JSX.Element => (
    <th class="n" title={key === "self" ? "in the function itself" : "in it and what it called"}>
      <button onClick={() => setBy(key)}>{key}</button>
    </th>
  );
  const cell = (value: number): JSX.Element => (
    <td class="n" style={{ "--part": `${((value / whole) * 100).toFixed(2)}%` }}>
      {percent(value / whole, 1)}
    </td>
  );
  return (
    <div id="functions">
      <table>
        <thead>
          <tr>
            {heading("self")}
            {hasChains ? heading("total") : null}
            <th>function</th>
          </tr>
        </thead>
        <tbody>
          {sorted.slice(0, MOST).map((row) => (
            <tr
              {...choosable(() => choose(row.name))}
              class={["choose", ...(row.name === lit ? ["lit"] : []), ...(row.name === chosen ? ["chosen"] : [])].join(
                " ",
              )}
              title={`Callers and callees of ${row.name}`}
              onPointerEnter={() => point(row.name)}
              onPointerLeave={() => point(undefined)}
            >
              {cell(row.self)}
              {hasChains ? cell(row.total) : null}
              <td class="name" title={row.name}>
                <i class={row.kind} />
                {row.name}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {all.length > MOST ? <p class="soft">{`${all.length - MOST} more: Functions`}</p> : null}
    </div>
  );
}
