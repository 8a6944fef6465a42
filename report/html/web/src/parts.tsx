// Small parts of several views. All text is inserted as text, never as markup: names come from guests.
import type { ComponentChildren, JSX, HTMLAttributes } from "preact";
import { percent } from "./format";

/** A cell with a name; only long names are broken into lines. */
export function NameCell({ name }: { name: string }): JSX.Element {
  return <td class={name.length <= 32 ? "name whole" : "name"}>{name}</td>;
}

/** A field to search with, which the key / moves to; `change` gets its text. */
export function SearchField(props: { label: string; value: string; change: (text: string) => void }): JSX.Element {
  return (
    <input
      type="search"
      class="search"
      placeholder={`${props.label} ( / )`}
      aria-label={props.label}
      value={props.value}
      onInput={(event) => props.change(event.currentTarget.value)}
    />
  );
}

/** The attributes of a row that can be chosen, by a click or Enter. */
export function choosable(choose: (byKeys: boolean) => void): HTMLAttributes<HTMLTableRowElement> {
  return {
    class: "choose",
    tabIndex: 0,
    onClick: () => choose(false),
    onKeyDown: (event) => {
      if (event.key === "Enter") choose(true);
    },
  };
}

/** Colours of the theme with their words. */
export function Legend(props: { of: [colour: string, words: string][]; children?: ComponentChildren }): JSX.Element {
  return (
    <div class="legend">
      {props.of.map(([name, words]) => (
        <span>
          <i style={{ background: name.startsWith("#") ? name : `var(--${name})` }} />
          {words}
        </span>
      ))}
      {props.children}
    </div>
  );
}

/** A heading by which a table is sorted: in what order now, if at all. */
export function SortHeading(props: {
  name: string;
  title: string;
  isNumber: boolean;
  order?: "ascending" | "descending";
  sort: () => void;
}): JSX.Element {
  const sign = props.order === undefined ? "" : props.order === "descending" ? " ▾" : " ▴";
  return (
    <th class={props.isNumber ? "n" : ""} title={props.title} aria-sort={props.order ?? "none"}>
      <button onClick={props.sort}>
        {props.name}
        {sign}
      </button>
    </th>
  );
}

/** A share with its 95 % interval, on a scale from 0 to `most`. */
export function Whisker(props: { share: number; low: number; high: number; most: number }): JSX.Element {
  const { share, low, high, most } = props;
  const width = 150;
  const at = (value: number): number => 2 + (Math.min(Math.max(value, 0), most) / (most || 1)) * (width - 4);
  return (
    <svg
      width={width}
      height={18}
      viewBox={`0 0 ${width} 18`}
      class="bar"
      role="img"
      aria-label={`${percent(share)}, between ${percent(low)} and ${percent(high)}`}
    >
      <title>{`${percent(share)}; 95 % interval: ${percent(low)} to ${percent(high)}`}</title>
      <rect x={2} y={3} width={Math.max(at(share) - 2, 0)} height={12} class="fill" />
      <path d={`M${at(low)} 9H${at(high)}M${at(low)} 4V14M${at(high)} 4V14`} class="whisker" />
    </svg>
  );
}
