/** Describes the operations of the endpoints that deliver the client and the admin page. */
import type { Operation } from "../http/operation.ts";
import { inHeader, inPath } from "./operations.ts";
import { TEXT } from "./schema_forms.ts";

export const CLIENT_OPERATIONS: Readonly<Record<"script" | "types", Operation>> = {
  script: {
    id: "clientScript",
    tag: "client",
    summary: "Download the client as a JavaScript module, for pages of any origin",
    access: "anyone",
    parameters: [inHeader("If-None-Match", "ETags of the versions that the caller already has")],
    answers: {
      200: {
        description: "The JavaScript module",
        content: { "text/javascript": TEXT },
        headers: {
          ETag: "Changes whenever the content changes",
          "X-TypeScript-Types": "The URL of the module's TypeScript declarations",
        },
      },
      304: { description: "The caller already has the current content" },
    },
    errors: { 404: ["not_found"] },
  },
  types: {
    id: "clientTypes",
    tag: "client",
    summary: "Download the TypeScript declarations of the client",
    access: "anyone",
    parameters: [inHeader("If-None-Match", "ETags of the versions that the caller already has")],
    answers: {
      200: {
        description: "The TypeScript declarations",
        content: { "application/typescript": TEXT },
        headers: { ETag: "Changes whenever the content changes" },
      },
      304: { description: "The caller already has the current content" },
    },
  },
};

export const UI_OPERATIONS: Readonly<Record<"asset" | "page" | "root", Operation>> = {
  root: {
    id: "root",
    tag: "ui",
    summary: "Redirect to the admin page",
    access: "anyone",
    answers: { 302: { description: "To /ui", headers: { Location: "/ui" } } },
  },
  page: {
    id: "uiPage",
    tag: "ui",
    summary: "Load the admin page",
    access: "anyone",
    answers: { 200: { description: "The admin page", content: { "text/html": TEXT } } },
  },
  asset: {
    id: "uiAsset",
    tag: "ui",
    summary:
      "Load an asset of the admin page; a path without a file extension returns the page itself",
    access: "anyone",
    parameters: [inPath("path", "The path of the asset; may contain slashes")],
    answers: { 200: { description: "The asset", content: { "*/*": { description: "Bytes" } } } },
    errors: { 404: ["not_found"] },
  },
};
