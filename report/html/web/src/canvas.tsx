// Pictures that are drawn, not made of elements: as wide as their parent, sharp on every screen.
import type { CanvasHTMLAttributes, JSX } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

export interface Size {
  width: number;
  height: number;
}
/** The part of a picture that can be seen, and a little more, from its top. */
export interface InView {
  top: number;
  bottom: number;
}
export type Draw = (context: CanvasRenderingContext2D, size: Size, view: InView) => void;

/** Pixels above and below the window that are drawn, so that not each step of scrolling draws again. */
const BEYOND = 600;

/** The value of a colour of the theme: a custom property of style.css. */
export function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

/** The place of the pointer in the element that handles the event. */
export function pointIn(event: MouseEvent): [x: number, y: number] {
  const box = (event.currentTarget as Element).getBoundingClientRect();
  return [event.clientX - box.left, event.clientY - box.top];
}

/** The part of the canvas that is in the window. */
function seen(canvas: HTMLCanvasElement, height: number): InView {
  const { top } = canvas.getBoundingClientRect();
  return { top: Math.max(-top, 0), bottom: Math.min(innerHeight - top, height) };
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
  const drawnView = useRef<InView>({ top: 0, bottom: 0 });
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
    const [pixels, lines] = [Math.round(width * scale), Math.round(height * scale)];
    // A new size takes new memory, which is as slow as the drawing.
    if (canvas.width !== pixels) canvas.width = pixels;
    if (canvas.height !== lines) canvas.height = lines;
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, width, height);
    const { top, bottom } = seen(canvas, height);
    drawnView.current = { top: Math.max(top - BEYOND, 0), bottom: Math.min(bottom + BEYOND, height) };
    draw(context, { width, height }, drawnView.current);
  };
  /** Draws what has come into view. */
  const follow = (): void => {
    const canvas = place.current;
    if (canvas === null) return;
    const { top, bottom } = seen(canvas, height);
    if (top < bottom && (top < drawnView.current.top || bottom > drawnView.current.bottom)) redraw();
  };
  const latestFollow = useRef(follow);
  latestFollow.current = follow;
  useLayoutEffect(() => {
    const canvas = place.current;
    if (canvas === null) return undefined;
    attach?.(canvas);
    const observer = new ResizeObserver(() => {
      if (canvas.clientWidth !== drawn.current) redraw();
    });
    observer.observe(canvas);
    const scrolled = (): void => latestFollow.current();
    document.addEventListener("theme", redraw);
    document.addEventListener("scroll", scrolled, { capture: true, passive: true });
    addEventListener("resize", scrolled);
    return () => {
      observer.disconnect();
      document.removeEventListener("theme", redraw);
      document.removeEventListener("scroll", scrolled, { capture: true });
      removeEventListener("resize", scrolled);
      cancelAnimationFrame(due.current);
    };
  }, []);
  useLayoutEffect(redraw);
  return (
    <canvas {...attributes} ref={place} tabIndex={0} role="img" aria-label={label} style={{ height: `${height}px` }} />
  );
}
