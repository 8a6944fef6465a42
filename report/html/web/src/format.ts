// Numbers and times as texts.

export const percent = (share: number, digits = 2): string => `${(share * 100).toFixed(digits)}%`;

export function count(value: number): string {
  const whole = Math.abs(value - Math.round(value)) < 0.05;
  return value.toLocaleString("en-US", {
    minimumFractionDigits: whole ? 0 : 1,
    maximumFractionDigits: whole ? 0 : 1,
  });
}

export function short(value: number): string {
  const units: [number, string][] = [
    [1e12, " T"],
    [1e9, " G"],
    [1e6, " M"],
    [1e3, " k"],
  ];
  for (const [size, unit] of units) {
    if (Math.abs(value) >= size) {
      const scaled = value / size;
      return scaled.toFixed(scaled >= 100 ? 1 : 2) + unit;
    }
  }
  return String(Math.round(value));
}

/** Like short, also for values below 1. */
export function amount(value: number): string {
  return Math.abs(value) >= 1000 || value === 0 ? short(value) : value.toPrecision(3);
}

export function time(seconds: number): string {
  const size = Math.abs(seconds);
  if (size === 0) return "0 s";
  if (size >= 1) return `${seconds.toFixed(3)} s`;
  if (size >= 1e-3) return `${(seconds * 1e3).toFixed(3)} ms`;
  if (size >= 1e-6) return `${(seconds * 1e6).toFixed(3)} µs`;
  return `${Math.round(seconds * 1e9)} ns`;
}

/** An instant, with enough digits to differ from instants that are `step` away. */
export function instant(seconds: number, step: number): string {
  return `${seconds.toFixed(Math.min(Math.max(Math.ceil(-Math.log10(step) - 1e-9), 0), 9))} s`;
}

/** The description of a column of intervals, made of those of its bounds. */
export const intervalWords = (words: Record<string, string>): string =>
  `low: ${words.low ?? ""}; high: ${words.high ?? ""}`;
