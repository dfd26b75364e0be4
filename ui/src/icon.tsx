/**
 * Defines the page's icons, drawn as paths on a grid of 16 units. Each icon appears next to text,
 * so it is hidden from screen readers.
 */
import type { ReactNode } from "react";

const PATHS = {
  tide: "M1 6c2-3 4-3 7 0s5 3 7 0M1 11c2-3 4-3 7 0s5 3 7 0",
  run: "M4 2.5v11l9-5.5z",
  stop: "M4 4h8v8H4z",
  pause: "M5 3v10M11 3v10",
  show: "M1 8c3-5 11-5 14 0-3 5-11 5-14 0M8 6v4M6 8h4",
  copy: "M6 6h7v7H6zM3 10V3h7",
  cut: "M6 2v4M10 2v4M4 6h8v2a4 4 0 0 1-8 0zM8 12v3",
  table: "M2 3h12v10H2zM2 6.5h12M6.5 6.5V13",
  reload: "M13 8a5 5 0 1 1-1.5-3.6M13 2v3h-3",
  error: "M8 1.8 15 14H1zM8 6v4M8 12v.2",
} as const;

export function Icon({ name }: { readonly name: keyof typeof PATHS }): ReactNode {
  return (
    <svg className={`icon icon-${name}`} viewBox="0 0 16 16" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}
