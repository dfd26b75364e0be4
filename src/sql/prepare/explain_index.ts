/**
 * Shows the indexes by which a scan may find its rows, with the keys that it wants of each.
 *
 *     t_room_ts (room = 3 AND ts > now()) or t_author (author any of 2)
 */
import type { DataType } from "../../types/mod.ts";
import type { BoundExpression } from "../bind/bound_expressions.ts";
import { keyCountOf } from "../plan/access.ts";
import { depthOf } from "../plan/index_access.ts";
import type { IndexAccess, IndexEdge, KeyPart, SoughtKeys } from "../plan/plan.ts";

interface Texts {
  readonly textOf: (expression: BoundExpression) => string;
  readonly nameOf: (columnId: number) => string;
  readonly typeOf: (columnId: number) => DataType;
}

export function textOfIndexes(indexes: readonly IndexAccess[], texts: Texts): string {
  return indexes
    .map((access) => `${access.index.name} (${textOfAccess(access, texts)})`)
    .join(" or ");
}

function textOfAccess(access: IndexAccess, texts: Texts): string {
  const { columnIds } = access.index;
  const names = columnIds.map(texts.nameOf);
  const depth = depthOf(access);
  const rest = names.slice(depth);
  return [
    ...(depth === 0 ? [] : [textOfKeys(access.keys, columnIds.slice(0, depth), texts)]),
    ...access.edges.map((edge) => textOfEdge(edge, rest, texts)),
    ...access.beginnings.map((each) => textOfBeginning(each, rest[0], texts)),
  ].join(" AND ");
}

function textOfBeginning(
  { beginning, like }: IndexAccess["beginnings"][number],
  name: string | undefined,
  { textOf }: Texts,
): string {
  return [
    ...(like === undefined ? [] : [`${name} LIKE ${textOf(like)}`]),
    ...(beginning === undefined ? [] : [`starts_with(${name}, ${textOf(beginning)})`]),
  ].join(" AND ");
}

function textOfKeys(keys: SoughtKeys, columnIds: readonly number[], texts: Texts): string {
  const names = columnIds.map(texts.nameOf);
  const [parts = []] = keys;
  if (keys.length > 1) return `${listed(names)} any of ${keyCountOf(keys)}`;
  return parts
    .map((part, i) => {
      const columnId = columnIds[i] ?? 0;
      const value = textOfValue(part, { columnId, ...texts });
      if (value !== undefined) return `${names[i]} = ${value}`;
      const [list] = part.lists;
      if (list !== undefined) return `${names[i]} any of the elements of ${texts.textOf(list)}`;
      return `${names[i]} any of ${part.items.length + part.constants.length}`;
    })
    .join(" AND ");
}

/** Returns the only value of a part, or undefined if there may be several. */
function textOfValue(
  { constants, items, lists }: KeyPart,
  { columnId, textOf, typeOf }: Texts & { columnId: number },
): string | undefined {
  if (items.length + constants.length !== 1 || lists.length > 0) return undefined;
  const [item] = items;
  const [value = null] = constants;
  return textOf(item ?? { kind: "constant", type: typeOf(columnId), value });
}

function textOfEdge(
  { isInclusive, side, values }: IndexEdge,
  names: readonly string[],
  { textOf }: Texts,
): string {
  const operator = `${side === "min" ? ">" : "<"}${isInclusive ? "=" : ""}`;
  return `${listed(names.slice(0, values.length))} ${operator} ${listed(values.map(textOf))}`;
}

function listed(texts: readonly string[]): string {
  return texts.length === 1 ? texts.join() : `(${texts.join(", ")})`;
}
