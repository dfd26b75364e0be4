/**
 * Prints measurements as a Markdown table with the ratio to each peer. Only such ratios can be
 * compared between machines, and only if both figures of a ratio come from the same run.
 */
import type { Line, Target } from "./jobs.ts";

const OURS = "Tidemark";

/** Formats measurements as a Markdown table, with a column for each system that has any figure. */
export function tableOf(lines: readonly Line[]): string {
  const peers = [
    ...new Set(lines.flatMap(({ notes, values }) => Object.keys({ ...values, ...notes }))),
  ].filter((name) => name !== OURS);
  const head = ["job", "unit", OURS, ...peers.flatMap((peer) => [peer, "ratio"]), "target"];
  const rows = lines.map((line) => [
    line.job,
    line.unit,
    shown(line.values[OURS]),
    ...peers.flatMap((peer) => [
      shown(line.values[peer]) || (line.notes?.[peer] ?? ""),
      shownRatio(ratioTo(line, peer)),
    ]),
    targetOf(line),
  ]);
  const rule = head.map((_, index) => (index < 2 ? "---" : "---:"));
  return [head, rule, ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}

/**
 * Returns how many times better Tidemark is than a peer: a value above 1 is better, for rates and
 * times alike.
 */
function ratioTo({ values, isRate }: Line, peer: string): number | undefined {
  const ours = values[OURS];
  const theirs = values[peer];
  if (ours === undefined || theirs === undefined || ours === 0 || theirs === 0) return undefined;
  return isRate ? ours / theirs : theirs / ours;
}

function targetOf(line: Line): string {
  const targets = [line.target ?? []].flat();
  return targets
    .map((target) => `${targetText(target, line.unit)}: ${verdictOf(line, target)}`)
    .join(", ");
}

function targetText(target: Target, unit: string): string {
  if ("atMost" in target) return `≤ ${shown(target.atMost)} ${unit}`;
  if ("atLeast" in target) return `≥ ${shown(target.atLeast)} ${unit}`;
  if ("peer" in target) return `≥ ${Number(target.factor.toFixed(2))} × ${target.peer}`;
  const [parts, word] = "anyOf" in target ? [target.anyOf, "or"] : [target.allOf, "and"];
  return parts.map((part) => targetText(part, unit)).join(` ${word} `);
}

/** A target that compares with a peer has no verdict if the peer was not measured. */
function verdictOf(line: Line, target: Target): string {
  const isReached = reaches(line, target);
  if (isReached === undefined) return "not measured";
  return isReached ? "reached" : "MISSED";
}

function reaches(line: Line, target: Target): boolean | undefined {
  const ours = line.values[OURS];
  if ("atMost" in target) return ours === undefined ? undefined : ours <= target.atMost;
  if ("atLeast" in target) return ours === undefined ? undefined : ours >= target.atLeast;
  if ("peer" in target) {
    const ratio = ratioTo(line, target.peer);
    return ratio === undefined ? undefined : ratio >= target.factor;
  }
  const decisive = "anyOf" in target;
  const parts = decisive ? target.anyOf : target.allOf;
  const verdicts = new Set(parts.map((part) => reaches(line, part)));
  if (verdicts.has(decisive)) return decisive;
  return verdicts.has(undefined) ? undefined : !decisive;
}

function shown(value: number | undefined): string {
  if (value === undefined || Number.isNaN(value)) return "";
  const digits = value >= 100 || value === 0 ? 0 : 1;
  return value.toLocaleString("en", { maximumFractionDigits: digits });
}

function shownRatio(ratio: number | undefined): string {
  return ratio === undefined ? "" : `${ratio.toFixed(ratio < 10 ? 2 : 0)} ×`;
}
