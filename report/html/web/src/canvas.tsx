// Pictures that are drawn, not made of elements: as wide as their parent, sharp on every screen.
import type { CanvasHTMLAttributes, JSX } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

export interface Size {
  width: number;
  height: number;
}
export type Draw = (context: CanvasRenderingContext2D, size: Size) => void;

/** The value of a colour of the theme: a custom property of style.css. */
export function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

/** The place of the pointer in the element that handles the event. */
export function pointIn(event: MouseEvent): [x: number, y: number] {
  const box = (event.currentTarget as Element).getBoundingClientRect();
  return [event.clientX - box.left, event.clientY - box.top];
}

type Props = Omit<CanvasHTMLAttributes<HTMLCanvasElement>, "label" | "ref"> & {
  height: number;
  label: string;
  draw: Draw;
  /** Gets the canvas when it is in the page. */
  attach?: (canvas: HTMLCanvasElement) => void;
};

/** Draws after each time that its parent was rendered, and when its size or the theme has changed. */
export function Canvas({ height, label, draw, attach, ...attributes }: Props): JSX.Element {
  const place = useRef<HTMLCanvasElement>(null);
  const latest = useRef<() => void>(() => undefined);
  const due = useRef(0);
  const drawn = useRef(0); // its width
  const redraw = (): void => {
    cancelAnimationFrame(due.current);
    due.current = requestAnimationFrame(() => latest.current());
  };
  latest.current = () => {
    const canvas = place.current;
    const width = canvas?.clientWidth ?? 0;
    const context = canvas?.getContext("2d") ?? null;
    if (canvas === null || width === 0 || context === null) return;
    drawn.current = width;
    const scale = devicePixelRatio || 1;
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, width, height);
    draw(context, { width, height });
  };
  useLayoutEffect(() => {
    const canvas = place.current;
    if (canvas === null) return undefined;
    attach?.(canvas);
    const observer = new ResizeObserver(() => {
      if (canvas.clientWidth !== drawn.current) redraw();
    });
    observer.observe(canvas);
    document.addEventListener("theme", redraw);
    return () => {
      observer.disconnect();
      document.removeEventListener("theme", redraw);
      cancelAnimationFrame(due.current);
    };
  }, []);
  useLayoutEffect(redraw);
  return (
    <canvas {...attributes} ref={place} tabIndex={0} role="img" aria-label={label} style={{ height: `${height}px` }} />
  );
}
