// The time of day at instants of the page, where the recording knows it.
import { Page } from "./data";

/** Returns "2026-03-01 14:30:00.125 UTC" for an instant in cycles of the page; nothing where it is not known. */
export function timeOfDay(page: Page, at: number): string | undefined {
  if (page.clock === undefined) return undefined;
  const hz = page.report?.cpu_hz ?? 1e9;
  const day = new Date(page.clock.begin_utc_ms + (at / hz) * 1000);
  return `${day.toISOString().slice(0, 23).replace("T", " ")} UTC`;
}

/** How far the times of day may be off, in words. */
export const clockError = (page: Page): string =>
  page.clock === undefined ? "" : `times of day are right to ${page.clock.error_ms.toPrecision(2)} ms`;
