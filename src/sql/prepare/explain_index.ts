/**
 * Describes the indexes through which a scan may find its rows, and the keys that it looks up in
 * each.
 *
 *     t_room_ts (room = 3 AND ts > now()) or t_author (author any of 2)     one of the two
 *     t_room (room = 3) and t_author (author = 'ada')                       both, for an OR
 */
import { type IndexPart, indexPartsOf, type TableEntry } from "../../catalog/mod.ts";
import { type DataType, UNKNOWN } from "../../types/mod.ts";
import type { BoundExpression } from "../bind/bound_expressions.ts";
import { nameText } from "../parse/print/print_expressions.ts";
import { keyCountOf } from "../plan/access.ts";
import { depthOf } from "../plan/index_access.ts";
import type {
  IndexAccess,
  IndexEdge,
  KeyPart,
  RowAccess,
  ScanNode,
  SoughtKeys,
} from "../plan/plan.ts";

interface Texts {
  readonly textOf: (expression: BoundExpression) => string;
}

export function textOfIndexes(
  table: TableEntry,
  { either, indexes }: { readonly indexes: readonly IndexAccess[] } & Pick<ScanNode, "either">,
  texts: Texts,
): string {
  const single = indexes.map((access) => textOfRows(table, access, texts));
  const together = either?.map((access) => textOfRows(table, access, texts)).join(" and ");
  return [...single, ...(together === undefined ? [] : [together])].join(" or ");
}

function textOfRows(table: TableEntry, access: RowAccess, texts: Texts): string {
  const { index } = access;
  if (index === undefined) {
    const parts = indexPartsOf(table, { columnIds: table.primaryKey });
    return `the primary key (${textOfKeys(access.keys, parts, texts)})`;
  }
  const keys = textOfAccess(table, access, texts);
  return keys === "" ? index.name : `${index.name} (${keys})`;
}

function textOfAccess(table: TableEntry, access: IndexAccess, texts: Texts): string {
  const parts = indexPartsOf(table, access.index);
  const names = parts.map(shownName);
  const depth = depthOf(access);
  const rest = names.slice(depth);
  return [
    ...(depth === 0 ? [] : [textOfKeys(access.keys, parts.slice(0, depth), texts)]),
    ...access.edges.map((edge) => textOfEdge(edge, rest, texts)),
    ...access.beginnings.map((each) => textOfBeginning(each, rest[0], texts)),
    ...(access.terms ?? []).map(
      ({ operator, part, value }) => `${names[part]} ${operator} ${texts.textOf(value)}`,
    ),
  ].join(" AND ");
}

function shownName({ isExpression, name }: IndexPart): string {
  return isExpression ? name : nameText(name);
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

function textOfKeys(keys: SoughtKeys, columns: readonly IndexPart[], texts: Texts): string {
  const names = columns.map(shownName);
  const [parts = []] = keys;
  if (keys.length > 1) return `${listed(names)} any of ${keyCountOf(keys)}`;
  return parts
    .map((part, i) => {
      const value = textOfValue(part, columns[i]?.type ?? UNKNOWN, texts);
      if (part.isNull === true) return `${names[i]} IS NULL`;
      if (value !== undefined) return `${names[i]} = ${value}`;
      const [list] = part.lists;
      if (list !== undefined) return `${names[i]} any of the elements of ${texts.textOf(list)}`;
      return `${names[i]} any of ${part.items.length + part.constants.length}`;
    })
    .join(" AND ");
}

/**
 * Returns the value of a key part that has a single possible value; undefined for any other key
 * part.
 */
function textOfValue(
  { constants, items, lists }: KeyPart,
  type: DataType,
  { textOf }: Texts,
): string | undefined {
  if (items.length + constants.length !== 1 || lists.length > 0) return undefined;
  const [item] = items;
  const [value = null] = constants;
  return textOf(item ?? { kind: "constant", type, value });
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
