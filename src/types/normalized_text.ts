/**
 * Converts text to a Unicode normal form in linear time.
 *
 * ICU moves each combining mark before all preceding marks of a higher class, one by one. If the
 * marks are in the opposite order, the time grows with the square of their number, and so does
 * that of ICU's comparison: 100,000 marks after one letter take minutes. Therefore the marks of a
 * long run are sorted here before ICU sees them. This changes neither the text's normal forms nor
 * how it compares, because both are the same for all orders of marks of different classes.
 */

export type NormalForm = "NFC" | "NFD" | "NFKC" | "NFKD";

/** Returns a normal form of a text. */
export function normalized(text: string, form: NormalForm): string {
  return withSortedMarks(text).normalize(form);
}

/** The minimum length, in UTF-16 code units, of the runs of marks that are sorted. */
const RUN_MIN = 32;

const LONG_RUNS = /\p{M}{16,}/gu;

const MARK = /\p{M}/u;

/** Returns a text with the marks of each long run sorted into the order of normal forms. */
export function withSortedMarks(text: string): string {
  return hasLongRun(text) ? text.replace(LONG_RUNS, sortedRun) : text;
}

/**
 * Checks every `RUN_MIN`th character. If the text has a long run of marks, at least one of these
 * characters is a mark.
 */
function hasLongRun(text: string): boolean {
  for (let at = RUN_MIN - 1; at < text.length; at += RUN_MIN) {
    if (text.charCodeAt(at) >= FIRST_MARK && MARK.test(text.slice(at - 1, at + 2))) return true;
  }
  return false;
}

/** The code point of the first combining mark. */
const FIRST_MARK = 0x300;

/** A mark of the highest combining class. ICU moves the marks of all other classes before it. */
const HIGHEST = "\u0345";

function sortedRun(run: string): string {
  const marks = Array.from(run).flatMap((mark) => Array.from(mark.normalize("NFD")));
  const ranks = ranksOf(new Set(marks));
  let sorted = "";
  let classes: string[] = [];
  for (const mark of marks) {
    const rank = ranks.get(mark);
    if (rank === undefined) {
      sorted += classes.join("") + mark;
      classes = [];
    } else {
      classes[rank] = (classes[rank] ?? "") + mark;
    }
  }
  return sorted + classes.join("");
}

/** Returns the rank of each mark's combining class. Marks that never move are left out. */
function ranksOf(marks: ReadonlySet<string>): ReadonlyMap<string, number> {
  const movable = [...marks].filter((mark) => mark === HIGHEST || isMovedBefore(mark, HIGHEST));
  movable.sort((left, right) => {
    if (isMovedBefore(left, right)) return -1;
    return isMovedBefore(right, left) ? 1 : 0;
  });
  const ranks = new Map<string, number>();
  let rank = 0;
  let previous: string | undefined;
  for (const mark of movable) {
    if (previous !== undefined && isMovedBefore(previous, mark)) rank += 1;
    ranks.set(mark, rank);
    previous = mark;
  }
  return ranks;
}

/** Whether the combining class of `mark` is lower than the class of `other`. */
function isMovedBefore(mark: string, other: string): boolean {
  return (other + mark).normalize("NFD") === mark + other && mark !== other;
}
