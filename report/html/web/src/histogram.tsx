// How long things took, in octaves: a small picture for a row of a table, or a wide one with axis and counts.
import type { JSX } from "preact";
import { count, time } from "./format";

interface Props {
  /** The number of things that took 2^i to 2^(i+1) cycles. */
  octaves: number[];
  median: string;
  hz: number;
  isWide?: boolean;
}

/** All lengths on one scale, so that rows can be compared. */
function Small({ octaves, median }: Props): JSX.Element {
  const [width, height, from, to] = [190, 24, 6, 36];
  const most = Math.max(...octaves, 1);
  const step = width / (to - from + 1);
  const bars = octaves.slice(from, to + 1).map((n, i) => {
    const tall = Math.max((n / most) * (height - 4), 1.5);
    return n > 0
      ? `M${(i * step + 0.5).toFixed(1)} ${height}v-${tall.toFixed(1)}h${(step - 1).toFixed(1)}v${tall.toFixed(1)}z`
      : "";
  });
  return (
    <svg width={width} height={height} viewBox={`0 0 ${width} ${height}`} class="bar" role="img" aria-label={median}>
      <path d={bars.join("")} class="hist" />
    </svg>
  );
}

function Wide({ octaves, median, hz }: Props): JSX.Element {
  const [width, height, bottom, top] = [880, 220, 28, 18];
  const first = octaves.findIndex((n) => n > 0);
  let last = octaves.length - 1;
  while (last > 0 && (octaves[last] ?? 0) === 0) last--;
  const [from, to] = [Math.max(first - 1, 0), last + 1];
  const most = Math.max(...octaves, 1);
  const step = width / (to - from + 1);
  const bar = (i: number): JSX.Element => {
    const n = octaves[i] ?? 0;
    const tall = n > 0 ? Math.max((n / most) * (height - bottom - top), 1.5) : 0;
    const y = height - bottom - tall;
    return (
      <>
        <rect x={(i - from) * step + 0.5} y={y} width={Math.max(step - 1, 0.5)} height={tall} class="hist">
          <title>{`${count(n)} took ${time(2 ** i / hz)} to ${time(2 ** (i + 1) / hz)}`}</title>
        </rect>
        {n > 0 ? (
          <text x={(i - from + 0.5) * step} y={y - 4} class="axis" text-anchor="middle">
            {count(n)}
          </text>
        ) : null}
        {(i - from) % 2 === 0 ? (
          <text x={(i - from) * step} y={height - 8} class="axis">
            {time(2 ** i / hz)}
          </text>
        ) : null}
      </>
    );
  };
  return (
    <svg width={width} height={height} viewBox={`0 0 ${width} ${height}`} class="wide" role="img" aria-label={median}>
      {Array.from({ length: to - from + 1 }, (_, i) => bar(from + i))}
    </svg>
  );
}

export const Histogram = (props: Props): JSX.Element =>
  props.isWide === true ? <Wide {...props} /> : <Small {...props} />;
