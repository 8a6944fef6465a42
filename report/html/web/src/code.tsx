// The code of a function: its source or its instructions, each line with its samples by VM exit.
import type { JSX } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Code, Page } from "./data";
import { count, percent } from "./format";

/** Columns of exits; functions of Xen run for more. */
const MOST_EXITS = 6;

function Listing({ code: { lines, exits, samples } }: { code: Code }): JSX.Element {
  const place = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const body = place.current;
    const hot = body?.querySelector<HTMLElement>(".hottest") ?? null;
    if (body !== null && hot !== null) body.scrollTop = hot.offsetTop - body.clientHeight / 2;
  }, [lines]);
  const columns = exits.slice(0, MOST_EXITS);
  const hottest = lines.reduce((most, line) => Math.max(most, line[2]), 0);
  return (
    <div class="listing" tabIndex={0} ref={place}>
      <table>
        <thead>
          <tr>
            <th class="n" title="Of the function's samples">
              self
            </th>
            {columns.map((exit) => (
              <th class="n" title={`Samples in ${exit}`}>
                {exit.replace("VMEXIT_", "")}
              </th>
            ))}
            <th class="n">line</th>
            <th>code</th>
          </tr>
        </thead>
        <tbody>
          {lines.map(([line, text, own, byExit]) => (
            <tr class={own === 0 ? "" : own === hottest ? "hot hottest" : "hot"}>
              <td class="n" style={{ "--part": `${((own / (samples || 1)) * 100).toFixed(2)}%` }}>
                {own === 0 ? "" : percent(own / (samples || 1), 1)}
              </td>
              {columns.map((_, k) => (
                <td class="n soft">{(byExit[k] ?? 0) > 0 ? count(byExit[k]) : ""}</td>
              ))}
              <td class="n soft">{line}</td>
              <td class="code">{text}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** The code of the functions of this name, one at a time. */
export function CodePanel({ page, name }: { page: Page; name: string }): JSX.Element {
  const [chosen, choose] = useState(0);
  const only = page.selection?.domain;
  const found = (page.code ?? []).filter(
    (each) => each.function === name && (only === undefined || each.domain === only),
  );
  const code = found[chosen] ?? found[0];
  if (code === undefined)
    return (
      <section id="code" aria-label="Code">
        <p class="soft">
          {`The page has no code of ${name}: it has few samples, or its file was not there when the page was made. ` +
            "--kernel, --xen-syms and --image name files."}
        </p>
      </section>
    );
  return (
    <section id="code" aria-label="Code">
      <h2>
        {code.title}
        <span class="soft">
          {`${count(code.samples)} samples${page.selection?.range === undefined ? "" : " of the whole recording"}` +
            "; a sample is a few instructions after the counted one"}
        </span>
      </h2>
      <p class="tools">
        {found.map((each, i) => (
          <button class={each === code ? "chip on" : "chip"} onClick={() => choose(i)}>
            {`${each.domain}: ${each.image}`}
          </button>
        ))}
      </p>
      <Listing code={code} />
    </section>
  );
}
