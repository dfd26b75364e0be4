/**
 * The view system.types, which lists user-defined types, domains and collations.
 */
import { type Catalog, type TypeEntry, typeKindOf } from "../../catalog/mod.ts";
import { type DataType, isRangeType, type Row, TEXT, typeName } from "../../types/mod.ts";
import type { SystemView } from "../bind/bound.ts";
import { ADMIN_ONLY, view } from "./system_view.ts";

export function typesView(catalog: Catalog): SystemView {
  return view(
    [
      ["namespace_id", TEXT],
      ["type_name", TEXT],
      ["labels", { kind: "array", element: TEXT }],
      ["type_comment", TEXT],
      ["type_kind", TEXT],
      ["base_type", TEXT],
      ["checks", { kind: "array", element: TEXT }],
      ["fields", { kind: "array", element: TEXT }],
    ],
    () =>
      catalog.types().map((entry): Row => {
        const { comment, domain, fields, labels, name, namespace } = entry;
        const kind = typeKindOf(entry);
        const base = domain?.base ?? boundOf(entry, catalog);
        return [
          namespace,
          name,
          kind === "enum" ? labels.map(({ label }) => label) : null,
          comment ?? null,
          kind,
          base === undefined ? null : typeName(base),
          domain === undefined ? null : domain.checks.map(({ sql }) => sql),
          fields?.map((field) => `${field.name} ${typeName(field.type)}`) ?? null,
        ];
      }),
    ADMIN_ONLY,
  );
}

/** Returns the type of the bounds of a range or multirange type; undefined for any other type. */
function boundOf({ name, namespace }: TypeEntry, catalog: Catalog): DataType | undefined {
  const type = catalog.definedType(namespace, name)?.type;
  return type !== undefined && isRangeType(type) ? type.bound : undefined;
}
