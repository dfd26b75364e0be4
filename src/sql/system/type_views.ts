/**
 * The view system.types, which lists user-defined enum types, row types, domains and collations.
 */
import type { Catalog } from "../../catalog/mod.ts";
import { type Row, TEXT, typeName } from "../../types/mod.ts";
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
      catalog
        .types()
        .map(({ collation, comment, domain, fields, labels, name, namespace }): Row => {
          const isEnum = domain === undefined && fields === undefined && collation === undefined;
          const kind =
            collation !== undefined ? "collation" : domain === undefined ? "row" : "domain";
          return [
            namespace,
            name,
            isEnum ? labels.map(({ label }) => label) : null,
            comment ?? null,
            isEnum ? "enum" : kind,
            domain === undefined ? null : typeName(domain.base),
            domain === undefined ? null : domain.checks.map(({ sql }) => sql),
            fields?.map((field) => `${field.name} ${typeName(field.type)}`) ?? null,
          ];
        }),
    ADMIN_ONLY,
  );
}
