/** Formats a number with its noun for messages. The noun must form its plural with "s". */

/** Returns text like "1 file" or "2 files". */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}
