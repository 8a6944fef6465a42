// Colours of heat maps: one hue from few to many, so that they differ in lightness alone, for any colour vision.
import { colour } from "./canvas";

const SHADES = 64;

const channels = (hex: string): number[] => [1, 3, 5].map((at) => Number.parseInt(hex.slice(at, at + 2), 16));

/** The shades from --heat-few to --heat-many, each as red, green and blue. */
export function heatShades(): number[][] {
  const [few, many] = [channels(colour("heat-few")), channels(colour("heat-many"))];
  return Array.from({ length: SHADES }, (_, i) =>
    few.map((from, k) => Math.round(from + ((many[k] - from) * i) / (SHADES - 1))),
  );
}
/** The shade of a part of the way from few to many. */
export const shadeOf = <Shade>(shades: Shade[], part: number): Shade =>
  shades[Math.min(Math.max(Math.round(part * (SHADES - 1)), 0), SHADES - 1)];
