// The rows of the timeline's picture: those of the open groups, each at its place.
import type { Group, Track } from "./tracks";

/** A row: the first track of a group has what is written beside it, and opens what is below. */
export interface Row {
  track: Track;
  group?: Group;
  /** Whether what is below the group is shown. */
  isOpen: boolean;
  depth: number;
  /** The top of the track. */
  y: number;
}

export const TOP = 26;
const GAP = 4;
const BOTTOM = 8;

/** What rows are shown: the words of a search, in small letters; the domain; the groups that were opened or closed. */
export interface Wanted {
  words: string;
  domain: string | undefined;
  toggled: ReadonlySet<string>;
}

/** What a group is opened by. */
export const keyOf = ({ key, title }: Group): string => key ?? title;

function rowsBelow(group: Group, wanted: Wanted, depth: number): Omit<Row, "y">[] {
  const { words, domain, toggled } = wanted;
  const isWanted =
    group.title.toLowerCase().includes(words) &&
    (group.of === undefined || domain === undefined || group.of === domain);
  // What is searched is found below closed groups, too.
  const isOpen = (group.isOpen === true) !== toggled.has(keyOf(group)) || words !== "";
  const below = isOpen ? (group.below ?? []).flatMap((each) => rowsBelow(each, wanted, depth + 1)) : [];
  if (!isWanted) return below;
  const tracks = (group.tracks ??= group.make(group.title));
  return [...tracks.map((track, i) => ({ track, depth, isOpen, ...(i === 0 ? { group } : {}) })), ...below];
}

/** The first rows of the groups, at most so many, and the number of all. */
export function rowsOf(groups: Group[], wanted: Wanted, most: number): { rows: Row[]; all: number } {
  const all = groups.flatMap((group) => rowsBelow(group, wanted, 0));
  let y = TOP;
  const rows = all.slice(0, most).map((row): Row => {
    const placed = { ...row, y };
    y += row.track.height + GAP;
    return placed;
  });
  return { rows, all: all.length };
}

export const heightOf = (rows: Row[]): number =>
  rows.reduce((end, { track, y }) => Math.max(end, y + track.height + GAP), TOP) + BOTTOM;

/** The row at a distance from the top of the picture. */
export const rowAt = (rows: Row[], y: number): Row | undefined =>
  rows.find((row) => y >= row.y && y < row.y + row.track.height);
