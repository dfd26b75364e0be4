/**
 * Reads the coverage report of the test runner, in lcov format. Each file has a block from `SF:`
 * to `end_of_record`, with counts (LF, LH, FNF, FNH) and the number of times that each line was
 * run (DA).
 */

/** The coverage of one source file. */
export interface Covered {
  readonly path: string;
  readonly lines: number;
  readonly linesRun: number;
  readonly functions: number;
  readonly functionsRun: number;
  /** The numbers of the lines that were not run, ascending. */
  readonly missing: readonly number[];
}

export function coverageFrom(text: string): Covered[] {
  return text
    .split("end_of_record")
    .map((block) => block.trim())
    .filter((block) => block !== "")
    .map(coveredFrom);
}

function coveredFrom(block: string): Covered {
  const path = /^SF:(.*)$/m.exec(block)?.[1];
  if (path === undefined) throw new Error(`Cannot read coverage: no file in ${block.slice(0, 80)}`);
  const lineCounts = [...block.matchAll(/^DA:(\d+),(\d+)/gm)].map(([, line, count]) => ({
    line: Number(line),
    count: Number(count),
  }));
  return {
    path,
    lines: countOf(block, "LF"),
    linesRun: countOf(block, "LH"),
    functions: countOf(block, "FNF"),
    functionsRun: countOf(block, "FNH"),
    missing: lineCounts
      .filter(({ count }) => count === 0)
      .map(({ line }) => line)
      .toSorted((left, right) => left - right),
  };
}

function countOf(block: string, name: string): number {
  const count = new RegExp(`^${name}:(\\d+)$`, "m").exec(block)?.[1];
  if (count === undefined) throw new Error(`Cannot read coverage: no ${name} in a block`);
  return Number(count);
}

export function sumOf(files: readonly Covered[]): Omit<Covered, "path" | "missing"> {
  const sum = (of: (file: Covered) => number): number =>
    files.reduce((total, file) => total + of(file), 0);
  return {
    lines: sum(({ lines }) => lines),
    linesRun: sum(({ linesRun }) => linesRun),
    functions: sum(({ functions }) => functions),
    functionsRun: sum(({ functionsRun }) => functionsRun),
  };
}

/** Formats ascending numbers as ranges, for example "3, 7–9". */
export function spansOf(numbers: readonly number[]): string {
  const spans: { first: number; last: number }[] = [];
  for (const number of numbers) {
    const open = spans.at(-1);
    if (open?.last === number - 1) open.last = number;
    else spans.push({ first: number, last: number });
  }
  return spans
    .map(({ first, last }) => (first === last ? `${first}` : `${first}–${last}`))
    .join(", ");
}
