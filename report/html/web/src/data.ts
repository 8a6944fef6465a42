// The data that the command writes into the page, and what the page makes of it. Their types come from docs/schemas.

import type { Domain as DomainData, Flame, PageData } from "./page_data";
import type { Selection } from "./selection";

export type {
  Code,
  Diff,
  DiffRow,
  Exit,
  Finding,
  Flame,
  OverTime,
  Report,
  ReportRow,
  Timeline,
  TraceTable,
} from "./page_data";

/** A domain; in a selection, where there is a trace, with the cycles for which its vCPUs waited for a pCPU, and ran. */
export type Domain = DomainData & { waited?: number; ran?: number };

/** The page's data, of the whole recording or of a selection. */
export type Page = Omit<PageData, "domains"> & {
  domains?: Domain[];
  seconds: number;
  is_time: boolean;
  /** What a page of a selection is of. */
  selection?: Selection;
};

/** Reads the data; those of differences have no time. */
export const readPage = (json: string): Page => ({ seconds: 0, is_time: false, ...(JSON.parse(json) as PageData) });

const MODES = ["user", "kernel", "xen"];
const KINDS = ["function", "inlined", "exit", "subreason"];

/** The kind of a frame by its code in a stack. */
export const kindOf = (code: number): string => KINDS[code >> 2] ?? "";

export interface StackFrame {
  name: string;
  mode: string;
  /** "function"; "inlined" into the frame before it; "exit" and "subreason" say why Xen ran. */
  kind: string;
}

/** The frames of the stack with this number, outermost first. */
export function stackFrames(flame: Flame, stack: number): StackFrame[] {
  const packed = flame.stacks[stack] ?? [];
  const frames: StackFrame[] = [];
  for (let i = 0; i + 1 < packed.length; i += 2) {
    const code = packed[i + 1] ?? 0;
    frames.push({
      name: flame.strings[packed[i] ?? 0] ?? "",
      mode: MODES[code & 3] ?? "group",
      kind: kindOf(code),
    });
  }
  return frames;
}

/** What the VM exit was about for which Xen ran; "-" outside of exits. */
export function subreasonOf(flame: Flame, stack: number): string {
  return stackFrames(flame, stack).find((frame) => frame.kind === "subreason")?.name ?? NO_SUBREASON;
}
const NO_SUBREASON = "-";

/** The text of "line" where no line is known. */
export const NO_LINE = "[no line]";
