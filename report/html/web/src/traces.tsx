// What the traces of a store's slices show: runstates, waits, VM exits, hypercalls, findings and losses. These are no
// estimates.
import type { JSX } from "preact";
import type { TraceTable } from "./data";
import { count, percent, time } from "./format";

const INDENT = 1.2; // em

function Table({ of: { title, columns, rows, left_out }, hz }: { of: TraceTable; hz: number }): JSX.Element {
  // Parts are compared with the row that they are parts of, by the last figure, which sorts them.
  const wholes: number[] = [];
  const last = columns.length - 1;
  return (
    <section>
      <h2>{title}</h2>
      <div class="scroll">
        <table>
          <thead>
            <tr>
              <th />
              {columns.map(({ name }) => (
                <th class="n">{name}</th>
              ))}
              <th />
            </tr>
          </thead>
          <tbody>
            {rows.map(({ name, depth, figures }) => {
              wholes[depth] = figures[last] ?? 0;
              const whole = depth > 0 ? (wholes[depth - 1] ?? 0) : 0;
              return (
                <tr>
                  <td class="name" style={`padding-left:${0.5 + depth * INDENT}em`}>
                    {name}
                  </td>
                  {columns.map(({ is_time }, i) => {
                    const figure = figures[i];
                    return <td class="n">{figure === undefined ? "" : is_time ? time(figure / hz) : count(figure)}</td>;
                  })}
                  <td class="n soft">{whole > 0 ? percent((figures[last] ?? 0) / whole, 1) : ""}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
      {left_out > 0 ? <p class="soft">{`${left_out} more: xenoscope summary --from-store`}</p> : null}
    </section>
  );
}

export function TracesView({ tables, hz }: { tables: TraceTable[]; hz: number }): JSX.Element {
  return (
    <div>
      {tables.map((each) => (
        <Table of={each} hz={hz} />
      ))}
    </div>
  );
}
