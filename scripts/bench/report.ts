/**
 * Prints measurements as a markdown table, with the ratio to each peer: only ratios of one run
 * mean anything on another machine.
 */
import type { Line, Target } from "./jobs.ts";

const OURS = "Tidemark";

/** @returns A table with a column for each place that any line has. */
export function tableOf(lines: readonly Line[]): string {
  const peers = [...new Set(lines.flatMap(({ values }) => Object.keys(values)))].filter(
    (name) => name !== OURS,
  );
  const head = ["job", "unit", OURS, ...peers.flatMap((peer) => [peer, "ratio"]), "target"];
  const rows = lines.map((line) => [
    line.job,
    line.unit,
    shown(line.values[OURS]),
    ...peers.flatMap((peer) => [shown(line.values[peer]), shownRatio(ratioTo(line, peer))]),
    targetOf(line),
  ]);
  const rule = head.map((_, index) => (index < 2 ? "---" : "---:"));
  return [head, rule, ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}

/** How many times better than a peer: above 1 is better, for rates and times alike. */
function ratioTo({ values, isRate }: Line, peer: string): number | undefined {
  const ours = values[OURS];
  const theirs = values[peer];
  if (ours === undefined || theirs === undefined || ours === 0 || theirs === 0) return undefined;
  return isRate ? ours / theirs : theirs / ours;
}

function targetOf(line: Line): string {
  const targets = [line.target ?? []].flat();
  return targets.map((target) => verdictOn(line, target)).join(", ");
}

function verdictOn(line: Line, target: Target): string {
  if ("atMost" in target) {
    const { atMost } = target;
    const isReached = (line.values[OURS] ?? Number.POSITIVE_INFINITY) <= atMost;
    return `≤ ${atMost} ${line.unit}: ${isReached ? "reached" : "MISSED"}`;
  }
  const { peer, factor } = target;
  const ratio = ratioTo(line, peer);
  const verdict = ratio !== undefined && ratio >= factor ? "reached" : "MISSED";
  return `≥ ${Number(factor.toFixed(2))} × ${peer}: ${verdict}`;
}

function shown(value: number | undefined): string {
  if (value === undefined || Number.isNaN(value)) return "";
  const digits = value >= 100 || value === 0 ? 0 : 1;
  return value.toLocaleString("en", { maximumFractionDigits: digits });
}

function shownRatio(ratio: number | undefined): string {
  return ratio === undefined ? "" : `${ratio.toFixed(ratio < 10 ? 2 : 0)} ×`;
}
