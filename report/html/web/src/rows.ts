// The rows of the profile by any grouping.
import { Flame, Page, stackFrames, subreasonOf } from "./data";

/** The samples of all rows that are alike in the columns of a grouping. */
export interface Sum {
  words: string[];
  samples: number;
  share: number;
  cycles: number;
  low: number;
  high: number;
}
/** A column and the text that rows must have in it. */
export type RowFilter = [column: string, words: string];
/** A grouping, and the filters of its rows. */
export interface Level {
  by: string[];
  where: RowFilter[];
}

const inFlame = (column: string): string => (column === "function" ? "stack" : column);

/** The rows of a grouping. The report's own grouping has its intervals; in others the variances are summed. */
export function tableRows(page: Page, { by, where }: Level): { rows: Sum[]; exact: boolean } {
  const report = page.report;
  const same = by.length === page.by.length && by.every((column, i) => column === page.by[i]);
  const isWhole = same && where.length === 0 && page.selection === undefined;
  if (report !== undefined && (isWhole || page.flame === undefined)) {
    return {
      exact: true,
      rows: report.rows.map((row) => ({
        words: by.map((column) => String(row[column] ?? "")),
        samples: row.samples,
        share: row.share,
        cycles: row.cycles ?? 0,
        low: row.low,
        high: row.high,
      })),
    };
  }
  const flame = page.flame as Flame;
  const stackAt = flame.columns.indexOf("stack");
  const wordsOf = (row: number[], column: string): string => {
    if (column === "subreason") return subreasonOf(flame, row[stackAt] ?? 0);
    const value = row[flame.columns.indexOf(inFlame(column))] ?? 0;
    if (column !== "function") return flame.strings[value] ?? "";
    const functions = stackFrames(flame, value).filter((frame) => frame.kind === "function");
    return functions[functions.length - 1]?.name ?? "";
  };
  const sums = new Map<string, Sum & { variance: number }>();
  const figures = flame.columns.length;
  const whole = flame.rows.reduce((sum, row) => sum + (row[figures + (page.is_time ? 1 : 0)] ?? 0), 0) || 1;
  for (const row of flame.rows) {
    if (!where.every(([column, words]) => wordsOf(row, column) === words)) continue;
    const names = by.map((column) => wordsOf(row, column));
    const key = names.join("\u0000");
    let sum = sums.get(key);
    if (sum === undefined) {
      sum = { words: names, samples: 0, share: 0, cycles: 0, low: 0, high: 0, variance: 0 };
      sums.set(key, sum);
    }
    sum.samples += row[figures] ?? 0;
    sum.cycles += row[figures + 1] ?? 0;
    sum.variance += row[figures + 2] ?? 0;
  }
  const rows = [...sums.values()];
  for (const row of rows) {
    row.share = (page.is_time ? row.cycles : row.samples) / whole;
    const half = 1.96 * Math.sqrt(row.variance);
    row.low = Math.max(row.share - half, 0);
    row.high = Math.min(row.share + half, 1);
  }
  return { rows, exact: false };
}
