/** Reads the numbers and strings in CONSUME and ACK, which are literals or parameters. */
import { DatabaseError } from "../../base/errors.ts";
import type { Value } from "../../types/mod.ts";
import type { Statement, TopicArgument } from "../parse/ast/ast.ts";

/** The maximum length of a group name, in UTF-8 bytes. */
const GROUP_BYTES_MAX = 128;

/** The range of numbers that an argument accepts. Both bounds are inclusive. */
interface NumberRange {
  /** The name of the argument with its article, such as "an offset". */
  readonly what: string;
  readonly min?: number;
  readonly max?: number;
}

/**
 * Returns the number that an argument specifies.
 *
 * @param parameters The parameter values of the request.
 * @throws {DatabaseError} INVALID_PARAMETER, VALUE_OUT_OF_RANGE
 */
export function numberFrom(
  node: TopicArgument,
  parameters: readonly Value[],
  { max = Number.MAX_SAFE_INTEGER, min = 0, what }: NumberRange,
): number {
  const position = node._location.start;
  const value = node.type === "integer" ? node.text : valueOf(node, parameters);
  const text = typeof value === "string" || typeof value === "number" ? String(value) : "";
  if (!/^-?\d+$/.test(text)) {
    throw new DatabaseError(
      "INVALID_PARAMETER",
      `Cannot use ${shownOf(node)} as ${what}: it must be a whole number`,
      { position },
    );
  }
  const number = Number(text);
  if (number >= min && number <= max) return number;
  throw new DatabaseError(
    "VALUE_OUT_OF_RANGE",
    `Cannot use ${text} as ${what}: it must be between ${min} and ${max}`,
    { position },
  );
}

/**
 * Returns the group name that an argument specifies. @throws {DatabaseError} INVALID_PARAMETER,
 * INVALID_VALUE
 */
export function groupFrom(node: TopicArgument, parameters: readonly Value[]): string {
  const position = node._location.start;
  const group = node.type === "string" ? node.value : valueOf(node, parameters);
  if (typeof group !== "string") {
    throw new DatabaseError(
      "INVALID_PARAMETER",
      `Cannot use ${shownOf(node)} as a group name: it must be a string`,
      { position },
    );
  }
  const bytes = Buffer.byteLength(group);
  if (bytes >= 1 && bytes <= GROUP_BYTES_MAX) return group;
  throw new DatabaseError(
    "INVALID_VALUE",
    `Cannot use a group name of ${bytes} bytes: it must have 1 to ${GROUP_BYTES_MAX} bytes`,
    { position },
  );
}

function valueOf(node: TopicArgument, parameters: readonly Value[]): Value | undefined {
  return node.type === "parameter" ? parameters[node.index - 1] : undefined;
}

function shownOf(node: TopicArgument): string {
  return node.type === "parameter" ? node.name : "the literal";
}

/** Returns the numbers of the parameters used in CONSUME or ACK. */
export function topicParameters(node: Statement): number[] {
  if (node.type !== "consume" && node.type !== "ack") return [];
  const { group, partition } = node;
  const others =
    node.type === "ack" ? [node.upTo, ...(node.offsets ?? [])] : [node.from, node.limit];
  return [group, partition, ...others].flatMap((each) =>
    typeof each === "object" && each.type === "parameter" ? [each.index] : [],
  );
}
