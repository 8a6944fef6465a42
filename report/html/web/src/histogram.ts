// How long things took, in octaves: a small picture for a row of a table, or a wide one with axis and counts.
import { Child, count, s, time } from "./dom";

/** `octaves` has the number of things that took 2^i to 2^(i+1) cycles. */
export function histogram(octaves: number[], median: string, hz: number, wide: boolean): SVGElement {
  const width = wide ? 880 : 190;
  const height = wide ? 220 : 24;
  const bottom = wide ? 28 : 0;
  const top = wide ? 18 : 4; // room for the counts
  const first = octaves.findIndex((n) => n > 0);
  let last = octaves.length - 1;
  while (last > 0 && (octaves[last] ?? 0) === 0) last--;
  const [from, to] = wide ? [Math.max(first - 1, 0), last + 1] : [6, 36];
  const most = Math.max(...octaves, 1);
  const step = width / (to - from + 1);
  if (!wide) {
    const bars = octaves.slice(from, to + 1).map((n, i) => {
      const tall = n > 0 ? Math.max((n / most) * (height - top), 1.5) : 0;
      return n > 0
        ? `M${(i * step + 0.5).toFixed(1)} ${height}v-${tall.toFixed(1)}h${(step - 1).toFixed(1)}v${tall.toFixed(1)}z`
        : "";
    });
    return s(
      "svg",
      { width, height, viewBox: `0 0 ${width} ${height}`, class: "bar", role: "img", "aria-label": median },
      s("path", { d: bars.join(""), class: "hist" }),
    );
  }
  const parts: Child[] = [];
  for (let i = from; i <= to; i++) {
    const n = octaves[i] ?? 0;
    const tall = n > 0 ? Math.max((n / most) * (height - bottom - top), 1.5) : 0;
    parts.push(
      s(
        "rect",
        {
          x: (i - from) * step + 0.5,
          y: height - bottom - tall,
          width: Math.max(step - 1, 0.5),
          height: tall,
          class: "hist",
        },
        s("title", {}, `${count(n)} took ${time(2 ** i / hz)} to ${time(2 ** (i + 1) / hz)}`),
      ),
    );
    if (n > 0)
      parts.push(
        s(
          "text",
          { x: (i - from + 0.5) * step, y: height - bottom - tall - 4, class: "axis", "text-anchor": "middle" },
          count(n),
        ),
      );
    if ((i - from) % 2 === 0)
      parts.push(s("text", { x: (i - from) * step, y: height - 8, class: "axis" }, time(2 ** i / hz)));
  }
  return s(
    "svg",
    {
      width,
      height,
      viewBox: `0 0 ${width} ${height}`,
      class: "wide",
      role: "img",
      "aria-label": median,
    },
    ...parts,
  );
}
