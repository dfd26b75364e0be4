/** The view system.types, which lists the enum types and domains that users have defined. */
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
    ],
    () =>
      catalog.types().map(({ comment, domain, labels, name, namespace }): Row => {
        return [
          namespace,
          name,
          domain === undefined ? labels.map(({ label }) => label) : null,
          comment ?? null,
          domain === undefined ? "enum" : "domain",
          domain === undefined ? null : typeName(domain.base),
          domain === undefined ? null : domain.checks.map(({ sql }) => sql),
        ];
      }),
    ADMIN_ONLY,
  );
}
