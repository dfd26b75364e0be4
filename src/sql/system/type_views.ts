/** The view system.types, which lists the types that CREATE TYPE has defined. */
import type { Catalog } from "../../catalog/mod.ts";
import { type Row, TEXT } from "../../types/mod.ts";
import type { SystemView } from "../bind/bound.ts";
import { ADMIN_ONLY, view } from "./system_view.ts";

export function typesView(catalog: Catalog): SystemView {
  return view(
    [
      ["namespace_id", TEXT],
      ["type_name", TEXT],
      ["labels", { kind: "array", element: TEXT }],
      ["type_comment", TEXT],
    ],
    () =>
      catalog.types().map(({ comment, labels, name, namespace }): Row => {
        return [namespace, name, labels.map(({ label }) => label), comment ?? null];
      }),
    ADMIN_ONLY,
  );
}
