// What a view is, and how its state is kept in the page's address, so that Back, Forward and a copied address work:
// "#timeline?from=1.2&to=1.4".

/** Pairs of a key and a value; a key may come several times. */
export type State = [key: string, value: string][];

/**
 * Puts the state of a view into the address, from which the view is then rendered. A step can be undone by Back; other
 * changes replace the address.
 */
export type Remember = (state: State, isStep: boolean) => void;

/** What each view gets: its state as the address has it, whose values may be anything, and how to change it. */
export interface ViewProps {
  query: URLSearchParams;
  remember: Remember;
}

/** The state with other values of some keys; undefined: without it. Other keys keep their order. */
export function changed(query: URLSearchParams, values: Record<string, string | undefined>): State {
  const kept = [...query].filter(([key]) => !(key in values));
  const added = Object.entries(values).filter((pair): pair is [string, string] => pair[1] !== undefined);
  return [...kept, ...added];
}

/** The address of a view; without a query, of what it shows first. */
export const addressOf = (view: string, query: string): string => `#${view}${query === "" ? "" : `?${query}`}`;
