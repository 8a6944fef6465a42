// What a view is, and how it keeps its state in the page's address, so that Back, Forward and a copied address work:
// "#timeline?from=1.2&to=1.4".

import type { Selection } from "./selection";

/** Pairs of a key and a value; a key may come several times. */
export type State = [key: string, value: string][];

/** Puts the state of a view into the address. A step can be undone by Back; other changes replace the address. */
export type Remember = (state: State, isStep: boolean) => void;

/** The address of a view; without a query, of what it shows first. */
export const addressOf = (view: string, query: string): string => `#${view}${query === "" ? "" : `?${query}`}`;

export interface View {
  element: HTMLElement;
  /** Shows another selection; a view without it is made anew. */
  select?: (selection: Selection) => void;
  /** Shows the state of an address; without pairs, what the view shows first. Values may be anything. */
  restore?: (state: URLSearchParams) => void;
}
