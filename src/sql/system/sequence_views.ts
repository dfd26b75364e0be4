/**
 * The views about sequences. The first lists the sequences that the caller may use, as in
 * PostgreSQL. The second lists all sequences and their positions.
 */
import { mayRun, type Principal } from "../../auth/mod.ts";
import type { Catalog, SequenceEntry } from "../../catalog/mod.ts";
import {
  BIGINT,
  BOOLEAN,
  INT,
  type Row,
  TEXT,
  type Whole,
  wholeFromBigint,
} from "../../types/mod.ts";
import type { SystemView } from "../bind/bound.ts";
import { mayUseSequence } from "../names/sequences.ts";
import { ADMIN_ONLY, OPEN, principalOf, view } from "./system_view.ts";

const TYPES = { smallint: ["smallint", 16], int: ["integer", 32], bigint: ["bigint", 64] } as const;

/**
 * Creates the view information_schema.sequences. As in PostgreSQL, it omits the sequences of
 * identity columns.
 */
export function sequencesOfSchema(catalog: Catalog, catalogName: string): SystemView {
  return view(
    [
      ["sequence_catalog", TEXT],
      ["sequence_schema", TEXT],
      ["sequence_name", TEXT],
      ["data_type", TEXT],
      ["numeric_precision", INT],
      ["numeric_precision_radix", INT],
      ["numeric_scale", INT],
      ["start_value", TEXT],
      ["minimum_value", TEXT],
      ["maximum_value", TEXT],
      ["increment", TEXT],
      ["cycle_option", TEXT],
    ],
    (call) => {
      const principal = principalOf(call);
      return catalog
        .sequences()
        .filter((each) => isShown(each, principal, catalog) && !isOfIdentity(each, catalog))
        .map((each): Row => {
          const [typeName, bits] = TYPES[each.type];
          return [
            catalogName,
            each.namespace,
            each.name,
            typeName,
            bits,
            2,
            0,
            each.start,
            each.minimum,
            each.maximum,
            each.increment,
            each.cycles ? "YES" : "NO",
          ];
        });
    },
    OPEN,
  );
}

/** Creates the view system.sequences. */
export function sequencesView(catalog: Catalog): SystemView {
  return view(
    [
      ["namespace_id", TEXT],
      ["sequence_name", TEXT],
      ["data_type", TEXT],
      ["start_value", BIGINT],
      ["min_value", BIGINT],
      ["max_value", BIGINT],
      ["increment_by", BIGINT],
      ["cycle", BOOLEAN],
      ["cache_size", BIGINT],
      ["last_value", BIGINT],
      ["owned_by", TEXT],
      ["sequence_comment", TEXT],
    ],
    () =>
      catalog.sequences().map((each): Row => {
        const { isCalled, value } = catalog.sequenceMark(each);
        return [
          each.namespace,
          each.name,
          TYPES[each.type][0],
          whole(each.start),
          whole(each.minimum),
          whole(each.maximum),
          whole(each.increment),
          each.cycles,
          each.cache,
          isCalled ? whole(value) : null,
          ownerOf(each, catalog),
          each.comment ?? null,
        ];
      }),
    ADMIN_ONLY,
  );
}

function whole(text: string): Whole {
  return wholeFromBigint(BigInt(text));
}

function isShown(sequence: SequenceEntry, principal: Principal, catalog: Catalog): boolean {
  if (mayRun(principal, "inspect")) return true;
  return mayUseSequence(principal, sequence, { catalog, use: "take" });
}

function isOfIdentity({ ownedBy }: SequenceEntry, catalog: Catalog): boolean {
  const table = ownedBy === undefined ? undefined : catalog.tableById(ownedBy.tableId);
  const column = table?.columns.find(({ columnId }) => columnId === ownedBy?.columnId);
  return column?.identity !== undefined;
}

function ownerOf({ ownedBy }: SequenceEntry, catalog: Catalog): string | null {
  const table = ownedBy === undefined ? undefined : catalog.tableById(ownedBy.tableId);
  const column = table?.columns.find(({ columnId }) => columnId === ownedBy?.columnId);
  if (table === undefined || column === undefined) return null;
  return `${table.namespace}.${table.name}.${column.name}`;
}
